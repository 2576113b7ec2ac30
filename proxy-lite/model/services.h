/*
 * services.h - purpose: all Services with their EndpointSlices, and which of them changed since the last sync.
 *
 * Pure: fed with JSON objects, asked for dirty entries. An object equal to the one before makes nothing dirty, so a
 * re-list costs no sync. A malformed object is reported to the problems, and left out.
 */
#pragma once
#include "common/base/map.h"
#include "proxy-lite/model/object.h"
#include "proxy-lite/model/problems.h"

struct frontend; /* compile/frontend.h */

/* One Service name: the Service may be missing (only slices came yet), or the slices may. */
struct service_entry {
	struct service *service;
	struct slice **slices;
	uint32_t n_slices;
	bool dirty;
	bool contested;		    /* another Service holds one of its frontends */
	bool seen;		    /* in the running list */
	bool taken;		    /* in the transaction that is being planned */
	struct service_entry *next; /* in the dirty list */
	struct frontend *frontends; /* owned by the table (sync): what the kernel holds for it */
	char key[];		    /* "namespace/name" */
};

enum object_kind { OBJECT_SERVICE, OBJECT_SLICE };

struct services {
	struct node_identity node; /* strings are borrowed */
	struct map entries;	   /* key -> struct service_entry */
	struct map slices;	   /* key -> struct slice */
	struct service_entry *dirty, *dirty_last;
	size_t n_dirty, n_services, n_health_ports;
	struct problems problems;
	uint64_t changes[2];	    /* by object_kind: how many objects differed from before */
	uint64_t oldest_trigger_ms; /* earliest trigger time among the dirty; 0: none */
};

void services_init(struct services *s, const struct node_identity *node);
void services_done(struct services *s);

/* Added or modified; true when something a packet can notice changed. */
bool services_put(struct services *s, enum object_kind kind, const json_t *object);
bool services_delete(struct services *s, enum object_kind kind, const json_t *object);
/* Between begin and end every object that exists is put; end deletes the others. */
void services_list_begin(struct services *s, enum object_kind kind);
void services_list_end(struct services *s, enum object_kind kind);

struct service_entry *services_find(const struct services *s, const char *key);
/* Marks for the next sync. */
void services_mark(struct services *s, struct service_entry *entry);
void services_mark_all(struct services *s);
/* Next dirty entry, no longer dirty; NULL when there is none. It stays valid until services_sweep(). */
struct service_entry *services_take(struct services *s);
/* Frees an entry that has neither Service nor slices nor frontends. */
void services_sweep(struct services *s, struct service_entry *entry);
