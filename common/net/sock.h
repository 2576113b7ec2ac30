/*
 * sock.h - purpose: addresses as flags spell them, and listening sockets on them.
 *
 * "unix:///run/x.sock" or "/run/x.sock"; "127.0.0.1:10249", "[::1]:80", ":10256" (all addresses).
 */
#pragma once
#include "common/base/error.h"

#include <sys/socket.h>
#include <sys/un.h>

struct sock_address {
	bool is_unix;
	socklen_t len;
	union {
		struct sockaddr sa;
		struct sockaddr_un un;
		struct sockaddr_storage storage;
	};
};

/* Parses without resolving names. The error names the text and what is allowed. */
int sock_address_parse(const char *text, struct sock_address *ret, struct error *err) MUST_USE;
/* For messages: "/run/x.sock", "127.0.0.1:80", "[::1]:80". */
void sock_address_text(const struct sock_address *address, char *ret, size_t len);
/* Listens, non-blocking. A Unix socket gets `mode`; one left by a dead owner is replaced, a live one (it accepts a
 * connection) is refused with ERROR_EXISTS "... is in use by another process". */
int sock_listen(const struct sock_address *address, mode_t mode, int *ret_fd, struct error *err) MUST_USE;
/* Blocking connect, for administrator's commands. */
int sock_connect(const struct sock_address *address, int *ret_fd, struct error *err) MUST_USE;
