/*
 * logs.c - purpose: `runtime-lite logs`: print a container's log.
 *
 * Lines of the file are "<time> <stdout|stderr> <P|F> <text>"; what was written to stderr goes to stderr. A file that was
 * rotated away while it is followed is read to its end first.
 */
#include "runtime-lite/admin/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

enum { FOLLOW_POLL_US = 200000, READ_BYTES = 64 * 1024 };

struct reader {
	const char *path;
	int fd;
	struct str line;  /* an incomplete record */
	bool timestamps;
	bool continues[2]; /* the last record of stdout, stderr was partial */
};

/* One record without its line feed. Others than ours are shown as they are. */
static void print_record(struct reader *reader, const char *line, size_t len)
{
	const char *end = line + len;
	const char *stream = memchr(line, ' ', len);
	const char *tag = stream ? memchr(stream + 1, ' ', (size_t)(end - stream - 1)) : NULL;
	const char *text = tag ? memchr(tag + 1, ' ', (size_t)(end - tag - 1)) : NULL;

	if (!text) {
		printf("%.*s\n", (int)len, line);
		return;
	}
	bool is_err = str_starts(stream + 1, "stderr");
	bool partial = tag[1] == 'P';
	FILE *out = is_err ? stderr : stdout;
	if (reader->timestamps && !reader->continues[is_err])
		fprintf(out, "%.*s ", (int)(stream - line), line);
	fwrite(text + 1, 1, (size_t)(end - text - 1), out);
	if (!partial)
		fputc('\n', out);
	reader->continues[is_err] = partial;
}

/* Prints all complete records up to the end of the file; false if there was nothing new. */
static bool read_more(struct reader *reader)
{
	static char buf[READ_BYTES];
	bool any = false;
	ssize_t n;

	while ((n = read(reader->fd, buf, sizeof(buf))) > 0) {
		const char *p = buf, *end = buf + n, *newline;

		any = true;
		while ((newline = memchr(p, '\n', (size_t)(end - p)))) {
			str_add_bytes(&reader->line, p, (size_t)(newline - p));
			print_record(reader, str_get(&reader->line), reader->line.len);
			str_reset(&reader->line);
			p = newline + 1;
		}
		str_add_bytes(&reader->line, p, (size_t)(end - p));
	}
	fflush(stdout);
	return any;
}

/* Moves to the place from which `lines` complete lines follow. Partial records belong to the line they begin. */
static int seek_tail(int fd, int64_t lines, struct error *err)
{
	char buf[4096];
	off_t at = lseek(fd, 0, SEEK_END);
	int64_t seen = -1; /* the last line feed ends the last line */

	if (at < 0)
		return error_sys(err, errno, "seek");
	while (at > 0) {
		size_t n = (size_t)MIN(at, (off_t)sizeof(buf));

		at -= (off_t)n;
		ssize_t got = pread(fd, buf, n, at);
		if (got < 0)
			return error_sys(err, errno, "read");
		for (ssize_t i = got - 1; i >= 0; i--)
			if (buf[i] == '\n' && ++seen == lines)
				return lseek(fd, at + i + 1, SEEK_SET) < 0 ? error_sys(err, errno, "seek") : 0;
	}
	return lseek(fd, 0, SEEK_SET) < 0 ? error_sys(err, errno, "seek") : 0;
}

static int status(const struct admin *admin, char *id, CRI(ContainerStatusResponse) * *ret, struct error *err)
{
	CRI(ContainerStatusRequest) request = RUNTIME__V1__CONTAINER_STATUS_REQUEST__INIT;

	request.container_id = id;
	return tool_call(admin, "RuntimeService/ContainerStatus", &request,
		&runtime__v1__container_status_response__descriptor, TOOL_TIMEOUT_MS, ret, err);
}

/* A new file under the old name: the old one was rotated away. */
static bool was_rotated(const struct reader *reader)
{
	struct stat now, mine;

	return stat(reader->path, &now) == 0 && fstat(reader->fd, &mine) == 0 &&
	       (now.st_ino != mine.st_ino || now.st_dev != mine.st_dev);
}

static int follow(const struct admin *admin, struct reader *reader, char *id, struct error *err)
{
	for (;;) {
		_cleanup_message_ CRI(ContainerStatusResponse) *reply = NULL;
		struct error why = ERROR_INIT;
		int r = status(admin, id, &reply, &why);

		/* Its end was seen before the last look at the file: nothing can follow. */
		bool ended = r < 0 || !reply->status ||
			     reply->status->state != RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING;
		if (r < 0 && why.code != ERROR_NOT_FOUND) {
			*err = why;
			return r;
		}
		while (read_more(reader))
			;
		if (was_rotated(reader)) {
			int fd = open(reader->path, O_RDONLY | O_CLOEXEC);

			if (fd >= 0) {
				read_more(reader); /* what came between */
				close(reader->fd);
				reader->fd = fd;
				continue;
			}
		}
		if (ended)
			return 0;
		usleep(FOLLOW_POLL_US);
	}
}

COMMAND(command_logs)
{
	_cleanup_message_ CRI(ContainerStatusResponse) *reply = NULL;
	_cleanup_free_ char *id = NULL;
	struct reader reader = { .fd = -1, .timestamps = option_bool(in->options, "timestamps") };
	int r = tool_container(in->admin, in->argv[0], &id, err);

	if (r == 0 && option_bool(in->options, "previous")) {
		_cleanup_free_ char *newer = steal(id);
		r = tool_previous(in->admin, newer, &id, err);
	}
	if (r == 0)
		r = status(in->admin, id, &reply, err);
	if (r < 0)
		return r;
	if (!reply->status || !*reply->status->log_path)
		return error_set(err, ERROR_PRECONDITION, "container %s keeps no log", in->argv[0]);
	reader.path = reply->status->log_path;
	reader.fd = open(reader.path, O_RDONLY | O_CLOEXEC);
	if (reader.fd < 0)
		return error_sys(err, errno, "%s", reader.path);
	if (option_int(in->options, "tail") >= 0)
		r = seek_tail(reader.fd, option_int(in->options, "tail"), err);
	if (r == 0)
		read_more(&reader);
	if (r == 0 && option_bool(in->options, "follow"))
		r = follow(in->admin, &reader, id, err);
	close(reader.fd);
	str_done(&reader.line);
	return r;
}
