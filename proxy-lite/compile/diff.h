/*
 * diff.h - purpose: from what is held to what is wanted by the smallest set of element changes.
 *
 * Pure. A sink takes the elements; kernel/batch.c is one, tests have another. Deletions and additions may come in any
 * order: whoever writes them puts all deletions first.
 */
#pragma once
#include "proxy-lite/compile/frontend.h"

struct element_sink {
	/* `value` has set_value_len() bytes when adding, and for ranges always; for the verdict maps it is NULL, the
	 * key says which chain. Borrowed. */
	void (*element)(void *data, enum set_id set, bool add, const uint8_t *key, const uint8_t *value);
	/* A chain for this plan id must be made (or filled anew), or can go. */
	void (*chain)(void *data, uint32_t plan_id, bool add);
	void *data;
};

/* Either may be NULL, not both. Endpoints must be numbered already: see frontend_renumber(). */
void diff_frontend(const struct frontend *held, const struct frontend *wanted, const struct element_sink *sink);

/* The bytes of keys and values, for diff and its reader. buf has SET_KEY_MAX (SET_VALUE_MAX) bytes. */
void element_frontend_key(const struct frontend_key *key, uint8_t *buf);
void element_endpoint_key(const struct frontend_key *key, uint32_t number, uint8_t *buf);
void element_backend(const struct backend *backend, bool v6, uint8_t *buf);
/* First and last key of a source range. */
void element_range(const struct frontend_key *key, const struct cidr *range, uint8_t *first, uint8_t *last);
void element_address(enum set_id set, const uint8_t *address, uint8_t *buf); /* hairpin: twice; nodeip: once */
