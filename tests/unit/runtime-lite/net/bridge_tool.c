/*
 * bridge_tool.c - purpose: the pod network's functions as commands, for tests/integration/network_bridge.sh.
 *
 *	bridge_tool DIR attach ID NETNS [PROTOCOL:HOSTPORT:PORT[:HOSTIP]]...	prints the address
 *	bridge_tool DIR detach ID | reconcile [ID]... | remove | problem | stats NETNS | move CIDR
 *	bridge_tool DIR many N NETNS		attaches and detaches N sandboxes from 8 threads at once
 *
 * BRIDGE, CIDR and TABLE in the environment replace node0, 10.85.0.0/16 and runtime_lite. Exit code 1 and the error
 *text on stderr when the call fails.
 */
#include "common/base/log.h"
#include "runtime-lite/net/bridge.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

static const char *setting(const char *name, const char *fallback)
{
	const char *value = getenv(name);

	return value ? value : fallback;
}

static bool parse_port(const char *text, struct port_mapping *ret)
{
	char protocol[8], host_ip[INET6_ADDRSTRLEN] = "";
	unsigned host_port, port;

	if (sscanf(text, "%7[a-z]:%u:%u:%45s", protocol, &host_port, &port, host_ip) < 3)
		return false;
	*ret = (struct port_mapping){ str_eq(protocol, "udp")	 ? IPPROTO_UDP
				      : str_eq(protocol, "sctp") ? IPPROTO_SCTP
				      : str_eq(protocol, "tcp")	 ? IPPROTO_TCP
								 : 0,
		(uint16_t)host_port, (uint16_t)port, "" };
	snprintf(ret->host_ip, sizeof(ret->host_ip), "%s", host_ip);
	return true;
}

static int open_netns(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		perror(path);
		exit(2);
	}
	return fd;
}

static int attach(struct bridge_network *network, char **args, int n, struct error *err)
{
	struct port_mapping ports[16];
	char ip[INET6_ADDRSTRLEN];
	size_t n_ports = 0;
	int r;

	for (int i = 2; i < n && n_ports < ARRAY_LEN(ports); i++)
		if (!parse_port(args[i], &ports[n_ports++]))
			return error_set(err, ERROR_INVALID, "port \"%s\"", args[i]);
	r = bridge_attach(network, args[0], open_netns(args[1]), ports, n_ports, ip, err);
	if (r == 0)
		puts(ip);
	return r;
}

static int stats(const char *path, struct error *err)
{
	struct netns_stats s;
	int r = netns_link_stats(open_netns(path), "eth0", &s, err);

	if (r == 0)
		printf("rx_bytes=%" PRIu64 " tx_bytes=%" PRIu64 " rx_errors=%" PRIu64 " tx_errors=%" PRIu64 "\n",
			s.rx_bytes, s.tx_bytes, s.rx_errors, s.tx_errors);
	return r;
}

static struct {
	struct bridge_network *network;
	atomic_int next, failed;
	int total;
	int netns;
} crowd;

static void *crowd_main(void *data)
{
	(void)data;
	/* Each thread has a netns of its own, in which it attaches one sandbox after the other. */
	int own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC), netns, i;

	if (unshare(CLONE_NEWNET) < 0)
		abort();
	netns = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (setns(own, CLONE_NEWNET) < 0)
		abort();
	while ((i = atomic_fetch_add(&crowd.next, 1)) < crowd.total) {
		struct port_mapping port = { IPPROTO_TCP, (uint16_t)(20000 + i), 80, "" };
		char id[32], ip[INET6_ADDRSTRLEN];
		struct error err;

		snprintf(id, sizeof(id), "crowd-%d", i);
		if (bridge_attach(crowd.network, id, netns, &port, 1, ip, &err) < 0 ||
			bridge_detach(crowd.network, id, &err) < 0) {
			fprintf(stderr, "%s: %s\n", id, err.text);
			atomic_fetch_add(&crowd.failed, 1);
		}
	}
	close(netns);
	close(own);
	return NULL;
}

static int many(struct bridge_network *network, int total)
{
	pthread_t threads[8];
	struct timespec a, b;
	size_t i;

	crowd.network = network;
	crowd.total = total;
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (i = 0; i < ARRAY_LEN(threads); i++)
		pthread_create(&threads[i], NULL, crowd_main, NULL);
	for (i = 0; i < ARRAY_LEN(threads); i++)
		pthread_join(threads[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%d pairs, %.2f ms each\n", total,
		((double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6) / total);
	return crowd.failed ? -1 : 0;
}

static int run(struct bridge_network *network, const char *command, char **args, int n, struct error *err)
{
	char text[ERROR_TEXT_MAX];

	if (str_eq(command, "attach") && n >= 2)
		return attach(network, args, n, err);
	if (str_eq(command, "detach") && n == 1)
		return bridge_detach(network, args[0], err);
	if (str_eq(command, "reconcile"))
		return bridge_reconcile(network, (const char *const *)args, (size_t)n, err);
	if (str_eq(command, "remove"))
		return bridge_remove(network, err);
	if (str_eq(command, "many") && n == 1)
		return many(network, atoi(args[0]));
	if (str_eq(command, "stats") && n == 1)
		return stats(args[0], err);
	if (str_eq(command, "problem")) {
		bridge_problem(network, text);
		puts(text);
		return 0;
	}
	if (str_eq(command, "move") && n >= 3) { /* move CIDR ID NETNS: attach from another range */
		int r = bridge_set_cidr(network, args[0], err);

		return r < 0 ? r : attach(network, args + 1, n - 1, err);
	}
	return error_set(err, ERROR_INVALID, "usage: see bridge_tool.c");
}

int main(int argc, char **argv)
{
	struct bridge_network *network;
	struct error err = ERROR_INIT;
	int r;

	if (argc < 3)
		return 2;
	log_init("bridge_tool", LOG_LEVEL_WARNING);
	r = bridge_network_new(&(struct bridge_config){ setting("BRIDGE", "node0"), setting("CIDR", "10.85.0.0/16"),
				       argv[1], setting("TABLE", "runtime_lite") },
		&network, &err);
	if (r == 0) {
		r = run(network, argv[2], argv + 3, argc - 3, &err);
		bridge_network_free(network);
	}
	if (r < 0)
		fprintf(stderr, "%s: %s\n", error_code_name(err.code), err.text);
	return r < 0 ? 1 : 0;
}
