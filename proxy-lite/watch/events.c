/* events.c - purpose: tell users by an Event what of their objects is left out, and why. */
#include "proxy-lite/watch/events.h"

#include "common/base/log.h"
#include "common/sys/file.h"

#include <jansson.h>
#include <stdio.h>
#include <time.h>

enum { UNDER_WAY_MAX = 20, TIMEOUT_MS = 10000 };

struct events {
	struct http_client *client;
	const char *node;
	unsigned under_way;
	bool refused;
};

struct events *events_new(struct http_client *client, const char *node)
{
	struct events *e = xnew(struct events);

	e->client = client;
	e->node = node;
	return e;
}

void events_free(struct events *events)
{
	free(events);
}

static void on_end(void *data, int status, const struct error *err)
{
	struct events *e = data;

	if (err && err->code == ERROR_CANCELLED)
		return; /* the daemon ends */
	e->under_way--;
	if (status >= 400 && status < 500 && status != 409 && status != 429 && !e->refused) {
		log_debug("the API takes no events: status %d", status);
		e->refused = true;
	}
}

/* Kind, namespace and name out of "Service ns/name"; false for anything else. */
static bool parse(const char *object, char kind[32], char ns[256], char name[256])
{
	return sscanf(object, "%31[A-Za-z] %255[a-z0-9.-]/%255[a-z0-9.-]", kind, ns, name) == 3 &&
	       (strcmp(kind, "Service") == 0 || strcmp(kind, "EndpointSlice") == 0);
}

static char *event_text(const struct events *e, const char *kind, const char *ns, const char *name, const char *text)
{
	const char *version = strcmp(kind, "Service") == 0 ? "v1" : "discovery.k8s.io/v1";
	char unique[17], when[40], event_name[300];
	time_t now = (time_t)(clock_realtime_ns() / 1000000000);
	struct tm tm;
	json_t *json;
	char *body;

	random_hex(unique, 16);
	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	snprintf(event_name, sizeof(event_name), "%.230s.%s", name, unique);
	json = json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:s,s:s,s:s,s:s},s:s,s:s,s:s,s:{s:s,s:s},s:s,s:s,s:s,s:s,s:i}",
		"apiVersion", "v1", "kind", "Event", "metadata", "namespace", ns, "name", event_name, "involvedObject",
		"apiVersion", version, "kind", kind, "namespace", ns, "name", name, "type", "Warning", "reason",
		"LeftOut", "message", text, "source", "component", "proxy-lite", "host", e->node, "reportingComponent",
		"proxy-lite", "reportingInstance", e->node, "firstTimestamp", when, "lastTimestamp", when, "count", 1);
	body = json ? json_dumps(json, JSON_COMPACT) : NULL; /* NULL: the text is no UTF-8 */
	json_decref(json);
	return body;
}

void events_warn(struct events *e, const char *object, const char *text)
{
	char kind[32], ns[256], name[256];
	_cleanup_free_ char *body = NULL, *target = NULL;

	if (e->refused || e->under_way >= UNDER_WAY_MAX || !parse(object, kind, ns, name))
		return;
	body = event_text(e, kind, ns, name, text);
	if (!body)
		return;
	target = xasprintf("/api/v1/namespaces/%s/events", ns);
	e->under_way++;
	http_request_start(e->client, &(struct http_call){ .method = "POST",
					      .target = target,
					      .content_type = "application/json",
					      .body = body,
					      .body_len = strlen(body),
					      .timeout_ms = TIMEOUT_MS,
					      .on_end = on_end,
					      .data = e });
}
