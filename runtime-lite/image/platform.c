/* platform.c - purpose: which of an image's platforms this node runs best; names as Go spells them. */
#include <sys/utsname.h>

#include "runtime-lite/image/manifest.h"

static const struct {
	const char *alias, *architecture, *variant;
} aliases[] = {
	{ "x86_64", "amd64", "" }, { "x86-64", "amd64", "" },    { "aarch64", "arm64", "" }, { "armhf", "arm", "v7" },
	{ "armel", "arm", "v6" },  { "armv7l", "arm", "v7" },    { "armv6l", "arm", "v6" },  { "i386", "386", "" },
	{ "i686", "386", "" },     { "loongarch64", "loong64", "" },
};

void platform_set(struct platform *p, const char *os, const char *architecture, const char *variant)
{
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++) {
		if (strcmp(architecture, aliases[i].alias) != 0)
			continue;
		architecture = aliases[i].architecture;
		if (!*variant)
			variant = aliases[i].variant;
	}
	/* What everybody has goes without saying. */
	if ((str_eq(architecture, "arm64") && (str_eq(variant, "v8") || str_eq(variant, "8"))) ||
		(str_eq(architecture, "amd64") && str_eq(variant, "v1")))
		variant = "";
	if (str_eq(architecture, "arm") && !*variant)
		variant = "v7";
	*p = (struct platform){ xstrdup(os), xstrdup(architecture), NULL };
	p->variant = *variant >= '5' && *variant <= '9' && !variant[1] ? xasprintf("v%s", variant) : xstrdup(variant);
}

int platform_parse(const char *text, struct platform *ret, struct error *err)
{
	_cleanup_(strv_done) struct strv parts = STRV_INIT;

	strv_split(&parts, text, '/');
	bool good = parts.n == 2 || parts.n == 3;
	for (size_t i = 0; i < parts.n; i++)
		good = good && *parts.v[i] && strspn(parts.v[i], "abcdefghijklmnopqrstuvwxyz0123456789_-.") == strlen(parts.v[i]);
	if (!good)
		return error_set(err, ERROR_INVALID, "platform \"%.100s\" is not os/architecture or os/architecture/variant", text);
	platform_set(ret, parts.v[0], parts.v[1], parts.n == 3 ? parts.v[2] : "");
	return 0;
}

/* The x86-64 microarchitecture level, 1 to 4. */
static unsigned amd64_level(void)
{
#if defined(__x86_64__)
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt") || !__builtin_cpu_supports("ssse3"))
		return 1;
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2") ||
		!__builtin_cpu_supports("fma"))
		return 2;
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512cd") ||
		!__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
		return 3;
	return 4;
#else
	return 1;
#endif
}

void platform_host(struct platform *ret)
{
	struct utsname name;

	if (uname(&name) < 0)
		strcpy(name.machine, "unknown");
	platform_set(ret, "linux", name.machine, "");
	if (str_eq(ret->architecture, "amd64") && amd64_level() > 1) {
		free(ret->variant);
		ret->variant = xasprintf("v%u", amd64_level());
	}
}

void platform_done(struct platform *p)
{
	free(p->os);
	free(p->architecture);
	free(p->variant);
	*p = (struct platform){ 0 };
}

char *platform_text(const struct platform *p)
{
	const char *os = str_empty(p->os) ? "unknown" : p->os;
	const char *architecture = str_empty(p->architecture) ? "unknown" : p->architecture;

	/* A node's own amd64 level would only confuse. */
	if (str_empty(p->variant) || str_eq(architecture, "amd64"))
		return xasprintf("%s/%s", os, architecture);
	return xasprintf("%s/%s/%s", os, architecture, p->variant);
}

/* "v7" -> 7, "" -> 1; anything else 0. */
static unsigned level(const char *variant)
{
	if (!*variant)
		return 1;
	return variant[0] == 'v' && variant[1] >= '1' && variant[1] <= '9' && !variant[2] ? (unsigned)(variant[1] - '0') : 0;
}

unsigned platform_score(const struct platform *node, const struct platform *have)
{
	bool os = str_empty(have->os) || str_eq(have->os, node->os);
	bool architecture = str_empty(have->architecture) || str_eq(have->architecture, node->architecture);

	if (!os || !architecture)
		return 0;
	if (str_empty(have->os) || str_empty(have->architecture))
		return 1;
	unsigned want = level(node->variant), got = level(have->variant);

	if (str_eq(have->variant, node->variant))
		return 100;
	if (want && got)
		return got <= want ? 10 + got : 0;
	/* arm64 v8.2 and the like: unknown to us, better than nothing. */
	return str_eq(node->architecture, "arm64") && str_starts(have->variant, "v8") ? 5 : 0;
}
