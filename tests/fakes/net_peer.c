/*
 * net_peer.c - purpose: who answers, and whom does it see? Servers and clients for traffic tests, IPv4 and IPv6.
 *
 *	net_peer serve NAME PROTOCOL:PORT...     answers each connection or datagram with "NAME CLIENT-ADDRESS"
 *	net_peer ask PROTOCOL ADDRESS PORT [COUNT [MS]]
 *	                                         COUNT times on new sockets: prints the answer, "refused", "timeout"
 *(after MS, 1000 unless given) or "error: text" net_peer stream ADDRESS PORT MS          one UDP socket that asks every
 *20 ms for MS: prints each answer, or "refused" or "-", when it differs from the one before net_peer boom PORT to each
 *TCP client it sends a segment from nowhere (wrong sequence number), by a raw socket; then "ok" after 300 ms
 */
#include "common/base/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

enum { SERVED_MAX = 16 };

static bool is_udp(const char *protocol)
{
	return strncmp(protocol, "udp", 3) == 0;
}

static socklen_t parse(const char *ip, const char *port, struct sockaddr_storage *ret)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM }, *found;
	socklen_t len;

	if (getaddrinfo(ip, port, &hints, &found) != 0)
		exit(2);
	memcpy(ret, found->ai_addr, found->ai_addrlen);
	len = found->ai_addrlen;
	freeaddrinfo(found);
	return len;
}

/* Listens on all addresses of both families. */
static int listen_on(const char *protocol)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)atoi(protocol + 4)) };
	int on = 1, off = 0, fd = socket(AF_INET6, (is_udp(protocol) ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || (!is_udp(protocol) && listen(fd, 512) < 0)) {
		perror(protocol);
		exit(2);
	}
	return fd;
}

static void client_text(const struct sockaddr_storage *a, char *buf, size_t len)
{
	const char *text;

	getnameinfo((const struct sockaddr *)a, sizeof(*a), buf, (socklen_t)len, NULL, 0, NI_NUMERICHOST);
	text = strncmp(buf, "::ffff:", 7) == 0 ? buf + 7 : buf;
	memmove(buf, text, strlen(text) + 1);
}

static void answer(int fd, bool udp, const char *name)
{
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof(from);
	char text[64], buf[2000];
	int n, conn;

	if (udp) {
		if (recvfrom(fd, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len) < 0)
			return;
		client_text(&from, text, sizeof(text));
		n = snprintf(buf, sizeof(buf), "%s %s\n", name, text);
		if (sendto(fd, buf, (size_t)n, 0, (struct sockaddr *)&from, len) < 0)
			perror("sendto");
		return;
	}
	conn = accept4(fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
	if (conn < 0)
		return;
	client_text(&from, text, sizeof(text));
	n = snprintf(buf, sizeof(buf), "%s %s\n", name, text);
	if (send(conn, buf, (size_t)n, MSG_NOSIGNAL) < 0)
		perror("send");
	close(conn);
}

static int serve(int argc, char **argv)
{
	struct pollfd fds[SERVED_MAX];
	int n = 0;

	for (int i = 3; i < argc && n < SERVED_MAX; i++)
		fds[n++] = (struct pollfd){ .fd = listen_on(argv[i]), .events = POLLIN };
	for (;;) {
		if (poll(fds, (nfds_t)n, -1) < 0)
			return 1;
		for (int i = 0; i < n; i++)
			if (fds[i].revents)
				answer(fds[i].fd, is_udp(argv[3 + i]), argv[2]);
	}
}

static const char *failure(int error)
{
	static char text[100];

	if (error == ECONNREFUSED)
		return "refused";
	if (error == EAGAIN || error == ETIMEDOUT || error == EINPROGRESS)
		return "timeout";
	snprintf(text, sizeof(text), "error: %s", strerror(error));
	return text;
}

static void ask_once(bool udp, const struct sockaddr_storage *to, socklen_t len, int ms)
{
	int fd = socket(to->ss_family, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0);
	struct timeval limit = { ms / 1000, (ms % 1000) * 1000 };
	struct linger hard = { 1, 0 };
	char buf[200];
	ssize_t n = -1;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (!udp)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	if (connect(fd, (const struct sockaddr *)to, len) == 0 && (!udp || send(fd, "?", 1, 0) == 1))
		n = recv(fd, buf, sizeof(buf) - 1, 0);
	if (n > 0) {
		buf[n] = '\0';
		fputs(buf, stdout);
	} else {
		puts(n == 0 ? "closed" : failure(errno));
	}
	close(fd);
}

static int ask(int argc, char **argv)
{
	struct sockaddr_storage to;
	socklen_t len = parse(argv[3], argv[4], &to);
	int count = argc > 5 ? atoi(argv[5]) : 1, ms = argc > 6 ? atoi(argv[6]) : 1000;

	for (int i = 0; i < count; i++)
		ask_once(is_udp(argv[2]), &to, len, ms);
	return 0;
}

static int stream(char **argv)
{
	struct sockaddr_storage to;
	socklen_t len = parse(argv[2], argv[3], &to);
	int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), rounds = atoi(argv[4]) / 20;
	char before[200] = "";

	if (connect(fd, (struct sockaddr *)&to, len) < 0)
		return 1;
	for (int i = 0; i < rounds; i++) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		char now[200] = "-";
		ssize_t n = send(fd, "?", 1, 0);
		int error = n < 0 ? errno : 0;

		if (!error && poll(&p, 1, 20) > 0) {
			n = recv(fd, now, sizeof(now) - 1, 0);
			error = n < 0 ? errno : 0;
			if (n >= 0)
				now[n > 0 && now[n - 1] == '\n' ? n - 1 : n] = '\0';
			usleep(20000);
		}
		if (error)
			snprintf(now, sizeof(now), "%s", failure(error));
		if (strcmp(now, before) != 0) {
			puts(now);
			fflush(stdout);
		}
		memcpy(before, now, sizeof(now));
		if (error)
			usleep(20000);
	}
	return 0;
}

static uint16_t checksum(const void *data, size_t len, uint32_t sum)
{
	const uint8_t *p = data;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* IPv4 only. */
static void send_stray(const struct sockaddr_in *from, const struct sockaddr_in *to)
{
	struct {
		struct iphdr ip;
		struct tcphdr tcp;
	} packet = { 0 };
	struct {
		uint32_t source, destination;
		uint8_t zero, protocol;
		uint16_t len;
	} pseudo = { from->sin_addr.s_addr, to->sin_addr.s_addr, 0, IPPROTO_TCP, htons(sizeof(packet.tcp)) };
	uint32_t sum = 0;
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);

	packet.ip = (struct iphdr){ .version = 4,
		.ihl = 5,
		.ttl = 64,
		.protocol = IPPROTO_TCP,
		.saddr = from->sin_addr.s_addr,
		.daddr = to->sin_addr.s_addr,
		.tot_len = htons(sizeof(packet)) };
	packet.tcp = (struct tcphdr){ .source = from->sin_port,
		.dest = to->sin_port,
		.seq = htonl(0x12345678),
		.ack = 1,
		.ack_seq = htonl(0x9abcdef0),
		.doff = 5,
		.window = htons(1000) };
	for (size_t i = 0; i < sizeof(pseudo); i += 2)
		sum += (uint32_t)((const uint8_t *)&pseudo)[i] << 8 | ((const uint8_t *)&pseudo)[i + 1];
	packet.tcp.check = checksum(&packet.tcp, sizeof(packet.tcp), sum);
	if (sendto(fd, &packet, sizeof(packet), 0, (const struct sockaddr *)to, sizeof(*to)) < 0)
		perror("raw");
	close(fd);
}

static int boom(const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 10) < 0)
		return 1;
	for (;;) {
		struct sockaddr_in from, self;
		socklen_t len = sizeof(from), self_len = sizeof(self);
		int conn = accept(fd, (struct sockaddr *)&from, &len);

		if (conn < 0 || getsockname(conn, (struct sockaddr *)&self, &self_len) < 0)
			return 1;
		send_stray(&self, &from);
		usleep(300000);
		if (send(conn, "ok\n", 3, MSG_NOSIGNAL) < 0)
			perror("send");
		close(conn);
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "boom") == 0)
		return boom(argv[2]);
	if (argc >= 4 && strcmp(argv[1], "serve") == 0)
		return serve(argc, argv);
	if (argc >= 5 && strcmp(argv[1], "ask") == 0)
		return ask(argc, argv);
	if (argc == 5 && strcmp(argv[1], "stream") == 0)
		return stream(argv);
	return 2;
}
