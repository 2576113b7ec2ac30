/*
 * netlink.h - purpose: a netlink socket, and one request with its answers.
 *
 * Blocking, but never for longer than NETLINK_TIMEOUT_S: the kernel answers inside the call.
 */
#pragma once
#include "common/base/error.h"

#include <libmnl/libmnl.h>

enum { NETLINK_TIMEOUT_S = 10, NETLINK_BUFFER_BYTES = 128 * 1024 };

struct netlink {
	int fd; /* -1: not open */
	uint32_t portid;
	uint32_t seq;
};

#define NETLINK_INIT ((struct netlink){ .fd = -1 })

/* `bus` is NETLINK_NETFILTER or NETLINK_ROUTE. */
int netlink_open(struct netlink *nl, int bus, struct error *err) MUST_USE;
void netlink_close(struct netlink *nl);
/* Joins or leaves a multicast group; 0 or -errno. */
int netlink_group(const struct netlink *nl, unsigned group, bool join) MUST_USE;
/* Allows messages of that size to be sent (privileged), -errno if that fails. */
int netlink_reserve_send(const struct netlink *nl, size_t len) MUST_USE;

/* Sends one request (its sequence number is set here) and calls `each` for every answer until the end or the ACK. An
 * interrupted dump gives -EINTR: start again. An error of the kernel is returned as -errno, with text in err; `each`
 * returns MNL_CB_OK, or MNL_CB_ERROR with errno set. */
int netlink_request(
	struct netlink *nl, struct nlmsghdr *request, mnl_cb_t each, void *data, struct error *err) MUST_USE;
