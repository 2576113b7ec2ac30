/* start.c - purpose: entry, raw system calls, errno and the stack guard of the monitor. */
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "runtime-lite/monitor/libc/libc.h"

int main(int argc, char **argv);
_Noreturn void libc_start(long *stack);
_Noreturn void __stack_chk_fail(void);

/* -mstack-protector-guard=global: no thread-local storage is needed. */
uintptr_t __stack_chk_guard;
static int error_number;

#if defined(__x86_64__)
__asm__(".text\n.global _start\n.type _start,@function\n_start:\n"
	"xor %ebp,%ebp\nmov %rsp,%rdi\nand $-16,%rsp\ncall libc_start\nhlt\n");

long libc_call(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return r;
}
#elif defined(__aarch64__)
__asm__(".text\n.global _start\n.type _start,%function\n_start:\n"
	"mov x29,#0\nmov x30,#0\nmov x0,sp\nand sp,x0,#-16\nbl libc_start\nbrk #1\n");

long libc_call(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}
#endif

/* The kernel puts argc, argv, NULL, environment, NULL, auxiliary vector onto the stack. */
__attribute__((no_stack_protector)) _Noreturn void libc_start(long *stack)
{
	int argc = (int)stack[0];
	char **argv = (char **)(stack + 1), **env = argv + argc + 1;

	while (*env)
		env++;
	for (Elf64_auxv_t *aux = (Elf64_auxv_t *)(env + 1); aux->a_type != AT_NULL; aux++)
		if (aux->a_type == AT_RANDOM)
			memcpy(&__stack_chk_guard, (const void *)aux->a_un.a_val, sizeof(__stack_chk_guard));
	_exit(main(argc, argv));
}

_Noreturn void __stack_chk_fail(void)
{
	__builtin_trap();
}

int *__errno_location(void)
{
	return &error_number;
}

long libc_result(long r)
{
	if (r >= 0 || r < -4095)
		return r;
	error_number = (int)-r;
	return -1;
}

long syscall(long nr, ...)
{
	va_list args;
	long a[6];

	va_start(args, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	return libc_result(libc_call(nr, a[0], a[1], a[2], a[3], a[4], a[5]));
}
