/* metrics.c - purpose: the daemon's counters as Prometheus text, under kube-proxy's names. */
#include "proxy-lite/health/metrics.h"

#include <inttypes.h>

static void head(struct str *out, const char *name, const char *type, const char *help)
{
	str_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void number(struct str *out, const char *name, const char *type, const char *help, double value)
{
	head(out, name, type, help);
	str_addf(out, "%s %.17g\n", name, value);
}

static void durations(struct str *out, const char *name, const char *help, const struct durations *d)
{
	double limit = 0.001;
	uint64_t sum = 0;

	head(out, name, "histogram", help);
	for (int i = 0; i < DURATION_BUCKETS - 1; i++, limit *= 2) {
		sum += d->buckets[i];
		str_addf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, limit, sum);
	}
	str_addf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.9g\n%s_count %" PRIu64 "\n", name, d->count, name, d->sum_s,
		name, d->count);
}

struct unserved_count {
	size_t internal, external;
};

static void count_unserved(void *data, struct frontend *f)
{
	struct unserved_count *c = data;

	if (f->n || f->unserved != UNSERVED_DROP)
		return;
	if (f->flavour == FLAVOUR_CLUSTER)
		c->internal++;
	else
		c->external++;
}

static void sync_metrics(const struct proxy *p, struct str *out)
{
	const struct services *s = &p->services;

	durations(out, "kubeproxy_sync_proxy_rules_duration_seconds", "Time of one sync.", &p->sync_durations);
	durations(out, "kubeproxy_sync_full_proxy_rules_duration_seconds", "Time of one full sync.", &p->full_durations);
	durations(out, "kubeproxy_sync_partial_proxy_rules_duration_seconds", "Time of one sync of changed Services.",
		&p->partial_durations);
	durations(out, "kubeproxy_network_programming_duration_seconds",
		"From the change that caused it to the rule in the kernel.", &p->programming);
	number(out, "kubeproxy_sync_proxy_rules_last_timestamp_seconds", "gauge", "When the last sync ended.",
		(double)p->last_sync_ms / 1e3);
	number(out, "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds", "gauge", "When a sync was asked for last.",
		(double)p->last_queued_ms / 1e3);
	number(out, "kubeproxy_sync_proxy_rules_service_changes_total", "counter", "Changes of Services.",
		(double)s->changes[OBJECT_SERVICE]);
	number(out, "kubeproxy_sync_proxy_rules_service_changes_pending", "gauge", "Changes of Services not synced yet.",
		(double)(s->changes[OBJECT_SERVICE] - p->synced_changes[OBJECT_SERVICE]));
	number(out, "kubeproxy_sync_proxy_rules_endpoint_changes_total", "counter", "Changes of EndpointSlices.",
		(double)s->changes[OBJECT_SLICE]);
	number(out, "kubeproxy_sync_proxy_rules_endpoint_changes_pending", "gauge",
		"Changes of EndpointSlices not synced yet.",
		(double)(s->changes[OBJECT_SLICE] - p->synced_changes[OBJECT_SLICE]));
	number(out, "kubeproxy_sync_proxy_rules_nftables_sync_failures_total", "counter", "Syncs that failed.",
		(double)p->sync.stats.failures);
	number(out, "kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total", "counter", "Always 0.", 0);
}

static void health_metrics(const struct proxy *p, struct str *out)
{
	head(out, "kubeproxy_proxy_healthz_total", "counter", "Answers of /healthz.");
	str_addf(out, "kubeproxy_proxy_healthz_total{code=\"200\"} %" PRIu64 "\n", p->healthz[0]);
	str_addf(out, "kubeproxy_proxy_healthz_total{code=\"503\"} %" PRIu64 "\n", p->healthz[1]);
	head(out, "kubeproxy_proxy_livez_total", "counter", "Answers of /livez.");
	str_addf(out, "kubeproxy_proxy_livez_total{code=\"200\"} %" PRIu64 "\n", p->livez[0]);
	str_addf(out, "kubeproxy_proxy_livez_total{code=\"503\"} %" PRIu64 "\n", p->livez[1]);
}

void metrics_text(const struct proxy *p, struct str *out)
{
	struct unserved_count unserved = { 0 };

	table_each(&p->sync.table, count_unserved, &unserved);
	sync_metrics(p, out);
	health_metrics(p, out);
	head(out, "kubeproxy_sync_proxy_rules_no_local_endpoints_total", "gauge",
		"Service ports without an endpoint on this node that policy Local asks for.");
	str_addf(out, "kubeproxy_sync_proxy_rules_no_local_endpoints_total{traffic_policy=\"internal\"} %zu\n",
		unserved.internal);
	str_addf(out, "kubeproxy_sync_proxy_rules_no_local_endpoints_total{traffic_policy=\"external\"} %zu\n",
		unserved.external);
	number(out, "proxy_lite_services", "gauge", "Services that are served.", (double)p->services.n_services);
	number(out, "proxy_lite_frontends", "gauge", "Addresses and ports in the kernel's table.", (double)p->sync.table.count);
	number(out, "proxy_lite_commits_total", "counter", "Transactions taken by the kernel.", (double)p->sync.stats.commits);
	number(out, "proxy_lite_elements_total", "counter", "Elements added or deleted.", (double)p->sync.stats.elements);
	number(out, "proxy_lite_repairs_total", "counter", "Foreign changes of the table that were looked after.",
		(double)p->repairs);
	number(out, "proxy_lite_left_out", "gauge", "Objects that are left out, or parts of them.",
		(double)p->services.problems.texts.count);
	number(out, "proxy_lite_stale_flows_deleted_total", "counter", "Recorded flows to endpoints that are gone.",
		(double)p->flows_deleted);
}
