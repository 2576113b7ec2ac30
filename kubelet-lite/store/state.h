/*
 * state.h - purpose: what must outlive the process about objects: uid, creation time, addresses, the resourceVersion.
 *
 * A file "objects.json" in the root directory, written beside and renamed. The resourceVersion is reserved in blocks, so
 * that it never goes backwards without a write for each change. A lock on "objects.lock" refuses a second process.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/map.h"

struct saved {
	char *uid;
	char *hash;       /* pods: of the spec as it was written */
	int64_t created;  /* seconds since 1970 */
	char *cluster_ip; /* or NULL */
	char *node_ports; /* "TCP/http=30080,UDP/=30081", or NULL */
	unsigned unseen;  /* starts of the process without the object */
};

enum { STATE_VERSION = 1, STATE_UNSEEN_MAX = 10, STATE_RESERVE = 1000000 };

struct state {
	char *path;       /* NULL: nothing is kept */
	int lock_fd;
	struct map saved; /* "Pod/default/web" -> struct saved */
	uint64_t version_limit;
};
#define STATE_INIT ((struct state){ .lock_fd = -1 })

/* root_dir NULL: keeps nothing. A file of a later version is refused; a broken one is set aside with a warning. Reserves
 * a block of versions: they start at *ret_version. */
int state_open(struct state *s, const char *root_dir, uint64_t *ret_version, struct error *err) MUST_USE;
int state_write(const struct state *s, struct error *err) MUST_USE;
void state_done(struct state *s);
struct saved *state_get(const struct state *s, const char *key);
/* Finds or makes. */
struct saved *state_entry(struct state *s, const char *key);
void state_forget(struct state *s, const char *key);
