/*
 * events.h - purpose: record Kubernetes Events: what happened to an object, counted and bounded.
 *
 * The same thing said again (object, type, reason, message) raises count and lastTimestamp of the Event that exists. At
 * most EVENTS_MAX are kept, each for an hour.
 */
#pragma once
#include "kubelet-lite/store/objects.h"

enum { EVENTS_MAX = 1000 };

/* type: "Normal" or "Warning"; component: "kubelet". Also logs a line (Warning: as a warning, Normal: debug). */
void events_record(struct objects *store, const struct object *about, const char *type, const char *reason,
	const char *component, const char *fmt, ...) PRINTF(6, 7);
/* An Event that a client wrote: new, or a later version of one that is there. Bounded like the others. */
int events_put(struct objects *store, json_t *tree, struct error *err) MUST_USE;
/* For one container: field_path "spec.containers{web}". */
void events_record_at(struct objects *store, const struct object *about, const char *field_path, const char *type,
	const char *reason, const char *component, const char *fmt, ...) PRINTF(7, 8);
/* About something that is no object here (a rejected manifest): kind "Pod", ns, name as far as known. */
void events_record_for(struct objects *store, const char *kind, const char *ns, const char *name, const char *uid,
	const char *type, const char *reason, const char *component, const char *fmt, ...) PRINTF(9, 10);
