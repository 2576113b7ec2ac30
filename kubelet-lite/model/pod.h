/*
 * pod.h - purpose: a Pod as the node works with it: decoded once from the object's JSON, then read only.
 *
 * Everything lives in the pod's arena. Strings are never NULL unless said so. What the API has defaulted (ports'
 * protocol, probe periods, pull policies, ...) is taken as it is; missing values get the API's default here as well, so
 * that a pod decoded from a bare manifest (tests) means the same.
 *
 * What kubelet-lite cannot do is not dropped: its field path is kept in `unsupported`, and admission refuses the pod.
 */
#pragma once
#include "common/base/arena.h"
#include "common/base/quantity.h"

#include <jansson.h>

struct kv {
	const char *key;
	const char *value;
};
struct kv_list {
	struct kv *v;
	size_t n;
};
struct str_list {
	const char **v;
	size_t n;
};
const char *kv_get(const struct kv_list *list, const char *key); /* NULL if absent */
bool str_list_has(const struct str_list *list, const char *s);

enum restart_policy { RESTART_ALWAYS, RESTART_ON_FAILURE, RESTART_NEVER };
enum pull_policy { PULL_ALWAYS, PULL_IF_NOT_PRESENT, PULL_NEVER };
enum dns_policy { DNS_CLUSTER_FIRST, DNS_CLUSTER_FIRST_WITH_HOST_NET, DNS_DEFAULT, DNS_NONE };

/* One entry of requests or limits. */
struct resource {
	const char *name;
	struct quantity amount;
	const char *text; /* as it was written */
};
struct resource_list {
	struct resource *v;
	size_t n;
};
bool resource_get(const struct resource_list *list, const char *name, struct quantity *ret);

struct port_ref {
	int number;	  /* 0: by name */
	const char *name; /* "" when by number */
};

enum handler_kind { HANDLER_NONE, HANDLER_EXEC, HANDLER_HTTP, HANDLER_TCP, HANDLER_GRPC, HANDLER_SLEEP };

/* What a probe or a hook does. */
struct handler {
	enum handler_kind kind;
	struct str_list command; /* exec */
	const char *host;	 /* http, tcp: "" means the pod's address */
	struct port_ref port;	 /* http, tcp, grpc */
	const char *path;	 /* http */
	bool https;
	struct kv_list headers;
	const char *service; /* grpc */
	int64_t sleep_seconds;
};

struct probe {
	struct handler handler; /* HANDLER_NONE: there is no such probe */
	int initial_delay_seconds;
	int timeout_seconds;
	int period_seconds;
	int success_threshold;
	int failure_threshold;
	int64_t grace_seconds; /* -1: the pod's */
};

enum probe_kind { PROBE_STARTUP, PROBE_LIVENESS, PROBE_READINESS, PROBE_KINDS };

enum env_kind { ENV_VALUE, ENV_FIELD, ENV_RESOURCE, ENV_CONFIG_MAP, ENV_SECRET };

struct field_ref {
	const char *path;
};
struct resource_ref {
	const char *container; /* "" in env: this one */
	const char *resource;
	struct quantity divisor;
};

struct env_var {
	const char *name;
	enum env_kind kind;
	const char *value;  /* ENV_VALUE */
	const char *object; /* ENV_CONFIG_MAP, ENV_SECRET */
	const char *key;
	bool optional;
	struct field_ref field;
	struct resource_ref resource;
};

struct env_from {
	const char *prefix;
	bool secret; /* else a ConfigMap */
	const char *object;
	bool optional;
};

struct container_port {
	const char *name;
	const char *protocol; /* TCP, UDP, SCTP */
	int container_port;
	int host_port; /* 0: none */
	const char *host_ip;
};

struct volume_mount {
	const char *volume;
	const char *path;
	const char *sub_path;
	const char *sub_path_expr;
	bool read_only;
	bool recursive_read_only; /* IfPossible or Enabled */
	const char *propagation;  /* "None", "HostToContainer", "Bidirectional" */
};

enum tristate { TRI_UNSET = -1, TRI_FALSE = 0, TRI_TRUE = 1 };

struct profile {
	const char *type; /* "" unset, RuntimeDefault, Unconfined, Localhost */
	const char *localhost;
};

/* Of a pod or a container; -1 and "" are unset. */
struct security {
	int64_t run_as_user;
	int64_t run_as_group;
	enum tristate run_as_non_root;
	enum tristate privileged;
	enum tristate read_only_root;
	enum tristate allow_escalation;
	struct str_list cap_add;
	struct str_list cap_drop;
	struct profile seccomp;
	struct profile apparmor;
	const char *proc_mount;
	struct kv_list selinux; /* user, role, type, level */
};

enum container_kind { CONTAINER_INIT, CONTAINER_SIDECAR, CONTAINER_REGULAR };

struct container {
	const char *name;
	enum container_kind kind;
	const char *image;
	enum pull_policy pull;
	struct str_list command;
	struct str_list args;
	const char *working_dir;
	struct env_var *env;
	size_t n_env;
	struct env_from *env_from;
	size_t n_env_from;
	struct container_port *ports;
	size_t n_ports;
	struct volume_mount *mounts;
	size_t n_mounts;
	struct resource_list requests; /* limits where no request is given, as the API does */
	struct resource_list limits;
	struct probe probes[PROBE_KINDS];
	struct handler post_start;
	struct handler pre_stop;
	const char *termination_path;
	bool termination_from_logs; /* FallbackToLogsOnError */
	struct security security;
	bool is_stdin, stdin_once, tty;
	const char *stop_signal; /* "" */
	uint32_t hash;		 /* of what makes a restart necessary: name and image */
};

enum volume_kind { VOLUME_EMPTY_DIR, VOLUME_HOST_PATH, VOLUME_PAYLOAD };
enum payload_kind { PAYLOAD_CONFIG_MAP, PAYLOAD_SECRET, PAYLOAD_DOWNWARD };

/* One file of a payload volume that is named in the manifest. */
struct payload_item {
	const char *key;
	const char *path;
	int mode;		/* -1: the volume's */
	struct field_ref field; /* downward API: one of both */
	struct resource_ref resource;
};

/* configMap, secret, downwardAPI: one source; projected: any number. */
struct payload_source {
	enum payload_kind kind;
	const char *object;
	bool optional;
	struct payload_item *items;
	size_t n_items; /* 0: all keys */
};

struct volume {
	const char *name;
	enum volume_kind kind;
	const char *type_name; /* "empty-dir", "configmap", "secret", "downward-api", "projected", "host-path" */
	const char *medium;    /* emptyDir: "", "Memory", "HugePages", "HugePages-2Mi" */
	bool has_size_limit;
	struct quantity size_limit;
	const char *host_path;
	const char *host_type;
	int default_mode;
	bool on_tmpfs; /* payloads that must not reach a disk */
	struct payload_source *sources;
	size_t n_sources;
};

struct host_alias {
	const char *ip;
	struct str_list names;
};

struct pod {
	struct arena arena;
	const char *ns;
	const char *name;
	const char *uid;
	uint64_t generation;
	uint64_t created_ns; /* realtime; 0 unknown */
	bool deleting;
	int64_t deletion_grace_seconds; /* -1: none */
	struct kv_list labels;
	struct kv_list annotations;

	struct container *containers; /* init containers and sidecars in order, then the regular ones */
	size_t n_containers;
	size_t n_init;
	struct volume *volumes;
	size_t n_volumes;

	enum restart_policy restart;
	int64_t grace_seconds;
	int64_t active_deadline_seconds; /* -1: none */
	const char *node_name;
	const char *service_account;
	bool host_network, host_pid, host_ipc;
	bool share_pid;
	bool service_links;
	const char *hostname;
	const char *subdomain;
	bool hostname_as_fqdn;
	const char *hostname_override;
	struct host_alias *host_aliases;
	size_t n_host_aliases;
	enum dns_policy dns;
	struct str_list dns_servers;
	struct str_list dns_searches;
	struct kv_list dns_options; /* value "" for none */
	struct security security;
	int64_t fs_group; /* -1 */
	bool fs_group_on_root_mismatch;
	int64_t *supplemental_groups;
	size_t n_supplemental_groups;
	bool strict_groups;
	struct kv_list sysctls;
	struct str_list pull_secrets;
	struct kv_list node_selector;
	struct str_list readiness_gates;
	const char *os;
	const char *unsupported; /* "spec.volumes[0].nfs: ..." of the first thing we cannot do; NULL: none */
};

/* Decodes and drops nothing silently. Errors are ERROR_INVALID and name the field. */
int pod_decode(const json_t *tree, struct pod **ret, struct error *err) MUST_USE;
struct pod *pod_free(struct pod *pod);
DEFINE_CLEANUP(struct pod *, pod_free)

/* Index of a container by name, or -1. */
int pod_container(const struct pod *pod, const char *name);
const struct volume *pod_volume(const struct pod *pod, const char *name);
/* "spec.containers{web}", as events spell it. Owned by the caller. */
char *pod_field_path(const struct container *container) MUST_USE;
/* Does the pod read this ConfigMap or Secret (env, envFrom, volumes)? */
bool pod_uses(const struct pod *pod, bool secret, const char *object);
/* A probe's or hook's port by number or by the name of one of the container's ports; 0 if there is none. */
int container_port_number(const struct container *container, const struct port_ref *port);

/* Decodes the JSON of one lifecycle handler (a hook kept in an annotation) into `arena`. HANDLER_NONE if it is none. */
struct handler handler_decode(struct arena *arena, const json_t *tree);
