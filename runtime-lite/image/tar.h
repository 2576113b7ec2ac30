/*
 * tar.h - purpose: read a tar stream (v7, ustar, star, GNU, pax) in pieces of any size. Sans I/O.
 *
 * The reader is fed bytes and calls back: entry(), then data() for the content of regular files, then end(). What two
 * readers could take in two ways follows Go's archive/tar, which made nearly all images: a size on links, directories and
 * devices is ignored, pax wins over the header, a GNU long name over pax, the archive ends at two zero blocks or at the end
 * of input between two entries, and what follows the zero blocks is skipped. Sparse files are refused.
 *
 * Everything is bounded by the limits below; names and link targets hold no NUL.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

enum {
	TAR_BLOCK = 512,
	TAR_NAME_MAX = 4096,        /* bytes of a path or of a link target */
	TAR_META_MAX = 1024 * 1024, /* one pax header */
	TAR_XATTRS_MAX = 128,
	TAR_XATTR_MAX = 64 * 1024, /* what the kernel allows */
};

enum tar_type { TAR_FILE, TAR_HARDLINK, TAR_SYMLINK, TAR_CHAR, TAR_BLOCK_DEVICE, TAR_DIR, TAR_FIFO };

struct tar_xattr {
	char *name;
	void *value; /* not NUL-terminated */
	size_t len;
};

struct tar_entry {
	enum tar_type type;
	const char *name; /* as stored; not cleaned, may begin with "/", hold "..", end in "/" */
	const char *link; /* hard link and symbolic link: target as stored; else "" */
	uint64_t size;    /* files only, else 0 */
	uint32_t mode;    /* 07777 */
	uint32_t uid, gid;
	int64_t mtime_s;
	uint32_t mtime_ns;
	uint32_t major, minor;
	const struct tar_xattr *xattrs;
	size_t n_xattrs;
};

struct tar_handler {
	/* A negative return stops the reader, which returns it. Pointers are valid during the call. */
	int (*entry)(void *data, const struct tar_entry *entry, struct error *err);
	int (*content)(void *data, const void *p, size_t n, struct error *err); /* files only */
	int (*end)(void *data, struct error *err);                               /* after each entry */
};

struct tar; /* opaque */
struct tar *tar_new(const struct tar_handler *handler, void *data);
struct tar *tar_free(struct tar *tar);
DEFINE_CLEANUP(struct tar *, tar_free)
/* DATA_LOSS for what is no tar archive or damaged, INVALID for what we do not take. */
int tar_feed(struct tar *tar, const void *p, size_t n, struct error *err) MUST_USE;
/* The input has ended: DATA_LOSS "truncated" inside of an entry. */
int tar_finish(struct tar *tar, struct error *err) MUST_USE;
/* How many bytes of the entry that entry() was called for begin where in the stream: for random access later. */
uint64_t tar_content_offset(const struct tar *tar);
