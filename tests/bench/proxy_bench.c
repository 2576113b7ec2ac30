/*
 * proxy_bench.c - purpose: time proxy-lite's full sync and single changes against the real kernel, without an API
 * server.
 *
 * Run in a network namespace of its own: unshare -n build/tests/bench/proxy_bench SERVICES ENDPOINTS [CHANGES]
 * Prints tab-separated: metric, value, unit.
 */
#include "common/base/log.h"
#include "common/sys/file.h"
#include "proxy-lite/sync/sync.h"

#include <fcntl.h>
#include <stdio.h>

static json_t *service_json(unsigned i)
{
	json_t *j;
	char *text =
		xasprintf("{\"metadata\":{\"namespace\":\"bench\",\"name\":\"svc-%u\",\"creationTimestamp\":"
			  "\"2026-01-01T00:00:00Z\"},\"spec\":{\"type\":\"ClusterIP\",\"clusterIPs\":[\"10.%u.%u.%u\"],"
			  "\"ports\":[{\"name\":\"http\",\"protocol\":\"TCP\",\"port\":80,\"targetPort\":8080}]}}",
			i, 96 + (i >> 16), i >> 8 & 255, i & 255);

	j = json_loads(text, 0, NULL);
	free(text);
	return j;
}

/* `variant` moves the last endpoint elsewhere; n endpoints. */
static json_t *slice_json(unsigned i, unsigned n, unsigned variant)
{
	json_t *endpoints = json_array();

	for (unsigned e = 0; e < n; e++) {
		unsigned k = i * 4 + e + (e == n - 1 ? variant * 7919 : 0);
		char *address = xasprintf("10.%u.%u.%u", 128 + (k >> 16 & 63), k >> 8 & 255, k & 255);

		json_array_append_new(
			endpoints, json_pack("{s:[s],s:{s:b,s:b,s:b},s:s}", "addresses", address, "conditions", "ready",
					   1, "serving", 1, "terminating", 0, "nodeName",
					   k % 50 && !getenv("ALL_LOCAL") ? "other" : "bench"));
		free(address);
	}
	char name[64], service[64];
	snprintf(name, sizeof(name), "svc-%u-abcde", i);
	snprintf(service, sizeof(service), "svc-%u", i);
	return json_pack("{s:{s:s,s:s,s:{s:s}},s:s,s:o,s:[{s:s,s:s,s:i}]}", "metadata", "namespace", "bench", "name",
		name, "labels", "kubernetes.io/service-name", service, "addressType", "IPv4", "endpoints", endpoints,
		"ports", "name", "http", "protocol", "TCP", "port", 8080);
}

static void put(struct services *services, enum object_kind kind, json_t *object)
{
	services_put(services, kind, object);
	json_decref(object);
}

static long pss_kb(void)
{
	char *text, *at;
	long kb = -1;

	if (file_read(AT_FDCWD, "/proc/self/smaps_rollup", 65536, &text, NULL, NULL) < 0)
		return -1;
	at = strstr(text, "\nPss:");
	if (at)
		kb = strtol(at + 5, NULL, 10);
	free(text);
	return kb;
}

static void run(struct sync *sync, const char *what)
{
	struct error err = ERROR_INIT;
	uint64_t start = clock_monotonic_ns();

	if (sync_run(sync, &err) < 0) {
		fprintf(stderr, "%s: %s\n", what, err.text);
		exit(1);
	}
	printf("%s\t%.3f\t%zu elements%s\n", what, (double)(clock_monotonic_ns() - start) / 1e6,
		sync->stats.last_elements, sync->stats.last_written ? "" : " (nothing written)");
}

/* A thousand changes a second for two seconds, ten to a transaction as --nftables-min-sync-period=10ms makes them. */
static void churn(struct services *services, struct sync *sync, unsigned n, unsigned endpoints)
{
	uint64_t total = 0, longest = 0;
	struct error err = ERROR_INIT;
	const unsigned rounds = 200, changes = 10;

	for (unsigned round = 0; round < rounds; round++) {
		uint64_t start = clock_monotonic_ns(), took;

		for (unsigned i = 0; i < changes; i++)
			put(services, OBJECT_SLICE,
				slice_json((round * 7919 + i * 104729) % n, endpoints - (round + i) % 2, round + 1));
		if (sync_run(sync, &err) < 0) {
			fprintf(stderr, "churn: %s\n", err.text);
			exit(1);
		}
		took = clock_monotonic_ns() - start;
		total += took;
		longest = took > longest ? took : longest;
	}
	printf("churn_ten_changes_ms\t%.3f\tlongest %.3f: %.0f changes a second\n", (double)total / rounds / 1e6,
		(double)longest / 1e6, rounds * changes / ((double)total / 1e9));
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 1000, endpoints = argc > 2 ? (unsigned)atoi(argv[2]) : 4;
	unsigned changes = argc > 3 ? (unsigned)atoi(argv[3]) : 5;
	struct node_identity node = { .name = "bench" };
	struct base_config config = { .table = "node_lite_bench", .masquerade_mark = 0x4000 };
	struct services services;
	struct sync sync;
	struct error err = ERROR_INIT;
	uint64_t start = clock_monotonic_ns();

	log_init("proxy_bench", LOG_LEVEL_DEBUG);
	services_init(&services, &node);
	if (sync_init(&sync, &config, &services, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	printf("pss_empty_kb\t%ld\n", pss_kb());
	for (unsigned i = 0; i < n; i++) {
		put(&services, OBJECT_SERVICE, service_json(i));
		put(&services, OBJECT_SLICE, slice_json(i, endpoints, 0));
	}
	printf("model_ms\t%.3f\n", (double)(clock_monotonic_ns() - start) / 1e6);
	printf("pss_model_kb\t%ld\n", pss_kb());
	run(&sync, "full_ms");
	printf("pss_kb\t%ld\n", pss_kb());
	for (unsigned i = 0; i < changes; i++) {
		put(&services, OBJECT_SLICE, slice_json(n / 2 + i % 3, endpoints, 1 + i));
		run(&sync, "change_ms");
	}
	for (unsigned i = 0; i < changes; i++) {
		put(&services, OBJECT_SLICE, slice_json(n / 2, endpoints - 1 + i % 2, 1 + i));
		run(&sync, "change_count_ms");
	}
	churn(&services, &sync, n, endpoints);
	sync_forget(&sync);
	run(&sync, "reload_ms");
	if (sync_idle_chains(&sync) && sync_collect(&sync, &err) < 0)
		fprintf(stderr, "collect: %s\n", err.text);
	printf("pss_end_kb\t%ld\n", pss_kb());
	if (argc <= 4 && sync_cleanup(&sync, &err) < 0)
		fprintf(stderr, "cleanup: %s\n", err.text);
	sync_done(&sync);
	services_done(&services);
	return 0;
}
