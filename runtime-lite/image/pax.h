/* pax.h - purpose: the records of a pax extended header ("27 path=...\n"), within limits. Sans I/O. */
#pragma once
#include "runtime-lite/image/tar.h"

struct pax {
	char *path, *linkpath; /* NULL: not given */
	bool have_size, have_uid, have_gid, have_mtime;
	bool sparse; /* a GNU.sparse record was seen */
	int64_t size, uid, gid, mtime_s;
	uint32_t mtime_ns;
	struct tar_xattr *xattrs;
	size_t n_xattrs;
};

/* Replaces what `pax` holds. Attributes come from SCHILY.xattr.* and LIBARCHIVE.xattr.*; the last record of a key counts;
 * unknown keys are skipped. DATA_LOSS for broken records, numbers out of range, NULs in names, too many attributes. */
int pax_parse(struct pax *pax, const char *text, size_t len, struct error *err) MUST_USE;
void pax_done(struct pax *pax);
