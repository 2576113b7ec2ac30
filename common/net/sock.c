/* sock.c - purpose: addresses as flags spell them, and listening sockets on them. */
#include "common/net/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/stat.h>

enum { LISTEN_BACKLOG = 128 };

static int parse_unix(const char *text, const char *path, struct sock_address *ret, struct error *err)
{
	struct sock_address address = { .is_unix = true, .len = sizeof(struct sockaddr_un) };
	size_t len = strlen(path);

	if (len >= sizeof(address.un.sun_path))
		return error_set(err, ERROR_INVALID, "socket path \"%s\" has %zu bytes; at most %zu are possible", path,
			len, sizeof(address.un.sun_path) - 1);
	if (path[0] != '/')
		return error_set(err, ERROR_INVALID, "address \"%s\": the socket path must be absolute", text);
	address.un.sun_family = AF_UNIX;
	memcpy(address.un.sun_path, path, len + 1);
	*ret = address;
	return 0;
}

static bool parse_port(const char *text, uint16_t *ret)
{
	unsigned port = 0;

	if (!*text || strlen(text) > 5)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		port = port * 10 + (unsigned)(*text - '0');
	}
	if (port > 65535)
		return false;
	*ret = htons((uint16_t)port);
	return true;
}

/* `host` without brackets; "" stands for all addresses of both families. */
static bool parse_inet(const char *host, bool bracketed, uint16_t port, struct sock_address *ret)
{
	struct sock_address address = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&address.storage;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address.storage;

	if (!bracketed && *host) {
		if (inet_pton(AF_INET, host, &in->sin_addr) != 1)
			return false;
		in->sin_family = AF_INET;
		in->sin_port = port;
		address.len = sizeof(*in);
	} else {
		if (*host && inet_pton(AF_INET6, host, &in6->sin6_addr) != 1)
			return false;
		in6->sin6_family = AF_INET6;
		in6->sin6_port = port;
		address.len = sizeof(*in6);
	}
	*ret = address;
	return true;
}

int sock_address_parse(const char *text, struct sock_address *ret, struct error *err)
{
	char host[INET6_ADDRSTRLEN] = "";
	const char *colon, *start = text, *end;
	bool bracketed = text[0] == '[';
	uint16_t port;

	if (text[0] == '/')
		return parse_unix(text, text, ret, err);
	if (str_starts(text, "unix://"))
		return parse_unix(text, text + strlen("unix://"), ret, err);
	if (str_starts(text, "unix:"))
		return parse_unix(text, text + strlen("unix:"), ret, err);
	colon = strrchr(text, ':');
	end = colon;
	if (bracketed) {
		start++;
		end = strchr(text, ']');
		if (end && end + 1 != colon)
			end = NULL;
	}
	if (colon && end && (size_t)(end - start) < sizeof(host) && parse_port(colon + 1, &port)) {
		memcpy(host, start, (size_t)(end - start));
		if (!(bracketed && !*host) && parse_inet(host, bracketed, port, ret))
			return 0;
	}
	return error_set(err, ERROR_INVALID,
		"address \"%s\" is none of unix:///PATH, /PATH, IPV4:PORT, [IPV6]:PORT, :PORT (ports 0 to 65535)",
		text);
}

void sock_address_text(const struct sock_address *address, char *buf, size_t len)
{
	char ip[INET6_ADDRSTRLEN] = "?";
	const struct sockaddr_in *in = (const struct sockaddr_in *)&address->storage;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->storage;

	if (address->is_unix) {
		snprintf(buf, len, "%s", address->un.sun_path);
	} else if (address->sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip));
		snprintf(buf, len, "%s:%u", ip, ntohs(in->sin_port));
	} else {
		inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip));
		snprintf(buf, len, "[%s]:%u", ip, ntohs(in6->sin6_port));
	}
}

/* Makes way for a new socket: a dead one is removed, a live one or anything that is not a socket is left alone. */
static int unix_claim(const struct sock_address *address, struct error *err)
{
	const char *path = address->un.sun_path;
	_cleanup_fd_ int fd = -1;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : error_sys(err, errno, "%s", path);
	if (!S_ISSOCK(st.st_mode))
		return error_set(err, ERROR_EXISTS, "%s exists and is not a socket", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_sys(err, errno, "socket");
	/* EAGAIN: it lives and its backlog is full. */
	if (connect(fd, &address->sa, address->len) == 0 || errno == EAGAIN)
		return error_set(err, ERROR_EXISTS, "%s is in use by another process", path);
	if (errno != ECONNREFUSED)
		return error_sys(err, errno, "%s: try whether it is in use", path);
	if (unlink(path) < 0 && errno != ENOENT)
		return error_sys(err, errno, "remove the old socket %s", path);
	return 0;
}

static int listen_unix(const struct sock_address *address, mode_t mode, int *ret_fd, struct error *err)
{
	const char *path = address->un.sun_path;
	_cleanup_fd_ int fd = -1;
	int r = unix_claim(address, err);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return error_sys(err, errno, "socket");
	/* The mode of the socket becomes that of the file (less umask), so that there is no moment with a wider one. */
	if (fchmod(fd, mode) < 0 || bind(fd, &address->sa, address->len) < 0)
		return errno == EADDRINUSE ? error_set(err, ERROR_EXISTS, "%s is in use by another process", path)
					   : error_sys(err, errno, "listen on %s", path);
	if (chmod(path, mode) < 0 || listen(fd, LISTEN_BACKLOG) < 0) {
		r = error_sys(err, errno, "listen on %s", path);
		unlink(path);
		return r;
	}
	*ret_fd = steal_fd(&fd);
	return 0;
}

static int open_inet(const struct sock_address *address, int *ret_fd)
{
	_cleanup_fd_ int fd = socket(address->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1, off = 0;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -errno;
	if (address->sa.sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, &address->sa, address->len) < 0 || listen(fd, LISTEN_BACKLOG) < 0)
		return -errno;
	*ret_fd = steal_fd(&fd);
	return 0;
}

int sock_listen(const struct sock_address *address, mode_t mode, int *ret_fd, struct error *err)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->storage;
	char name[sizeof(address->un.sun_path) + 1];
	int r;

	if (address->is_unix)
		return listen_unix(address, mode, ret_fd, err);
	r = open_inet(address, ret_fd);
	/* ":PORT" where the kernel has no IPv6. */
	if ((r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL) && address->sa.sa_family == AF_INET6 &&
		IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr)) {
		struct sock_address any = { .len = sizeof(struct sockaddr_in) };
		struct sockaddr_in *in = (struct sockaddr_in *)&any.storage;

		in->sin_family = AF_INET;
		in->sin_port = in6->sin6_port;
		r = open_inet(&any, ret_fd);
	}
	if (r == 0)
		return 0;
	sock_address_text(address, name, sizeof(name));
	if (r == -EADDRINUSE)
		return error_set(err, ERROR_EXISTS, "%s is in use by another process", name);
	return error_sys(err, r, "listen on %s", name);
}

int sock_connect(const struct sock_address *address, int *ret_fd, struct error *err)
{
	char name[sizeof(address->un.sun_path) + 1];
	_cleanup_fd_ int fd = socket(address->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return error_sys(err, errno, "socket");
	if (connect(fd, &address->sa, address->len) < 0) {
		int r = errno;

		sock_address_text(address, name, sizeof(name));
		if (r == ENOENT || r == ECONNREFUSED)
			return error_set(err, ERROR_UNAVAILABLE, "nothing listens on %s", name);
		return error_sys(err, r, "connect to %s", name);
	}
	*ret_fd = steal_fd(&fd);
	return 0;
}
