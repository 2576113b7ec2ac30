/*
 * peer_tool.c - purpose: who answers, and whom does it see? For network tests.
 *
 *	peer_tool serve NAME PROTOCOL:PORT...		answers every connection or datagram with "NAME CLIENT-IP"
 *	peer_tool ask PROTOCOL IP PORT [SOURCE-PORT]	prints the answer; exit code 1 without one within a second
 */
#include "common/base/base.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

enum { SERVED_MAX = 16 };

static bool is_udp(const char *protocol)
{
	return strncmp(protocol, "udp", 3) == 0;
}

static struct sockaddr_in address_of(const char *ip, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };

	if (inet_pton(AF_INET, ip, &a.sin_addr) != 1)
		exit(2);
	return a;
}

static int open_at(const char *protocol, const char *ip, const char *port)
{
	struct sockaddr_in a = address_of(ip, port);
	int fd = socket(AF_INET, (is_udp(protocol) ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0) {
		perror("bind");
		exit(2);
	}
	return fd;
}

static void answer(int fd, bool udp, const char *name)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char buf[256], ip[INET_ADDRSTRLEN];
	int n, client = -1;

	if (udp)
		(void)!recvfrom(fd, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len);
	else
		client = accept4(fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
	n = snprintf(buf, sizeof(buf), "%s %s\n", name, inet_ntop(AF_INET, &from.sin_addr, ip, sizeof(ip)));
	if (udp) {
		(void)!sendto(fd, buf, (size_t)n, 0, (struct sockaddr *)&from, len);
	} else {
		(void)!write(client, buf, (size_t)n);
		close(client);
	}
}

static _Noreturn void serve(const char *name, char **ports, int n)
{
	struct pollfd fds[SERVED_MAX];
	bool udp[SERVED_MAX];
	int i;

	for (i = 0; i < n && i < SERVED_MAX; i++) {
		udp[i] = is_udp(ports[i]);
		fds[i] = (struct pollfd){ open_at(ports[i], "0.0.0.0", strchr(ports[i], ':') + 1), POLLIN, 0 };
		if (!udp[i])
			listen(fds[i].fd, 16);
	}
	for (;;) {
		poll(fds, (nfds_t)n, -1);
		for (i = 0; i < n; i++)
			if (fds[i].revents)
				answer(fds[i].fd, udp[i], name);
	}
}

static int ask(const char *protocol, const char *ip, const char *port, const char *source_port)
{
	struct sockaddr_in to = address_of(ip, port);
	int fd = open_at(protocol, "0.0.0.0", source_port);
	struct timeval limit = { .tv_sec = 1 };
	char buf[256];
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		return 1;
	if (is_udp(protocol) && send(fd, "?", 1, 0) != 1)
		return 1;
	n = recv(fd, buf, sizeof(buf), 0);
	if (n <= 0)
		return 1;
	fwrite(buf, 1, (size_t)n, stdout);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc >= 4 && str_eq(argv[1], "serve"))
		serve(argv[2], argv + 3, argc - 3);
	if (argc >= 5 && str_eq(argv[1], "ask"))
		return ask(argv[2], argv[3], argv[4], argc > 5 ? argv[5] : "0");
	return 2;
}
