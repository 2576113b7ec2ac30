/* nft_batch.c - purpose: collect nftables messages and send them as one transaction. */
#include "runtime-lite/net/nft_batch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libnftnl/common.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

enum { RECEIVE_BYTES = 16 * 1024 };

static void batch_mark(struct nft_batch *b, uint16_t type)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(b->room);
	struct nfgenmsg *nfg;

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = ++b->seq;
	nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	nfg->nfgen_family = AF_UNSPEC;
	nfg->version = NFNETLINK_V0;
	nfg->res_id = htons(NFNL_SUBSYS_NFTABLES);
	str_add_bytes(&b->out, b->room, nlh->nlmsg_len);
}

void nft_batch_init(struct nft_batch *b, const struct nft_table *table)
{
	*b = (struct nft_batch){ .table = table, .room = xmalloc(NFT_MESSAGE_ROOM) };
	batch_mark(b, NFNL_MSG_BATCH_BEGIN);
	b->begin_len = b->out.len;
}

void nft_batch_done(struct nft_batch *b)
{
	str_done(&b->out);
	free(b->room);
}

struct nlmsghdr *nft_batch_message(struct nft_batch *b, uint16_t type, uint16_t flags)
{
	return nftnl_nlmsg_build_hdr(b->room, type, NFPROTO_INET, flags, ++b->seq);
}

void nft_batch_put(struct nft_batch *b, const struct nlmsghdr *nlh)
{
	assert(nlh->nlmsg_len <= NFT_MESSAGE_ROOM);
	str_add_bytes(&b->out, nlh, nlh->nlmsg_len);
}

/* Reads what the kernel has answered; it did all of it inside sendto(). The first error is the cause. */
static int read_answers(struct mnl_socket *socket, uint32_t last_seq)
{
	_cleanup_free_ char *buf = xmalloc(RECEIVE_BYTES);
	int error = 0, acked = 0;

	for (;;) {
		ssize_t n = recv(mnl_socket_get_fd(socket), buf, RECEIVE_BYTES, MSG_DONTWAIT);
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)buf;
		int left = (int)n;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n <= 0)
			break;
		for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
			const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

			if (nlh->nlmsg_type != NLMSG_ERROR || mnl_nlmsg_get_payload_len(nlh) < sizeof(e->error))
				continue;
			if (e->error < 0 && error == 0)
				error = e->error;
			else if (e->error == 0 && nlh->nlmsg_seq == last_seq)
				acked = 1;
		}
	}
	if (error < 0)
		return error;
	return acked ? 0 : -EIO;
}

static int exchange(const char *out, size_t len, uint32_t last_seq)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	int r, size = (int)len + 4096;

	if (!socket)
		return -errno;
	/* A batch above the send buffer would be refused. */
	(void)setsockopt(mnl_socket_get_fd(socket), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 || mnl_socket_sendto(socket, out, len) < 0)
		r = -errno;
	else
		r = read_answers(socket, last_seq);
	mnl_socket_close(socket);
	return r;
}

/* An acknowledgement of the last message is one of them all: a batch is all or nothing. */
static uint32_t ask_for_ack(struct nft_batch *b)
{
	struct nlmsghdr *last = NULL;
	size_t at = 0;

	while (at < b->out.len) {
		last = (struct nlmsghdr *)(b->out.buf + at);
		at += MNL_ALIGN(last->nlmsg_len);
	}
	last->nlmsg_flags |= NLM_F_ACK;
	return last->nlmsg_seq;
}

int nft_batch_send(struct nft_batch *b)
{
	uint32_t last_seq = ask_for_ack(b);

	batch_mark(b, NFNL_MSG_BATCH_END);
	return exchange(b->out.buf, b->out.len, last_seq);
}

int nft_batch_ask(struct nft_batch *b)
{
	uint32_t last_seq = ask_for_ack(b);

	return exchange(b->out.buf + b->begin_len, b->out.len - b->begin_len, last_seq);
}
