/* proxy.c - purpose: the running daemon: when to sync, repair, sweep flows and collect chains. */
#include "proxy-lite/proxy.h"

#include "common/base/log.h"
#include "common/sys/file.h"
#include "proxy-lite/health/metrics.h"
#include "proxy-lite/kernel/conntrack.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

enum {
	ADDRESS_SETTLE_MS = 100,
	REPAIR_SETTLE_MS = 50,
	REPAIR_AGAIN_MS = 300, /* between two repairs, if somebody fights with us */
	COLLECT_MS = 10000,    /* idle chains stay so long */
	FLOW_ROUNDS = 2,       /* a packet under way may record a flow just after the first sweep */
	FLOW_AGAIN_MS = 700,
	RETRY_FIRST_MS = 500,
	RETRY_MAX_MS = 30000,
	BIG_COMMIT_ELEMENTS = 5000,
};

/* ---- the sync timer ---- */

static void on_sync_timer(uv_timer_t *timer);

/* Starts the timer; one that is sooner already stays. */
static void schedule(struct proxy *p, uint64_t delay_ms)
{
	if (uv_is_active((uv_handle_t *)&p->sync_timer) && uv_timer_get_due_in(&p->sync_timer) <= delay_ms)
		return;
	uv_timer_start(&p->sync_timer, on_sync_timer, delay_ms, 0);
}

/* Something changed: sync, but not more often than every min_sync_ms. */
static void kick(struct proxy *p)
{
	uint64_t now = clock_monotonic_ns(), since_ms = (now - p->last_sync_ns) / 1000000;
	uint64_t min_ms = p->options.min_sync_ms;

	if (!p->dirty_since_ns)
		p->dirty_since_ns = now;
	p->last_queued_ms = clock_realtime_ns() / 1000000;
	if (p->failures == 0)
		schedule(p, p->last_sync_ns && since_ms < min_ms ? min_ms - since_ms : 0);
}

static void on_changed(void *data)
{
	kick(data);
}

static void sync_failed(struct proxy *p, const struct error *err)
{
	uint64_t delay_ms = RETRY_FIRST_MS;

	for (unsigned i = 0; i < p->failures && delay_ms < RETRY_MAX_MS; i++)
		delay_ms *= 2;
	p->failures++;
	if (!str_eq(p->last_error, err->text))
		log_error("sync: %s; trying again", err->text);
	snprintf(p->last_error, sizeof(p->last_error), "%s", err->text);
	schedule(p, MIN(delay_ms, (uint64_t)RETRY_MAX_MS));
}

static void sweep_flows(struct proxy *p)
{
	struct error err = ERROR_INIT;
	size_t deleted = 0;

	if (conntrack_sweep(&p->sync.table, p->sync.gone, p->sync.n_gone, &deleted, &err) < 0)
		log_warning("stale flows: %s", err.text);
	if (deleted)
		log_info("deleted %zu stale flows", deleted);
	p->flows_deleted += deleted;
	if (--p->flow_rounds == 0)
		sync_flows_done(&p->sync);
}

static void on_flow_timer(uv_timer_t *timer)
{
	struct proxy *p = timer->data;

	if (p->flow_rounds == 0)
		return;
	sweep_flows(p);
	if (p->flow_rounds)
		uv_timer_start(timer, on_flow_timer, FLOW_AGAIN_MS, 0);
}

static void on_collect_timer(uv_timer_t *timer)
{
	struct proxy *p = timer->data;
	struct error err = ERROR_INIT;

	if (sync_collect(&p->sync, &err) < 0) {
		log_warning("chains out of use: %s", err.text);
		p->collect_failures++;
	}
	if (!p->sync.loaded)
		kick(p);
	else if (sync_idle_chains(&p->sync))
		uv_timer_start(timer, on_collect_timer, COLLECT_MS, 0);
}

static void count_sync(struct proxy *p, uint64_t trigger_ms)
{
	const struct sync_stats *st = &p->sync.stats;
	double seconds = (double)st->last_commit_ns / 1e9;

	metrics_sync(st->last_full, seconds);
	if (trigger_ms && trigger_ms >= p->started_ms && p->last_sync_ms >= trigger_ms)
		metrics_programming((double)(p->last_sync_ms - trigger_ms) / 1e3);
	memcpy(p->synced_changes, p->services.changes, sizeof(p->synced_changes));
}

static void sync_succeeded(struct proxy *p, uint64_t trigger_ms)
{
	const struct sync_stats *st = &p->sync.stats;

	if (p->failures)
		log_info("sync: works again after %u failures", p->failures);
	if (!p->synced_once && st->last_written)
		log_info("synced: %zu Services, %zu frontends; table written (%zu elements)", p->services.n_services,
			p->sync.table.count, st->last_elements);
	else if (!p->synced_once)
		log_info("synced: %zu Services, %zu frontends; the table was right already", p->services.n_services,
			p->sync.table.count);
	else if (st->last_written)
		log_debug("synced: %zu elements in %.2f ms", st->last_elements, (double)st->last_commit_ns / 1e6);
	p->failures = 0;
	p->last_error[0] = '\0';
	p->synced_once = true;
	p->dirty_since_ns = 0;
	p->last_sync_ns = clock_monotonic_ns();
	p->last_sync_ms = clock_realtime_ns() / 1000000;
	count_sync(p, trigger_ms);
	checks_update(p->checks, true);
	if (st->last_elements > BIG_COMMIT_ELEMENTS)
		malloc_trim(0);
	if (p->sync.flows_dirty) {
		p->flow_rounds = FLOW_ROUNDS;
		uv_timer_start(&p->flow_timer, on_flow_timer, 0, 0);
	}
	if (!uv_is_active((uv_handle_t *)&p->collect_timer) && sync_idle_chains(&p->sync))
		uv_timer_start(&p->collect_timer, on_collect_timer, COLLECT_MS, 0);
	if (!p->sync.loaded || p->services.n_dirty)
		kick(p);
}

static void on_sync_timer(uv_timer_t *timer)
{
	struct proxy *p = timer->data;
	struct error err = ERROR_INIT;
	uint64_t trigger_ms;

	/* Before both lists are known, what the kernel has is better than what we have. */
	if (!watch_synced(p->watch))
		return;
	trigger_ms = p->services.oldest_trigger_ms;
	if (sync_run(&p->sync, &err) < 0) {
		sync_failed(p, &err);
		return;
	}
	p->services.oldest_trigger_ms = 0;
	sync_succeeded(p, trigger_ms);
}

/* ---- our Node ---- */

static void on_node(void *data, const struct node_state *node)
{
	struct proxy *p = data;
	bool zone = strcmp(node->zone, p->node.zone) != 0, pods = false;
	struct base_config *base = &p->sync.config;

	if (node->going != p->node.going)
		log_info("our Node %s", node->going ? "is about to go: /healthz says so" : "stays");
	for (int v6 = 0; v6 < 2 && p->options.pods_of_node; v6++) {
		pods |= base->has_pods[v6] != node->has_pods[v6] || base->pods[v6].prefix != node->pods[v6].prefix ||
			!ip_equal(&base->pods[v6].ip, &node->pods[v6].ip);
		base->has_pods[v6] = node->has_pods[v6];
		base->pods[v6] = node->pods[v6];
	}
	p->node = *node;
	if (zone) {
		p->services.node.zone = p->node.zone[0] ? p->node.zone : NULL;
		watch_relist_slices(p->watch);
	}
	if (pods) { /* rules name them: compare all */
		sync_forget(&p->sync);
		kick(p);
	}
}

bool proxy_eligible(const struct proxy *p)
{
	return !p->node.going;
}

/* ---- foreign changes ---- */

static void repair(struct proxy *p, const char *who, uint32_t pid)
{
	uint64_t now = clock_monotonic_ns();
	bool again = p->repair_ns && now - p->repair_ns < (uint64_t)REPAIR_AGAIN_MS * 1000000;

	p->repairs++;
	p->repair_ns = now;
	if (*who)
		log_warning("table %s was changed by process %u (%s): repairing", p->options.base.table, pid, who);
	else
		log_info("table %s may have been changed: reading it back", p->options.base.table);
	if (!p->dirty_since_ns)
		p->dirty_since_ns = now;
	schedule(p, again ? REPAIR_AGAIN_MS : REPAIR_SETTLE_MS);
}

static void on_monitor(uv_poll_t *poll, int status, int events)
{
	struct proxy *p = poll->data;
	struct monitor_news news;

	(void)status;
	(void)events;
	if (sync_hear(&p->sync, &news) && p->synced_once)
		repair(p, news.who[0] ? news.who : news.touched ? "unknown" : "", news.pid);
}

static struct timespec file_stamp(const char *path)
{
	struct stat st;

	return path && stat(path, &st) == 0 ? st.st_mtim : (struct timespec){ 0 };
}

/* Like kube-proxy: the whole configuration is read by a new process. */
static void check_config(struct proxy *p)
{
	struct timespec now = file_stamp(p->options.config);

	if (now.tv_sec == p->config_stamp.tv_sec && now.tv_nsec == p->config_stamp.tv_nsec)
		return;
	if (now.tv_sec == 0)
		return; /* between two versions */
	log_info("configuration %s has changed: ending, to be started again", p->options.config);
	p->config_stamp = now;
	raise(SIGTERM);
}

static void on_check_timer(uv_timer_t *timer)
{
	struct proxy *p = timer->data;
	struct monitor_news news;

	check_config(p);
	watch_refresh(p->watch);
	if (!p->synced_once || !p->sync.loaded)
		return;
	/* First what is in the queue: it may explain the generation. */
	if (sync_hear(&p->sync, &news) || sync_check_generation(&p->sync))
		repair(p, news.who, news.pid);
}

/* ---- the node's addresses ---- */

static void read_addresses(struct proxy *p)
{
	struct error err = ERROR_INIT;
	struct ip *ips = NULL;
	size_t n = 0;

	if (addresses_read(&p->options.node_addresses, &ips, &n, &err) < 0) {
		log_warning("%s", err.text);
		return;
	}
	if (sync_set_node_ips(&p->sync, ips, n)) {
		if (n == 0)
			log_warning("no address for node ports: none of this node's addresses is chosen by "
				    "--nodeport-addresses");
		if (p->synced_once)
			kick(p);
	}
	free(ips);
}

static void on_address_timer(uv_timer_t *timer)
{
	read_addresses(timer->data);
}

static void on_address(uv_poll_t *poll, int status, int events)
{
	struct proxy *p = poll->data;

	(void)status;
	(void)events;
	addresses_drain(&p->addresses);
	if (!uv_is_active((uv_handle_t *)&p->address_timer))
		uv_timer_start(&p->address_timer, on_address_timer, ADDRESS_SETTLE_MS, 0);
}

/* ---- life ---- */

static void on_problem(void *data, const char *object, const char *text)
{
	const struct proxy *p = data;

	log_warning("left out: %s: %s", object, text);
	if (p->watch)
		watch_warn(p->watch, object, text);
}

static void add_timer(struct proxy *p, uv_timer_t *timer)
{
	uv_timer_init(p->loop, timer);
	timer->data = p;
	p->open_handles++;
}

static int add_poll(struct proxy *p, uv_poll_t *poll, int fd, uv_poll_cb cb, struct error *err)
{
	int r = uv_poll_init(p->loop, poll, fd);

	if (r == 0) {
		poll->data = p;
		p->open_handles++;
		r = uv_poll_start(poll, UV_READABLE, cb);
	}
	return r < 0 ? error_sys(err, r, "poll") : 0;
}

int proxy_start(struct proxy *p, uv_loop_t *loop, struct proxy_options *options, struct error *err)
{
	uv_timer_t *timers[] = { &p->sync_timer, &p->check_timer, &p->flow_timer, &p->collect_timer,
		&p->address_timer };
	int r;

	*p = (struct proxy){ .options = *options, .loop = loop, .addresses = NETLINK_INIT };
	memset(&options->node_addresses, 0, sizeof(options->node_addresses));
	if (p->options.base.pods_interface)
		p->options.base.pods_interface = p->options.pods_interface;
	p->started_ms = clock_realtime_ns() / 1000000;
	p->config_stamp = file_stamp(p->options.config);
	services_init(&p->services, &p->options.node);
	problems_init(&p->services.problems, on_problem, p);
	if ((r = sync_init(&p->sync, &p->options.base, &p->services, err)) < 0 ||
		(r = sync_listen(&p->sync, err)) < 0 || (r = addresses_watch(&p->addresses, err)) < 0)
		return r;
	read_addresses(p);
	for (size_t i = 0; i < ARRAY_LEN(timers); i++)
		add_timer(p, timers[i]);
	if ((r = add_poll(p, &p->monitor_poll, p->sync.monitor.nl.fd, on_monitor, err)) < 0 ||
		(r = add_poll(p, &p->address_poll, p->addresses.fd, on_address, err)) < 0)
		return r;
	uv_timer_start(&p->check_timer, on_check_timer, p->options.check_ms, p->options.check_ms);
	p->checks = checks_new(loop, &p->services);
	return watch_start(loop,
		&(struct watch_options){ options->api, options->kubeconfig, &p->services, on_changed, on_node, p },
		&p->watch, err);
}

static void on_closed(uv_handle_t *handle)
{
	struct proxy *p = handle->data;

	if (--p->open_handles == 0)
		p->closed(p->closed_data);
}

void proxy_stop(struct proxy *p, void (*closed)(void *data), void *data)
{
	uv_handle_t *handles[] = { (uv_handle_t *)&p->sync_timer, (uv_handle_t *)&p->check_timer,
		(uv_handle_t *)&p->flow_timer, (uv_handle_t *)&p->collect_timer, (uv_handle_t *)&p->address_timer,
		(uv_handle_t *)&p->monitor_poll, (uv_handle_t *)&p->address_poll };

	p->closed = closed;
	p->closed_data = data;
	watch_stop(p->watch);
	p->watch = NULL;
	checks_free(p->checks);
	for (size_t i = 0; i < ARRAY_LEN(handles); i++)
		uv_close(handles[i], on_closed);
}

void proxy_done(struct proxy *p)
{
	sync_done(&p->sync);
	services_done(&p->services);
	netlink_close(&p->addresses);
	address_choice_done(&p->options.node_addresses);
}

bool proxy_healthy(const struct proxy *p)
{
	if (!p->synced_once)
		return false;
	return !p->dirty_since_ns || clock_monotonic_ns() - p->dirty_since_ns < 2 * p->options.check_ms * 1000000;
}
