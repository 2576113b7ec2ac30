/*
 * session.h - purpose: one exec or attach as its client sees it: stdin, stdout, stderr, errors and terminal sizes over
 *one connection. Pure: bytes in, events out.
 *
 *	client's bytes --session_read()--> READY, INPUT, INPUT_END, RESIZE, CLOSED
 *	session_output(), session_end() --> session_out() --> client
 *
 * Two carriers: SPDY streams named by a header (versions 1 to 5 of the protocol), and numbered WebSocket channels (1,
 *4, 5). Versions differ little: the size of a terminal from 3, the outcome as a Status in JSON from 4 (before: a text,
 *and only of a failure), the end of stdin over WebSocket from 5.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

struct session;

/* Which streams there are: what the RPC has asked for, whatever the client opens. */
struct session_wants {
	bool in, out, err, tty;
};

enum session_event_kind {
	SESSION_MORE,
	SESSION_READY,	   /* all streams are there; once */
	SESSION_INPUT,	   /* stdin */
	SESSION_INPUT_END, /* of stdin; once */
	SESSION_RESIZE,
	SESSION_CLOSED, /* the client is about to go; nothing more comes */
};

struct session_event {
	enum session_event_kind kind;
	struct bytes data;	/* INPUT; until the next read */
	uint16_t rows, columns; /* RESIZE */
};

enum session_result { SESSION_SUCCESS, SESSION_EXIT, SESSION_FAILURE };

struct session_outcome {
	enum session_result result;
	int exit_code;	     /* EXIT; 0 is a success */
	const char *message; /* FAILURE: "error executing command in container: ..." */
};

struct session *session_spdy(int version, const struct session_wants *wants);
/* Not READY before the first read, which may be of no bytes. */
struct session *session_websocket(int version, bool base64, const struct session_wants *wants);
struct session *session_free(struct session *s); /* NULL is fine; returns NULL */
DEFINE_CLEANUP(struct session *, session_free)

/* Takes bytes from the front of *in up to the next event. After an error: send session_out(), close. */
int session_read(struct session *s, struct bytes *in, struct session_event *ret, struct error *err) MUST_USE;
/* error: stderr. What the client has not asked for goes nowhere. */
void session_output(struct session *s, bool error, const void *p, size_t len);
/* Ends the outputs, tells the outcome, and says good-bye. Once. */
void session_end(struct session *s, const struct session_outcome *outcome);
/* The client has been made to wait for long; a sign of life, where the protocol has one that needs no question. */
void session_alive(struct session *s);
/* To be sent; the owner sends and resets it. */
struct str *session_out(struct session *s);

/* What goes over the error stream; nothing for successes before version 4. */
void session_status(int version, const struct session_outcome *outcome, struct str *ret);
