/*
 * file.h - purpose: the manifests directory as the source of truth: read into the object store, watched by inotify,
 * written for the API.
 *
 * Files *.yaml, *.yml and *.json without a leading dot, in the order of their names; several documents and Lists in one
 * file. Of two objects of one kind and name the first wins, the other is reported. A broken document keeps the last good
 * version of what the file defined; the other documents count. A file that vanishes is believed after FILE_SETTLE_MS, one
 * that is empty after FILE_EMPTY_MS (editors and slow writers).
 */
#pragma once
#include "kubelet-lite/store/objects.h"

enum { FILE_SETTLE_MS = 200, FILE_EMPTY_MS = 5000, FILE_RESCAN_MS = 20000, FILE_SIZE_MAX = 10 * 1024 * 1024 };

struct file_source;

/* Makes the directory if missing, reads it once (synchronously), then follows it. */
int file_source_start(uv_loop_t *loop, struct objects *store, const char *dir, struct file_source **ret,
	struct error *err) MUST_USE;
/* Objects stay. The struct is freed when its handles are closed. */
void file_source_stop(struct file_source *source);

/* Writes one object (with apiVersion and kind) to the file that has it, or to a new one `<ns>_<kind>_<name>.yaml`, and
 * puts it into the store. status and what the server fills in (uid, resourceVersion, ...) are not written. */
int file_source_write(struct file_source *source, enum object_kind kind, const json_t *tree, struct error *err) MUST_USE;
/* Takes it out of its file; the file goes when nothing is left in it. Then objects_delete(). */
int file_source_delete(struct file_source *source, const struct object *object, int64_t grace_seconds,
	struct error *err) MUST_USE;
