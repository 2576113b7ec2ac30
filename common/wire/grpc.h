/*
 * grpc.h - purpose: what gRPC adds to HTTP/2: message framing, time-outs, status texts. Sans I/O.
 *
 * A message on the wire is one byte "compressed" (we take only 0), four bytes length, big endian, then the bytes.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

enum { GRPC_PREFIX_BYTES = 5, GRPC_TIMEOUT_TEXT_MAX = 16 };

/* Cuts a byte stream into messages. */
struct grpc_reader {
	size_t max; /* bytes in a message */
	size_t prefix_len;
	uint8_t prefix[GRPC_PREFIX_BYTES];
	size_t need; /* bytes of the current message */
	struct str body;
};
#define GRPC_READER_INIT(max_bytes) ((struct grpc_reader){ .max = (max_bytes) })

void grpc_reader_done(struct grpc_reader *reader);
/* Takes bytes from *p, moving *p and *len on. 1: *ret is a message, valid until the next call; 0: all taken, no whole
 * message yet; negative: UNIMPLEMENTED (compressed) or EXHAUSTED (above max), the reader may not be used any more. */
int grpc_reader_next(
	struct grpc_reader *reader, const uint8_t **p, size_t *len, struct bytes *ret, struct error *err) MUST_USE;
/* Has part of a message been taken? */
bool grpc_reader_midway(const struct grpc_reader *reader);

/* Writes the prefix of a message of len bytes (len must fit 32 bits). */
void grpc_prefix_write(uint8_t prefix[GRPC_PREFIX_BYTES], size_t len);

/* "10S" to nanoseconds. At most 8 digits and a unit of HMSmun; else -EINVAL. Never overflows. */
int grpc_timeout_parse(const char *text, uint64_t *ret_ns) MUST_USE;
void grpc_timeout_format(uint64_t timeout_ns, char ret[GRPC_TIMEOUT_TEXT_MAX]);

/* Percent-encodes all but printable ASCII, and '%'. */
void grpc_message_encode(struct str *out, const char *text);
/* Decodes; a '%' that starts no valid escape stands for itself. NULs and control bytes become '?'. */
void grpc_message_decode(struct str *out, const char *text);
/* "0" to "16"; anything else is UNKNOWN. */
enum error_code grpc_status_parse(const char *text);
/* "application/grpc", also with "+proto" or parameters. */
bool grpc_content_type(const char *text);
