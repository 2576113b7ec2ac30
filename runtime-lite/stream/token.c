/* token.c - purpose: one-time tokens of the streaming server. */
#include "runtime-lite/stream/token.h"

#include "common/base/map.h"

struct entry {
	struct stream_request *request;
	uint64_t until_ns;
};

struct tokens {
	struct map entries;
};

struct stream_request *stream_request_new(enum stream_kind kind, const char *id)
{
	struct stream_request *r = xnew(struct stream_request);

	r->kind = kind;
	r->id = xstrdup(id);
	return r;
}

struct stream_request *stream_request_free(struct stream_request *r)
{
	if (!r)
		return NULL;
	strv_done(&r->args);
	free(r->id);
	free(r->ports);
	free(r);
	return NULL;
}

static void entry_free(void *data)
{
	struct entry *e = data;

	stream_request_free(e->request);
	free(e);
}

struct tokens *tokens_new(void)
{
	return xnew(struct tokens);
}

void tokens_free(struct tokens *t)
{
	map_done_values(&t->entries, entry_free);
	free(t);
}

/* Nothing wakes up for them: they are looked through when another one comes. */
static void drop_old(struct tokens *t, uint64_t now_ns)
{
	struct map_iter it = MAP_ITER_INIT;

	while (map_next(&t->entries, &it)) {
		struct entry *e = it.value;

		if (e->until_ns > now_ns)
			continue;
		map_remove(&t->entries, it.key);
		entry_free(e);
	}
}

int tokens_add(struct tokens *t, struct stream_request *request, const char *token, uint64_t now_ns, struct error *err)
{
	drop_old(t, now_ns);
	if (t->entries.count >= TOKENS_MAX) {
		stream_request_free(request);
		return error_set(
			err, ERROR_EXHAUSTED, "%d streaming requests wait for their clients already", TOKENS_MAX);
	}
	struct entry *e = xnew(struct entry);

	assert(strlen(token) == TOKEN_LEN);
	*e = (struct entry){ request, now_ns + TOKEN_LIFE_NS };
	e = map_put(&t->entries, token, e);
	if (e)
		entry_free(e);
	return 0;
}

struct stream_request *tokens_take(struct tokens *t, enum stream_kind kind, const char *token, uint64_t now_ns)
{
	struct entry *e = strlen(token) == TOKEN_LEN ? map_remove(&t->entries, token) : NULL;
	struct stream_request *request = NULL;

	if (e && e->until_ns > now_ns && e->request->kind == kind)
		request = steal(e->request);
	if (e)
		entry_free(e);
	return request;
}
