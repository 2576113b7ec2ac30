/* rtnl.c - purpose: the route netlink messages that the pod network needs: links, addresses, routes. */
#include "runtime-lite/net/rtnl.h"
#include "common/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sched.h>

enum { MESSAGE_MAX = 4096, RECEIVE_MAX = 32 * 1024, DUMP_TRIES = 5, MTU_DEFAULT = 1500 };

struct rtnl {
	struct mnl_socket *socket;
	uint32_t seq;
	char *buf; /* RECEIVE_MAX */
};

/* ---- sockets ---- */

int rtnl_open(struct rtnl **ret, struct error *err)
{
	struct mnl_socket *socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	struct rtnl *nl;
	int on = 1;

	if (!socket)
		return error_sys(err, errno, "route netlink socket");
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		int r = error_sys(err, errno, "route netlink socket");

		mnl_socket_close(socket);
		return r;
	}
	/* Where they exist, the kernel's own words for a refusal, and dumps that it filters for us. */
	(void)mnl_socket_setsockopt(socket, NETLINK_EXT_ACK, &on, sizeof(on));
	nl = xnew(struct rtnl);
	nl->socket = socket;
	nl->buf = xmalloc(RECEIVE_MAX);
	*ret = nl;
	return 0;
}

/* A netlink socket belongs to the namespace of the thread that makes it, so one visit is enough. */
int rtnl_open_in(int netns_fd, struct rtnl **ret, struct error *err)
{
	_cleanup_fd_ int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int r;

	if (own < 0)
		return error_sys(err, errno, "/proc/thread-self/ns/net");
	if (setns(netns_fd, CLONE_NEWNET) < 0)
		return error_sys(err, errno, "enter the network namespace");
	r = rtnl_open(ret, err);
	if (setns(own, CLONE_NEWNET) < 0) {
		log_error("cannot leave a pod's network namespace: %s", strerrordesc_np(errno));
		abort(); /* going on would change the wrong namespace */
	}
	return r;
}

struct rtnl *rtnl_close(struct rtnl *nl)
{
	if (nl) {
		mnl_socket_close(nl->socket);
		free(nl->buf);
		free(nl);
	}
	return NULL;
}

/* ---- requests ---- */

/* Room for one message with its attributes. */
struct request {
	union {
		struct nlmsghdr header;
		char buf[MESSAGE_MAX];
	};
};

static void *request_init(struct request *q, uint16_t type, uint16_t flags, size_t extra)
{
	struct nlmsghdr *nlh;

	memset(q, 0, sizeof(*q));
	nlh = mnl_nlmsg_put_header(q->buf);
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	return mnl_nlmsg_put_extra_header(nlh, extra);
}

static struct ifinfomsg *link_request(struct request *q, uint16_t type, uint16_t flags, const char *name)
{
	struct ifinfomsg *ifi = request_init(q, type, flags, sizeof(*ifi));

	ifi->ifi_family = AF_UNSPEC;
	if (name)
		mnl_attr_put_strz(&q->header, IFLA_IFNAME, name);
	return ifi;
}

/* Sends and reads answers until the end; `each` gets every message that is not an error. */
static int talk(struct rtnl *nl, struct request *q, mnl_cb_t each, void *data)
{
	unsigned port = mnl_socket_get_portid(nl->socket);
	ssize_t n;
	int r = MNL_CB_OK;

	q->header.nlmsg_seq = ++nl->seq;
	if (mnl_socket_sendto(nl->socket, &q->header, q->header.nlmsg_len) < 0)
		return -errno;
	do {
		n = mnl_socket_recvfrom(nl->socket, nl->buf, RECEIVE_MAX);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		r = mnl_cb_run(nl->buf, (size_t)n, q->header.nlmsg_seq, port, each, data);
		if (r < 0 && errno == ESRCH) /* an answer to something earlier */
			r = MNL_CB_OK;
		else if (r < 0)
			return -errno;
	} while (r > MNL_CB_STOP);
	return 0;
}

static int request_ack(struct rtnl *nl, struct request *q)
{
	q->header.nlmsg_flags |= NLM_F_ACK;
	return talk(nl, q, NULL, NULL);
}

/* A dump that another change interrupted starts again; the caller's callback must bear repetition. */
static int dump(struct rtnl *nl, struct request *q, mnl_cb_t each, void *data)
{
	int tries, r = -EINTR;

	q->header.nlmsg_flags |= NLM_F_DUMP;
	for (tries = 0; tries < DUMP_TRIES && r == -EINTR; tries++)
		r = talk(nl, q, each, data);
	return r;
}

/* ---- reading ---- */

static void read_stats(struct rtnl_link *link, const struct nlattr *attr)
{
	struct rtnl_link_stats64 s;

	if (mnl_attr_get_payload_len(attr) < sizeof(uint64_t) * 8)
		return;
	memset(&s, 0, sizeof(s));
	memcpy(&s, mnl_attr_get_payload(attr), MIN((size_t)mnl_attr_get_payload_len(attr), sizeof(s)));
	link->rx_packets = s.rx_packets;
	link->tx_packets = s.tx_packets;
	link->rx_bytes = s.rx_bytes;
	link->tx_bytes = s.tx_bytes;
	link->rx_errors = s.rx_errors;
	link->tx_errors = s.tx_errors;
	link->rx_dropped = s.rx_dropped;
	link->tx_dropped = s.tx_dropped;
}

static void read_text(char *ret, size_t size, const struct nlattr *attr)
{
	size_t len = strnlen(mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr));

	len = MIN(len, size - 1);
	memcpy(ret, mnl_attr_get_payload(attr), len);
	ret[len] = '\0';
}

static uint32_t read_u32(const struct nlattr *attr)
{
	return mnl_attr_get_payload_len(attr) >= sizeof(uint32_t) ? mnl_attr_get_u32(attr) : 0;
}

static bool read_link(const struct nlmsghdr *nlh, struct rtnl_link *ret)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr, *inner;
	struct rtnl_link link = { 0 };

	if (nlh->nlmsg_type != RTM_NEWLINK || mnl_nlmsg_get_payload_len(nlh) < sizeof(*ifi))
		return false;
	link.index = ifi->ifi_index;
	link.up = ifi->ifi_flags & IFF_UP;
	mnl_attr_for_each(attr, nlh, sizeof(*ifi))
	{
		switch (mnl_attr_get_type(attr)) {
		case IFLA_IFNAME:
			read_text(link.name, sizeof(link.name), attr);
			break;
		case IFLA_MASTER:
			link.master = (int)read_u32(attr);
			break;
		case IFLA_LINK:
			link.peer = (int)read_u32(attr);
			break;
		case IFLA_MTU:
			link.mtu = read_u32(attr);
			break;
		case IFLA_ADDRESS:
			if (mnl_attr_get_payload_len(attr) == sizeof(link.mac))
				memcpy(link.mac, mnl_attr_get_payload(attr), sizeof(link.mac));
			break;
		case IFLA_STATS64:
			read_stats(&link, attr);
			break;
		case IFLA_LINKINFO:
			mnl_attr_for_each_nested(inner, attr) if (mnl_attr_get_type(inner) == IFLA_INFO_KIND)
				read_text(link.kind, sizeof(link.kind), inner);
			break;
		default:
			break;
		}
	}
	*ret = link;
	return true;
}

static int on_link_found(const struct nlmsghdr *nlh, void *data)
{
	return read_link(nlh, data) ? MNL_CB_OK : MNL_CB_ERROR;
}

int rtnl_link_find(struct rtnl *nl, const char *name, struct rtnl_link *ret, struct error *err)
{
	struct request q;
	struct rtnl_link link = { 0 };
	int r;

	link_request(&q, RTM_GETLINK, 0, name);
	q.header.nlmsg_flags |= NLM_F_ACK; /* so that the answer has an end */
	r = talk(nl, &q, on_link_found, &link);
	if (r == -ENODEV)
		return error_set(err, ERROR_NOT_FOUND, "there is no link %s", name);
	if (r < 0)
		return error_sys(err, r, "look up link %s", name);
	*ret = link;
	return 0;
}

struct visit {
	bool (*link)(const struct rtnl_link *link, void *data);
	bool (*address)(const struct rtnl_address *address, void *data);
	void *data;
	bool stopped; /* the rest of the dump is read and dropped, to leave the socket clean */
};

static int on_link(const struct nlmsghdr *nlh, void *data)
{
	struct visit *visit = data;
	struct rtnl_link link;

	if (!visit->stopped && read_link(nlh, &link))
		visit->stopped = !visit->link(&link, visit->data);
	return MNL_CB_OK;
}

int rtnl_links(struct rtnl *nl, bool (*each)(const struct rtnl_link *link, void *data), void *data, struct error *err)
{
	struct visit visit = { .link = each, .data = data };
	struct request q;
	int r;

	link_request(&q, RTM_GETLINK, 0, NULL);
	r = dump(nl, &q, on_link, &visit);
	return r < 0 ? error_sys(err, r, "list links") : 0;
}

static int on_address(const struct nlmsghdr *nlh, void *data)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	struct visit *visit = data;
	struct rtnl_address address = { 0 };
	const struct nlattr *attr;

	if (visit->stopped || nlh->nlmsg_type != RTM_NEWADDR || mnl_nlmsg_get_payload_len(nlh) < sizeof(*ifa))
		return MNL_CB_OK;
	address.index = (int)ifa->ifa_index;
	address.prefix = ifa->ifa_prefixlen;
	mnl_attr_for_each(attr, nlh, sizeof(*ifa)) if (mnl_attr_get_type(attr) == IFA_LOCAL &&
						       mnl_attr_get_payload_len(attr) == sizeof(address.ip))
		memcpy(&address.ip, mnl_attr_get_payload(attr), sizeof(address.ip));
	visit->stopped = !visit->address(&address, visit->data);
	return MNL_CB_OK;
}

int rtnl_addresses4(
	struct rtnl *nl, bool (*each)(const struct rtnl_address *address, void *data), void *data, struct error *err)
{
	struct visit visit = { .address = each, .data = data };
	struct request q;
	struct ifaddrmsg *ifa = request_init(&q, RTM_GETADDR, 0, sizeof(*ifa));
	int r;

	ifa->ifa_family = AF_INET;
	r = dump(nl, &q, on_address, &visit);
	return r < 0 ? error_sys(err, r, "list addresses") : 0;
}

struct default_route {
	int index;
	uint32_t priority;
};

static int on_route(const struct nlmsghdr *nlh, void *data)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(nlh);
	struct default_route *best = data;
	const struct nlattr *attr;
	uint32_t priority = 0;
	int index = 0;

	if (nlh->nlmsg_type != RTM_NEWROUTE || mnl_nlmsg_get_payload_len(nlh) < sizeof(*rtm))
		return MNL_CB_OK;
	if (rtm->rtm_dst_len != 0 || rtm->rtm_table != RT_TABLE_MAIN || rtm->rtm_type != RTN_UNICAST)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, nlh, sizeof(*rtm))
	{
		if (mnl_attr_get_type(attr) == RTA_OIF)
			index = (int)read_u32(attr);
		else if (mnl_attr_get_type(attr) == RTA_PRIORITY)
			priority = read_u32(attr);
	}
	if (index && (!best->index || priority < best->priority))
		*best = (struct default_route){ index, priority };
	return MNL_CB_OK;
}

uint32_t rtnl_default_mtu(struct rtnl *nl)
{
	struct default_route best = { 0 };
	struct rtnl_link link = { 0 };
	struct request q;
	struct rtmsg *rtm = request_init(&q, RTM_GETROUTE, 0, sizeof(*rtm));
	struct ifinfomsg *ifi;

	rtm->rtm_family = AF_INET;
	if (dump(nl, &q, on_route, &best) < 0 || !best.index)
		return MTU_DEFAULT;
	ifi = link_request(&q, RTM_GETLINK, NLM_F_ACK, NULL);
	ifi->ifi_index = best.index;
	if (talk(nl, &q, on_link_found, &link) < 0 || link.mtu == 0)
		return MTU_DEFAULT;
	return link.mtu;
}

/* ---- writing ---- */

int rtnl_bridge_add(struct rtnl *nl, const char *name, const uint8_t mac[6], uint32_t mtu, struct error *err)
{
	struct request q;
	struct nlattr *info;
	int r;

	link_request(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, name);
	/* Without an address of its own a bridge takes the lowest of its ports, and changes it as pods come and go. */
	mnl_attr_put(&q.header, IFLA_ADDRESS, 6, mac);
	mnl_attr_put_u32(&q.header, IFLA_MTU, mtu);
	info = mnl_attr_nest_start(&q.header, IFLA_LINKINFO);
	mnl_attr_put_strz(&q.header, IFLA_INFO_KIND, "bridge");
	mnl_attr_nest_end(&q.header, info);
	r = request_ack(nl, &q);
	return r < 0 ? error_sys(err, r, "make the bridge %s", name) : 0;
}

int rtnl_veth_add(struct rtnl *nl, const struct rtnl_veth *veth, struct error *err)
{
	struct request q;
	struct nlattr *info, *data, *peer;
	int r;

	link_request(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, veth->name);
	mnl_attr_put(&q.header, IFLA_ADDRESS, 6, veth->mac);
	mnl_attr_put_u32(&q.header, IFLA_MTU, veth->mtu);
	info = mnl_attr_nest_start(&q.header, IFLA_LINKINFO);
	mnl_attr_put_strz(&q.header, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(&q.header, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(&q.header, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(&q.header, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(&q.header, IFLA_IFNAME, veth->peer_name);
	mnl_attr_put(&q.header, IFLA_ADDRESS, 6, veth->peer_mac);
	mnl_attr_put_u32(&q.header, IFLA_MTU, veth->mtu);
	mnl_attr_put_u32(&q.header, IFLA_NET_NS_FD, (uint32_t)veth->peer_netns);
	mnl_attr_nest_end(&q.header, peer);
	mnl_attr_nest_end(&q.header, data);
	mnl_attr_nest_end(&q.header, info);
	r = request_ack(nl, &q);
	return r < 0 ? error_sys(err, r, "make the link pair %s and %s", veth->name, veth->peer_name) : 0;
}

void rtnl_link_no_ipv6_address(struct rtnl *nl, const char *name)
{
	struct request q;
	struct nlattr *spec, *family;

	link_request(&q, RTM_NEWLINK, 0, name);
	spec = mnl_attr_nest_start(&q.header, IFLA_AF_SPEC);
	family = mnl_attr_nest_start(&q.header, AF_INET6);
	mnl_attr_put_u8(&q.header, IFLA_INET6_ADDR_GEN_MODE, IN6_ADDR_GEN_MODE_NONE);
	mnl_attr_nest_end(&q.header, family);
	mnl_attr_nest_end(&q.header, spec);
	(void)request_ack(nl, &q);
}

int rtnl_port_set(struct rtnl *nl, const char *name, int bridge, const char *alias, struct error *err)
{
	struct request q;
	struct nlattr *info, *data;
	int r;

	link_request(&q, RTM_NEWLINK, 0, name);
	mnl_attr_put_u32(&q.header, IFLA_MASTER, (uint32_t)bridge);
	mnl_attr_put_strz(&q.header, IFLA_IFALIAS, alias);
	r = request_ack(nl, &q);
	if (r < 0)
		return error_sys(err, r, "put %s into the bridge", name);
	link_request(&q, RTM_NEWLINK, 0, name);
	info = mnl_attr_nest_start(&q.header, IFLA_LINKINFO);
	mnl_attr_put_strz(&q.header, IFLA_INFO_SLAVE_KIND, "bridge");
	data = mnl_attr_nest_start(&q.header, IFLA_INFO_SLAVE_DATA);
	mnl_attr_put_u8(&q.header, IFLA_BRPORT_MODE, 1);
	mnl_attr_nest_end(&q.header, data);
	mnl_attr_nest_end(&q.header, info);
	r = request_ack(nl, &q);
	if (r < 0)
		return error_sys(err, r, "set up the bridge port %s", name);
	rtnl_link_no_ipv6_address(nl, name);
	return rtnl_link_up(nl, name, err);
}

int rtnl_link_up(struct rtnl *nl, const char *name, struct error *err)
{
	struct request q;
	struct ifinfomsg *ifi = link_request(&q, RTM_NEWLINK, 0, name);
	int r;

	ifi->ifi_flags = IFF_UP;
	ifi->ifi_change = IFF_UP;
	r = request_ack(nl, &q);
	return r < 0 ? error_sys(err, r, "set %s up", name) : 0;
}

int rtnl_link_delete(struct rtnl *nl, const char *name, struct error *err)
{
	struct request q;
	int r;

	link_request(&q, RTM_DELLINK, 0, name);
	r = request_ack(nl, &q);
	if (r == -ENODEV || r == -EINVAL) {
		/* Old kernels say EINVAL for a name that is not there: look. */
		struct rtnl_link link;

		if (r == -ENODEV || rtnl_link_find(nl, name, &link, NULL) == -ENOENT)
			return 0;
	}
	return r < 0 ? error_sys(err, r, "delete link %s", name) : 0;
}

int rtnl_address_add4(struct rtnl *nl, int index, struct in_addr ip, uint8_t prefix, struct error *err)
{
	struct request q;
	struct ifaddrmsg *ifa = request_init(&q, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof(*ifa));
	int r;

	ifa->ifa_family = AF_INET;
	ifa->ifa_prefixlen = prefix;
	ifa->ifa_index = (uint32_t)index;
	ifa->ifa_scope = RT_SCOPE_UNIVERSE;
	mnl_attr_put(&q.header, IFA_LOCAL, sizeof(ip), &ip);
	mnl_attr_put(&q.header, IFA_ADDRESS, sizeof(ip), &ip);
	r = request_ack(nl, &q);
	return r < 0 && r != -EEXIST ? error_sys(err, r, "add an address") : 0;
}

int rtnl_default_route_add4(struct rtnl *nl, int index, struct in_addr gateway, struct error *err)
{
	struct request q;
	struct rtmsg *rtm = request_init(&q, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, sizeof(*rtm));
	int r;

	rtm->rtm_family = AF_INET;
	rtm->rtm_table = RT_TABLE_MAIN;
	rtm->rtm_protocol = RTPROT_STATIC;
	rtm->rtm_scope = RT_SCOPE_UNIVERSE;
	rtm->rtm_type = RTN_UNICAST;
	rtm->rtm_flags = RTNH_F_ONLINK;
	mnl_attr_put(&q.header, RTA_GATEWAY, sizeof(gateway), &gateway);
	mnl_attr_put_u32(&q.header, RTA_OIF, (uint32_t)index);
	r = request_ack(nl, &q);
	return r < 0 && r != -EEXIST ? error_sys(err, r, "add the default route") : 0;
}
