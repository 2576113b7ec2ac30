/*
 * http_upgrade.c - purpose: connections of the HTTP server that have changed to another protocol.
 *
 * To the server they are a stream whose input is raw, too. At the end the client has to see every byte: a close() while
 * it still sends (pings, say) would reset the connection, and with it what it has not read. So the connection is shut
 * down for writing, and what comes is read and dropped until the client closes, too, or its kernel has had everything
 * for a while.
 */
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "common/net/http_server_i.h"

/* A client that reads slowly should not have minutes of output between itself and the answer to its ping. */
enum { SEND_BUFFER_BYTES = 128 * 1024 };

const char *http_header_at(const struct http_exchange *exchange, const char *name, size_t n)
{
	const struct http1 *h = &exchange->conn->parser;

	for (size_t i = 0; i < h->n_fields; i++)
		if (strcasecmp(h->fields[i].name, name) == 0 && n-- == 0)
			return h->fields[i].value;
	return NULL;
}

const char *http_wants_upgrade(const struct http_exchange *exchange)
{
	return exchange->conn->parser.upgrade;
}

static void set_options(int fd)
{
	int on = 1, size = SEND_BUFFER_BYTES;

	/* Both fail on Unix sockets, which need neither. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
}

void http_upgrade(struct http_exchange *e, const char *protocol, void (*on_data)(void *data, const char *p, size_t len),
	void (*on_closed)(void *data), void *data)
{
	struct connection *c = e->conn;

	assert(!e->streaming);
	e->streaming = true;
	e->on_data = on_data;
	e->on_closed = on_closed;
	e->closed_data = data;
	c->raw = true;
	c->close_when_sent = true;
	if (c->closing) {
		http_conn_abandon_soon(c);
		return;
	}
	http_conn_wait(c, http_conn_idle_ms(c));
	set_options(c->fd);
	http1_write_status(&c->plain, 101);
	http1_write_field(&c->plain, "Connection", "Upgrade");
	http1_write_field(&c->plain, "Upgrade", protocol);
	str_add_bytes(&c->plain, str_get(&e->headers), e->headers.len);
	http1_write_head_end(&c->plain);
	http_conn_flush(c);
}

void http_upgrade_pause(struct http_exchange *e, bool paused)
{
	e->paused = paused;
	if (!e->conn->closing && !e->conn->broken)
		http_conn_poll_again(e->conn);
}

void http_raw_deliver(struct connection *c)
{
	struct http_exchange *e = c->exchange;
	_cleanup_(str_done) struct str bytes = c->in;

	if (!e || e->paused || !bytes.len) {
		bytes = STR_INIT;
		return;
	}
	c->in = STR_INIT;
	e->on_data(e->closed_data, bytes.buf, bytes.len);
}

bool http_raw_lingers(struct connection *c)
{
	int unsent = 0;

	if (!c->raw)
		return false;
	if (ioctl(c->fd, SIOCOUTQ, &unsent) == 0 && unsent > 0)
		return true;
	return c->linger_rounds++ < RAW_LINGER_ROUNDS;
}
