/* resources.c - purpose: CRI's resources and the engine's limits. Pure. */
#include "runtime-lite/spec/resources.h"

int resources_to_limits(const CRI(LinuxContainerResources) * resources, struct cgroup_limits *ret, struct error *err)
{
	struct cgroup_limits limits = CGROUP_LIMITS_INIT;

	if (!resources) {
		*ret = limits;
		return 0;
	}
	if (resources->cpu_shares < 0 || resources->cpu_period < 0)
		return error_set(err, ERROR_INVALID, "%s %lld is negative",
			resources->cpu_shares < 0 ? "cpu_shares" : "cpu_period",
			(long long)(resources->cpu_shares < 0 ? resources->cpu_shares : resources->cpu_period));
	limits.memory_bytes = resources->memory_limit_in_bytes;
	limits.memory_swap_bytes = resources->memory_swap_limit_in_bytes;
	limits.cpu_shares = (uint64_t)resources->cpu_shares;
	limits.cpu_quota_us = resources->cpu_quota;
	limits.cpu_period_us = (uint64_t)resources->cpu_period;
	limits.cpuset_cpus = *resources->cpuset_cpus ? xstrdup(resources->cpuset_cpus) : NULL;
	limits.cpuset_mems = *resources->cpuset_mems ? xstrdup(resources->cpuset_mems) : NULL;
	for (size_t i = 0; i < resources->n_hugepage_limits; i++)
		cgroup_limits_set_hugetlb(&limits, resources->hugepage_limits[i]->page_size,
			resources->hugepage_limits[i]->limit);
	for (size_t i = 0; i < resources->n_unified; i++)
		cgroup_limits_set_unified(&limits, resources->unified[i]->key, resources->unified[i]->value);
	int r = cgroup_limits_check(&limits, err);
	if (r < 0) {
		cgroup_limits_done(&limits);
		return r;
	}
	*ret = limits;
	return 0;
}

static void merge_hugepages(CRI(LinuxContainerResources) * stored, const CRI(LinuxContainerResources) * update)
{
	for (size_t i = 0; i < update->n_hugepage_limits; i++) {
		const CRI(HugepageLimit) *want = update->hugepage_limits[i];
		size_t k = 0;

		while (k < stored->n_hugepage_limits && !str_eq(stored->hugepage_limits[k]->page_size, want->page_size))
			k++;
		if (k < stored->n_hugepage_limits)
			stored->hugepage_limits[k]->limit = want->limit;
		else
			message_add(&stored->n_hugepage_limits, &stored->hugepage_limits, message_copy(want));
	}
}

static void merge_unified(CRI(LinuxContainerResources) * stored, const CRI(LinuxContainerResources) * update)
{
	for (size_t i = 0; i < update->n_unified; i++) {
		size_t k = 0;

		while (k < stored->n_unified && !str_eq(stored->unified[k]->key, update->unified[i]->key))
			k++;
		if (k < stored->n_unified)
			message_set(&stored->unified[k]->value, update->unified[i]->value);
		else
			message_map_add(&stored->n_unified, &stored->unified,
				&runtime__v1__linux_container_resources__unified_entry__descriptor,
				update->unified[i]->key, update->unified[i]->value);
	}
}

void resources_merge(CRI(LinuxContainerResources) * stored, const CRI(LinuxContainerResources) * update)
{
	if (update->cpu_period)
		stored->cpu_period = update->cpu_period;
	if (update->cpu_quota)
		stored->cpu_quota = update->cpu_quota;
	if (update->cpu_shares)
		stored->cpu_shares = update->cpu_shares;
	if (update->memory_limit_in_bytes)
		stored->memory_limit_in_bytes = update->memory_limit_in_bytes;
	if (update->memory_swap_limit_in_bytes)
		stored->memory_swap_limit_in_bytes = update->memory_swap_limit_in_bytes;
	if (update->oom_score_adj)
		stored->oom_score_adj = update->oom_score_adj;
	if (*update->cpuset_cpus)
		message_set(&stored->cpuset_cpus, update->cpuset_cpus);
	if (*update->cpuset_mems)
		message_set(&stored->cpuset_mems, update->cpuset_mems);
	merge_hugepages(stored, update);
	merge_unified(stored, update);
}
