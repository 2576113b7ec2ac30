/* metrics.c - purpose: the daemon's counters as Prometheus text, under kube-proxy's names. */
#include "proxy-lite/health/metrics.h"

#include "common/wire/prom.h"
#include "proxy-lite/proxy.h"

/* kube-proxy's buckets: 1 ms, doubling. */
static const double bounds[] = { 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048,
	4.096, 8.192, 16.384 };
static struct prom_metric syncs =
	PROM_HISTOGRAM("kubeproxy_sync_proxy_rules_duration_seconds", "Time of one sync.", bounds);
static struct prom_metric full_syncs =
	PROM_HISTOGRAM("kubeproxy_sync_full_proxy_rules_duration_seconds", "Time of one full sync.", bounds);
static struct prom_metric partial_syncs = PROM_HISTOGRAM(
	"kubeproxy_sync_partial_proxy_rules_duration_seconds", "Time of one sync of changed Services.", bounds);
static struct prom_metric programming = PROM_HISTOGRAM("kubeproxy_network_programming_duration_seconds",
	"From the change that caused it to the rule in the kernel.", bounds);
static struct prom_metric healthz = PROM_COUNTER("kubeproxy_proxy_healthz_total", "Answers of /healthz.", "code");
static struct prom_metric livez = PROM_COUNTER("kubeproxy_proxy_livez_total", "Answers of /livez.", "code");

void metrics_sync(bool full, double seconds)
{
	prom_observe(&syncs, seconds);
	prom_observe(full ? &full_syncs : &partial_syncs, seconds);
}

void metrics_programming(double seconds)
{
	prom_observe(&programming, seconds);
}

void metrics_health(bool live, bool healthy)
{
	prom_add(live ? &livez : &healthz, 1, healthy ? "200" : "503");
}

static void value(struct str *out, const char *name, const char *help, enum prom_type type, double v)
{
	struct prom_metric m = { .name = name, .help = help, .type = type };

	prom_set(&m, v);
	prom_write(out, &m);
	prom_reset(&m);
}

static void counter(struct str *out, const char *name, const char *help, double v)
{
	value(out, name, help, PROM_TYPE_COUNTER, v);
}

static void gauge(struct str *out, const char *name, const char *help, double v)
{
	value(out, name, help, PROM_TYPE_GAUGE, v);
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

static void no_local_endpoints(struct str *out, const struct table *table)
{
	struct prom_metric m = PROM_GAUGE("kubeproxy_sync_proxy_rules_no_local_endpoints_total",
		"Service ports without an endpoint on this node that policy Local asks for.", "traffic_policy");
	struct unserved_count unserved = { 0 };

	table_each(table, count_unserved, &unserved);
	prom_set(&m, (double)unserved.internal, "internal");
	prom_set(&m, (double)unserved.external, "external");
	prom_write(out, &m);
	prom_reset(&m);
}

static void changes(struct str *out, const struct proxy *p)
{
	const uint64_t *now = p->services.changes, *synced = p->synced_changes;

	counter(out, "kubeproxy_sync_proxy_rules_service_changes_total", "Changes of Services.",
		(double)now[OBJECT_SERVICE]);
	gauge(out, "kubeproxy_sync_proxy_rules_service_changes_pending", "Changes of Services not synced yet.",
		(double)(now[OBJECT_SERVICE] - synced[OBJECT_SERVICE]));
	counter(out, "kubeproxy_sync_proxy_rules_endpoint_changes_total", "Changes of EndpointSlices.",
		(double)now[OBJECT_SLICE]);
	gauge(out, "kubeproxy_sync_proxy_rules_endpoint_changes_pending", "Changes of EndpointSlices not synced yet.",
		(double)(now[OBJECT_SLICE] - synced[OBJECT_SLICE]));
}

void metrics_text(const struct proxy *p, struct str *out)
{
	const struct sync_stats *st = &p->sync.stats;

	prom_write(out, &syncs);
	prom_write(out, &full_syncs);
	prom_write(out, &partial_syncs);
	prom_write(out, &programming);
	prom_write(out, &healthz);
	prom_write(out, &livez);
	gauge(out, "kubeproxy_sync_proxy_rules_last_timestamp_seconds", "When the last sync ended.",
		(double)p->last_sync_ms / 1e3);
	gauge(out, "kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds", "When a sync was asked for last.",
		(double)p->last_queued_ms / 1e3);
	changes(out, p);
	no_local_endpoints(out, &p->sync.table);
	counter(out, "kubeproxy_sync_proxy_rules_nftables_sync_failures_total", "Syncs that failed.",
		(double)st->failures);
	counter(out, "kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total",
		"Removals of unused chains that failed.", (double)p->collect_failures);
	gauge(out, "proxy_lite_services", "Services that are served.", (double)p->services.n_services);
	gauge(out, "proxy_lite_frontends", "Addresses and ports in the kernel's table.", (double)p->sync.table.count);
	gauge(out, "proxy_lite_left_out", "Objects that are left out, or parts of them.",
		(double)p->services.problems.texts.count);
	counter(out, "proxy_lite_commits_total", "Transactions taken by the kernel.", (double)st->commits);
	counter(out, "proxy_lite_elements_total", "Elements added or deleted.", (double)st->elements);
	counter(out, "proxy_lite_repairs_total", "Foreign changes of the table that were looked after.",
		(double)p->repairs);
	counter(out, "proxy_lite_stale_flows_deleted_total", "Recorded flows to endpoints that are gone.",
		(double)p->flows_deleted);
}
