/*
 * unpack.h - purpose: the entries of one layer's tar archive into a directory that overlayfs can use as a lower one.
 *
 * Every path is resolved inside of the directory (inroot.h); names that climb out with ".." are refused. Whiteouts
 * (".wh.name") become character devices 0/0 and opaque markers (".wh..wh..opq") the overlay attribute; both concern lower
 * layers only, wherever they stand in the archive. Of several entries of one name the last wins. Directories that the
 * archive does not name get what they have in the layers below, as containerd does it; a hard link to a file of a layer
 * below copies that file up. Owners are numeric, modes complete, extended attributes security.capability,
 * system.posix_acl_* and user.* (never *.overlay.*), times in nanoseconds.
 *
 * Nothing here needs a daemon; the pull program runs it in its sandbox.
 */
#pragma once
#include "runtime-lite/image/tar.h"

struct unpack_limits {
	uint64_t max_bytes;   /* of all files' content; 0: 64 GiB */
	uint64_t max_entries; /* 0: 2 000 000 */
	unsigned max_depth;   /* 0: 256 */
};

struct unpack_options {
	int root_fd; /* the layer's directory, empty; not taken over */
	struct unpack_limits limits;
	/* The layers below, top first, as directory descriptors that stay open. Called at most once, only when something of
	 * them is needed; may block until they are complete. NULL: there are none. */
	int (*lower)(void *data, const int **ret_fds, size_t *ret_n, struct error *err);
	/* Marks a directory as opaque: needs CAP_SYS_ADMIN, which the pull program leaves to another process. NULL: directly.
	 * Returns 0 or -errno. */
	int (*set_opaque)(void *data, int dir_fd);
	void *data;
};

struct unpack; /* opaque */
struct unpack *unpack_new(const struct unpack_options *options);
struct unpack *unpack_free(struct unpack *u);
DEFINE_CLEANUP(struct unpack *, unpack_free)
/* For tar_new(&unpack_tar_handler, u). Errors begin with the entry's name. */
extern const struct tar_handler unpack_tar_handler;
/* After the last entry: times of directories, attributes of the root. */
int unpack_finish(struct unpack *u, struct error *err) MUST_USE;
