/* conntrack.c - purpose: delete recorded UDP and SCTP flows that go where new ones would not. */
#include "proxy-lite/kernel/conntrack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <sys/socket.h>

/* The kernel's own number for "compare the protocol"; not in its exported headers. */
enum { FILTER_PROTO_NUM = 1 << 3, REQUEST_MAX = 512, TUPLE_MAX = 256, DUMP_TRIES = 5 };

/* One flow to delete: the attributes that name it, as they came. */
struct doomed {
	uint8_t family;
	uint16_t len;
	char attributes[TUPLE_MAX];
};

struct sweep {
	const struct table *table;
	const struct frontend_key *gone;
	size_t n_gone;
	uint8_t family, protocol;
	struct doomed *doomed;
	size_t n, cap;
};

static struct nlmsghdr *request(char *buf, uint16_t type, uint16_t flags, uint8_t family)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *nfg;

	nlh->nlmsg_type = (uint16_t)(NFNL_SUBSYS_CTNETLINK << 8 | type);
	nlh->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	nfg = mnl_nlmsg_put_extra_header(nlh, sizeof(*nfg));
	nfg->nfgen_family = family;
	nfg->version = NFNETLINK_V0;
	nfg->res_id = 0;
	return nlh;
}

struct tuple {
	struct ip source, destination;
	uint16_t source_port, destination_port;
	uint8_t protocol;
};

static void read_ip(const struct nlattr *nest, struct tuple *t)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, nest)
	{
		uint16_t type = mnl_attr_get_type(a), len = mnl_attr_get_payload_len(a);
		bool v6 = type == CTA_IP_V6_SRC || type == CTA_IP_V6_DST;
		bool source = type == CTA_IP_V4_SRC || type == CTA_IP_V6_SRC;
		struct ip *ip = source ? &t->source : &t->destination;

		if (type > CTA_IP_V6_DST || len != ip_len(v6))
			continue;
		*ip = (struct ip){ .v6 = v6 };
		memcpy(ip->bytes, mnl_attr_get_payload(a), len);
	}
}

static void read_proto(const struct nlattr *nest, struct tuple *t)
{
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, nest)
	{
		uint16_t type = mnl_attr_get_type(a), len = mnl_attr_get_payload_len(a);

		if (type == CTA_PROTO_NUM && len == 1)
			t->protocol = mnl_attr_get_u8(a);
		if (type == CTA_PROTO_SRC_PORT && len == 2)
			t->source_port = ntohs(mnl_attr_get_u16(a));
		if (type == CTA_PROTO_DST_PORT && len == 2)
			t->destination_port = ntohs(mnl_attr_get_u16(a));
	}
}

static struct tuple read_tuple(const struct nlattr *nest)
{
	struct tuple t = { 0 };
	const struct nlattr *a;

	mnl_attr_for_each_nested(a, nest)
	{
		if (mnl_attr_get_type(a) == CTA_TUPLE_IP)
			read_ip(a, &t);
		if (mnl_attr_get_type(a) == CTA_TUPLE_PROTO)
			read_proto(a, &t);
	}
	return t;
}

static void doom(struct sweep *s, uint8_t family, const struct nlattr *const *parts, size_t n)
{
	struct doomed d = { .family = family };

	for (size_t i = 0; i < n; i++) {
		if (!parts[i])
			continue;
		if ((size_t)d.len + MNL_ALIGN(parts[i]->nla_len) > sizeof(d.attributes))
			return;
		memcpy(d.attributes + d.len, parts[i], parts[i]->nla_len);
		d.len += (uint16_t)MNL_ALIGN(parts[i]->nla_len);
	}
	if (s->n == s->cap) {
		s->cap = MAX((size_t)16, s->cap * 2);
		s->doomed = xreallocarray(s->doomed, s->cap, sizeof(*s->doomed));
	}
	s->doomed[s->n++] = d;
}

static int read_flow(const struct nlmsghdr *nlh, void *data)
{
	const struct nfgenmsg *nfg = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *a, *orig = NULL, *reply = NULL, *id = NULL, *zone = NULL;
	struct sweep *s = data;
	uint32_t status = 0;
	struct tuple o, r;
	struct flow flow;

	mnl_attr_for_each(a, nlh, sizeof(*nfg))
	{
		switch (mnl_attr_get_type(a)) {
		case CTA_TUPLE_ORIG:
			orig = a;
			break;
		case CTA_TUPLE_REPLY:
			reply = a;
			break;
		case CTA_ID:
			id = a;
			break;
		case CTA_ZONE:
			zone = a;
			break;
		case CTA_STATUS:
			status = mnl_attr_get_payload_len(a) == 4 ? ntohl(mnl_attr_get_u32(a)) : 0;
			break;
		}
	}
	if (!orig || !reply)
		return MNL_CB_OK;
	o = read_tuple(orig);
	r = read_tuple(reply);
	if (o.protocol != s->protocol)
		return MNL_CB_OK;
	flow = (struct flow){ o.destination, r.source, o.destination_port, r.source_port, o.protocol,
		(status & IPS_DST_NAT) != 0 };
	if (flow_is_stale(s->table, s->gone, s->n_gone, &flow))
		doom(s, nfg->nfgen_family, (const struct nlattr *const[]){ orig, id, zone }, 3);
	return MNL_CB_OK;
}

static int dump(struct netlink *nl, struct sweep *s, bool filter, struct error *err)
{
	char buf[REQUEST_MAX] = { 0 };
	struct nlmsghdr *nlh = request(buf, IPCTNL_MSG_CT_GET, NLM_F_DUMP, s->family);

	if (filter) {
		struct nlattr *tuple = mnl_attr_nest_start(nlh, CTA_TUPLE_ORIG);
		struct nlattr *nest = mnl_attr_nest_start(nlh, CTA_TUPLE_PROTO);

		mnl_attr_put_u8(nlh, CTA_PROTO_NUM, s->protocol);
		mnl_attr_nest_end(nlh, nest);
		mnl_attr_nest_end(nlh, tuple);
		nest = mnl_attr_nest_start(nlh, CTA_FILTER);
		mnl_attr_put_u32(nlh, CTA_FILTER_ORIG_FLAGS, FILTER_PROTO_NUM);
		mnl_attr_put_u32(nlh, CTA_FILTER_REPLY_FLAGS, 0);
		mnl_attr_nest_end(nlh, nest);
	}
	return netlink_request(nl, nlh, read_flow, s, err);
}

static int dump_family(struct netlink *nl, struct sweep *s, struct error *err)
{
	bool filter = true;
	int r = 0;

	for (int i = 0; i < DUMP_TRIES; i++) {
		r = dump(nl, s, filter, err);
		if (r == -EOPNOTSUPP || r == -EINVAL)
			filter = false; /* before Linux 5.8 */
		else if (r != -EINTR)
			break;
	}
	return r;
}

static int delete_flow(struct netlink *nl, const struct doomed *d, struct error *err)
{
	char buf[REQUEST_MAX] = { 0 };
	struct nlmsghdr *nlh = request(buf, IPCTNL_MSG_CT_DELETE, NLM_F_ACK, d->family);

	memcpy((char *)nlh + nlh->nlmsg_len, d->attributes, d->len);
	nlh->nlmsg_len += d->len;
	return netlink_request(nl, nlh, NULL, NULL, err);
}

int conntrack_sweep(const struct table *table, const struct frontend_key *gone, size_t n_gone, size_t *ret_deleted,
	struct error *err)
{
	static const uint8_t protocols[] = { IPPROTO_UDP, IPPROTO_SCTP }, families[] = { AF_INET, AF_INET6 };
	_cleanup_(netlink_close) struct netlink nl = NETLINK_INIT;
	struct sweep s = { .table = table, .gone = gone, .n_gone = n_gone };
	size_t deleted = 0;
	int r = netlink_open(&nl, NETLINK_NETFILTER, err);

	for (unsigned i = 0; r == 0 && i < 4; i++) {
		s.protocol = protocols[i / 2];
		s.family = families[i % 2];
		r = dump_family(&nl, &s, err);
	}
	for (size_t i = 0; r == 0 && i < s.n; i++) {
		r = delete_flow(&nl, &s.doomed[i], err);
		deleted += r == 0;
		if (r == -ENOENT) /* ended by itself */
			r = 0;
	}
	free(s.doomed);
	if (r < 0)
		return error_prefix(err, "conntrack");
	*ret_deleted = deleted;
	return 0;
}
