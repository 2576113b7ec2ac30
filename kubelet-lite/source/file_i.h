/* file_i.h - purpose: what the two halves of the manifests directory share: reading (file.c), writing (file_write.c). */
#pragma once
#include "common/base/map.h"
#include "kubelet-lite/source/file.h"

#include <sys/stat.h>

/* An object in a file, without its content. */
struct entry {
	enum object_kind kind;
	char *key;
	uint64_t hash; /* of its content */
	unsigned line;
	json_t *tree; /* only during the scan that read it */
	bool reported_duplicate;
};

struct file {
	char *name;
	struct stat stat; /* as it was read */
	struct entry *entries;
	size_t n;
	bool broken;        /* something in it could not be understood */
	bool listed;        /* by the present scan */
	bool read;          /* stat and entries are of a read */
	uint64_t writer_ns; /* modified then, and not closed since */
	uint64_t missing_ns; /* not in the directory since then; 0: it is there */
	uint64_t empty_ns;   /* without any document since then */
	uint64_t problem_hash;
};

/* What was put into the store. */
struct applied {
	enum object_kind kind;
	uint64_t hash;
	uint64_t refused; /* hash of a version that the store did not take */
	char *file;
	bool in_store;
	bool wanted; /* by the present scan */
};

struct file_source {
	uv_loop_t *loop;
	struct objects *store;
	char *dir;
	int inotify_fd;
	int watch;
	uv_poll_t poll;
	uv_timer_t settle;
	uv_timer_t rescan;
	unsigned open_handles;
	struct map files;   /* name -> struct file */
	struct map applied; /* key -> struct applied */
	bool missing;       /* the directory itself */
};

void file_free(void *file);
void file_applied_free(void *applied);
/* Compares the directory with what was put into the store, and makes them the same. */
void file_scan(struct file_source *s);
/* A Service that clashed with another may fit now. */
void file_forget_refusals(struct file_source *s);
