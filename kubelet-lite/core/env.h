/*
 * env.h - purpose: the environment of a container, and $(VAR) references. Pure; objects come through a callback.
 *
 * Order: envFrom in its order, then env in its order, each name once (a later one takes the place of an earlier one);
 * then the Services' variables that nothing else has named.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/map.h"
#include "common/base/str.h"
#include "common/wire/json.h"
#include "kubelet-lite/core/keyed.h"
#include "kubelet-lite/model/pod.h"

/* NAME, VALUE pairs in order. */
struct env {
	struct strv names;
	struct strv values;
	struct map index; /* name -> position + 1 */
};
void env_done(struct env *env);
const char *env_get(const struct env *env, const char *name);

/* Where values come from. */
struct env_sources {
	void *data;
	keyed_source data_of;
	const struct env *services; /* the Services' variables */
	const char *host_ip;
	const struct str_list *host_ips;
	const struct str_list *pod_ips;
	const char *node_name;
	struct quantity node_cpu, node_memory, node_storage; /* allocatable: limits of containers that have none */
};

/* Errors (ERROR_NOT_FOUND, ERROR_INVALID) have the kubelet's texts: `configmap "x" not found`. */
int env_build(const struct pod *pod, const struct container *container, const struct env_sources *sources,
	struct env *ret, struct error *err) MUST_USE;

/* Replaces $(NAME) by values of `env`; $$ is $; unknown names stay as they are and are reported in *ret_missing (may be
 * NULL). Owned by the caller. */
char *env_expand(const char *text, const struct env *env, bool *ret_missing) MUST_USE;

/* Only what the manifest gives as plain values. */
void env_static(const struct container *container, struct env *ret);

/* A downward API field as text, owned by the caller; NULL when it is none. */
char *env_field(const struct pod *pod, const char *path, const struct env_sources *sources) MUST_USE;
/* limits.* or requests.* of a container as text, owned by the caller. */
char *env_resource(
	const struct container *container, const struct resource_ref *ref, const struct env_sources *sources) MUST_USE;

/* Adds the variables of one Service: {NAME}_SERVICE_HOST, {NAME}_PORT_80_TCP, ... Nothing for a headless one. */
void env_add_service(struct env *env, const json_t *service);
