/*
 * proxy.h - purpose: the running daemon: when to sync, repair, sweep flows and collect chains.
 *
 * Loop thread only. All state changes lead to a kick; a kick starts a timer; the timer syncs what is dirty. So changes
 * that arrive together are one transaction, and a failure is only a later timer.
 */
#pragma once
#include "proxy-lite/kernel/addresses.h"
#include "proxy-lite/sync/sync.h"
#include "proxy-lite/health/checks.h"
#include "proxy-lite/watch/watch.h"

#include <uv.h>

struct proxy_options {
	struct base_config base;
	char pods_interface[20]; /* what base.pods_interface points to in the options given to proxy_start() */
	struct node_identity node;
	struct sock_address api;	      /* a Unix socket, unless there is a: */
	const char *kubeconfig;		      /* path, borrowed */
	const char *config;		      /* configuration file to look after, borrowed; NULL: none */
	struct address_choice node_addresses; /* ownership goes over */
	bool pods_of_node;		      /* the pods' ranges are those of our Node */
	uint64_t min_sync_ms;		      /* shortest time between two transactions */
	uint64_t check_ms;		      /* how often the generation is compared, as a safety net */
};

struct proxy {
	struct proxy_options options;
	uv_loop_t *loop;
	struct services services;
	struct sync sync;
	struct watch *watch;
	struct checks *checks;
	struct node_state node;
	struct timespec config_stamp; /* of the configuration file */
	struct netlink addresses;
	uv_poll_t monitor_poll, address_poll;
	uv_timer_t sync_timer, check_timer, flow_timer, collect_timer, address_timer;
	unsigned open_handles;
	void (*closed)(void *data);
	void *closed_data;

	/* Level state of the sync: */
	bool synced_once;
	uint64_t started_ms;	 /* wall clock */
	uint64_t dirty_since_ns; /* monotonic: oldest change not yet in the kernel; 0: none */
	uint64_t last_sync_ns;	 /* monotonic, end of the last good run */
	uint64_t last_sync_ms;	 /* wall clock, the same */
	uint64_t last_queued_ms; /* wall clock, last kick */
	uint64_t repair_ns;	 /* monotonic: last repair */
	unsigned failures;	 /* in a row */
	char last_error[ERROR_TEXT_MAX];
	unsigned flow_rounds; /* sweeps of flows still to come */

	/* For metrics: */
	uint64_t repairs, flows_deleted, collect_failures;
	uint64_t synced_changes[2]; /* services.changes at the last good sync */
};

int proxy_start(struct proxy *p, uv_loop_t *loop, struct proxy_options *options, struct error *err) MUST_USE;
/* `closed` is called when all handles are closed. The table stays as it is. */
void proxy_stop(struct proxy *p, void (*closed)(void *data), void *data);
void proxy_done(struct proxy *p);
/* May load balancers send traffic here? */
bool proxy_eligible(const struct proxy *p);
/* Is what the API wants in the kernel, or at least not late? */
bool proxy_healthy(const struct proxy *p);
