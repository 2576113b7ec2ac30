/* channel.c - purpose: JSON objects, one a line, over the socket between whoever wants an image and the pull program. */
#include "runtime-lite/image/channel.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

int channel_send(struct channel *c, json_t *message, struct error *err)
{
	_cleanup_json_ json_t *owned = message;
	_cleanup_free_ char *text = json_text(owned);
	size_t len = strlen(text), done = 0;

	if (len + 1 > CHANNEL_LINE_MAX)
		return error_set(err, ERROR_INTERNAL, "a message of %zu bytes is too long for the pull program's channel", len);
	text[len++] = '\n'; /* instead of the NUL */
	while (done < len) {
		ssize_t n = send(c->fd, text + done, len - done, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_sys(err, errno, "speak to the pull program");
		done += (size_t)n;
	}
	return 0;
}

int channel_next(struct channel *c, json_t **ret, struct error *err)
{
	const char *end = c->in.len ? memchr(c->in.buf, '\n', c->in.len) : NULL;

	*ret = NULL;
	if (!end)
		return c->in.len <= CHANNEL_LINE_MAX ? 0 : error_set(err, ERROR_INTERNAL, "the pull program sent too long a line");
	size_t len = (size_t)(end - c->in.buf);
	int r = json_read(c->in.buf, len, true, ret, err);
	str_consume(&c->in, len + 1);
	return r < 0 ? error_prefix(err, "message of the pull program") : 0;
}

int channel_fill(struct channel *c, struct error *err)
{
	char buf[16384];
	ssize_t n;

	do
		n = recv(c->fd, buf, sizeof(buf), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == ECONNRESET)
		return 0;
	if (n < 0)
		return error_sys(err, errno, "listen to the pull program");
	str_add_bytes(&c->in, buf, (size_t)n);
	return n > 0;
}

int channel_receive(struct channel *c, json_t **ret, struct error *err)
{
	for (;;) {
		int r = channel_next(c, ret, err);

		if (r < 0 || *ret)
			return r;
		r = channel_fill(c, err);
		if (r < 0)
			return r;
		if (r == 0)
			return error_set(err, ERROR_UNAVAILABLE, "the other side went away");
	}
}

void channel_done(struct channel *c)
{
	str_done(&c->in);
}

json_t *channel_error(const struct error *err)
{
	json_t *text = json_string(err->text);

	/* What registries say need not be UTF-8. */
	if (!text) {
		_cleanup_free_ char *ascii = xstrdup(err->text);

		for (char *p = ascii; *p; p++)
			if ((signed char)*p < ' ')
				*p = '?';
		text = json_string(ascii);
	}
	return json_pack("{s:{s:i, s:o}}", "error", "code", (int)err->code, "text", text);
}

bool channel_is_error(const json_t *message, struct error *ret)
{
	const json_t *e = json_object_get(message, "error");

	if (!e)
		return false;
	int64_t code = json_int_at(e, "code", ERROR_INTERNAL);
	bool known = code > ERROR_OK && code <= ERROR_UNAUTHENTICATED;

	error_set(ret, known ? (enum error_code)code : ERROR_INTERNAL, "%s", json_str_at(e, "text", "no reason given"));
	return true;
}
