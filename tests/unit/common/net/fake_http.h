/*
 * fake_http.h - purpose: an HTTP server on a thread that says, request by request, what a script tells it.
 */
#pragma once
#include "common/base/base.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

enum fake_then { FAKE_KEEP, FAKE_CLOSE, FAKE_HANG };

struct fake_step {
	const char *expect;   /* the request must contain this; NULL: anything */
	const char *answer;   /* bytes as they are */
	enum fake_then then;  /* HANG: until the client closes */
	unsigned piece;       /* bytes for each write, 0: all at once */
	unsigned delay_ms;    /* before each write */
};

struct fake_http {
	char path[64];
	const struct fake_step *steps;
	size_t n_steps;
	size_t done;        /* steps that were played */
	unsigned accepted;  /* connections */
	char wrong[256];    /* first request that was not what the step expects */
	int listen_fd;
	pthread_t thread;
};

#define FAKE_OK(type, body) "HTTP/1.1 200 OK\r\nContent-Type: " type "\r\nTransfer-Encoding: chunked\r\n\r\n" body

/* Reads one request without a body. False when the client has closed. */
static bool read_request(int fd, char *buf, size_t size)
{
	size_t n = 0;

	while (n + 1 < size) {
		ssize_t r = read(fd, buf + n, size - 1 - n);

		if (r <= 0)
			return false;
		n += (size_t)r;
		buf[n] = '\0';
		if (strstr(buf, "\r\n\r\n"))
			return true;
	}
	return false;
}

static void play(struct fake_http *fake, const struct fake_step *step, int fd, const char *request)
{
	size_t len = strlen(step->answer), piece = step->piece ? step->piece : MAX(len, (size_t)1);

	if (step->expect && !strstr(request, step->expect) && !fake->wrong[0])
		snprintf(fake->wrong, sizeof(fake->wrong), "wanted \"%s\" in: %.180s", step->expect, request);
	for (size_t at = 0; at < len; at += piece) {
		if (step->delay_ms)
			usleep(step->delay_ms * 1000);
		if (send(fd, step->answer + at, MIN(piece, len - at), MSG_NOSIGNAL) < 0)
			break;
	}
	__atomic_add_fetch(&fake->done, 1, __ATOMIC_SEQ_CST);
}

static void serve(struct fake_http *fake, int fd)
{
	char request[8192];

	while (fake->done < fake->n_steps) {
		const struct fake_step *step = &fake->steps[fake->done];

		if (!read_request(fd, request, sizeof(request)))
			return;
		play(fake, step, fd, request);
		if (step->then == FAKE_CLOSE)
			return;
		if (step->then == FAKE_HANG) {
			while (read(fd, request, sizeof(request)) > 0)
				;
			return;
		}
	}
}

static void *run(void *data)
{
	struct fake_http *fake = data;

	for (;;) {
		int fd = accept(fake->listen_fd, NULL, NULL);

		if (fd < 0)
			return NULL;
		fake->accepted++;
		serve(fake, fd);
		close(fd);
	}
}

static void fake_http_start(struct fake_http *fake, const struct fake_step *steps, size_t n)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	*fake = (struct fake_http){ .path = "/tmp/fake-http-XXXXXX", .steps = steps, .n_steps = n };
	ck_assert_ptr_nonnull(mkdtemp(fake->path));
	strcat(fake->path, "/sock");
	strcpy(address.sun_path, fake->path);
	fake->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(fake->listen_fd, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(fake->listen_fd, 8), 0);
	ck_assert_int_eq(pthread_create(&fake->thread, NULL, run, fake), 0);
}

static void fake_http_stop(struct fake_http *fake)
{
	shutdown(fake->listen_fd, SHUT_RDWR);
	pthread_join(fake->thread, NULL);
	close(fake->listen_fd);
	unlink(fake->path);
	*strrchr(fake->path, '/') = '\0';
	rmdir(fake->path);
	ck_assert_msg(!fake->wrong[0], "%s", fake->wrong);
}
