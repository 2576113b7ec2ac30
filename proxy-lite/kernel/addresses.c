/* addresses.c - purpose: the node's own addresses that node ports are served on, and hearing when they change. */
#include "proxy-lite/kernel/addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { ADDRESSES_MAX = 4096 };

int address_choice_parse(const struct strv *list, struct address_choice *ret, struct error *err)
{
	struct address_choice choice = { 0 };

	for (size_t i = 0; list && i < list->n; i++) {
		struct cidr cidr;

		if (strcmp(list->v[i], "primary") == 0) {
			choice.primary = true;
			continue;
		}
		if (!cidr_parse(list->v[i], &cidr)) {
			free(choice.cidrs);
			return error_set(err, ERROR_INVALID,
				"\"%s\" is neither \"primary\" nor a CIDR like 192.0.2.0/24", list->v[i]);
		}
		choice.cidrs = xreallocarray(choice.cidrs, choice.n_cidrs + 1, sizeof(cidr));
		choice.cidrs[choice.n_cidrs++] = cidr;
	}
	if (choice.primary && choice.n_cidrs) {
		free(choice.cidrs);
		return error_set(err, ERROR_INVALID, "\"primary\" stands alone, not beside CIDRs");
	}
	choice.primary = choice.n_cidrs == 0;
	*ret = choice;
	return 0;
}

void address_choice_done(struct address_choice *choice)
{
	free(choice->cidrs);
	*choice = (struct address_choice){ 0 };
}

static bool from_sockaddr(const struct sockaddr *sa, struct ip *ret)
{
	*ret = (struct ip){ 0 };
	if (sa && sa->sa_family == AF_INET)
		memcpy(ret->bytes, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
	else if (sa && sa->sa_family == AF_INET6)
		memcpy(ret->bytes, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
	else
		return false;
	ret->v6 = sa->sa_family == AF_INET6;
	return ip_is_destination(ret) && !ip_is_link_local(ret);
}

/* The source that the kernel would choose towards a documentation address: connecting a UDP socket sends nothing. */
static bool route_source(bool v6, struct ip *ret)
{
	struct sockaddr_storage to = { .ss_family = v6 ? AF_INET6 : AF_INET }, from = { 0 };
	socklen_t len = v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	_cleanup_fd_ int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return false;
	if (v6) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&to;

		in6->sin6_port = htons(9);
		inet_pton(AF_INET6, "2001:db8::1", &in6->sin6_addr);
	} else {
		struct sockaddr_in *in = (struct sockaddr_in *)(void *)&to;

		in->sin_port = htons(9);
		inet_pton(AF_INET, "198.51.100.1", &in->sin_addr);
	}
	if (connect(fd, (struct sockaddr *)&to, len) < 0 || getsockname(fd, (struct sockaddr *)&from, &len) < 0)
		return false;
	return from_sockaddr((struct sockaddr *)&from, ret);
}

static int ip_order(const void *pa, const void *pb)
{
	const struct ip *a = pa, *b = pb;

	return a->v6 != b->v6 ? (int)a->v6 - (int)b->v6 : memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

static bool chosen(const struct address_choice *choice, const struct ip *ip)
{
	for (size_t i = 0; i < choice->n_cidrs; i++)
		if (cidr_contains(&choice->cidrs[i], ip))
			return true;
	return false;
}

static void add_ip(struct ip **list, size_t *n, const struct ip *ip)
{
	for (size_t i = 0; i < *n; i++)
		if (ip_equal(&(*list)[i], ip))
			return;
	*list = xreallocarray(*list, *n + 1, sizeof(*ip));
	(*list)[(*n)++] = *ip;
}

int addresses_read(const struct address_choice *choice, struct ip **ret, size_t *ret_n, struct error *err)
{
	struct ifaddrs *all = NULL;
	struct ip *list = NULL, main_ip[2];
	bool has_main[2] = { route_source(false, &main_ip[0]), route_source(true, &main_ip[1]) };
	size_t n = 0;

	if (getifaddrs(&all) < 0)
		return error_sys(err, errno, "list the node's addresses");
	for (struct ifaddrs *i = all; i && n < ADDRESSES_MAX; i = i->ifa_next) {
		struct ip ip;

		if (!(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK) || !from_sockaddr(i->ifa_addr, &ip))
			continue;
		if (choice->primary && !has_main[ip.v6]) {
			main_ip[ip.v6] = ip;
			has_main[ip.v6] = true;
		}
		if (!choice->primary && chosen(choice, &ip))
			add_ip(&list, &n, &ip);
	}
	freeifaddrs(all);
	for (unsigned v6 = 0; choice->primary && v6 < 2; v6++)
		if (has_main[v6])
			add_ip(&list, &n, &main_ip[v6]);
	if (n)
		qsort(list, n, sizeof(*list), ip_order);
	*ret = list;
	*ret_n = n;
	return 0;
}

int addresses_watch(struct netlink *nl, struct error *err)
{
	static const unsigned groups[] = { RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR, RTNLGRP_IPV4_ROUTE,
		RTNLGRP_IPV6_ROUTE };
	int r = netlink_open(nl, NETLINK_ROUTE, err);

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(groups); i++)
		if ((r = netlink_group(nl, groups[i], true)) < 0)
			return error_sys(err, r, "address notifications");
	return r;
}

void addresses_drain(const struct netlink *nl)
{
	char buf[8192];

	for (int i = 0; i < 10000; i++) {
		ssize_t n = recv(nl->fd, buf, sizeof(buf), MSG_DONTWAIT | MSG_TRUNC);

		if (n < 0 && errno != ENOBUFS && errno != EINTR)
			return;
	}
}
