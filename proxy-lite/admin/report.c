/* report.c - purpose: the live state as text for people. */
#include "proxy-lite/admin/report.h"

#include "proxy-lite/admin/report_lines.h"
#include "proxy-lite/compile/elements.h"

#include <stdio.h>

static const char *flavour_text(const struct frontend *f)
{
	switch (f->flavour) {
	case FLAVOUR_CLUSTER:
		return "cluster";
	case FLAVOUR_EXTERNAL:
		return "external";
	case FLAVOUR_DIVERT:
		return "local";
	default:
		return "?";
	}
}

static void backends_text(const struct backend *v, uint32_t n, bool v6, struct str *out)
{
	for (uint32_t i = 0; i < n; i++) {
		struct ip ip = { .v6 = v6 };
		char text[IP_TEXT_MAX];

		memcpy(ip.bytes, v[i].address, sizeof(ip.bytes));
		if (v[i].port)
			str_addf(out, v6 ? " [%s]:%u" : " %s:%u", ip_format(&ip, text), v[i].port);
		else
			str_add(out, " (missing)");
	}
}

void report_endpoints(const struct frontend *f, struct str *out)
{
	if (f->n)
		backends_text(f->backends, f->n, f->key.v6, out);
	else
		str_add(out, f->unserved == UNSERVED_DROP ? " none: dropped" : " none: refused");
	if (f->n_inside) {
		str_add(out, "; for pods and this node:");
		backends_text(f->backends + f->n, f->n_inside, f->key.v6, out);
	}
}

static void frontend_line(const struct frontend *f, const char *port, const char *state, struct str *out)
{
	char name[FRONTEND_TEXT_MAX];

	str_addf(out, "  %-36s %-10s %-8s %-9s", frontend_key_format(&f->key, name), port, flavour_text(f), state);
	report_endpoints(f, out);
	if (f->affinity_s && f->n + f->n_inside)
		str_addf(out, "; a client stays for %u s", f->affinity_s);
	str_add_char(out, '\n');
}

static const char *port_name(const struct service_entry *entry, const struct frontend *f)
{
	const struct service *s = entry->service;

	for (size_t i = 0; s && i < s->n_ports; i++)
		if (s->ports[i].protocol == f->key.protocol &&
			(f->key.node_port ? s->ports[i].node_port : s->ports[i].port) == f->key.port)
			return s->ports[i].name ? s->ports[i].name : "-";
	return "-";
}

/* Wanted against held, one frontend at a time; what is held and not wanted comes last. */
static void entry_lines(const struct sync *sync, struct service_entry *entry, struct str *out)
{
	struct frontend *list = elements_compile(entry);

	str_addf(out, "%s%s\n", entry->key, entry->service ? "" : " (deleted)");
	for (struct frontend *f = list; f; f = f->next_owned) {
		const struct frontend *held = table_find(&sync->table, &f->key);

		frontend_renumber(f, held);
		if (!held) {
			frontend_line(f, port_name(entry, f), "not held", out);
		} else if (held->owner != entry) {
			str_addf(out, "  contested, held by %s:\n", held->owner ? held->owner->key : "nobody");
			frontend_line(f, port_name(entry, f), "wanted", out);
		} else if (frontend_same(held, f)) {
			frontend_line(held, port_name(entry, f), "ok", out);
		} else {
			frontend_line(held, port_name(entry, f), "held", out);
			frontend_line(f, port_name(entry, f), "wanted", out);
		}
	}
	for (const struct frontend *f = entry->frontends; f; f = f->next_owned) {
		const struct frontend *same = list;

		while (same && !frontend_key_equal(&same->key, &f->key))
			same = same->next_owned;
		if (!same)
			frontend_line(f, "-", "to go", out);
	}
	elements_free(list);
}

static int entry_order(const void *pa, const void *pb)
{
	const struct service_entry *const *a = pa, *const *b = pb;

	return strcmp((*a)->key, (*b)->key);
}

static void count_endpoints(void *data, struct frontend *f)
{
	*(size_t *)data += f->n + f->n_inside;
}

static void problem_lines(const struct sync *sync, struct str *out)
{
	struct map_iter it = MAP_ITER_INIT;

	if (sync->services->problems.texts.count)
		str_add(out, "\nleft out:\n");
	while (map_next(&sync->services->problems.texts, &it))
		str_addf(out, "  %s: %s\n", it.key, (const char *)it.value);
}

static void address_line(const struct sync *sync, struct str *out)
{
	char text[IP_TEXT_MAX];

	str_add(out, "node ports on:");
	for (size_t i = 0; i < sync->table.n_node_ips; i++)
		str_addf(out, " %s", ip_format(&sync->table.node_ips[i], text));
	str_add(out, sync->table.n_node_ips ? "\n" : " (no address)\n");
}

void report_dump(const struct sync *sync, struct str *out)
{
	const struct services *services = sync->services;
	_cleanup_free_ struct service_entry **sorted = xcalloc(services->entries.count + 1, sizeof(*sorted));
	struct map_iter it = MAP_ITER_INIT;
	size_t n = 0, endpoints = 0;

	table_each(&sync->table, count_endpoints, &endpoints);
	str_addf(out, "table inet %s, generation %u: %s\n", sync->config.table, sync->gen,
		!sync->loaded			   ? "to be read back"
		: services->n_dirty || sync->fresh ? "changes wait"
						   : "as wanted");
	str_addf(out, "%zu Services, %zu frontends, %zu endpoints\n", services->n_services, sync->table.count,
		endpoints);
	address_line(sync, out);
	while (map_next(&services->entries, &it)) {
		struct service_entry *entry = it.value;

		if (entry->service || entry->frontends)
			sorted[n++] = entry;
	}
	if (n)
		qsort(sorted, n, sizeof(struct service_entry *), entry_order);
	str_addf(out, "\n  %-36s %-10s %-8s %-9s %s\n", "FRONTEND", "PORT", "POLICY", "STATE", "ENDPOINTS");
	for (size_t i = 0; i < n; i++)
		entry_lines(sync, sorted[i], out);
	problem_lines(sync, out);
}

struct held_list {
	const struct frontend **v;
	size_t n;
};

static void collect_held(void *data, struct frontend *f)
{
	struct held_list *list = data;

	list->v[list->n++] = f;
}

static int held_order(const void *pa, const void *pb)
{
	const struct frontend *const *a = pa, *const *b = pb;

	return memcmp(&(*a)->key, &(*b)->key, sizeof((*a)->key));
}

void report_held(const struct sync *sync, struct str *out)
{
	struct held_list list = { .v = xcalloc(sync->table.count + 1, sizeof(*list.v)) };

	str_addf(out, "table inet %s, generation %u: %s%s\n", sync->config.table, sync->gen,
		sync->repair.reason.len ? "wrong: " : "well-formed", str_get(&sync->repair.reason));
	address_line(sync, out);
	table_each(&sync->table, collect_held, &list);
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), held_order);
	str_addf(out, "\n  %-36s %-10s %-8s %-9s %s\n", "FRONTEND", "PORT", "POLICY", "STATE", "ENDPOINTS");
	for (size_t i = 0; i < list.n; i++)
		frontend_line(list.v[i], "-", "held", out);
	if (sync->strays.n)
		str_addf(out, "%zu elements belong to no frontend\n", sync->strays.n);
	free(list.v);
}
