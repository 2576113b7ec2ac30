/*
 * list_watch.h - purpose: follow one collection of a Kubernetes API: list in pages, then watch, for ever.
 *
 * States: LISTING -> WATCHING -> (stream ended) WATCHING from the last resourceVersion -> (410 Gone, or a watch ERROR)
 * LISTING. Failures back off from 0.8 s to 30 s with jitter and start again where they were. Bookmarks only move the
 * resourceVersion. The consumer sees a level: between on_list_begin and on_list_end every object that exists is given
 * once, what was not given no longer exists. A list that fails half-way begins again (on_list_begin without a
 * on_list_end before it). One malformed object is reported by on_bad and left out.
 * Objects are jansson trees, one at a time (a page is never one tree). Loop thread only.
 */
#pragma once
#include "common/base/error.h"
#include "common/net/http_client.h"

#include <jansson.h>

struct list_watch;

enum watch_event { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED };

struct list_watch_options {
	struct http_client *client; /* borrowed */
	const char *path;	    /* "/api/v1/services" */
	const char *label_selector; /* NULL: none; not yet encoded */
	const char *field_selector;
	unsigned page_size;	   /* 0: 500 */
	unsigned backoff_first_ms; /* 0: 800; for tests */
	void *data;
	void (*on_list_begin)(void *data);
	void (*on_object)(void *data, enum watch_event event, const json_t *object); /* ADDED while listing */
	void (*on_list_end)(void *data);					     /* the first one: synced */
	void (*on_bad)(void *data, const struct error *err);			     /* malformed object; may be NULL */
	void (*on_state)(void *data, bool connected, const struct error *err); /* for logs and health; may be NULL */
};

struct list_watch *list_watch_start(uv_loop_t *loop, const struct list_watch_options *options);
/* No callback any more. */
void list_watch_stop(struct list_watch *lw);
