/*
 * grpc_fuzz.c - purpose: feed foreign bytes to the HTTP/2 and gRPC layers, as server and as client, and to the CRI
 * decoder.
 *
 * The first byte chooses the side and the size of the pieces. A server gets the connection preface for free, so that
 * the fuzzer starts behind it.
 */
#include "common/wire/grpc.h"
#include "common/wire/h2.h"
#include "cri.pb-c.h"

static void drain(struct h2_conn *conn)
{
	const uint8_t *p;

	while (h2_conn_pull(conn, &p) > 0) {
	}
}

static void answer(struct h2_stream *stream)
{
	static const struct h2_header head[] = { { ":status", "200" } }, trailer[] = { { "grpc-status", "0" } };

	h2_stream_respond(stream, head, 1);
	memset(h2_stream_add(stream, 9), 0, 9);
	h2_stream_finish(stream, trailer, 1);
}

static void on_head(void *data, struct h2_stream *stream)
{
	struct grpc_reader *reader = xnew(struct grpc_reader);
	uint64_t ns;

	(void)data;
	reader->max = 4096;
	free(h2_stream_user(stream));
	h2_stream_set_user(stream, reader);
	if (h2_header(stream, "grpc-timeout"))
		(void)!grpc_timeout_parse(h2_header(stream, "grpc-timeout"), &ns);
	(void)grpc_content_type(h2_header(stream, "content-type"));
}

static void decode(struct bytes message)
{
	ProtobufCMessage *m = protobuf_c_message_unpack(
		&runtime__v1__create_container_request__descriptor, NULL, message.len, (const uint8_t *)message.ptr);

	if (m)
		protobuf_c_message_free_unpacked(m, NULL);
}

static void on_data(void *data, struct h2_stream *stream, const void *p, size_t len)
{
	struct grpc_reader *reader = h2_stream_user(stream);
	const uint8_t *next = p;
	struct bytes message;
	int r;

	(void)data;
	if (!reader)
		return;
	while ((r = grpc_reader_next(reader, &next, &len, &message, NULL)) > 0)
		decode(message);
	if (r < 0) {
		grpc_reader_done(reader);
		h2_stream_set_user(stream, NULL);
		free(reader);
		h2_stream_reset(stream, H2_CANCEL);
	}
}

static void on_end(void *data, struct h2_stream *stream)
{
	_cleanup_(str_done) struct str text = STR_INIT;

	if (*(bool *)data)
		answer(stream);
	else if (h2_header(stream, "grpc-message"))
		grpc_message_decode(&text, h2_header(stream, "grpc-message"));
}

static void on_close(void *data, struct h2_stream *stream, uint32_t code)
{
	struct grpc_reader *reader = h2_stream_user(stream);

	(void)data;
	(void)code;
	if (reader)
		grpc_reader_done(reader);
	free(reader);
}

static const struct h2_events events = { on_head, on_data, on_end, on_close, NULL };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t len)
{
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	static const struct h2_header request[] = { { ":method", "POST" }, { ":path", "/x" } };
	struct h2_conn *conn;
	size_t piece;
	bool server;

	if (len < 1)
		return 0;
	server = *p & 1;
	piece = (size_t)(*p >> 1) + 1;
	p++;
	len--;
	conn = server ? h2_server_new(&events, &server) : h2_client_new(&events, &server);
	if (server) {
		(void)!h2_conn_feed(conn, preface, strlen(preface), NULL);
	} else {
		struct h2_stream *stream = h2_request(conn, request, 2);

		memset(h2_stream_add(stream, 5), 0, 5);
		h2_stream_finish(stream, NULL, 0);
		drain(conn);
	}
	while (len > 0) {
		size_t n = MIN(piece, len);

		if (h2_conn_feed(conn, p, n, NULL) < 0)
			break;
		drain(conn);
		p += n;
		len -= n;
	}
	h2_conn_free(conn);
	return 0;
}
