/* diff.c - purpose: from what is held to what is wanted by the smallest set of element changes. */
#include "proxy-lite/compile/diff.h"

#include <arpa/inet.h>

static uint8_t *put_port(uint8_t *p, uint16_t port)
{
	uint16_t big = htons(port);

	memset(p, 0, 4);
	memcpy(p, &big, sizeof(big));
	return p + 4;
}

static uint8_t *put_address(uint8_t *p, const uint8_t *address, bool v6)
{
	memcpy(p, address, ip_len(v6));
	return p + ip_len(v6);
}

void element_frontend_key(const struct frontend_key *key, uint8_t *buf)
{
	if (!key->node_port)
		buf = put_address(buf, key->address, key->v6);
	memset(buf, 0, 4);
	buf[0] = key->protocol;
	put_port(buf + 4, key->port);
}

void element_endpoint_key(const struct frontend_key *key, uint32_t number, uint8_t *buf)
{
	memcpy(buf, &number, sizeof(number));
	element_frontend_key(key, buf + 4);
}

void element_backend(const struct backend *backend, bool v6, uint8_t *buf)
{
	put_port(put_address(buf, backend->address, v6), backend->port);
}

void element_address(enum set_id set, const uint8_t *address, uint8_t *buf)
{
	bool v6 = set == SET_HAIRPIN6 || set == SET_NODEIP6;

	buf = put_address(buf, address, v6);
	if (set == SET_HAIRPIN || set == SET_HAIRPIN6)
		put_address(buf, address, v6);
}

/* The look-up elements that a frontend has besides its endpoints. */
enum lookup { LOOKUP_FRONTEND, LOOKUP_INSIDE, LOOKUP_LOCAL, LOOKUP_REFUSE, LOOKUP_DROP, LOOKUPS };

static const enum set_id lookup_sets[LOOKUPS] = { SET_FRONTEND, SET_INSIDE, SET_LOCAL, SET_REFUSE, SET_DROP };

struct lookups {
	bool is[LOOKUPS];
	uint32_t plan[LOOKUPS];
};

static struct lookups lookups_of(const struct frontend *f)
{
	struct lookups l = { 0 };
	bool port, v6;

	if (!f)
		return l;
	port = f->key.node_port;
	v6 = f->key.v6;
	if (f->flavour == FLAVOUR_DIVERT || f->flavour == FLAVOUR_NONE) {
		l.is[LOOKUP_FRONTEND] = f->flavour == FLAVOUR_DIVERT && (f->n || f->n_inside);
		l.plan[LOOKUP_FRONTEND] = plan_id(FLAVOUR_DIVERT, port, v6, 0);
		l.is[LOOKUP_LOCAL] = f->n > 0;
		l.plan[LOOKUP_LOCAL] = plan_id(FLAVOUR_LOCAL, port, v6, f->n);
		l.is[LOOKUP_INSIDE] = f->n_inside > 0;
		l.plan[LOOKUP_INSIDE] = plan_id(FLAVOUR_INSIDE, port, v6, f->n_inside);
	} else {
		l.is[LOOKUP_FRONTEND] = f->n > 0;
		l.plan[LOOKUP_FRONTEND] = plan_id((enum flavour)f->flavour, port, v6, f->n);
	}
	l.is[LOOKUP_REFUSE] = f->n == 0 && f->unserved == UNSERVED_REFUSE;
	l.is[LOOKUP_DROP] = f->n == 0 && f->unserved == UNSERVED_DROP;
	return l;
}

static enum set_id set_for(enum set_id base, const struct frontend_key *key)
{
	return set_of((enum set_id)(base + (key->node_port ? SET_PORT_DISTANCE : 0)), key->v6);
}

static void diff_lookups(const struct frontend_key *key, const struct frontend *held, const struct frontend *wanted,
	const struct element_sink *sink)
{
	struct lookups old = lookups_of(held), new = lookups_of(wanted);
	uint8_t bytes[SET_KEY_MAX];

	element_frontend_key(key, bytes);
	for (int i = 0; i < LOOKUPS; i++) {
		enum set_id set = set_for(lookup_sets[i], key);

		if (old.is[i] == new.is[i] && old.plan[i] == new.plan[i])
			continue;
		if (old.is[i])
			sink->element(sink->data, set, false, bytes, NULL);
		if (new.is[i])
			sink->element(sink->data, set, true, bytes, (const uint8_t *)&new.plan[i]);
	}
}

static void diff_backends(const struct frontend_key *key, uint32_t base, const struct backend *held, uint32_t n_held,
	const struct backend *wanted, uint32_t n_wanted, const struct element_sink *sink)
{
	enum set_id set = set_for(SET_ENDPOINT, key);
	uint8_t bytes[SET_KEY_MAX], value[SET_VALUE_MAX];

	for (uint32_t i = 0; i < MAX(n_held, n_wanted); i++) {
		const struct backend *old = i < n_held && held[i].port ? &held[i] : NULL;
		const struct backend *new = i < n_wanted ? &wanted[i] : NULL;

		if (old && new && old->port == new->port && memcmp(old->address, new->address, sizeof(old->address)) == 0)
			continue;
		if (!old && !new)
			continue;
		element_endpoint_key(key, base + i, bytes);
		if (old)
			sink->element(sink->data, set, false, bytes, NULL);
		if (new) {
			element_backend(new, key->v6, value);
			sink->element(sink->data, set, true, bytes, value);
		}
	}
}

void diff_frontend(const struct frontend *held, const struct frontend *wanted, const struct element_sink *sink)
{
	static const struct frontend nothing;
	const struct frontend_key *key = held ? &held->key : &wanted->key;
	const struct frontend *h = held ? held : &nothing, *w = wanted ? wanted : &nothing;

	diff_lookups(key, held, wanted, sink);
	diff_backends(key, 0, h->backends, h->n, w->backends, w->n, sink);
	diff_backends(key, INSIDE_BASE, h->backends + h->n, h->n_inside, w->backends + w->n, w->n_inside, sink);
}
