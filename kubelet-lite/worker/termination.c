/*
 * termination.c - purpose: the last words of a container: its termination message file, or the end of its log.
 *
 * Both are written by the container, so at most a few kilobytes of a regular file are read.
 */
#include "kubelet-lite/worker/node_i.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { MESSAGE_MAX = 4096, MESSAGES_MAX = 12288, LOG_TAIL_MAX = 2048, LOG_LINES_MAX = 80, LOG_READ = 16 * 1024 };

/* At most `max` bytes from the start of the file, or from its end. */
static char *read_part(const char *path, size_t max, bool end)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	char *text;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return NULL;
	if (end && (size_t)st.st_size > max && lseek(fd, -(off_t)max, SEEK_END) < 0)
		return NULL;
	text = xmalloc(max + 1);
	n = fd_read_full(fd, text, max);
	if (n <= 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

/* "<time> stdout F text" to "text\n". */
static void add_line(struct str *out, const char *line, size_t len)
{
	const char *p = line;

	for (int i = 0; i < 3; i++) {
		const char *space = memchr(p, ' ', len - (size_t)(p - line));

		if (!space)
			return;
		p = space + 1;
	}
	str_add_bytes(out, p, len - (size_t)(p - line));
	if (p >= line + 3 && p[-2] == 'F')
		str_add_char(out, '\n');
}

static char *log_tail(const char *path)
{
	_cleanup_free_ char *text = read_part(path, LOG_READ, true);
	struct str out = STR_INIT;
	int lines = 0;

	if (!text)
		return NULL;
	const char *start = text + strlen(text);
	while (start > text && lines <= LOG_LINES_MAX) {
		start--;
		lines += *start == '\n';
	}
	/* The first line may be cut, unless it is the file's first. */
	if (start > text || strlen(text) == LOG_READ)
		start += strcspn(start, "\n") + (start[strcspn(start, "\n")] == '\n');
	while (*start) {
		size_t n = strcspn(start, "\n");

		add_line(&out, start, n);
		start += n + (start[n] == '\n');
	}
	if (out.len > LOG_TAIL_MAX)
		str_consume(&out, out.len - LOG_TAIL_MAX);
	return str_take(&out);
}

char *termination_message(
	const struct pod_worker *w, size_t i, const struct instance *instance, const char *message_file)
{
	const struct container *spec = &w->pod->containers[i];
	size_t max = MIN((size_t)MESSAGE_MAX, MESSAGES_MAX / MAX(w->pod->n_containers, (size_t)1));
	char *text = str_empty(message_file) ? NULL : read_part(message_file, max, false);

	if (text || w->orphan || !spec->termination_from_logs || instance->exit_code == 0)
		return text;
	_cleanup_free_ char *log = container_log_path(w, i, instance->restarts);
	return log_tail(log);
}
