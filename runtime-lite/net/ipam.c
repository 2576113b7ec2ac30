/*
 * ipam.c - purpose: which pod has which address and host ports: a pool and its leases, one small file each.
 *
 * <dir>/10.85.0.7:
 *	runtime-lite lease 1
 *	sandbox 0f3a...
 *	range 10.85.0.0/16
 *	port tcp 8080 80 127.0.0.1		(protocol, host port, container port, host address or *)
 *
 * <dir>/last holds the address given out last, so that a freed one is not used again at once, also over restarts.
 */
#include "runtime-lite/net/ipam.h"
#include "common/base/log.h"
#include "common/base/str.h"
#include "common/sys/file.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { LEASE_TEXT_MAX = 128 * 1024, SANDBOX_ID_MAX = 128, PREFIX_MIN = 8, PREFIX_MAX = 29 };

struct ipam {
	int dir_fd;
	char *dir;
	struct ip_range range;
	struct in_addr last;
	struct lease **leases;
	size_t n, cap;
};

/* ---- ranges ---- */

static uint32_t mask_of(uint8_t prefix)
{
	return prefix == 0 ? 0 : ~(uint32_t)0 << (32 - prefix);
}

int ip_range_parse(const char *cidr, struct ip_range *ret, struct error *err)
{
	const char *slash = strchr(cidr, '/');
	char ip[INET_ADDRSTRLEN] = "", *end = NULL;
	struct ip_range range;
	unsigned long prefix = 0;

	if (slash && (size_t)(slash - cidr) < sizeof(ip)) {
		memcpy(ip, cidr, (size_t)(slash - cidr));
		prefix = strtoul(slash + 1, &end, 10);
	}
	if (!end || end == slash + 1 || *end || slash[1] < '0' || slash[1] > '9' ||
		inet_pton(AF_INET, ip, &range.network) != 1)
		return error_set(err, ERROR_INVALID, "\"%.60s\" is not an IPv4 range such as 10.85.0.0/16", cidr);
	if (prefix < PREFIX_MIN || prefix > PREFIX_MAX)
		return error_set(err, ERROR_INVALID, "range %s: the prefix length must be %d to %d", cidr, PREFIX_MIN,
			PREFIX_MAX);
	range.prefix = (uint8_t)prefix;
	if (ntohl(range.network.s_addr) & ~mask_of(range.prefix))
		return error_set(err, ERROR_INVALID, "range %s: bits beyond the prefix are set", cidr);
	range.gateway.s_addr = htonl(ntohl(range.network.s_addr) + 1);
	*ret = range;
	return 0;
}

void ip_range_text(const struct ip_range *range, char ret[INET6_ADDRSTRLEN + 4])
{
	char ip[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &range->network, ip, sizeof(ip));
	snprintf(ret, INET6_ADDRSTRLEN + 4, "%s/%u", ip, range->prefix);
}

bool ip_range_overlaps(const struct ip_range *range, struct in_addr ip, uint8_t prefix)
{
	uint32_t mask = mask_of(MIN(range->prefix, prefix));

	return ((ntohl(range->network.s_addr) ^ ntohl(ip.s_addr)) & mask) == 0;
}

/* ---- the text of a lease ---- */

static const struct {
	const char *name;
	uint8_t number;
} protocols[] = {
	{ "tcp", IPPROTO_TCP },
	{ "udp", IPPROTO_UDP },
	{ "sctp", IPPROTO_SCTP },
};

static const char *protocol_name(uint8_t number)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(protocols); i++)
		if (protocols[i].number == number)
			return protocols[i].name;
	return NULL;
}

static uint8_t protocol_number(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(protocols); i++)
		if (strcmp(protocols[i].name, name) == 0)
			return protocols[i].number;
	return 0;
}

static void lease_write(const struct lease *lease, struct str *out)
{
	char range[INET6_ADDRSTRLEN + 4];
	size_t i;

	ip_range_text(&lease->range, range);
	str_addf(out, "runtime-lite lease 1\nsandbox %s\nrange %s\n", lease->sandbox_id, range);
	for (i = 0; i < lease->n_ports; i++) {
		const struct port_mapping *p = &lease->ports[i];

		str_addf(out, "port %s %u %u %s\n", protocol_name(p->protocol), p->host_port, p->container_port,
			*p->host_ip ? p->host_ip : "*");
	}
}

static void lease_free(struct lease *lease)
{
	if (!lease)
		return;
	free(lease->sandbox_id);
	free(lease->ports);
	free(lease);
}
DEFINE_CLEANUP(struct lease *, lease_free)

static bool read_port(const char *line, struct lease *lease)
{
	char protocol[8], host_ip[INET6_ADDRSTRLEN];
	unsigned host_port, container_port;
	struct port_mapping *p;

	_Static_assert(INET6_ADDRSTRLEN == 46, "the width below");
	if (sscanf(line, "port %7s %5u %5u %45s", protocol, &host_port, &container_port, host_ip) != 4)
		return false;
	if (!protocol_number(protocol) || host_port > UINT16_MAX || container_port > UINT16_MAX ||
		lease->n_ports == BRIDGE_PORTS_MAX)
		return false;
	lease->ports = xreallocarray(lease->ports, lease->n_ports + 1, sizeof(*lease->ports));
	p = &lease->ports[lease->n_ports++];
	*p = (struct port_mapping){ protocol_number(protocol), (uint16_t)host_port, (uint16_t)container_port, "" };
	if (!str_eq(host_ip, "*"))
		snprintf(p->host_ip, sizeof(p->host_ip), "%s", host_ip);
	return true;
}

static bool sandbox_id_ok(const char *id)
{
	size_t len = strlen(id), i;

	for (i = 0; i < len; i++)
		if (id[i] <= ' ' || id[i] >= 0x7f)
			return false;
	return len > 0 && len <= SANDBOX_ID_MAX;
}

/* NULL: not a lease. */
static struct lease *lease_read(const char *text)
{
	_cleanup_(lease_free_p) struct lease *lease = xnew(struct lease);
	_cleanup_(strv_done) struct strv lines = STRV_INIT;
	size_t i;

	strv_split(&lines, text, '\n');
	for (i = 1; i < lines.n; i++) {
		const char *line = lines.v[i];

		if (str_starts(line, "sandbox ") && !lease->sandbox_id && sandbox_id_ok(line + 8))
			lease->sandbox_id = xstrdup(line + 8);
		else if (str_starts(line, "range ") && lease->range.prefix == 0) {
			if (ip_range_parse(line + 6, &lease->range, NULL) < 0)
				return NULL;
		} else if (*line && !read_port(line, lease))
			return NULL;
	}
	return lease->sandbox_id && lease->range.prefix ? steal(lease) : NULL;
}

/* ---- files ---- */

static int open_dir(const char *dir, int *ret, struct error *err)
{
	int r = dir_make(dir, 0700, err);

	if (r < 0)
		return r;
	*ret = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? error_sys(err, errno, "%s", dir) : 0;
}

/* Beside and renamed, without the syncs of file_replace(): see ipam.h. */
static int put_file(struct ipam *ipam, const char *name, const char *text, struct error *err)
{
	_cleanup_free_ char *temporary = xasprintf(".%s.new", name);
	_cleanup_fd_ int fd = openat(ipam->dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return error_sys(err, errno, "%s/%s", ipam->dir, temporary);
	r = fd_write_full(fd, text, strlen(text));
	if (r == 0 && renameat(ipam->dir_fd, temporary, ipam->dir_fd, name) < 0)
		r = -errno;
	if (r == 0)
		return 0;
	unlinkat(ipam->dir_fd, temporary, 0);
	return error_sys(err, r, "%s/%s", ipam->dir, name);
}

static int put_lease(struct ipam *ipam, const struct lease *lease, struct error *err)
{
	_cleanup_(str_done) struct str text = STR_INIT;
	char name[INET_ADDRSTRLEN];

	lease_write(lease, &text);
	inet_ntop(AF_INET, &lease->ip, name, sizeof(name));
	return put_file(ipam, name, str_get(&text), err);
}

/* Somebody has removed the directory. The leases of the pods that live go into the new one, or the next start would give
 * their addresses away. */
static int make_again(struct ipam *ipam, struct error *err)
{
	int fd, r = open_dir(ipam->dir, &fd, err);

	if (r < 0)
		return r;
	log_warning("made again with %zu leases, because it was removed dir=%s", ipam->n, ipam->dir);
	close(ipam->dir_fd);
	ipam->dir_fd = fd;
	for (size_t i = 0; i < ipam->n && r == 0; i++)
		r = put_lease(ipam, ipam->leases[i], err);
	return r;
}

static bool dir_removed(const struct ipam *ipam)
{
	struct stat st;

	return fstat(ipam->dir_fd, &st) == 0 && st.st_nlink == 0;
}

static void add(struct ipam *ipam, struct lease *lease)
{
	if (ipam->n == ipam->cap) {
		ipam->cap = ipam->cap ? ipam->cap * 2 : 16;
		ipam->leases = xreallocarray(ipam->leases, ipam->cap, sizeof(*ipam->leases));
	}
	ipam->leases[ipam->n++] = lease;
}

static int load_one(struct ipam *ipam, const char *name, struct error *err)
{
	static const char magic[] = "runtime-lite lease ";
	_cleanup_free_ char *text = NULL;
	struct in_addr ip;
	struct lease *lease = NULL;
	int r;

	if (name[0] == '.' || inet_pton(AF_INET, name, &ip) != 1) {
		if (str_starts(name, ".") && str_ends(name, ".new")) /* of somebody who was killed */
			unlinkat(ipam->dir_fd, name, 0);
		return 0;
	}
	r = file_read(ipam->dir_fd, name, LEASE_TEXT_MAX, &text, NULL, NULL);
	if (r == 0 && str_starts(text, magic) && !str_starts(text + strlen(magic), "1\n"))
		return error_set(err, ERROR_PRECONDITION,
			"%s/%s: version \"%.8s\" of leases is not known to this version", ipam->dir, name,
			text + strlen(magic));
	if (r == 0 && str_starts(text, magic))
		lease = lease_read(text);
	if (lease && !ipam_find(ipam, lease->sandbox_id)) {
		lease->ip = ip;
		add(ipam, lease);
		return 0;
	}
	lease_free(lease);
	log_warning("removed what is not a lease file=%s/%s", ipam->dir, name);
	unlinkat(ipam->dir_fd, name, 0);
	return 0;
}

static int load(struct ipam *ipam, struct error *err)
{
	_cleanup_free_ char *last = NULL;
	int fd = openat(ipam->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	if (!dir) {
		r = error_sys(err, errno, "%s", ipam->dir);
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (d = readdir(dir)))
		r = load_one(ipam, d->d_name, err);
	closedir(dir);
	if (file_read(ipam->dir_fd, "last", 64, &last, NULL, NULL) == 0) {
		last[strcspn(last, "\n")] = '\0';
		(void)inet_pton(AF_INET, last, &ipam->last);
	}
	return r;
}

/* ---- what others see ---- */

int ipam_open(const char *dir, const struct ip_range *range, struct ipam **ret, struct error *err)
{
	struct ipam *ipam;
	int fd, r = open_dir(dir, &fd, err);

	if (r < 0)
		return r;
	ipam = xnew(struct ipam);
	ipam->dir_fd = fd;
	ipam->dir = xstrdup(dir);
	ipam->range = *range;
	r = load(ipam, err);
	if (r < 0) {
		ipam_close(ipam);
		return r;
	}
	*ret = ipam;
	return 0;
}

struct ipam *ipam_close(struct ipam *ipam)
{
	size_t i;

	if (!ipam)
		return NULL;
	for (i = 0; i < ipam->n; i++)
		lease_free(ipam->leases[i]);
	free(ipam->leases);
	close(ipam->dir_fd);
	free(ipam->dir);
	free(ipam);
	return NULL;
}

const struct ip_range *ipam_range(const struct ipam *ipam)
{
	return &ipam->range;
}

void ipam_set_range(struct ipam *ipam, const struct ip_range *range)
{
	ipam->range = *range;
}

size_t ipam_count(const struct ipam *ipam)
{
	return ipam->n;
}

const struct lease *ipam_at(const struct ipam *ipam, size_t i)
{
	assert(i < ipam->n);
	return ipam->leases[i];
}

const struct lease *ipam_find(const struct ipam *ipam, const char *sandbox_id)
{
	size_t i;

	for (i = 0; i < ipam->n; i++)
		if (strcmp(ipam->leases[i]->sandbox_id, sandbox_id) == 0)
			return ipam->leases[i];
	return NULL;
}

/* ---- reserving ---- */

static bool any_address(const char *ip)
{
	return !*ip || str_eq(ip, "0.0.0.0") || str_eq(ip, "::");
}

static bool ports_collide(const struct port_mapping *a, const struct port_mapping *b)
{
	return a->protocol == b->protocol && a->host_port == b->host_port &&
	       (any_address(a->host_ip) || any_address(b->host_ip) || str_eq(a->host_ip, b->host_ip));
}

static int port_check(const struct ipam *ipam, const struct port_mapping *p, struct error *err)
{
	struct in_addr ip;
	size_t i, j;

	if (!protocol_name(p->protocol))
		return error_set(err, ERROR_INVALID, "host port %u: protocol number %u is none of TCP, UDP, SCTP",
			p->host_port, p->protocol);
	if (p->container_port == 0)
		return error_set(err, ERROR_INVALID, "host port %u: the container port is missing", p->host_port);
	if (!any_address(p->host_ip) && inet_pton(AF_INET, p->host_ip, &ip) != 1)
		return error_set(err, ERROR_INVALID, "host port %u: host IP \"%s\" is not an IPv4 address",
			p->host_port, p->host_ip);
	for (i = 0; i < ipam->n; i++)
		for (j = 0; j < ipam->leases[i]->n_ports; j++)
			if (ports_collide(p, &ipam->leases[i]->ports[j]))
				return error_set(err, ERROR_EXISTS, "host port %u/%s is taken by pod sandbox %s",
					p->host_port, protocol_name(p->protocol), ipam->leases[i]->sandbox_id);
	return 0;
}

/* Copies the mappings that map something. */
static int ports_take(const struct ipam *ipam, struct lease *lease, const struct port_mapping *ports, size_t n_ports,
	struct error *err)
{
	size_t i, j;

	if (n_ports > BRIDGE_PORTS_MAX)
		return error_set(
			err, ERROR_INVALID, "%zu host ports; at most %d are possible", n_ports, BRIDGE_PORTS_MAX);
	lease->ports = xcalloc(n_ports + 1, sizeof(*lease->ports));
	for (i = 0; i < n_ports; i++) {
		int r;

		if (ports[i].host_port == 0)
			continue;
		r = port_check(ipam, &ports[i], err);
		if (r < 0)
			return r;
		for (j = 0; j < lease->n_ports; j++)
			if (ports_collide(&ports[i], &lease->ports[j]))
				return error_set(err, ERROR_INVALID, "host port %u/%s is named twice",
					ports[i].host_port, protocol_name(ports[i].protocol));
		lease->ports[lease->n_ports] = ports[i];
		if (any_address(ports[i].host_ip))
			lease->ports[lease->n_ports].host_ip[0] = '\0';
		lease->n_ports++;
	}
	return 0;
}

/* The first free address behind the last one, around the range. Not network, gateway, broadcast. */
static bool pick(const struct ipam *ipam, struct in_addr *ret)
{
	uint32_t base = ntohl(ipam->range.network.s_addr), size = ~mask_of(ipam->range.prefix) + 1;
	uint32_t last = ntohl(ipam->last.s_addr) - base, i;
	_cleanup_free_ uint8_t *used = xcalloc(size / 8 + 1, 1);

	for (i = 0; i < ipam->n; i++) {
		uint32_t at = ntohl(ipam->leases[i]->ip.s_addr) - base;

		if (at < size)
			used[at / 8] |= (uint8_t)(1 << at % 8);
	}
	if (last >= size)
		last = 1;
	for (i = 1; i <= size; i++) {
		uint32_t at = (last + i) % size;

		if (at < 2 || at == size - 1 || used[at / 8] & 1 << at % 8)
			continue;
		ret->s_addr = htonl(base + at);
		return true;
	}
	return false;
}

int ipam_reserve(struct ipam *ipam, const char *sandbox_id, const struct port_mapping *ports, size_t n_ports,
	const struct lease **ret, struct error *err)
{
	_cleanup_(lease_free_p) struct lease *lease = xnew(struct lease);
	char name[INET_ADDRSTRLEN], range[INET6_ADDRSTRLEN + 4];
	int r;

	assert(!ipam_find(ipam, sandbox_id));
	if (!sandbox_id_ok(sandbox_id))
		return error_set(err, ERROR_INVALID,
			"sandbox id \"%.130s\": at most %d characters without blanks are allowed", sandbox_id,
			SANDBOX_ID_MAX);
	r = ports_take(ipam, lease, ports, n_ports, err);
	if (r < 0)
		return r;
	ip_range_text(&ipam->range, range);
	if (!pick(ipam, &lease->ip))
		return error_set(
			err, ERROR_EXHAUSTED, "no free address is left in %s (%zu pods have one)", range, ipam->n);
	lease->sandbox_id = xstrdup(sandbox_id);
	lease->range = ipam->range;
	r = dir_removed(ipam) ? make_again(ipam, err) : 0;
	if (r == 0)
		r = put_lease(ipam, lease, err);
	if (r < 0)
		return r;
	inet_ntop(AF_INET, &lease->ip, name, sizeof(name));
	ipam->last = lease->ip;
	if (put_file(ipam, "last", name, NULL) < 0) /* only costs the round robin over a restart */
		log_debug("cannot note the last address dir=%s", ipam->dir);
	*ret = lease;
	add(ipam, steal(lease));
	return 0;
}

int ipam_release(struct ipam *ipam, const char *sandbox_id, struct error *err)
{
	char name[INET_ADDRSTRLEN];
	size_t i;

	for (i = 0; i < ipam->n; i++) {
		if (strcmp(ipam->leases[i]->sandbox_id, sandbox_id) != 0)
			continue;
		inet_ntop(AF_INET, &ipam->leases[i]->ip, name, sizeof(name));
		if (unlinkat(ipam->dir_fd, name, 0) < 0 && errno != ENOENT)
			return error_sys(err, errno, "%s/%s", ipam->dir, name);
		lease_free(ipam->leases[i]);
		ipam->leases[i] = ipam->leases[--ipam->n];
		return 0;
	}
	return 0;
}
