/*
 * conntrack.c - purpose: make the kernel forget UDP flows that a host port has changed the meaning of.
 *
 * ctnetlink by hand, since two kinds of messages are all that is needed: a dump, from which the flows are chosen here,
 * and a deletion for each by its original tuple, zone and id, so that a new flow with the same tuple is never hit.
 */
#include "runtime-lite/net/conntrack.h"
#include "common/base/str.h"
#include "runtime-lite/net/rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>

enum { RECEIVE_MAX = 32 * 1024, ADDRESSES_MAX = 1024 };

struct flow {
	struct in_addr sent_to;
	struct in_addr answered_by;
	uint16_t port; /* it was sent to */
	uint8_t protocol;
	const struct nlattr *tuple, *id, *zone;
};

struct search {
	const struct port_mapping *ports;
	size_t n_ports;
	struct in_addr ip;
	struct in_addr local[ADDRESSES_MAX];
	size_t n_local;
	struct str deletions; /* messages, one after the other */
	uint32_t seq;
};

static const struct nlattr *find(const struct nlattr *nest, uint16_t type)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest) if (mnl_attr_get_type(attr) == type) return attr;
	return NULL;
}

static bool read_address(const struct nlattr *tuple, uint16_t type, struct in_addr *ret)
{
	const struct nlattr *ip = find(tuple, CTA_TUPLE_IP), *v4 = ip ? find(ip, type) : NULL;

	if (!v4 || mnl_attr_get_payload_len(v4) != sizeof(*ret))
		return false;
	memcpy(ret, mnl_attr_get_payload(v4), sizeof(*ret));
	return true;
}

static bool read_flow(const struct nlmsghdr *nlh, struct flow *ret)
{
	const struct nlattr *attr, *reply = NULL, *proto, *number, *port;
	struct flow flow = { 0 };

	mnl_attr_for_each(attr, nlh, sizeof(struct nfgenmsg))
	{
		switch (mnl_attr_get_type(attr)) {
		case CTA_TUPLE_ORIG:
			flow.tuple = attr;
			break;
		case CTA_TUPLE_REPLY:
			reply = attr;
			break;
		case CTA_ID:
			flow.id = attr;
			break;
		case CTA_ZONE:
			flow.zone = attr;
			break;
		default:
			break;
		}
	}
	if (!flow.tuple || !reply || !read_address(flow.tuple, CTA_IP_V4_DST, &flow.sent_to) ||
		!read_address(reply, CTA_IP_V4_SRC, &flow.answered_by))
		return false;
	proto = find(flow.tuple, CTA_TUPLE_PROTO);
	number = proto ? find(proto, CTA_PROTO_NUM) : NULL;
	port = proto ? find(proto, CTA_PROTO_DST_PORT) : NULL;
	if (!number || mnl_attr_get_payload_len(number) != 1 || !port || mnl_attr_get_payload_len(port) != 2)
		return false;
	flow.protocol = mnl_attr_get_u8(number);
	flow.port = ntohs(mnl_attr_get_u16(port));
	*ret = flow;
	return true;
}

static bool is_local(const struct search *s, struct in_addr ip)
{
	size_t i;

	for (i = 0; i < s->n_local; i++)
		if (s->local[i].s_addr == ip.s_addr)
			return true;
	return ntohl(ip.s_addr) >> 24 == 127;
}

static bool unwanted(const struct search *s, const struct flow *flow)
{
	size_t i;

	if (flow->protocol == IPPROTO_TCP || !is_local(s, flow->sent_to))
		return false;
	if (s->ip.s_addr == INADDR_ANY ? is_local(s, flow->answered_by) : flow->answered_by.s_addr == s->ip.s_addr)
		return false;
	for (i = 0; i < s->n_ports; i++)
		if (s->ports[i].protocol == flow->protocol && s->ports[i].host_port == flow->port)
			return true;
	return false;
}

static void header(struct nlmsghdr *nlh, uint8_t message, uint16_t flags, uint32_t seq)
{
	struct nfgenmsg *nfg;

	nlh->nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | message;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = seq;
	nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	nfg->nfgen_family = AF_INET;
	nfg->version = NFNETLINK_V0;
}

static void put_attr(struct nlmsghdr *nlh, const struct nlattr *attr)
{
	if (attr)
		mnl_attr_put(nlh, attr->nla_type, mnl_attr_get_payload_len(attr), mnl_attr_get_payload(attr));
}

static int on_flow(const struct nlmsghdr *nlh, void *data)
{
	struct search *s = data;
	struct flow flow;
	char buf[1024];
	struct nlmsghdr *out;

	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(struct nfgenmsg) || !read_flow(nlh, &flow) || !unwanted(s, &flow) ||
		flow.tuple->nla_len > sizeof(buf) / 2)
		return MNL_CB_OK;
	out = mnl_nlmsg_put_header(buf);
	header(out, IPCTNL_MSG_CT_DELETE, NLM_F_ACK, ++s->seq);
	put_attr(out, flow.tuple);
	put_attr(out, flow.id);
	put_attr(out, flow.zone);
	str_add_bytes(&s->deletions, out, out->nlmsg_len);
	return MNL_CB_OK;
}

static int run(struct mnl_socket *socket, const struct nlmsghdr *nlh, mnl_cb_t each, void *data)
{
	_cleanup_free_ char *buf = xmalloc(RECEIVE_MAX);
	int r = MNL_CB_OK;

	if (mnl_socket_sendto(socket, nlh, nlh->nlmsg_len) < 0)
		return -errno;
	while (r > MNL_CB_STOP) {
		ssize_t n = mnl_socket_recvfrom(socket, buf, RECEIVE_MAX);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		r = mnl_cb_run(buf, (size_t)n, nlh->nlmsg_seq, mnl_socket_get_portid(socket), each, data);
		if (r < 0)
			return -errno;
	}
	return 0;
}

static bool add_local(const struct rtnl_address *address, void *data)
{
	struct search *s = data;

	if (s->n_local < ADDRESSES_MAX)
		s->local[s->n_local++] = address->ip;
	return true;
}

static int forget(struct search *s, struct mnl_socket *socket)
{
	char buf[256];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	size_t at;
	int r;

	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	header(nlh, IPCTNL_MSG_CT_GET, NLM_F_DUMP, ++s->seq);
	r = run(socket, nlh, on_flow, s);
	for (at = 0; at < s->deletions.len && r == 0; at += MNL_ALIGN(nlh->nlmsg_len)) {
		nlh = (struct nlmsghdr *)(s->deletions.buf + at);
		r = run(socket, nlh, NULL, NULL);
		if (r == -ENOENT) /* it ended by itself */
			r = 0;
	}
	return r == -EINTR ? 0 : r; /* a dump that was disturbed: what was seen has been dealt with */
}

int conntrack_forget(const struct port_mapping *ports, size_t n_ports, struct in_addr ip, struct error *err)
{
	_cleanup_(rtnl_close_p) struct rtnl *nl = NULL;
	_cleanup_free_ struct search *s = NULL;
	struct mnl_socket *socket;
	bool any = false;
	size_t i;
	int r;

	for (i = 0; i < n_ports; i++)
		any |= ports[i].protocol != IPPROTO_TCP;
	if (!any)
		return 0;
	s = xnew(struct search);
	s->ports = ports;
	s->n_ports = n_ports;
	s->ip = ip;
	r = rtnl_open(&nl, err);
	if (r == 0)
		r = rtnl_addresses4(nl, add_local, s, err);
	if (r < 0)
		return r;
	socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!socket)
		return error_sys(err, errno, "conntrack socket");
	r = forget(s, socket);
	mnl_socket_close(socket);
	str_done(&s->deletions);
	return r < 0 ? error_sys(err, r, "forget flows to host ports") : 0;
}
