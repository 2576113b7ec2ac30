/*
 * problems.h - purpose: what was left out and why, one text for each object, told once.
 *
 * Pure but for the report callback, which is called when the text of an object is new or has changed.
 */
#pragma once
#include "common/base/map.h"

struct problems {
	struct map texts;						  /* "Service ns/name" -> char * */
	uint64_t total;							  /* reports so far */
	void (*report)(void *data, const char *object, const char *text); /* may be NULL */
	void *data;
};

void problems_init(struct problems *p, void (*report)(void *data, const char *object, const char *text), void *data);
void problems_done(struct problems *p);
/* text NULL or "": the object is well again, or gone. */
void problems_set(struct problems *p, const char *kind, const char *key, const char *text);
