/* http_server_i.h - purpose: what http_server.c and http_upgrade.c share; for nobody else. */
#pragma once
#include "common/base/str.h"
#include "common/net/http_server.h"
#include "common/wire/http1.h"

enum {
	IDLE_MS = 60 * 1000, /* between requests, and without progress while writing */
	HEAD_MS = 10 * 1000, /* for a head to arrive */
	BODY_MS = 30 * 1000, /* between two pieces of a body */
	LINGER_MS = 2 * 1000,
	ACCEPT_PAUSE_MS = 200, /* after EMFILE */
	READ_BYTES = 16 * 1024,
	FLUSH_BYTES = 64 * 1024, /* written at once instead of in the next turn */
	AHEAD_BYTES_MAX = 256 * 1024,
	STREAM_PENDING_MAX = 16 * 1024 * 1024,
	RAW_IDLE_MS = 4 * 3600 * 1000, /* after an upgrade: without a byte either way */
	RAW_LINGER_ROUNDS = 15,	       /* of LINGER_MS, once the client's kernel has everything */
};

struct http_exchange {
	struct connection *conn;
	struct http_request request;
	char *path;
	struct str headers; /* of the answer, added by the handler */
	bool streaming, chunked, head_only;
	void (*on_closed)(void *data);
	void *closed_data;
	void (*on_drain)(void *data);
	void *drain_data;
	void (*on_data)(void *data, const char *p, size_t len); /* after an upgrade, with closed_data */
	bool paused;
};

struct connection {
	struct http_server *server;
	struct connection *prev, *next;
	int fd;
	uv_poll_t poll;
	uv_timer_t timer;
	int events; /* what is polled for */
	unsigned open_handles;
	struct http1 parser;
	struct tls_conn *tls;
	struct str in;	  /* read, not yet parsed (only while an exchange runs) */
	struct str body;  /* of the request that is arriving */
	struct str plain; /* to send, not yet encrypted or (cleartext) not yet sent */
	struct str out;	  /* encrypted */
	size_t sent;	  /* of the buffer that goes to the socket */
	struct http_exchange *exchange;
	bool in_handler; /* the handler is on the stack */
	bool reading;	 /* process() is on the stack */
	bool eof;	 /* the client sends no more */
	bool close_when_sent;
	bool lingering; /* all is sent; what the client still sends is read and dropped, or it would lose our answer */
	bool broken;	/* closed by the timer */
	bool raw;	/* upgraded: bytes of another protocol */
	unsigned linger_rounds;
	bool closing;
};

struct http_server {
	uv_loop_t *loop;
	int fd;
	uv_poll_t poll;
	uv_timer_t pause;
	unsigned open_handles; /* of the server and its connections */
	struct tls_server *tls;
	size_t body_max;
	http_handler handle;
	void *context;
	struct connection *first;
	size_t n;
	bool closing;
	void (*closed)(void *data);
	void *closed_data;
};

/* What to poll for now. */
void http_conn_poll_again(struct connection *c);
void http_conn_flush(struct connection *c);
/* The time that c may be without progress. */
uint64_t http_conn_idle_ms(const struct connection *c);
void http_conn_wait(struct connection *c, uint64_t ms);

/* A stream was begun after its client had gone: tells the owner in the next turn of the loop. */
void http_conn_abandon_soon(struct connection *c);

/* http_upgrade.c */
/* Gives the owner what has come. */
void http_raw_deliver(struct connection *c);
/* The last bytes of an upgraded connection may still be on their way. True: wait once more. */
bool http_raw_lingers(struct connection *c);
