/*
 * container.h - purpose: one container as the daemon knows it, and its file.
 *
 *	         CreateContainer          StartContainer            the process ends
 *	(nothing) -------------> CREATED ---------------> RUNNING ------------------> EXITED ---> (removed)
 *	                            |        start failed: 128, StartError              ^
 *	                            +---------------------------------------------------+
 *
 * A container that was never started stays CREATED when it is stopped: there is no end to report.
 *
 * RUNNING and EXITED are not written down by us: the monitor's pid and exit files are the truth, read again at start.
 * Only what they cannot say (a failed start, a lost process) stands in our own file.
 *
 * Fields are protected by the store's lock; what never changes after CreateContainer (id, config apart from resources,
 * paths, user) may be read without it.
 */
#pragma once
#include "common/cri/message.h"
#include "runtime-lite/engine/pod.h"
#include "runtime-lite/model/sandbox.h"
#include "runtime-lite/spec/user.h"

/* CREATING is invisible to clients. */
enum container_state { CONTAINER_CREATING, CONTAINER_CREATED, CONTAINER_RUNNING, CONTAINER_EXITED };

struct container {
	char *id;
	char *name; /* unique: container_pod_namespace_uid_attempt */
	struct sandbox *sandbox; /* a reference */
	struct container *next_in_pod;
	CRI(ContainerConfig) * config; /* as the client sent it; linux->resources follows updates */
	char *dir;	  /* <sandbox dir>/containers/<id> */
	char *layer_dir;  /* <root>/containers/<id>: upper, work, merged */
	char *image_id;	  /* "sha256:<hex>" */
	char *image_ref;  /* a repo digest, else the id */
	char *image_name; /* what people call it: a tag, else what was asked for */
	char *log_path;	  /* absolute, NULL: none */
	char *cgroup;
	struct strv lower; /* layers, top first */
	struct strv volumes; /* targets of <layer dir>/volumes/<n> */
	struct strv env, args; /* of the process */
	char *cwd;
	struct user user;
	int stop_signal;
	uint64_t created_ns, started_ns, finished_ns; /* realtime, 0: not yet */

	enum container_state state;
	pid_t pid; /* while RUNNING */
	int exit_code;
	char *reason, *message; /* of EXITED; NULL: by the exit code */
	bool oom;
	bool starting;	   /* StartContainer is at work: an end is published by it, after the start */
	bool exit_pending; /* it ended meanwhile */
	bool removing;
	bool stop_signalled; /* the stop signal was sent once */
	uint64_t kill_at_ns; /* monotonic, also in the file: until the next boot it means the same. 0: not asked to stop */

	uint64_t cpu_sample_ns, cpu_sample_usage_ns, cpu_nano_cores;
	uint64_t layer_bytes, layer_inodes; /* of the writable layer, when last looked */
	uint64_t layer_sampled_ns, layer_next_ns; /* monotonic; next: not to be walked before */
	_Atomic unsigned refs;
};

/* `sandbox` is referenced, `config` is taken. */
struct container *container_new(const char *id, CRI(ContainerConfig) * config, struct sandbox *sandbox,
	const char *root_dir);
struct container *container_ref(struct container *c);
struct container *container_unref(struct container *c); /* NULL is fine; returns NULL */
DEFINE_CLEANUP(struct container *, container_unref)
#define _cleanup_container_ _cleanup_(container_unref_p)

char *container_name(const CRI(ContainerMetadata) * metadata, const CRI(PodSandboxMetadata) * pod) MUST_USE;

/* The transitions. True if something changed; calling them twice is fine, so that events, exit files and recovery may all
 * report the same end. */
bool container_set_running(struct container *c, pid_t pid, uint64_t started_ns);
bool container_set_exited(struct container *c, const struct exit_record *exit);
/* A start that failed: 128, "StartError" and the text for people. */
bool container_set_start_failed(struct container *c, const char *message, uint64_t now_ns);
/* Nobody knows how it ended: 255, "Unknown". */
bool container_set_lost(struct container *c, uint64_t now_ns);
/* "Completed", "Error", "OOMKilled", "StartError", "Unknown"; "" while it has not ended. */
const char *container_reason(const struct container *c);

json_t *container_to_json(const struct container *c) MUST_USE;
int container_from_json(const json_t *json, struct sandbox *sandbox, const char *root_dir, struct container **ret,
	struct error *err) MUST_USE;

/* Never NULL inside; makes the missing messages of a config. */
CRI(LinuxContainerResources) * container_resources(struct container *c);
