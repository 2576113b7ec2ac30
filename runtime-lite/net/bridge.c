/*
 * bridge.c - purpose: the built-in pod network: a bridge, addresses, masquerade and host ports, by netlink alone.
 *
 * Order of an attachment: infrastructure (bridge, sysctls, table), lease on disk, veth pair with its far end in the
 * pod, address and route there, elements in the table. A detachment goes the other way; the lease goes last, so that
 * after a kill -9 at any point a repetition or reconcile finds what is left to undo.
 *
 * What is ours is told by MAC addresses: 02:72 and the gateway for the bridge, 06:72 and the pod's address for the
 * node's end, 02:72 and the pod's address for eth0. Since a MAC follows from the address, neighbour entries of an
 * earlier pod with the same address stay right, and no gratuitous ARP is needed.
 */
#include "runtime-lite/net/bridge.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "runtime-lite/net/conntrack.h"
#include "runtime-lite/net/ipam.h"
#include "runtime-lite/net/nft.h"
#include "runtime-lite/net/rtnl.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

static const char pod_link[] = "eth0";
static const uint8_t mac_bridge_or_pod[2] = { 0x02, 0x72 }, mac_node_end[2] = { 0x06, 0x72 };

struct bridge_network {
	pthread_mutex_t lock; /* around every public function */
	char *bridge;
	struct nft_table table;
	struct ipam *ipam;
	bool ready; /* bridge, sysctls and table have been seen to be right by this process */
	int claim;  /* -1, or the socket by which the bridge is ours */
};

static void unlock(pthread_mutex_t **lock)
{
	pthread_mutex_unlock(*lock);
}
#define LOCKED(network)                                                                                                \
	_cleanup_(unlock) pthread_mutex_t *locked_ = &(network)->lock;                                                 \
	pthread_mutex_lock(locked_)

/* The links of two daemons in one bridge would be orphans to each other. The names of abstract sockets belong to the
 * network namespace, as bridges do, and go with the process. */
static int claim_bridge(struct bridge_network *n, struct error *err)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int len = snprintf(un.sun_path + 1, sizeof(un.sun_path) - 1, "runtime-lite/bridge/%s", n->bridge);
	_cleanup_fd_ int fd = -1;

	if (n->claim >= 0)
		return 0;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_sys(err, errno, "socket");
	if (bind(fd, (struct sockaddr *)&un, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) < 0)
		return errno == EADDRINUSE ? error_set(err, ERROR_PRECONDITION,
						     "bridge %s is in use by another runtime-lite in this network namespace",
						     n->bridge) :
					     error_sys(err, errno, "lock of bridge %s", n->bridge);
	n->claim = steal_fd(&fd);
	return 0;
}

/* ---- names ---- */

static void mac_make(const uint8_t prefix[2], struct in_addr ip, uint8_t ret[6])
{
	memcpy(ret, prefix, 2);
	memcpy(ret + 2, &ip, 4);
}

/* "veth" and 44 bits of a hash (FNV-1a) of the sandbox id. */
static void host_link_name(const char *sandbox_id, char ret[IFNAMSIZ])
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *sandbox_id; sandbox_id++)
		hash = (hash ^ (uint8_t)*sandbox_id) * 0x100000001b3u;
	snprintf(ret, IFNAMSIZ, "veth%011llx", (unsigned long long)(hash & 0xfffffffffffu));
}

static struct nft_pod nft_pod_of(const struct lease *lease)
{
	return (struct nft_pod){ lease->sandbox_id, lease->ip, lease->ports, lease->n_ports };
}

/* ---- infrastructure ---- */

/* Does somebody else use addresses of our range? */
struct overlap {
	const struct ip_range *range;
	int bridge;
	struct rtnl_address found;
	bool is_found;
};

static bool look_for_overlap(const struct rtnl_address *address, void *data)
{
	struct overlap *o = data;

	if (address->index != o->bridge && address->ip.s_addr &&
		ip_range_overlaps(o->range, address->ip, address->prefix)) {
		o->found = *address;
		o->is_found = true;
	}
	return !o->is_found;
}

static int check_overlap(struct rtnl *nl, const struct ip_range *range, int bridge, struct error *err)
{
	struct overlap o = { .range = range, .bridge = bridge };
	char ours[INET6_ADDRSTRLEN + 4], theirs[INET_ADDRSTRLEN], name[IFNAMSIZ] = "?";
	int r = rtnl_addresses4(nl, look_for_overlap, &o, err);

	if (r < 0 || !o.is_found)
		return r;
	ip_range_text(range, ours);
	inet_ntop(AF_INET, &o.found.ip, theirs, sizeof(theirs));
	return error_set(err, ERROR_PRECONDITION,
		"pod range %s overlaps %s/%u of link %s; choose another with --pod-cidr", ours, theirs, o.found.prefix,
		if_indextoname((unsigned)o.found.index, name) ? name : "?");
}

/* ERROR_NOT_FOUND: not there yet. ERROR_EXISTS: the name belongs to somebody else. */
static int find_bridge(struct bridge_network *n, struct rtnl *nl, struct rtnl_link *ret, struct error *err)
{
	int r = rtnl_link_find(nl, n->bridge, ret, err);

	if (r < 0)
		return r;
	if (!str_eq(ret->kind, "bridge") || memcmp(ret->mac, mac_bridge_or_pod, 2) != 0)
		return error_set(err, ERROR_EXISTS,
			"link %s exists and was not made by runtime-lite; choose another --bridge", n->bridge);
	return 0;
}

static int sysctl_set(const char *path, const char *value, struct error *err)
{
	_cleanup_fd_ int fd = open(path, O_RDWR | O_CLOEXEC);
	char now = '\0';

	if (fd < 0)
		return error_sys(err, errno, "%s", path);
	/* Read first: /proc/sys may be mounted read-only where all is well already. */
	if (pread(fd, &now, 1, 0) == 1 && now == value[0])
		return 0;
	if (pwrite(fd, value, strlen(value), 0) < 0)
		return error_sys(err, errno, "write %s to %s", value, path);
	return 0;
}

static int set_sysctls(struct bridge_network *n, struct error *err)
{
	_cleanup_free_ char *localnet = xasprintf("/proc/sys/net/ipv4/conf/%s/route_localnet", n->bridge);
	int r = sysctl_set("/proc/sys/net/ipv4/ip_forward", "1", err);

	/* So that 127.0.0.1:hostPort can be sent on to a pod; the table's guard chain closes the way back. */
	return r < 0 ? r : sysctl_set(localnet, "1", err);
}

/* The gateway of the pool and those of leases from earlier ranges. */
static int set_gateways(struct bridge_network *n, struct rtnl *nl, int index, struct error *err)
{
	const struct ip_range *range = ipam_range(n->ipam);
	size_t i;
	int r = rtnl_address_add4(nl, index, range->gateway, range->prefix, err);

	for (i = 0; i < ipam_count(n->ipam) && r == 0; i++) {
		const struct ip_range *other = &ipam_at(n->ipam, i)->range;

		if (other->gateway.s_addr != range->gateway.s_addr)
			r = rtnl_address_add4(nl, index, other->gateway, other->prefix, err);
	}
	return r < 0 ? error_prefix(err, "bridge %s", n->bridge) : 0;
}

static int port_up(struct rtnl *nl, const char *name, int bridge, const char *sandbox_id, struct error *err)
{
	char alias[160];

	snprintf(alias, sizeof(alias), "runtime-lite pod %.128s", sandbox_id);
	return rtnl_port_set(nl, name, bridge, alias, err);
}

/* After somebody deleted the bridge its ports hang loose. */
static void adopt_ports(struct bridge_network *n, struct rtnl *nl, int bridge)
{
	size_t i;

	for (i = 0; i < ipam_count(n->ipam); i++) {
		const struct lease *lease = ipam_at(n->ipam, i);
		char name[IFNAMSIZ];
		struct rtnl_link link;
		struct error err;

		host_link_name(lease->sandbox_id, name);
		if (rtnl_link_find(nl, name, &link, NULL) == 0 && link.master != bridge &&
			port_up(nl, name, bridge, lease->sandbox_id, &err) < 0)
			log_warning("cannot put a pod back into the bridge pod=%s: %s", lease->sandbox_id, err.text);
	}
}

static int write_table(struct bridge_network *n, const struct lease *without, struct error *err)
{
	size_t count = ipam_count(n->ipam), used = 0, i;
	_cleanup_free_ struct nft_pod *pods = xcalloc(count + 1, sizeof(*pods));

	for (i = 0; i < count; i++)
		if (ipam_at(n->ipam, i) != without)
			pods[used++] = nft_pod_of(ipam_at(n->ipam, i));
	return nft_table_write(&n->table, pods, used, err);
}

static int make_bridge(struct bridge_network *n, struct rtnl *nl, struct rtnl_link *ret, struct error *err)
{
	uint8_t mac[6];
	int r = check_overlap(nl, ipam_range(n->ipam), 0, err);

	if (r < 0)
		return r;
	mac_make(mac_bridge_or_pod, ipam_range(n->ipam)->gateway, mac);
	r = rtnl_bridge_add(nl, n->bridge, mac, rtnl_default_mtu(nl), err);
	if (r < 0)
		return r;
	return find_bridge(n, nl, ret, err);
}

static void warn_of_forward_drop(struct bridge_network *n)
{
	char who[128];

	if (nft_forward_dropped(who, sizeof(who)))
		log_warning("%s drops forwarded traffic by its policy: unless it has rules that accept traffic of the "
			    "bridge, pods "
			    "reach nothing and nobody bridge=%s",
			who, n->bridge);
}

/* Bridge, addresses, sysctls and table are there and right afterwards. Cheap when they were. */
static int ensure(struct bridge_network *n, struct rtnl *nl, struct rtnl_link *ret_bridge, struct error *err)
{
	int r = find_bridge(n, nl, ret_bridge, err);

	if (r == 0 && n->ready)
		return 0;
	n->ready = false;
	if (r == -ENOENT) {
		r = make_bridge(n, nl, ret_bridge, err);
		if (r == 0)
			warn_of_forward_drop(n);
	}
	if (r < 0)
		return r;
	rtnl_link_no_ipv6_address(nl, n->bridge);
	r = set_gateways(n, nl, ret_bridge->index, err);
	if (r == 0)
		r = rtnl_link_up(nl, n->bridge, err);
	if (r == 0)
		r = set_sysctls(n, err);
	if (r < 0)
		return r;
	adopt_ports(n, nl, ret_bridge->index);
	r = write_table(n, NULL, err);
	n->ready = r == 0;
	return r;
}

/* ---- attaching ---- */

/* Is the pair there, with the far end in this very netns? */
static bool linked(struct rtnl *nl, struct rtnl *pod_nl, const char *name, const struct lease *lease)
{
	struct rtnl_link near, far;
	uint8_t mac[6];

	mac_make(mac_bridge_or_pod, lease->ip, mac);
	return rtnl_link_find(nl, name, &near, NULL) == 0 && rtnl_link_find(pod_nl, pod_link, &far, NULL) == 0 &&
	       far.peer == near.index && near.peer == far.index && memcmp(far.mac, mac, sizeof(mac)) == 0;
}

static int make_link(struct rtnl *nl, const struct lease *lease, const char *name, int netns_fd,
	const struct rtnl_link *bridge, struct error *err)
{
	struct rtnl_veth veth = { .name = name, .peer_name = pod_link, .peer_netns = netns_fd, .mtu = bridge->mtu };
	int r = rtnl_link_delete(nl, name, err); /* of an attempt that was cut short */

	if (r < 0)
		return r;
	mac_make(mac_node_end, lease->ip, veth.mac);
	mac_make(mac_bridge_or_pod, lease->ip, veth.peer_mac);
	return rtnl_veth_add(nl, &veth, err);
}

/* lo, eth0, address and route in the pod. The address is a /32: the pod takes nobody for its neighbour but the gateway.
 */
static int set_up_pod(struct rtnl *pod_nl, const struct lease *lease, struct error *err)
{
	struct rtnl_link eth;
	int r = rtnl_link_find(pod_nl, pod_link, &eth, err);

	if (r == 0)
		r = rtnl_link_up(pod_nl, "lo", err);
	if (r == 0)
		r = rtnl_address_add4(pod_nl, eth.index, lease->ip, 32, err);
	if (r == 0)
		r = rtnl_link_up(pod_nl, pod_link, err);
	if (r == 0)
		r = rtnl_default_route_add4(pod_nl, eth.index, lease->range.gateway, err);
	return r;
}

static int attach_lease(struct bridge_network *n, struct rtnl *nl, const struct lease *lease, int netns_fd,
	const struct rtnl_link *bridge, struct error *err)
{
	_cleanup_(rtnl_close_p) struct rtnl *pod_nl = NULL;
	struct nft_pod pod = nft_pod_of(lease);
	char name[IFNAMSIZ];
	int r = rtnl_open_in(netns_fd, &pod_nl, err);

	host_link_name(lease->sandbox_id, name);
	if (r == 0 && !linked(nl, pod_nl, name, lease))
		r = make_link(nl, lease, name, netns_fd, bridge, err);
	if (r == 0)
		r = port_up(nl, name, bridge->index, lease->sandbox_id, err);
	if (r == 0)
		r = set_up_pod(pod_nl, lease, err);
	/* The table may have been changed behind our back: then it is written anew, with this pod in it. */
	if (r == 0 && nft_pod_add(&n->table, &pod, NULL) < 0)
		r = write_table(n, NULL, err);
	if (r == 0)
		r = conntrack_forget(lease->ports, lease->n_ports, lease->ip, err);
	return r;
}

static bool same_ports(const struct lease *lease, const struct port_mapping *ports, size_t n_ports)
{
	size_t i, j = 0;

	for (i = 0; i < n_ports; i++) {
		const struct port_mapping *a = &ports[i], *b = &lease->ports[j];

		if (a->host_port == 0)
			continue;
		if (j == lease->n_ports || a->protocol != b->protocol || a->host_port != b->host_port ||
			a->container_port != b->container_port)
			return false;
		j++;
	}
	return j == lease->n_ports;
}

static int detach(struct bridge_network *n, struct rtnl *nl, const char *sandbox_id, struct error *err)
{
	const struct lease *lease = ipam_find(n->ipam, sandbox_id);
	struct rtnl_link link;
	char name[IFNAMSIZ];
	int r = 0;

	if (lease) {
		struct nft_pod pod = nft_pod_of(lease);
		struct in_addr nobody = { INADDR_ANY };

		if (nft_pod_remove(&n->table, &pod, NULL) < 0) {
			r = nft_table_exists(&n->table, err);
			if (r > 0)
				r = write_table(n, lease, err);
		}
		if (r >= 0)
			r = conntrack_forget(lease->ports, lease->n_ports, nobody, err);
	}
	if (r < 0)
		return r;
	host_link_name(sandbox_id, name);
	if (rtnl_link_find(nl, name, &link, NULL) == 0 && memcmp(link.mac, mac_node_end, 2) == 0)
		r = rtnl_link_delete(nl, name, err);
	return r < 0 ? r : ipam_release(n->ipam, sandbox_id, err);
}

static int attach(struct bridge_network *n, const char *sandbox_id, int netns_fd, const struct port_mapping *ports,
	size_t n_ports, char ret_ip[INET6_ADDRSTRLEN], struct error *err)
{
	_cleanup_(rtnl_close_p) struct rtnl *nl = NULL;
	struct rtnl_link bridge;
	const struct lease *lease = ipam_find(n->ipam, sandbox_id);
	int r = claim_bridge(n, err);

	if (r == 0)
		r = rtnl_open(&nl, err);
	if (r == 0)
		r = ensure(n, nl, &bridge, err);
	if (r == 0 && lease && !same_ports(lease, ports, n_ports)) {
		r = detach(n, nl, sandbox_id, err);
		lease = NULL;
	}
	if (r == 0 && !lease)
		r = ipam_reserve(n->ipam, sandbox_id, ports, n_ports, &lease, err);
	if (r < 0)
		return r;
	r = attach_lease(n, nl, lease, netns_fd, &bridge, err);
	if (r < 0) {
		if (detach(n, nl, sandbox_id, NULL) < 0)
			log_warning("a failed attachment could not be undone; it will be at the next start pod=%s",
				sandbox_id);
		return r;
	}
	inet_ntop(AF_INET, &lease->ip, ret_ip, INET6_ADDRSTRLEN);
	return 0;
}

int bridge_attach(struct bridge_network *n, const char *sandbox_id, int netns_fd, const struct port_mapping *ports,
	size_t n_ports, char ret_ip[INET6_ADDRSTRLEN], struct error *err)
{
	LOCKED(n);
	int r = attach(n, sandbox_id, netns_fd, ports, n_ports, ret_ip, err);

	return r < 0 ? error_prefix(err, "pod network") : 0;
}

int bridge_detach(struct bridge_network *n, const char *sandbox_id, struct error *err)
{
	_cleanup_(rtnl_close_p) struct rtnl *nl = NULL;
	LOCKED(n);
	int r = rtnl_open(&nl, err);

	if (r == 0)
		r = detach(n, nl, sandbox_id, err);
	return r < 0 ? error_prefix(err, "pod network") : 0;
}

/* ---- keeping it right ---- */

static bool is_live(const char *id, const char *const *live_ids, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(id, live_ids[i]) == 0)
			return true;
	return false;
}

/* Our ends of veths in the bridge that no lease knows. */
struct orphans {
	struct bridge_network *network;
	int bridge;
	struct strv names;
};

static bool collect_orphan(const struct rtnl_link *link, void *data)
{
	struct orphans *o = data;
	char name[IFNAMSIZ];
	size_t i;

	if (link->master != o->bridge || !str_eq(link->kind, "veth") || memcmp(link->mac, mac_node_end, 2) != 0)
		return true;
	for (i = 0; i < ipam_count(o->network->ipam); i++) {
		host_link_name(ipam_at(o->network->ipam, i)->sandbox_id, name);
		if (strcmp(name, link->name) == 0)
			return true;
	}
	if (!strv_has(&o->names, link->name))
		strv_add(&o->names, link->name);
	return true;
}

static int delete_orphans(struct bridge_network *n, struct rtnl *nl, struct error *err)
{
	struct orphans o = { .network = n, .names = STRV_INIT };
	struct rtnl_link bridge;
	size_t i;
	int r;

	if (find_bridge(n, nl, &bridge, NULL) < 0)
		return 0;
	o.bridge = bridge.index;
	r = rtnl_links(nl, collect_orphan, &o, err);
	for (i = 0; i < o.names.n && r == 0; i++)
		r = rtnl_link_delete(nl, o.names.v[i], err);
	strv_done(&o.names);
	return r;
}

static int reconcile(struct bridge_network *n, const char *const *live_ids, size_t n_live, struct error *err)
{
	_cleanup_(rtnl_close_p) struct rtnl *nl = NULL;
	struct rtnl_link bridge;
	size_t i = 0;
	int r = claim_bridge(n, err);

	if (r == 0)
		r = rtnl_open(&nl, err);
	while (r == 0 && i < ipam_count(n->ipam)) {
		_cleanup_free_ char *id = xstrdup(ipam_at(n->ipam, i)->sandbox_id);

		if (is_live(id, live_ids, n_live)) {
			i++;
			continue;
		}
		r = detach(n, nl, id, err);
		i = 0; /* the order has changed */
	}
	if (r == 0)
		r = delete_orphans(n, nl, err);
	if (r < 0)
		return r;
	n->ready = false;
	if (ipam_count(n->ipam) > 0)
		return ensure(n, nl, &bridge, err);
	r = nft_table_exists(&n->table, err);
	return r > 0 ? write_table(n, NULL, err) : r;
}

int bridge_reconcile(struct bridge_network *n, const char *const *live_ids, size_t n_live, struct error *err)
{
	LOCKED(n);
	int r = reconcile(n, live_ids, n_live, err);

	return r < 0 ? error_prefix(err, "pod network") : 0;
}

static bool same_range(const struct ip_range *a, const struct ip_range *b)
{
	return a->network.s_addr == b->network.s_addr && a->prefix == b->prefix;
}

static int set_range(struct bridge_network *n, const struct ip_range *range, struct error *err)
{
	_cleanup_(rtnl_close_p) struct rtnl *nl = NULL;
	struct rtnl_link bridge = { 0 };
	char text[INET6_ADDRSTRLEN + 4];
	int r;

	if (same_range(range, ipam_range(n->ipam)))
		return 0;
	r = rtnl_open(&nl, err);
	if (r == 0 && find_bridge(n, nl, &bridge, NULL) < 0)
		bridge.index = 0;
	if (r == 0)
		r = check_overlap(nl, range, bridge.index, err);
	if (r < 0)
		return r;
	ip_range_text(range, text);
	log_info("pod addresses come from another range now range=%s", text);
	ipam_set_range(n->ipam, range);
	n->ready = false;
	return 0;
}

int bridge_set_cidr(struct bridge_network *n, const char *cidr, struct error *err)
{
	_cleanup_(strv_done) struct strv parts = STRV_INIT;
	const char *chosen = cidr;
	struct ip_range range;
	size_t i;
	int r;

	strv_split(&parts, cidr, ',');
	if (parts.n == 0)
		return 0;
	for (i = parts.n; i-- > 0;)
		if (!strchr(parts.v[i], ':'))
			chosen = parts.v[i];
	r = ip_range_parse(chosen, &range, err);
	if (r == 0) {
		LOCKED(n);
		r = set_range(n, &range, err);
	}
	return r < 0 ? error_prefix(err, "pod network") : 0;
}

int bridge_remove(struct bridge_network *n, struct error *err)
{
	_cleanup_(rtnl_close_p) struct rtnl *nl = NULL;
	struct rtnl_link bridge;
	LOCKED(n);
	int r;

	if (ipam_count(n->ipam) > 0)
		return error_set(err, ERROR_PRECONDITION, "pod network: %zu pods still use it", ipam_count(n->ipam));
	n->ready = false;
	r = claim_bridge(n, err);
	if (r == 0)
		r = nft_table_delete(&n->table, err);
	if (r == 0)
		r = rtnl_open(&nl, err);
	if (r == 0 && find_bridge(n, nl, &bridge, NULL) == 0)
		r = rtnl_link_delete(nl, n->bridge, err);
	return r < 0 ? error_prefix(err, "pod network") : 0;
}

static int problem(struct bridge_network *n, struct error *err)
{
	_cleanup_(rtnl_close_p) struct rtnl *nl = NULL;
	struct rtnl_link bridge = { 0 };
	int r = claim_bridge(n, err);

	if (r == 0)
		r = rtnl_open(&nl, err);
	if (r < 0)
		return r;
	if (ipam_count(n->ipam) > 0) {
		r = nft_table_exists(&n->table, err);
		if (r == 0)
			n->ready = false;
		return r < 0 ? r : ensure(n, nl, &bridge, err);
	}
	/* Nothing is made before it is needed, but what would prevent it can be told. */
	r = find_bridge(n, nl, &bridge, err);
	if (r < 0 && r != -ENOENT)
		return r;
	return check_overlap(nl, ipam_range(n->ipam), bridge.index, err);
}

void bridge_problem(struct bridge_network *n, char ret[ERROR_TEXT_MAX])
{
	struct error err = ERROR_INIT;
	LOCKED(n);

	ret[0] = '\0';
	if (problem(n, &err) < 0)
		memcpy(ret, err.text, ERROR_TEXT_MAX);
}

/* ---- coming and going ---- */

int bridge_network_new(const struct bridge_config *config, struct bridge_network **ret, struct error *err)
{
	struct bridge_network *n;
	struct ip_range range;
	struct ipam *ipam;
	int r = ip_range_parse(config->cidr, &range, err);

	if (r == 0 &&
		(str_empty(config->bridge) || strlen(config->bridge) >= IFNAMSIZ || strpbrk(config->bridge, "/ :")))
		r = error_set(err, ERROR_INVALID,
			"bridge name \"%s\": 1 to %d characters without blank, \"/\" and \":\" are allowed",
			config->bridge ? config->bridge : "", IFNAMSIZ - 1);
	if (r == 0)
		r = ipam_open(config->state_dir, &range, &ipam, err);
	if (r < 0)
		return error_prefix(err, "pod network");
	n = xnew(struct bridge_network);
	pthread_mutex_init(&n->lock, NULL);
	n->bridge = xstrdup(config->bridge);
	n->table.name = config->table ? xstrdup(config->table) : xasprintf("runtime_lite_%s", config->bridge);
	n->table.bridge = n->bridge;
	n->claim = -1;
	n->ipam = ipam;
	*ret = n;
	return 0;
}

struct bridge_network *bridge_network_free(struct bridge_network *n)
{
	if (!n)
		return NULL;
	ipam_close(n->ipam);
	if (n->claim >= 0)
		close(n->claim);
	pthread_mutex_destroy(&n->lock);
	free((char *)n->table.name);
	free(n->bridge);
	free(n);
	return NULL;
}

/* ---- any pod's netns ---- */

int netns_link_stats(int netns_fd, const char *name, struct netns_stats *ret, struct error *err)
{
	_cleanup_(rtnl_close_p) struct rtnl *nl = NULL;
	struct rtnl_link link;
	int r = rtnl_open_in(netns_fd, &nl, err);

	if (r == 0)
		r = rtnl_link_find(nl, name, &link, err);
	if (r < 0)
		return r;
	*ret = (struct netns_stats){ link.rx_bytes, link.rx_errors, link.rx_packets, link.rx_dropped, link.tx_bytes,
		link.tx_errors, link.tx_packets, link.tx_dropped };
	return 0;
}

int netns_loopback_up(int netns_fd, struct error *err)
{
	_cleanup_(rtnl_close_p) struct rtnl *nl = NULL;
	int r = rtnl_open_in(netns_fd, &nl, err);

	return r < 0 ? r : rtnl_link_up(nl, "lo", err);
}
