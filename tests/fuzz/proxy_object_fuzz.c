/*
 * proxy_object_fuzz.c - purpose: bytes of an API server into proxy-lite: whatever they are, it neither crashes nor
 * leaks, and what it makes of them is what it would read back.
 *
 * The first byte says what the rest is: a Service, an EndpointSlice or a Node.
 */
#include "common/wire/json.h"
#include "proxy-lite/compile/change.h"
#include "proxy-lite/watch/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void sink_element(void *data, enum set_id set, bool add, const uint8_t *key, const uint8_t *value)
{
	struct table *table = data;
	static const struct loader_step *step;
	struct strays strays = { 0 };

	/* What we would write, read back out of order: nothing but strays may come of it. */
	for (step = loader_steps(); step->set != SET_COUNT; step++)
		if (step->set == set && add)
			loader_element(table, &strays, step, key, value, 0);
	strays_done(&strays);
}

static void sink_chain(void *data, uint32_t id, bool add)
{
	struct plan plan;

	(void)data;
	(void)add;
	if (!plan_parse(id, &plan))
		abort();
}

static void sink_cause(void *data, uint32_t cause)
{
	(void)data;
	(void)cause;
}

static void feed(const json_t *json, enum object_kind kind)
{
	static const char slice[] =
		"{\"metadata\":{\"namespace\":\"a\",\"name\":\"a\",\"labels\":{\"kubernetes.io/service-name\":\"a\"}},"
		"\"addressType\":\"IPv4\",\"ports\":[{\"port\":1}],\"endpoints\":[{\"addresses\":[\"10.0.0.1\"]}]}";
	static const char service[] =
		"{\"metadata\":{\"namespace\":\"a\",\"name\":\"a\"},\"spec\":{\"clusterIP\":\"10.9.0.1\","
		"\"ports\":[{\"port\":1}]}}";
	json_t *other = json_loads(kind == OBJECT_SERVICE ? slice : service, 0, NULL);
	struct node_identity node = { .name = "n", .zone = "z" };
	struct services services;
	struct contests contests = { 0 };
	struct changes changes = { 0 };
	struct table table, back;
	struct element_sink sink = { sink_element, sink_chain, &back };

	services_init(&services, &node);
	table_init(&table);
	table_init(&back);
	services_put(&services, kind, json);
	services_put(&services, kind == OBJECT_SERVICE ? OBJECT_SLICE : OBJECT_SERVICE, other);
	changes_plan(&changes, &services, &table, &contests, false, NULL);
	changes_emit(&changes, &table, &sink, sink_cause);
	changes_apply(&changes, &services, &table);
	services_delete(&services, kind, json);
	changes_plan(&changes, &services, &table, &contests, false, NULL);
	changes_apply(&changes, &services, &table);
	table_done(&back);
	table_done(&table);
	services_done(&services);
	free(contests.v);
	json_decref(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct node_state state;
	json_t *json;

	if (size < 2 || json_read((const char *)data + 1, size - 1, false, &json, NULL) < 0)
		return 0;
	if (data[0] % 3 == 2)
		node_state_parse(json, &state);
	else
		feed(json, data[0] % 3 == 0 ? OBJECT_SERVICE : OBJECT_SLICE);
	json_decref(json);
	return 0;
}
