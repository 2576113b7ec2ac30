/* session.c - purpose: what sessions are over either carrier: sizes in, outcomes out. */
#include "runtime-lite/stream/session_i.h"

#include "common/wire/json.h"

struct session *session_free(struct session *s)
{
	if (s) {
		str_done(&s->resize);
		s->carrier->free(s);
	}
	return NULL;
}

int session_read(struct session *s, struct bytes *in, struct session_event *ret, struct error *err)
{
	return s->carrier->read(s, in, ret, err);
}

void session_output(struct session *s, bool error, const void *p, size_t len)
{
	if (len && !s->ended && (error ? s->wants.err : s->wants.out))
		s->carrier->output(s, error, p, len);
}

void session_end(struct session *s, const struct session_outcome *outcome)
{
	_cleanup_(str_done) struct str status = STR_INIT;

	if (s->ended)
		return;
	s->ended = true;
	session_status(s->version, outcome, &status);
	s->carrier->end(s, &status);
}

void session_alive(struct session *s)
{
	if (s->carrier->alive)
		s->carrier->alive(s);
}

struct str *session_out(struct session *s)
{
	return s->carrier->out(s);
}

/* {"Width":80,"Height":24}, keys in any case as Go reads them. */
static bool parse_size(const char *text, size_t len, struct session_event *ret)
{
	_cleanup_json_ json_t *tree = NULL;
	json_int_t size[2] = { 0, 0 };
	const char *key;
	json_t *value;

	if (json_read(text, len, false, &tree, NULL) < 0 || !json_is_object(tree))
		return false;
	json_object_foreach(tree, key, value) if (json_is_integer(value)) size[strcasecmp(key, "width") == 0 ? 0 : 1] =
		json_integer_value(value);
	if (size[0] < 0 || size[0] > UINT16_MAX || size[1] < 0 || size[1] > UINT16_MAX)
		return false;
	*ret = (struct session_event){
		.kind = SESSION_RESIZE, .columns = (uint16_t)size[0], .rows = (uint16_t)size[1]
	};
	return true;
}

/* Objects follow each other; none holds another, so each ends with its first brace. */
bool session_take_resize(struct session *s, struct bytes data, struct session_event *ret)
{
	bool found = false;

	for (size_t i = 0; i < data.len; i++) {
		if (s->resize.len < SESSION_RESIZE_MAX)
			str_add_char(&s->resize, data.ptr[i]);
		if (data.ptr[i] != '}')
			continue;
		found |= parse_size(s->resize.buf, s->resize.len, ret);
		str_reset(&s->resize);
	}
	return found;
}

static json_t *exit_status(int code)
{
	_cleanup_free_ char *number = xasprintf("%d", code);
	_cleanup_free_ char *message = xasprintf("command terminated with non-zero exit code: exit status %d", code);

	return json_pack("{s{} ss ss ss s{s[{ss ss}]}}", "metadata", "status", "Failure", "message", message, "reason",
		"NonZeroExitCode", "details", "causes", "reason", "ExitCode", "message", number);
}

/* A message may hold bytes that are no UTF-8 (file names do): they are replaced. */
static json_t *failure(const char *message)
{
	_cleanup_free_ char *text = xasprintf("Internal error occurred: %s", message);
	json_t *string = json_string(text);

	if (!string) {
		for (char *p = text; *p; p++)
			if ((unsigned char)*p >= 0x80)
				*p = '?';
		string = json_string(text);
	}
	return json_pack("{s{} ss so ss s{s[{so}]} si}", "metadata", "status", "Failure", "message", string, "reason",
		"InternalError", "details", "causes", "message", json_incref(string), "code", 500);
}

void session_status(int version, const struct session_outcome *outcome, struct str *ret)
{
	bool success =
		outcome->result == SESSION_SUCCESS || (outcome->result == SESSION_EXIT && outcome->exit_code == 0);
	_cleanup_json_ json_t *tree = NULL;

	if (version < 4) {
		if (!success && outcome->result == SESSION_EXIT)
			str_addf(ret, "command terminated with non-zero exit code: exit status %d", outcome->exit_code);
		else if (!success)
			str_addf(ret, "Internal error occurred: %s", outcome->message);
		return;
	}
	if (success)
		tree = json_pack("{s{} ss}", "metadata", "status", "Success");
	else
		tree = outcome->result == SESSION_EXIT ? exit_status(outcome->exit_code) : failure(outcome->message);
	json_add(ret, tree);
}
