/*
 * archive.h - purpose: members of an image archive by name: a tar file (plain, gzip or zstd) or an unpacked directory.
 *
 * A compressed or unseekable archive is written out into staging first, within the limits.
 */
#pragma once
#include "runtime-lite/pull/pull.h"

struct archive;
/* `fd` is a directory, a regular file, or anything that can be read once. Not taken over. */
int archive_open(struct pull *p, int fd, struct archive **ret, struct error *err) MUST_USE;
struct archive *archive_free(struct archive *a);
DEFINE_CLEANUP(struct archive *, archive_free)

bool archive_has(struct archive *a, const char *name);
/* A small member whole. NOT_FOUND, INVALID when larger than max. */
int archive_read(struct archive *a, const char *name, size_t max, char **ret, size_t *ret_len, struct error *err) MUST_USE;
int archive_size(struct archive *a, const char *name, uint64_t *ret, struct error *err) MUST_USE;
/* All of a member in pieces. */
int archive_stream(struct archive *a, const char *name, int (*sink)(void *data, const void *p, size_t n, struct error *err),
	void *data, struct error *err) MUST_USE;
