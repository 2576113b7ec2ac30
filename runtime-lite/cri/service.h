/*
 * service.h - purpose: what the handlers of CRI share, and the table of methods.
 *
 * The loop thread owns streams, timers and subscriptions; handlers of kind RPC_JOB run on worker threads and meet the
 * loop only through the store (its lock) and service_post().
 */
#pragma once
#include "common/net/rpc_server.h"
#include "runtime-lite/image/store.h"
#include "runtime-lite/model/store.h"
#include "runtime-lite/net/bridge.h"

struct events;
struct stops;
struct pulls;
struct watches;
struct stream_server;

struct service_options {
	const char *state_dir, *root_dir, *libexec_dir; /* absolute */
	const char *cgroup_parent;
	const char *bridge_name, *pod_cidr;
	const struct strv *insecure_registries;
	const char *registry_config_dir; /* NULL: the default */
	const char *streaming_address;
	const struct strv *pinned_images;
	struct image_limits image_limits;
	uint64_t nofile;
};

struct posted;

struct service {
	uv_loop_t *loop;
	struct service_options options;
	struct store *store;
	struct image_store *images;
	struct bridge_network *network;
	char *pod_cidr; /* of the flag, or what a kubelet has set; protected by the store's lock */
	char *monitors_cgroup;
	char node_hostname[65];
	uint64_t caps; /* what containers may have at most */
	uint64_t started_ns; /* realtime */

	struct events *events;
	struct stops *stops;
	struct pulls *pulls;
	struct watches *watches;
	struct stream_server *streams;

	uv_async_t async;
	uv_timer_t late; /* a second look after a recovery */
	uv_timer_t settle; /* when nothing has changed for a while */
	pthread_mutex_t post_lock;
	struct posted *posted;
};

/* Opens the stores, recovers what ran before, and prepares for calls. Blocking. */
int service_new(uv_loop_t *loop, const struct service_options *options, struct service **ret, struct error *err)
	MUST_USE;
/* Loop thread, when no call and no job is left: closes handles; run the loop until they are gone, then service_free(). */
void service_close(struct service *svc);
struct service *service_free(struct service *svc);
const struct rpc_method *service_methods(void);

/* Runs fn(data) on the loop thread soon. Any thread. */
void service_post(struct service *svc, void (*fn)(void *data), void *data);
/* Loop thread. Something has changed: when all is quiet again, memory goes back to the system. */
void service_settle(struct service *svc);
/* Asks call->cancelled for operation_begin(). */
bool service_cancelled(const void *call);
/* Milliseconds until the call's deadline, at most `max_ms`, at least 1. */
uint64_t service_time_left_ms(const struct rpc_call *call, uint64_t max_ms);
