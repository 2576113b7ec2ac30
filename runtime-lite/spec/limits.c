/* limits.c - purpose: resource limits of a cgroup as plain data, and how an update merges into them. */
#include "runtime-lite/spec/limits.h"

void cgroup_limits_done(struct cgroup_limits *l)
{
	free(l->cpuset_cpus);
	free(l->cpuset_mems);
	for (size_t i = 0; i < l->n_hugetlb; i++)
		free(l->hugetlb[i].page_size);
	free(l->hugetlb);
	for (size_t i = 0; i < l->n_unified; i++) {
		free(l->unified[i].key);
		free(l->unified[i].value);
	}
	free(l->unified);
	*l = CGROUP_LIMITS_INIT;
}

void cgroup_limits_set_hugetlb(struct cgroup_limits *l, const char *page_size, uint64_t limit_bytes)
{
	for (size_t i = 0; i < l->n_hugetlb; i++)
		if (str_eq(l->hugetlb[i].page_size, page_size)) {
			l->hugetlb[i].limit_bytes = limit_bytes;
			return;
		}
	l->hugetlb = xreallocarray(l->hugetlb, l->n_hugetlb + 1, sizeof(*l->hugetlb));
	l->hugetlb[l->n_hugetlb++] = (struct cgroup_hugetlb){ xstrdup(page_size), limit_bytes };
}

void cgroup_limits_set_unified(struct cgroup_limits *l, const char *key, const char *value)
{
	for (size_t i = 0; i < l->n_unified; i++)
		if (str_eq(l->unified[i].key, key)) {
			char *copy = xstrdup(value);

			free(l->unified[i].value);
			l->unified[i].value = copy;
			return;
		}
	l->unified = xreallocarray(l->unified, l->n_unified + 1, sizeof(*l->unified));
	l->unified[l->n_unified++] = (struct cgroup_unified){ xstrdup(key), xstrdup(value) };
}

static void merge_text(char **dst, const char *src)
{
	if (str_empty(src))
		return;
	char *copy = xstrdup(src);

	free(*dst);
	*dst = copy;
}

void cgroup_limits_merge(struct cgroup_limits *l, const struct cgroup_limits *update)
{
	if (update->memory_bytes)
		l->memory_bytes = update->memory_bytes;
	if (update->memory_swap_bytes)
		l->memory_swap_bytes = update->memory_swap_bytes;
	if (update->memory_low_bytes)
		l->memory_low_bytes = update->memory_low_bytes;
	if (update->cpu_shares)
		l->cpu_shares = update->cpu_shares;
	if (update->cpu_quota_us)
		l->cpu_quota_us = update->cpu_quota_us;
	if (update->cpu_period_us)
		l->cpu_period_us = update->cpu_period_us;
	if (update->pids_max)
		l->pids_max = update->pids_max;
	merge_text(&l->cpuset_cpus, update->cpuset_cpus);
	merge_text(&l->cpuset_mems, update->cpuset_mems);
	for (size_t i = 0; i < update->n_hugetlb; i++)
		cgroup_limits_set_hugetlb(l, update->hugetlb[i].page_size, update->hugetlb[i].limit_bytes);
	for (size_t i = 0; i < update->n_unified; i++)
		cgroup_limits_set_unified(l, update->unified[i].key, update->unified[i].value);
}

void cgroup_limits_copy(struct cgroup_limits *dst, const struct cgroup_limits *src)
{
	*dst = CGROUP_LIMITS_INIT;
	cgroup_limits_merge(dst, src);
}

static int check_minimum(const char *field, int64_t value, int64_t minimum, struct error *err)
{
	if (value >= minimum)
		return 0;
	return error_set(err, ERROR_INVALID, "%s: %lld: must be %lld or more (0: unset, -1: unlimited)", field,
		(long long)value, (long long)minimum);
}

static int check_cpu_list(const char *field, const char *list, struct error *err)
{
	if (str_empty(list) || strspn(list, "0123456789,-") == strlen(list))
		return 0;
	return error_set(err, ERROR_INVALID, "%s: \"%s\": must be a list like \"0-3,7\"", field, list);
}

int cgroup_limits_check(const struct cgroup_limits *l, struct error *err)
{
	int r = check_minimum("memory limit", l->memory_bytes, -1, err);

	if (r == 0)
		r = check_minimum("memory and swap limit", l->memory_swap_bytes, -1, err);
	if (r == 0)
		r = check_minimum("memory reservation", l->memory_low_bytes, -1, err);
	if (r == 0)
		r = check_minimum("cpu quota", l->cpu_quota_us, -1, err);
	if (r == 0)
		r = check_minimum("pids limit", l->pids_max, -1, err);
	if (r == 0)
		r = check_cpu_list("cpuset cpus", l->cpuset_cpus, err);
	if (r == 0)
		r = check_cpu_list("cpuset mems", l->cpuset_mems, err);
	if (r < 0)
		return r;
	if (l->memory_swap_bytes > 0 && l->memory_bytes == 0)
		return error_set(err, ERROR_INVALID, "memory and swap limit %lld: needs a memory limit",
			(long long)l->memory_swap_bytes);
	if (l->memory_swap_bytes > 0 && l->memory_swap_bytes < l->memory_bytes)
		return error_set(err, ERROR_INVALID, "memory and swap limit %lld: below the memory limit %lld",
			(long long)l->memory_swap_bytes, (long long)l->memory_bytes);
	for (size_t i = 0; i < l->n_hugetlb; i++)
		if (strspn(l->hugetlb[i].page_size, "0123456789KMGB") != strlen(l->hugetlb[i].page_size))
			return error_set(err, ERROR_INVALID, "hugepage size \"%s\": must be like \"2MB\"",
				l->hugetlb[i].page_size);
	for (size_t i = 0; i < l->n_unified; i++)
		if (strchr(l->unified[i].key, '/') || !strchr(l->unified[i].key, '.') || str_starts(l->unified[i].key, "."))
			return error_set(err, ERROR_INVALID, "unified \"%s\": must be a file like \"memory.high\"",
				l->unified[i].key);
	return 0;
}
