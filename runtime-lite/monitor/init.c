/* init.c - purpose: PID 1 of a PID namespace that the containers of a pod share. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "runtime-lite/monitor/monitor.h"
#include "runtime-lite/monitor/sys.h"

/* PID 1 of a shared PID namespace: reaps, and sleeps. */
static _Noreturn void init_main(void)
{
	static const char name[] = "pod-init";
	sigset_t set;
	int signal;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	prctl(PR_SET_NAME, name, 0, 0, 0);
	syscall(SYS_close_range, 0, ~0u, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (;;) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		sigwait(&set, &signal);
	}
}

int process_spawn_init(struct error *err)
{
	struct process *p = process_new(PROCESS_INIT, "", -1);
	char path[32];

	p->pid = sys_clone3(CLONE_NEWPID, &p->pidfd, -1);
	if (p->pid == 0)
		init_main();
	if (p->pid < 0)
		return error_sys(err, errno, "make the pod's PID namespace");
	p->state = PROCESS_RUNNING;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)p->pid);
	monitor.pod_pidns = open(path, O_RDONLY | O_CLOEXEC);
	return monitor.pod_pidns < 0 ? error_sys(err, errno, "open the pod's PID namespace") : 0;
}
