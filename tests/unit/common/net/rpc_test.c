/*
 * rpc_test.c - purpose: the gRPC server and client against each other on a real socket, in one loop; and against bytes
 * that no decent client sends.
 *
 * "rpc_test serve PATH" serves the same methods until killed: for trying foreign clients.
 */
#include "common/net/job.h"
#include "common/net/rpc_client.h"
#include "common/net/rpc_server.h"
#include "common/net/sock.h"
#include "common/sys/file.h"
#include "cri.pb-c.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>

#define P "/runtime.v1.RuntimeService/"
#define DESC(name) (&runtime__v1__##name##__descriptor)

/* ---- the toy server ---- */

static int seen_cancel, slow_running, slow_max, streams_closed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int on_version(struct rpc_call *call, const void *request, ProtobufCMessage **ret, struct error *err)
{
	const Runtime__V1__VersionRequest *q = request;
	Runtime__V1__VersionResponse *reply;

	(void)call;
	if (str_eq(q->version, "bad"))
		return error_set(err, ERROR_NOT_FOUND, "Größe 100%%\nnot \"found\"");
	reply = xmalloc(sizeof(*reply));
	runtime__v1__version_response__init(reply);
	reply->version = xstrdup("0.1.0");
	reply->runtime_name = xstrdup("toy");
	reply->runtime_version = xstrdup(*q->version ? q->version : "1");
	reply->runtime_api_version = xstrdup("v1");
	*ret = &reply->base;
	return 0;
}

/* Takes the milliseconds from container_id; counts how many run at once. */
static int on_start(struct rpc_call *call, const void *request, ProtobufCMessage **ret, struct error *err)
{
	const Runtime__V1__StartContainerRequest *q = request;
	Runtime__V1__StartContainerResponse *reply;
	int ms = atoi(q->container_id);

	pthread_mutex_lock(&lock);
	if (++slow_running > slow_max)
		slow_max = slow_running;
	pthread_mutex_unlock(&lock);
	for (; ms > 0; ms -= 5) {
		poll(NULL, 0, 5);
		if (call->cancelled(call)) {
			pthread_mutex_lock(&lock);
			seen_cancel++;
			pthread_mutex_unlock(&lock);
			break;
		}
	}
	pthread_mutex_lock(&lock);
	slow_running--;
	pthread_mutex_unlock(&lock);
	if (str_eq(q->container_id, "fail"))
		return error_set(err, ERROR_INVALID, "no");
	reply = xmalloc(sizeof(*reply));
	runtime__v1__start_container_response__init(reply);
	*ret = &reply->base;
	return 0;
}

static int on_exec(struct rpc_call *call, const void *request, ProtobufCMessage **ret, struct error *err)
{
	const Runtime__V1__ExecSyncRequest *q = request;
	Runtime__V1__ExecSyncResponse *reply = xmalloc(sizeof(*reply));
	size_t len = (size_t)q->timeout;

	(void)call;
	(void)err;
	runtime__v1__exec_sync_response__init(reply);
	reply->stdout.len = len;
	reply->stdout.data = xmalloc(len + 1);
	memset(reply->stdout.data, 'x', len);
	reply->exit_code = (int32_t)strlen(q->container_id);
	*ret = &reply->base;
	return 0;
}

static struct rpc_stream *held;

static void on_held_closed(void *data)
{
	(void)data;
	held = NULL;
	streams_closed++;
}

static void on_events(struct rpc_call *call, const void *request, struct rpc_stream *stream)
{
	Runtime__V1__ContainerEventResponse event = RUNTIME__V1__CONTAINER_EVENT_RESPONSE__INIT;
	int i;

	(void)call;
	(void)request;
	event.container_id = (char *)"abc";
	for (i = 0; i < 3; i++) {
		event.created_at = i;
		if (rpc_stream_send(stream, &event.base) < 0)
			abort();
	}
	held = stream;
	rpc_stream_on_closed(stream, on_held_closed, NULL);
}

static void on_images(struct rpc_call *call, const void *request, struct rpc_stream *stream)
{
	Runtime__V1__StreamImagesResponse none = RUNTIME__V1__STREAM_IMAGES_RESPONSE__INIT;
	struct error err;

	(void)call;
	(void)request;
	ck_assert_int_eq(rpc_stream_send(stream, &none.base), 0);
	error_set(&err, ERROR_DATA_LOSS, "half of it");
	rpc_stream_end(stream, &err);
}

static const struct rpc_method methods[] = {
	{ P "Version", RPC_INLINE, DESC(version_request), on_version },
	{ P "StartContainer", RPC_JOB, DESC(start_container_request), on_start },
	{ P "ExecSync", RPC_JOB, DESC(exec_sync_request), on_exec },
	{ P "GetContainerEvents", RPC_STREAM, DESC(get_events_request), .stream = on_events },
	{ "/runtime.v1.ImageService/StreamImages", RPC_STREAM, DESC(stream_images_request), .stream = on_images },
	{ NULL },
};

/* ---- fixture ---- */

static uv_loop_t loop;
static char dir[64], path[96];
static struct rpc_server *server;
static struct rpc_client *client;
static bool server_stopped;

static int try_serve(struct error *err)
{
	struct sock_address address;
	int fd, r = sock_address_parse(path, &address, err);

	if (r == 0)
		r = sock_listen(&address, 0600, &fd, err);
	if (r == 0)
		server = rpc_server_new(&loop, fd, methods, NULL);
	server_stopped = false;
	return r;
}

static void serve(void)
{
	struct error err = ERROR_INIT;

	ck_assert_msg(try_serve(&err) == 0, "%s", err.text);
}

static void setup(void)
{
	strcpy(dir, "/tmp/rpc_test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s.sock", dir);
	uv_loop_init(&loop);
	serve();
	client = rpc_client_new(&loop, path);
	seen_cancel = slow_running = slow_max = streams_closed = 0;
	held = NULL;
}

static void on_stopped(void *data)
{
	(void)data;
	server_stopped = true;
}

static void run_until(const bool *flag)
{
	uint64_t end = clock_monotonic_ns() + 20000000000ull;

	while (!*flag && clock_monotonic_ns() < end)
		uv_run(&loop, UV_RUN_ONCE);
	ck_assert(*flag);
}

static void stop_server(void)
{
	rpc_server_stop(server, on_stopped, NULL);
	run_until(&server_stopped);
	rpc_server_free(server);
	server = NULL;
}

static void teardown(void)
{
	if (client)
		rpc_client_free(client);
	if (server)
		stop_server();
	ck_assert_uint_eq(job_count(), 0);
	job_shutdown();
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	unlink(path);
	rmdir(dir);
}

struct got {
	bool done;
	int replies;
	struct error status;
	char text[256];
	size_t bytes;
};

static void on_reply(void *data, const struct error *status, const void *reply)
{
	struct got *got = data;

	ck_assert(!got->done);
	got->done = true;
	got->status = *status;
	ck_assert((reply != NULL) == (status->code == ERROR_OK));
	if (reply && ((const ProtobufCMessage *)reply)->descriptor == DESC(version_response))
		snprintf(got->text, sizeof(got->text), "%s",
			((const Runtime__V1__VersionResponse *)reply)->runtime_version);
	if (reply && ((const ProtobufCMessage *)reply)->descriptor == DESC(exec_sync_response))
		got->bytes = ((const Runtime__V1__ExecSyncResponse *)reply)->stdout.len;
}

static struct rpc_request *call_version(const char *version, uint64_t timeout_ms, struct got *got)
{
	Runtime__V1__VersionRequest q = RUNTIME__V1__VERSION_REQUEST__INIT;

	q.version = (char *)version;
	return rpc_call(client, P "Version", &q.base, DESC(version_response), timeout_ms, on_reply, got);
}

static struct rpc_request *call_start(const char *id, uint64_t timeout_ms, struct got *got)
{
	Runtime__V1__StartContainerRequest q = RUNTIME__V1__START_CONTAINER_REQUEST__INIT;

	q.container_id = (char *)id;
	return rpc_call(client, P "StartContainer", &q.base, DESC(start_container_response), timeout_ms, on_reply, got);
}

static struct rpc_request *call_exec(char *id, size_t answer, struct got *got)
{
	Runtime__V1__ExecSyncRequest q = RUNTIME__V1__EXEC_SYNC_REQUEST__INIT;

	q.container_id = id;
	q.timeout = (int64_t)answer;
	return rpc_call(client, P "ExecSync", &q.base, DESC(exec_sync_response), 10000, on_reply, got);
}

/* ---- client and server ---- */

START_TEST(unary)
{
	struct got a = { 0 }, b = { 0 }, c = { 0 };

	call_version("eins", 1000, &a);
	call_version("bad", 1000, &b);
	ck_assert(!a.done);
	run_until(&a.done);
	run_until(&b.done);
	ck_assert_str_eq(a.text, "eins");
	ck_assert_int_eq(b.status.code, ERROR_NOT_FOUND);
	ck_assert_str_eq(b.status.text, "Größe 100%\nnot \"found\"");
	call_start("fail", 0, &c);
	run_until(&c.done);
	ck_assert_int_eq(c.status.code, ERROR_INVALID);
	ck_assert_str_eq(c.status.text, "no");
}
END_TEST

START_TEST(unknown_method)
{
	Runtime__V1__VersionRequest q = RUNTIME__V1__VERSION_REQUEST__INIT;
	struct got got = { 0 };

	rpc_call(client, P "Nonsense", &q.base, DESC(version_response), 1000, on_reply, &got);
	run_until(&got.done);
	ck_assert_int_eq(got.status.code, ERROR_UNIMPLEMENTED);
	ck_assert_str_eq(got.status.text, "unknown method " P "Nonsense");
}
END_TEST

START_TEST(deadline)
{
	struct got got = { 0 }, quick = { 0 };
	uint64_t start = clock_monotonic_ns();
	bool cancelled = false;

	call_start("3000", 100, &got);
	call_version("x", 0, &quick);
	run_until(&quick.done);
	ck_assert(!got.done);
	run_until(&got.done);
	ck_assert_int_eq(got.status.code, ERROR_DEADLINE);
	ck_assert_uint_lt(clock_monotonic_ns() - start, 1500000000ull);
	while (!cancelled) {
		uv_run(&loop, UV_RUN_NOWAIT);
		pthread_mutex_lock(&lock);
		cancelled = seen_cancel == 1;
		pthread_mutex_unlock(&lock);
		ck_assert_uint_lt(clock_monotonic_ns() - start, 1500000000ull);
	}
}
END_TEST

START_TEST(cancel)
{
	struct got got = { 0 }, other = { 0 };
	struct rpc_request *q = call_start("3000", 0, &got);
	uint64_t start = clock_monotonic_ns();
	bool cancelled = false;

	call_start("30", 0, &other);
	run_until(&other.done);
	rpc_cancel(q);
	while (!cancelled) {
		uv_run(&loop, UV_RUN_NOWAIT);
		pthread_mutex_lock(&lock);
		cancelled = seen_cancel == 1;
		pthread_mutex_unlock(&lock);
		ck_assert_uint_lt(clock_monotonic_ns() - start, 1500000000ull);
	}
	ck_assert(!got.done);
	rpc_cancel(call_version("never sent", 0, &got));
	uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert(!got.done);
}
END_TEST

START_TEST(large_messages)
{
	size_t len = 4 * 1024 * 1024;
	_cleanup_free_ char *id = xmalloc(len + 1);
	struct got got = { 0 }, small = { 0 };

	memset(id, 'i', len);
	id[len] = '\0';
	call_exec(id, len, &got);
	call_version("small", 0, &small);
	run_until(&got.done);
	run_until(&small.done);
	ck_assert_msg(got.status.code == ERROR_OK, "%s", got.status.text);
	ck_assert_uint_eq(got.bytes, len);
}
END_TEST

START_TEST(request_above_limit)
{
	size_t len = RPC_MESSAGE_MAX + 1;
	_cleanup_free_ char *id = xmalloc(len + 1);
	struct got got = { 0 }, after = { 0 };

	memset(id, 'i', len);
	id[len] = '\0';
	call_exec(id, 1, &got);
	run_until(&got.done);
	ck_assert_msg(got.status.code == ERROR_EXHAUSTED, "%s", got.status.text);
	call_version("still there", 0, &after);
	run_until(&after.done);
	ck_assert_int_eq(after.status.code, ERROR_OK);
}
END_TEST

START_TEST(reply_above_limit)
{
	struct got got = { 0 };

	call_exec((char *)"x", RPC_MESSAGE_MAX + 1, &got);
	run_until(&got.done);
	ck_assert_msg(got.status.code == ERROR_EXHAUSTED, "%s", got.status.text);
}
END_TEST

START_TEST(jobs_at_once)
{
	struct got got[300] = { 0 };
	size_t i;

	for (i = 0; i < ARRAY_LEN(got); i++)
		call_start("200", 0, &got[i]);
	for (i = 0; i < ARRAY_LEN(got); i++) {
		run_until(&got[i].done);
		ck_assert_msg(got[i].status.code == ERROR_OK, "%zu: %s", i, got[i].status.text);
	}
	/* 256 streams on the connection; a loaded machine may not have all of them at once */
	ck_assert_int_gt(slow_max, 50);
	ck_assert_int_le(slow_max, JOBS_MAX);
}
END_TEST

/* ---- streams ---- */

static struct rpc_request *stream_request;
static bool cancel_in_message, free_in_message;

static void on_event(void *data, const void *message)
{
	struct got *got = data;
	const Runtime__V1__ContainerEventResponse *event = message;

	ck_assert_str_eq(event->container_id, "abc");
	ck_assert_int_eq(event->created_at, got->replies);
	got->replies++;
	if (cancel_in_message && got->replies == 2)
		rpc_cancel(stream_request);
	if (free_in_message && got->replies == 2) {
		rpc_client_free(client);
		client = NULL;
	}
}

static void on_image(void *data, const void *message)
{
	(void)message;
	((struct got *)data)->replies++;
}

static void on_end(void *data, const struct error *status)
{
	on_reply(data, status->code == ERROR_OK ? &(struct error){ .code = ERROR_UNKNOWN } : status, NULL);
}

static void start_events(struct got *got)
{
	Runtime__V1__GetEventsRequest q = RUNTIME__V1__GET_EVENTS_REQUEST__INIT;

	cancel_in_message = free_in_message = false;
	stream_request = rpc_stream(
		client, P "GetContainerEvents", &q.base, DESC(container_event_response), on_event, on_end, got);
}

static void run_ms(uint64_t ms)
{
	uint64_t end = clock_monotonic_ns() + ms * 1000000;

	while (clock_monotonic_ns() < end) {
		uv_run(&loop, UV_RUN_NOWAIT);
		poll(NULL, 0, 1);
	}
}

START_TEST(stream_ends)
{
	struct got got = { 0 };
	struct error err;

	start_events(&got);
	run_ms(50);
	ck_assert_int_eq(got.replies, 3);
	ck_assert_ptr_nonnull(held);
	error_set(&err, ERROR_ABORTED, "enough");
	rpc_stream_end(held, &err);
	held = NULL;
	run_until(&got.done);
	ck_assert_int_eq(got.status.code, ERROR_ABORTED);
	ck_assert_int_eq(streams_closed, 0);
}
END_TEST

START_TEST(stream_with_error)
{
	Runtime__V1__StreamImagesRequest q = RUNTIME__V1__STREAM_IMAGES_REQUEST__INIT;
	struct got got = { 0 };

	rpc_stream(client, "/runtime.v1.ImageService/StreamImages", &q.base, DESC(stream_images_response), on_image,
		on_end, &got);
	run_until(&got.done);
	ck_assert_int_eq(got.replies, 1);
	ck_assert_int_eq(got.status.code, ERROR_DATA_LOSS);
	ck_assert_str_eq(got.status.text, "half of it");
}
END_TEST

START_TEST(stream_client_gone)
{
	struct got got = { 0 };

	start_events(&got);
	run_ms(50);
	rpc_cancel(stream_request);
	run_ms(50);
	ck_assert_int_eq(streams_closed, 1);
	ck_assert(!got.done);
	start_events(&got);
	got.replies = 0;
	run_ms(50);
	rpc_client_free(client);
	client = NULL;
	ck_assert(got.done);
	ck_assert_int_eq(got.status.code, ERROR_CANCELLED);
	run_ms(50);
	ck_assert_int_eq(streams_closed, 2);
}
END_TEST

START_TEST(stream_ended_in_callback)
{
	struct got got = { 0 };

	start_events(&got);
	cancel_in_message = _i == 0;
	free_in_message = _i == 1;
	run_ms(50);
	ck_assert_int_eq(got.replies, _i == 0 ? 2 : 3);
	ck_assert_int_eq(got.done, _i == 1);
	ck_assert_int_eq(streams_closed, 1);
}
END_TEST

/* A reader that does not read: the queue stays bounded, and ends when the connection does. */
START_TEST(stream_slow_reader)
{
	static char big[1024 * 1024];
	Runtime__V1__ContainerEventResponse event = RUNTIME__V1__CONTAINER_EVENT_RESPONSE__INIT;
	struct got got = { 0 };
	int i, r = 0;

	memset(big, 'a', sizeof(big) - 1);
	start_events(&got);
	run_ms(50);
	event.container_id = big;
	for (i = 0; i < 40 && r == 0; i++) /* the loop does not run, so nothing leaves */
		r = rpc_stream_send(held, &event.base);
	ck_assert_int_eq(r, -ENOBUFS);
	ck_assert_int_ge(i, 15);
	rpc_client_free(client);
	client = NULL;
	run_ms(50);
	ck_assert_int_eq(streams_closed, 1);
}
END_TEST

/* ---- coming and going ---- */

START_TEST(server_restarts)
{
	struct got a = { 0 }, b = { 0 }, c = { 0 };

	call_version("1", 0, &a);
	run_until(&a.done);
	stop_server();
	unlink(path);
	call_version("2", 300, &b);
	run_until(&b.done);
	ck_assert_int_eq(b.status.code, ERROR_DEADLINE);
	ck_assert_msg(strstr(b.status.text, "no connection") != NULL, "%s", b.status.text);
	call_version("3", 5000, &c);
	run_ms(20);
	serve();
	run_until(&c.done);
	ck_assert_msg(c.status.code == ERROR_OK, "%s", c.status.text);
}
END_TEST

START_TEST(graceful_stop)
{
	struct got slow = { 0 }, events = { 0 }, late = { 0 };

	call_start("300", 0, &slow);
	start_events(&events);
	run_ms(50);
	rpc_server_stop(server, on_stopped, NULL);
	run_until(&events.done);
	ck_assert_int_eq(events.status.code, ERROR_UNAVAILABLE);
	ck_assert(!slow.done && !server_stopped);
	call_version("late", 600, &late); /* the old server takes no calls; nobody else listens */
	run_until(&slow.done);
	ck_assert_int_eq(slow.status.code, ERROR_OK);
	run_until(&server_stopped);
	rpc_server_free(server);
	server = NULL;
	run_until(&late.done);
	ck_assert_int_eq(late.status.code, ERROR_DEADLINE);
}
END_TEST

START_TEST(client_freed)
{
	struct got a = { 0 }, b = { 0 };

	call_start("50", 0, &a);
	run_ms(20);
	call_version("unsent", 0, &b);
	rpc_client_free(client);
	client = NULL;
	ck_assert(a.done && b.done);
	ck_assert_int_eq(a.status.code, ERROR_CANCELLED);
}
END_TEST

static struct {
	bool done;
	int r;
	struct error err;
	char text[32];
} blocking;

static void *blocking_main(void *data)
{
	Runtime__V1__VersionRequest q = RUNTIME__V1__VERSION_REQUEST__INIT;
	ProtobufCMessage *reply = NULL;

	q.version = data;
	blocking.r = rpc_call_blocking(path, P "Version", &q.base, DESC(version_response), 5000, &reply, &blocking.err);
	if (reply) {
		snprintf(blocking.text, sizeof(blocking.text), "%s",
			((Runtime__V1__VersionResponse *)reply)->runtime_version);
		protobuf_c_message_free_unpacked(reply, NULL);
	}
	pthread_mutex_lock(&lock);
	blocking.done = true;
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void run_blocking(const char *version)
{
	pthread_t thread;
	bool done = false;

	memset(&blocking, 0, sizeof(blocking));
	pthread_create(&thread, NULL, blocking_main, (void *)version);
	while (!done) {
		uv_run(&loop, UV_RUN_NOWAIT);
		poll(NULL, 0, 1);
		pthread_mutex_lock(&lock);
		done = blocking.done;
		pthread_mutex_unlock(&lock);
	}
	pthread_join(thread, NULL);
}

START_TEST(blocking_call)
{
	run_blocking("b");
	ck_assert_int_eq(blocking.r, 0);
	ck_assert_str_eq(blocking.text, "b");
	run_blocking("bad");
	ck_assert_int_eq(blocking.r, -ENOENT);
	ck_assert_int_eq(blocking.err.code, ERROR_NOT_FOUND);
	stop_server();
	run_blocking("nobody");
	ck_assert_int_eq(blocking.err.code, ERROR_UNAVAILABLE);
	ck_assert_msg(strstr(blocking.err.text, path) != NULL, "%s", blocking.err.text);
}
END_TEST

/* ---- bytes that no decent client sends ---- */

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

static const struct {
	const char *name;
	const char *bytes;
	size_t len;
} garbage[] = {
	{ "HTTP/1.1", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27 },
	{ "zeros", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 28 },
	{ "frame that is too large", "\xff\xff\xff\x00\x00\x00\x00\x00\x01", 9 },
	{ "DATA on stream 1 before HEADERS",
		"\0\0\0\x04\0\0\0\0\0"
		"\0\0\x01\x00\x00\0\0\0\x01x",
		19 },
	{ "headers that are not HPACK",
		"\0\0\0\x04\0\0\0\0\0"
		"\0\0\x04\x01\x05\0\0\0\x01\xff\xff\xff\xff",
		22 },
};

START_TEST(garbage_bytes)
{
	struct sock_address address;
	_cleanup_fd_ int fd = -1;
	struct got got = { 0 };
	char buf[4096];
	ssize_t n;

	ck_assert_int_eq(sock_address_parse(path, &address, NULL), 0);
	ck_assert_int_eq(sock_connect(&address, &fd, NULL), 0);
	if (_i >= 2)
		ck_assert_int_eq(fd_write_full(fd, preface, strlen(preface)), 0);
	ck_assert_int_eq(fd_write_full(fd, garbage[_i].bytes, garbage[_i].len), 0);
	run_ms(30);
	do { /* it says GOAWAY perhaps, and closes */
		n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	} while (n > 0);
	ck_assert_msg(n == 0 || errno == ECONNRESET, "%s: not closed", garbage[_i].name);
	call_version("alive", 1000, &got);
	run_until(&got.done);
	ck_assert_int_eq(got.status.code, ERROR_OK);
}
END_TEST

START_TEST(too_many_connections)
{
	struct sock_address address;
	int fds[RPC_CONNECTIONS_MAX + 1], i;
	char c;

	ck_assert_int_eq(sock_address_parse(path, &address, NULL), 0);
	for (i = 0; i <= RPC_CONNECTIONS_MAX; i++) {
		ck_assert_int_eq(sock_connect(&address, &fds[i], NULL), 0);
		run_ms(2);
	}
	run_ms(20);
	ck_assert_int_eq(recv(fds[RPC_CONNECTIONS_MAX], &c, 1, MSG_DONTWAIT), 0);
	for (i = 0; i <= RPC_CONNECTIONS_MAX; i++)
		close(fds[i]);
}
END_TEST

/* ---- addresses and sockets ---- */

static const struct {
	const char *text;
	bool ok;
	bool is_unix;
} addresses[] = {
	{ "unix:///run/x.sock", true, true },
	{ "/run/x.sock", true, true },
	{ "unix:/run/x.sock", true, true },
	{ "127.0.0.1:10249", true, false },
	{ "[::1]:80", true, false },
	{ ":10256", true, false },
	{ "0.0.0.0:0", true, false },
	{ "", false, false },
	{ "unix://", false, false },
	{ "unix://run/x.sock", false, false },
	{ "localhost:80", false, false },
	{ "127.0.0.1", false, false },
	{ "127.0.0.1:", false, false },
	{ "127.0.0.1:65536", false, false },
	{ "127.0.0.1:-1", false, false },
	{ "::1:80", false, false },
	{ "[::1]", false, false },
	{ "[::1]x:80", false, false },
	{ "[]:80", false, false },
	{ "/a/very/long/path/"
	  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		false, false },
};

START_TEST(address_case)
{
	struct sock_address address;
	struct error err = ERROR_INIT;
	int r = sock_address_parse(addresses[_i].text, &address, &err);

	ck_assert_msg((r == 0) == addresses[_i].ok, "\"%s\": %s", addresses[_i].text, err.text);
	if (r == 0)
		ck_assert_int_eq(address.is_unix, addresses[_i].is_unix);
	else
		ck_assert(strstr(err.text, addresses[_i].text) != NULL || !*addresses[_i].text || _i == 8);
}
END_TEST

START_TEST(listen_twice)
{
	struct sock_address address;
	struct error err = ERROR_INIT;
	struct stat st;
	char file[80];
	int fd;

	ck_assert_int_eq(sock_address_parse(path, &address, NULL), 0);
	ck_assert_int_lt(sock_listen(&address, 0600, &fd, &err), 0);
	ck_assert_int_eq(err.code, ERROR_EXISTS);
	ck_assert(strstr(err.text, "is in use by another process") != NULL);
	stop_server(); /* the file stays */
	serve();       /* and is replaced */
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	snprintf(file, sizeof(file), "%s/plain", dir);
	close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	ck_assert_int_eq(sock_address_parse(file, &address, NULL), 0);
	ck_assert_int_lt(sock_listen(&address, 0600, &fd, &err), 0);
	ck_assert(strstr(err.text, "is not a socket") != NULL);
	unlink(file);
}
END_TEST

int main(int argc, char **argv)
{
	Suite *suite = suite_create("rpc");
	TCase *tc = tcase_create("rpc");
	SRunner *runner;
	int failed;

	if (argc == 3 && str_eq(argv[1], "serve")) {
		uv_loop_init(&loop);
		snprintf(path, sizeof(path), "%s", argv[2]);
		if (try_serve(&(struct error){ 0 }) < 0)
			return 1;
		return uv_run(&loop, UV_RUN_DEFAULT);
	}
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, unary);
	tcase_add_test(tc, unknown_method);
	tcase_add_test(tc, deadline);
	tcase_add_test(tc, cancel);
	tcase_add_test(tc, large_messages);
	tcase_add_test(tc, request_above_limit);
	tcase_add_test(tc, reply_above_limit);
	tcase_add_test(tc, jobs_at_once);
	tcase_add_test(tc, stream_ends);
	tcase_add_test(tc, stream_with_error);
	tcase_add_test(tc, stream_client_gone);
	tcase_add_loop_test(tc, stream_ended_in_callback, 0, 2);
	tcase_add_test(tc, stream_slow_reader);
	tcase_add_test(tc, server_restarts);
	tcase_add_test(tc, graceful_stop);
	tcase_add_test(tc, client_freed);
	tcase_add_test(tc, blocking_call);
	tcase_add_loop_test(tc, garbage_bytes, 0, ARRAY_LEN(garbage));
	tcase_add_test(tc, too_many_connections);
	tcase_add_loop_test(tc, address_case, 0, ARRAY_LEN(addresses));
	tcase_add_test(tc, listen_twice);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
