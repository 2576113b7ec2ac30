/*
 * change.h - purpose: plan one transaction: from the dirty Services and the held table to pairs of (held, wanted).
 *
 * Pure. plan -> emit (to a batch) -> apply when the kernel took it, or drop when it did not. A contested frontend goes
 * to the older Service (creation time, then name); the other one is told in the problems and gets it when it is free.
 */
#pragma once
#include "proxy-lite/compile/diff.h"
#include "proxy-lite/compile/loader.h"
#include "proxy-lite/compile/table.h"
#include "proxy-lite/model/services.h"

struct change {
	struct frontend *held;	 /* in the table; NULL: new */
	struct frontend *wanted; /* owned; NULL: goes away */
	bool released;		 /* the holder does not want it any more */
	bool idle;		 /* nothing to do after all, or refused by the kernel */
};

struct changes {
	struct change *v;
	size_t n, cap;
	uint32_t *index; /* hash of the keys: position + 1 */
	size_t index_cap;
	struct service_entry **entries; /* taken from the dirty list */
	size_t n_entries, cap_entries;
	const struct strays *strays; /* elements that nothing explains: to be deleted */
	const struct ip *node_ips;   /* wanted; NULL: as held */
	size_t n_node_ips;
	bool full;
};

/* Services that lost a contested frontend. */
struct contests {
	struct service_entry **v;
	size_t n, cap;
};

/* Takes all dirty entries. `full`: the table was just read from the kernel, what no Service claims goes away; strays
 * may be NULL. `changes` must be zero. */
void changes_plan(struct changes *changes, struct services *services, struct table *table, struct contests *contests,
	bool full, const struct strays *strays);
/* The addresses for node ports; borrowed until apply or drop. */
void changes_set_node_ips(struct changes *changes, const struct ip *ips, size_t n);
/* Which change the elements belong to that `sink` gets right after: its position in v, or CHANGE_COMMON. */
enum { CHANGE_COMMON = UINT32_MAX };
void changes_emit(const struct changes *changes, const struct table *table, const struct element_sink *sink,
	void (*cause)(void *data, uint32_t change));
/* The kernel does not take this one: leave it out. */
void changes_refuse(struct changes *changes, struct table *table, uint32_t change);
/* The kernel holds it all now. Frees what is not needed any more; `changes` is empty afterwards. */
void changes_apply(struct changes *changes, struct services *services, struct table *table);
/* Nothing was written: the Services are dirty again. */
void changes_drop(struct changes *changes, struct services *services, struct table *table);
