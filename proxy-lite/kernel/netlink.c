/* netlink.c - purpose: a netlink socket, and one request with its answers. */
#include "proxy-lite/kernel/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif

int netlink_open(struct netlink *nl, int bus, struct error *err)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK };
	socklen_t len = sizeof(address);
	struct timeval timeout = { .tv_sec = NETLINK_TIMEOUT_S };
	int on = 1, r;
	_cleanup_fd_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, bus);

	if (fd < 0)
		return error_sys(err, errno, "netlink socket");
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return error_sys(err, errno, "netlink socket: bind");
	r = setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	/* Errors that name the attribute at fault; older kernels do without. */
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	if (r < 0)
		return error_sys(err, errno, "netlink socket: SO_RCVTIMEO");
	*nl = (struct netlink){ .fd = steal_fd(&fd), .portid = address.nl_pid, .seq = 1 };
	return 0;
}

void netlink_close(struct netlink *nl)
{
	if (nl->fd >= 0)
		close(nl->fd);
	nl->fd = -1;
}

int netlink_group(const struct netlink *nl, unsigned group, bool join)
{
	int value = (int)group;
	int option = join ? NETLINK_ADD_MEMBERSHIP : NETLINK_DROP_MEMBERSHIP;

	return setsockopt(nl->fd, SOL_NETLINK, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

int netlink_reserve_send(const struct netlink *nl, size_t len)
{
	int want = (int)MIN(len + 4096, (size_t)1 << 30), have = 0;
	socklen_t size = sizeof(have);

	if (getsockopt(nl->fd, SOL_SOCKET, SO_SNDBUF, &have, &size) == 0 && have >= want + 4096)
		return 0;
	return setsockopt(nl->fd, SOL_SOCKET, SO_SNDBUFFORCE, &want, sizeof(want)) < 0 ? -errno : 0;
}

/* What an earlier request, broken off, may have left. */
static void drain(const struct netlink *nl, char *buf, size_t len)
{
	for (int i = 0; i < 10000 && recv(nl->fd, buf, len, MSG_DONTWAIT) > 0; i++)
		;
}

int netlink_request(struct netlink *nl, struct nlmsghdr *request, mnl_cb_t each, void *data, struct error *err)
{
	_cleanup_free_ char *buf = xmalloc(NETLINK_BUFFER_BYTES);
	ssize_t n;
	int r;

	drain(nl, buf, NETLINK_BUFFER_BYTES);
	request->nlmsg_seq = ++nl->seq;
	if (send(nl->fd, request, request->nlmsg_len, 0) < 0)
		return error_sys(err, errno, "netlink: send");
	for (;;) {
		do
			n = recv(nl->fd, buf, NETLINK_BUFFER_BYTES, MSG_TRUNC);
		while (n < 0 && errno == EINTR);
		if (n < 0)
			return error_sys(err, errno, "netlink: receive");
		if (n > NETLINK_BUFFER_BYTES)
			return error_set(err, ERROR_INTERNAL, "netlink: an answer of %zd bytes is too long", n);
		r = mnl_cb_run(buf, (size_t)n, request->nlmsg_seq, nl->portid, each, data);
		if (r < 0)
			return error_sys(err, errno, "netlink");
		if (r == MNL_CB_STOP)
			return 0;
		if (!(request->nlmsg_flags & (NLM_F_DUMP | NLM_F_ACK)))
			return 0;
	}
}
