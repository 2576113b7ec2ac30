/*
 * sandbox.h - purpose: one pod sandbox as the daemon knows it, and its file.
 *
 *	            RunPodSandbox              StopPodSandbox, or the monitor died
 *	(nothing) ---> CREATING ---> READY ---------------------------------------> NOTREADY ---> (removed)
 *	                  |  failed or cancelled: undone                               RemovePodSandbox
 *	                  v
 *	              (nothing); NOTREADY if undoing failed, so that a later stop can try again
 *
 * A sandbox in CREATING is invisible to clients. Fields are protected by the store's lock unless said otherwise;
 * what never changes after the sandbox was published (id, name, config, dir, ...) may be read without it.
 */
#pragma once
#include "common/cri/message.h"
#include "runtime-lite/spec/launch.h"

struct container;
struct pod_monitor;

enum sandbox_state { SANDBOX_CREATING, SANDBOX_READY, SANDBOX_NOTREADY };

struct sandbox {
	char *id;
	char *name; /* name_namespace_uid_attempt: unique, reserved while the sandbox exists */
	CRI(PodSandboxConfig) * config; /* as the client sent it */
	char *runtime_handler;
	char *dir;	    /* <state>/sandboxes/<id> */
	char *cgroup;	    /* the pod's */
	bool cgroup_owned;  /* we made it: nobody gave a parent */
	uint64_t created_ns; /* realtime */
	CRI(LinuxContainerResources) * overhead, *resources; /* of UpdatePodSandboxResources, may be NULL */

	enum sandbox_state state;
	bool network_attached; /* has an address to give back; false for the node's network */
	struct strv ips;       /* primary first */
	char *link;	       /* our end of its veth pair, NULL if none */
	bool stopping;	       /* StopPodSandbox is at work: the end of the monitor is expected */
	bool removing;

	struct pod_monitor *monitor; /* NULL: none was found at start. Set once, freed with the sandbox */
	bool monitor_gone;	     /* it has died */
	struct container *containers; /* weak list, linked by next_in_pod */

	const char *operation; /* the one operation that may change the pod now, static text; NULL: none */
	unsigned waiting;      /* calls that wait for their turn */

	uint64_t cpu_sample_ns, cpu_sample_usage_ns; /* for usage_nano_cores */
	uint64_t cpu_nano_cores;
	_Atomic unsigned refs;
};

struct sandbox *sandbox_new(const char *id, CRI(PodSandboxConfig) * config /* taken */, const char *state_dir);
struct sandbox *sandbox_ref(struct sandbox *s);
struct sandbox *sandbox_unref(struct sandbox *s); /* NULL is fine; returns NULL */
DEFINE_CLEANUP(struct sandbox *, sandbox_unref)
#define _cleanup_sandbox_ _cleanup_(sandbox_unref_p)

/* The unique name of a pod instance. */
char *sandbox_name(const CRI(PodSandboxMetadata) * metadata) MUST_USE;

json_t *sandbox_to_json(const struct sandbox *s) MUST_USE;
int sandbox_from_json(const json_t *json, const char *state_dir, struct sandbox **ret, struct error *err) MUST_USE;

/* What the pod asked of a namespace; NULL-safe. Network, PID, IPC: POD, CONTAINER, NODE or TARGET. */
const CRI(NamespaceOption) * sandbox_namespaces(const struct sandbox *s);
static inline bool sandbox_host_network(const struct sandbox *s)
{
	const CRI(NamespaceOption) *ns = sandbox_namespaces(s);

	return ns && ns->network == RUNTIME__V1__NAMESPACE_MODE__NODE;
}
