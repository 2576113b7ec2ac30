/*
 * reference.h - purpose: image references: parse, check, normalise as Docker and containerd do. Pure.
 *
 *	busybox                       docker.io/library/busybox:latest
 *	user/app:1                    docker.io/user/app:1
 *	localhost/app, host:5000/app  the first part is a registry: it is "localhost", has a dot or a port, or is [IPv6]
 *	app:1@sha256:<64 hex>         tag and digest; the digest decides what is fetched
 */
#pragma once
#include "common/base/error.h"

enum { REFERENCE_NAME_MAX = 255, REFERENCE_TAG_MAX = 128, REFERENCE_TEXT_MAX = 1024 };

struct reference {
	char *registry; /* "docker.io", "host:5000", "[::1]:5000" */
	char *path;     /* "library/busybox" */
	char *tag;      /* "" only when there is a digest and no tag was given */
	char *digest;   /* "sha256:<hex>", or "" */
};

/* INVALID, naming the reference and what is wrong with it. On success the caller calls reference_done(). */
int reference_parse(const char *text, struct reference *ret, struct error *err) MUST_USE;
void reference_done(struct reference *ref);
/* "registry/path:tag"; NULL without a tag. Owned by the caller, as the following. */
char *reference_tagged(const struct reference *ref) MUST_USE;
/* "registry/path@digest" for any digest. */
char *reference_with_digest(const struct reference *ref, const char *digest) MUST_USE;
/* What to ask the registry for: the digest if there is one, else the tag. Borrowed. */
const char *reference_target(const struct reference *ref);

/* "sha256:" and 64 lower-case hex digits: the only digest that we store by. Checked before a digest is ever part of a path. */
bool digest_valid(const char *digest);
/* 64 lower-case hex digits. */
bool digest_hex_valid(const char *hex);
/* Borrowed: what stands behind "sha256:". The digest must be valid. */
const char *digest_hex(const char *digest);
