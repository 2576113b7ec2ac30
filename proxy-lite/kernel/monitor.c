/* monitor.c - purpose: hear when somebody else changes our table. */
#include "proxy-lite/kernel/monitor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

enum { READS_MAX = 4096 };

int monitor_open(struct monitor *m, const char *table, uint32_t own_portid, struct error *err)
{
	int r;

	*m = (struct monitor){ .nl = NETLINK_INIT, .table = table, .own = own_portid };
	r = netlink_open(&m->nl, NETLINK_NETFILTER, err);
	if (r < 0)
		return r;
	r = netlink_group(&m->nl, NFNLGRP_NFTABLES, true);
	return r < 0 ? error_sys(err, r, "nftables notifications") : 0;
}

void monitor_close(struct monitor *m)
{
	netlink_close(&m->nl);
}

void monitor_pause(const struct monitor *m, bool pause)
{
	/* If it fails we hear more than we need. */
	int r = netlink_group(&m->nl, NFNLGRP_NFTABLES, !pause);

	(void)r;
}

/* Every kind of message names its table by attribute 1. */
static bool names_table(const struct nlmsghdr *nlh, const char *table)
{
	const struct nlattr *a;

	mnl_attr_for_each(a, nlh,
		sizeof(struct nfgenmsg)) if (mnl_attr_get_type(a) == NFTA_TABLE_NAME) return mnl_attr_validate(a,
		MNL_TYPE_NUL_STRING) == 0 &&
		strcmp(mnl_attr_get_str(a), table) == 0;
	return false;
}

static void read_generation(const struct nlmsghdr *nlh, struct monitor *m, struct monitor_news *news)
{
	const struct nlattr *a;

	mnl_attr_for_each(a, nlh, sizeof(struct nfgenmsg))
	{
		uint16_t type = mnl_attr_get_type(a);

		if (type == NFTA_GEN_ID && mnl_attr_get_payload_len(a) == 4)
			news->gen = ntohl(mnl_attr_get_u32(a));
		if (!m->pending)
			continue;
		if (type == NFTA_GEN_PROC_PID && mnl_attr_get_payload_len(a) == 4)
			news->pid = ntohl(mnl_attr_get_u32(a));
		if (type == NFTA_GEN_PROC_NAME && mnl_attr_validate(a, MNL_TYPE_NUL_STRING) == 0)
			strncpy(news->who, mnl_attr_get_str(a), sizeof(news->who) - 1);
	}
	m->pending = false;
}

static void read_message(const struct nlmsghdr *nlh, struct monitor *m, struct monitor_news *news)
{
	const struct nfgenmsg *nfg = mnl_nlmsg_get_payload(nlh);

	if (nlh->nlmsg_type >> 8 != NFNL_SUBSYS_NFTABLES || nlh->nlmsg_len < mnl_nlmsg_size(sizeof(*nfg)))
		return;
	if ((nlh->nlmsg_type & 0xff) == NFT_MSG_NEWGEN) {
		read_generation(nlh, m, news);
		return;
	}
	if (nlh->nlmsg_pid == m->own || nfg->nfgen_family != NFPROTO_INET || !names_table(nlh, m->table))
		return;
	m->pending = true;
	news->touched = true;
}

int monitor_read(struct monitor *m, struct monitor_news *ret, struct error *err)
{
	_cleanup_free_ char *buf = xmalloc(NETLINK_BUFFER_BYTES);

	*ret = (struct monitor_news){ 0 };
	for (int i = 0; i < READS_MAX; i++) {
		ssize_t n = recv(m->nl.fd, buf, NETLINK_BUFFER_BYTES, MSG_DONTWAIT);
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)(const void *)buf;
		int left = (int)n;

		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && errno == ENOBUFS)
			ret->lost = true;
		else if (n < 0 && errno != EINTR)
			return error_sys(err, errno, "nftables notifications");
		for (; n > 0 && mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left))
			read_message(nlh, m, ret);
	}
	return 0;
}
