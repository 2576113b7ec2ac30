/*
 * sync.h - purpose: bring the kernel's table to what the Services want, one transaction for all that is dirty.
 *
 * Blocking (the kernel commits inside the call); no loop, no timers: proxy.c decides when.
 *
 *	not loaded --dump--> loaded: the held table is known, of generation `gen`
 *	loaded: plan, emit, commit. Refused because of another generation: somebody committed; if it was about our table
 *	        (the monitor knows), dump again; else take the new generation and try again.
 *	        Refused because of an element: what we believe may be wrong, so dump once; if it is refused again, that
 *	        frontend is left out and named in the problems.
 */
#pragma once
#include "proxy-lite/compile/change.h"
#include "proxy-lite/compile/structure.h"
#include "proxy-lite/kernel/batch.h"
#include "proxy-lite/kernel/monitor.h"

struct sync_stats {
	uint64_t commits, failures, repairs, refused, elements;
	uint64_t last_commit_ns; /* how long the last transaction took, planning and all */
	uint64_t last_full_ns, last_partial_ns;
	size_t last_elements;
	bool last_full, last_written;
};

struct sync {
	struct base_config config;
	struct services *services; /* borrowed */
	struct netlink nl;
	bool loaded; /* `table` is what the kernel holds */
	bool fresh;  /* ... just read: what nobody claims goes away with the next transaction */
	uint32_t gen;
	bool check; /* private: compare generations after this commit */
	struct table table;
	struct strays strays;
	struct repair repair;
	struct contests contests;
	struct ip *node_ips;
	size_t n_node_ips;
	/* UDP and SCTP frontends that changed since sync_flows_done(): their flows want a look. */
	bool flows_dirty;
	struct frontend_key *gone;
	size_t n_gone, cap_gone;
	struct sync_stats stats;
	struct monitor monitor; /* not open in commands and benches */
};

/* Opens the socket; services and the config's strings are borrowed. */
int sync_init(struct sync *s, const struct base_config *config, struct services *services, struct error *err) MUST_USE;
void sync_done(struct sync *s);
/* Starts to hear of foreign changes. Poll sync_monitor_fd() for reading, then call sync_hear(). */
int sync_listen(struct sync *s, struct error *err) MUST_USE;
/* Reads notifications. True when our table was changed by somebody else (or may have been): it is forgotten then, and
 * the next run repairs it. `news` tells who. */
bool sync_hear(struct sync *s, struct monitor_news *news);
/* Compares the generation, for when notifications were lost; true as above. */
bool sync_check_generation(struct sync *s);
/* Addresses that node ports are served on; copied. True if they differ from before. */
bool sync_set_node_ips(struct sync *s, const struct ip *ips, size_t n);
/* Reads the table back. */
int sync_load(struct sync *s, struct error *err) MUST_USE;
/* The table is not what we believe any more: the next run reads it back. */
void sync_forget(struct sync *s);
/* Makes the kernel's table what is wanted. -EAGAIN-like failures leave everything dirty for the next try. */
int sync_run(struct sync *s, struct error *err) MUST_USE;
/* Chains for numbers of endpoints that are not used at the moment. */
size_t sync_idle_chains(const struct sync *s);
/* Removes them. They are kept a little after their last use, so that a packet that saw the old number still finds the
 * chain. */
int sync_collect(struct sync *s, struct error *err) MUST_USE;
void sync_flows_done(struct sync *s);
/* Deletes the whole table; fine if there is none. */
int sync_cleanup(struct sync *s, struct error *err) MUST_USE;
