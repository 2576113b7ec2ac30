/*
 * websocket.h - purpose: WebSocket frames (RFC 6455), both sides; bytes in, events out (no sockets, no clock).
 *
 * Messages come in pieces as they arrive, so that their size costs no memory. Pings are answered and the closing
 * handshake is done here. What breaks the protocol (a client's frame without a mask, a server's with one, reserved
 * bits, unknown opcodes, fragmented or long control frames, a continuation of nothing, a message above `message_max`)
 * is an error; ws->out then ends with a Close that says why.
 *
 * Text messages are not checked for UTF-8: what comes over them here is base64, which is checked by its reader.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

enum websocket_role { WEBSOCKET_SERVER, WEBSOCKET_CLIENT };

enum websocket_event_kind {
	WEBSOCKET_MORE,
	WEBSOCKET_DATA, /* a piece of a message; may be empty at its end */
	WEBSOCKET_PONG,
	WEBSOCKET_CLOSE, /* the peer sends no more; answered if it was not an answer to ours */
};

enum {
	WEBSOCKET_MESSAGE_MAX = 16 * 1024 * 1024,
	WEBSOCKET_CONTROL_MAX = 125,
	WEBSOCKET_ACCEPT_MAX = 29,
	WEBSOCKET_PIECE = 4096
};

/* Codes of Close. */
enum { WEBSOCKET_NORMAL = 1000, WEBSOCKET_PROTOCOL_ERROR = 1002, WEBSOCKET_TOO_BIG = 1009, WEBSOCKET_NO_CODE = 1005 };

struct websocket_event {
	enum websocket_event_kind kind;
	bool first, last;  /* DATA: the message begins, ends with this piece */
	bool text;	   /* DATA */
	int code;	   /* CLOSE */
	struct bytes data; /* DATA; owned by the struct websocket, until the next read */
};

struct websocket {
	struct str out;	      /* to be sent; the owner sends and resets it */
	uint64_t message_max; /* 0: WEBSOCKET_MESSAGE_MAX */

	/* private */
	enum websocket_role role;
	unsigned char head[14]; /* of the frame that is being read */
	size_t head_len;
	bool in_frame;
	uint8_t opcode, message_opcode; /* message_opcode 0: no message is begun */
	bool fin, first;
	uint64_t left, message_len;
	unsigned char mask[4];
	unsigned mask_at;
	unsigned char control[WEBSOCKET_CONTROL_MAX];
	size_t control_len;
	char piece[WEBSOCKET_PIECE];
	bool close_sent, failed;
	uint32_t (*random)(void); /* masks of a client */
};

/* `random` is for clients, whose frames are masked; NULL in a server. */
struct websocket *websocket_new(enum websocket_role role, uint32_t (*random)(void));
struct websocket *websocket_free(struct websocket *ws); /* NULL is fine; returns NULL */
DEFINE_CLEANUP(struct websocket *, websocket_free)

/* Takes bytes from the front of *in (which moves on) up to the next event. After an error the connection is of no use.
 */
int websocket_read(struct websocket *ws, struct bytes *in, struct websocket_event *ret, struct error *err) MUST_USE;

/* One message of one frame, out of two parts that are joined (a channel's number and its bytes). Nothing after a Close.
 */
void websocket_write(struct websocket *ws, bool text, const void *a, size_t a_len, const void *b, size_t b_len);
void websocket_ping(struct websocket *ws);
/* Nobody has asked: some clients take it as a sign of life. */
void websocket_pong(struct websocket *ws);
/* Once; later calls do nothing. */
void websocket_close(struct websocket *ws, int code, const char *reason);

/* Sec-WebSocket-Accept for a client's Sec-WebSocket-Key. False: the key is not 16 bytes of base64. */
bool websocket_accept(const char *key, char ret[WEBSOCKET_ACCEPT_MAX]) MUST_USE;
