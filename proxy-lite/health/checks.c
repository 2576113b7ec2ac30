/* checks.c - purpose: health-check node ports: tell load balancers whether this node has endpoints of a Service. */
#include "proxy-lite/health/checks.h"

#include "common/net/http_server.h"

#include <stdio.h>

struct check {
	char *key; /* "namespace/name" */
	uint16_t port;
	size_t local;
	bool healthy;
	bool seen;
	struct http_server *server;
};

struct checks {
	uv_loop_t *loop;
	struct services *services; /* borrowed */
	struct map by_key;
};

struct checks *checks_new(uv_loop_t *loop, struct services *services)
{
	struct checks *c = xnew(struct checks);

	c->loop = loop;
	c->services = services;
	return c;
}

static void check_free(void *data)
{
	struct check *check = data;

	free(check->key);
	free(check);
}

static void handle(void *context, struct http_exchange *x, const struct http_request *request)
{
	const struct check *check = context;
	const char *name = strchr(check->key, '/') + 1;
	char weight[24];
	_cleanup_free_ char *body = xasprintf(
		"{\n\t\"service\": {\n\t\t\"namespace\": \"%.*s\",\n\t\t\"name\": \"%s\"\n\t},\n"
		"\t\"localEndpoints\": %zu,\n\t\"serviceProxyHealthy\": %s\n}",
		(int)(name - check->key - 1), check->key, name, check->local, check->healthy ? "true" : "false");

	(void)request;
	snprintf(weight, sizeof(weight), "%zu", check->local);
	http_add_header(x, "X-Content-Type-Options", "nosniff");
	http_add_header(x, "X-Load-Balancing-Endpoint-Weight", weight);
	http_respond(x, check->local && check->healthy ? 200 : 503, "application/json", body, strlen(body));
}

static void close_check(struct check *check)
{
	if (check->server)
		http_server_close(check->server, check_free, check);
	else
		check_free(check);
}

/* Endpoints of this node that are ready, each address once. */
static size_t count_local(const struct service_entry *entry)
{
	const uint16_t need = ENDPOINT_LOCAL | ENDPOINT_READY;
	size_t n = 0;

	for (uint32_t s = 0; s < entry->n_slices; s++)
		for (size_t i = 0; i < entry->slices[s]->n_endpoints; i++) {
			const struct endpoint *e = &entry->slices[s]->endpoints[i];
			bool again = (e->flags & need) != need;

			for (uint32_t t = 0; t <= s && !again; t++)
				for (size_t j = 0; j < (t == s ? i : entry->slices[t]->n_endpoints) && !again; j++) {
					const struct endpoint *o = &entry->slices[t]->endpoints[j];

					again = (o->flags & need) == need &&
						entry->slices[t]->v6 == entry->slices[s]->v6 &&
						memcmp(o->address, e->address, sizeof(e->address)) == 0;
				}
			n += !again;
		}
	return n;
}

static void open_check(struct checks *c, struct check *check)
{
	char text[32];
	struct sock_address address;
	struct error err = ERROR_INIT;
	int fd;

	snprintf(text, sizeof(text), ":%u", check->port);
	if (sock_address_parse(text, &address, &err) < 0 || sock_listen(&address, 0600, &fd, &err) < 0) {
		problems_set(&c->services->problems, "Service health check of", check->key, err.text);
		return;
	}
	problems_set(&c->services->problems, "Service health check of", check->key, NULL);
	check->server = http_server_new(c->loop, fd, NULL, 4096, handle, check);
}

static void update_entry(struct checks *c, const struct service_entry *entry, bool healthy)
{
	uint16_t port = entry->service->outside->health_port;
	struct check *check = map_get(&c->by_key, entry->key);

	if (check && check->port != port) {
		map_remove(&c->by_key, entry->key);
		close_check(check);
		check = NULL;
	}
	if (!check) {
		check = xnew(struct check);
		check->key = xstrdup(entry->key);
		check->port = port;
		map_put(&c->by_key, entry->key, check);
	}
	check->seen = true;
	check->healthy = healthy;
	check->local = count_local(entry);
	if (!check->server)
		open_check(c, check);
}

void checks_update(struct checks *c, bool healthy)
{
	struct map_iter it = MAP_ITER_INIT;

	if (c->services->n_health_ports == 0 && c->by_key.count == 0)
		return;
	while (map_next(&c->by_key, &it))
		((struct check *)it.value)->seen = false;
	it = MAP_ITER_INIT;
	while (map_next(&c->services->entries, &it)) {
		const struct service_entry *entry = it.value;

		if (entry->service && entry->service->outside && entry->service->outside->health_port)
			update_entry(c, entry, healthy);
	}
	it = MAP_ITER_INIT;
	while (map_next(&c->by_key, &it)) {
		struct check *check = it.value;

		if (check->seen)
			continue;
		problems_set(&c->services->problems, "Service health check of", check->key, NULL);
		map_remove(&c->by_key, check->key);
		close_check(check);
	}
}

void checks_free(struct checks *c)
{
	struct map_iter it = MAP_ITER_INIT;

	if (!c)
		return;
	while (map_next(&c->by_key, &it))
		close_check(it.value);
	map_done(&c->by_key);
	free(c);
}
