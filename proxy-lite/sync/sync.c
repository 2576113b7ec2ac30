/* sync.c - purpose: bring the kernel's table to what the Services want, one transaction for all that is dirty. */
#include "proxy-lite/sync/sync.h"

#include "common/base/log.h"
#include "common/sys/file.h"
#include "proxy-lite/kernel/dump.h"

#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>

/* Bigger commits are made without listening, see monitor_pause(). */
enum { RUN_TRIES = 12, REFUSALS_MAX = 200, BIG_COMMIT_BYTES = 64 * 1024 };

int sync_init(struct sync *s, const struct base_config *config, struct services *services, struct error *err)
{
	*s = (struct sync){ .config = *config, .services = services, .nl = NETLINK_INIT, .monitor.nl.fd = -1 };
	table_init(&s->table);
	return netlink_open(&s->nl, NETLINK_NETFILTER, err);
}

void sync_done(struct sync *s)
{
	netlink_close(&s->nl);
	monitor_close(&s->monitor);
	table_done(&s->table);
	strays_done(&s->strays);
	repair_done(&s->repair);
	free(s->contests.v);
	free(s->node_ips);
	free(s->gone);
}

bool sync_set_node_ips(struct sync *s, const struct ip *ips, size_t n)
{
	bool same = n == s->n_node_ips;

	for (size_t i = 0; same && i < n; i++)
		same = ip_equal(&ips[i], &s->node_ips[i]);
	if (same && s->node_ips)
		return false;
	free(s->node_ips);
	s->node_ips = xmemdup(n ? ips : (const struct ip[1]){ { { 0 }, false } }, MAX((size_t)1, n) * sizeof(*ips));
	s->n_node_ips = n;
	return true;
}

void sync_forget(struct sync *s)
{
	s->loaded = false;
}

int sync_load(struct sync *s, struct error *err)
{
	struct structure structure = { 0 };
	int r;

	table_done(&s->table);
	table_init(&s->table);
	strays_done(&s->strays);
	repair_done(&s->repair);
	r = dump_table(&s->nl, &s->config, &structure, &s->table, &s->strays, &s->gen, err);
	if (r < 0) {
		structure_done(&structure);
		return r;
	}
	structure_compare(&structure, &s->config, &s->table.plans, &s->repair);
	if (s->repair.rebuild) {
		table_done(&s->table);
		table_init(&s->table);
		strays_done(&s->strays);
	}
	/* DELTABLE of a missing table would refuse the batch. */
	s->repair.exists = structure.exists;
	structure_done(&structure);
	s->loaded = true;
	s->fresh = true;
	services_mark_all(s->services);
	return 0;
}

/* ---- building a batch ---- */

struct building {
	struct sync *sync;
	struct batch *batch;
	struct strv made; /* chains of plans */
};

static void build_element(void *data, enum set_id set, bool add, const uint8_t *key, const uint8_t *value)
{
	batch_element(((struct building *)data)->batch, set, add, key, value);
}

static void build_cause(void *data, uint32_t cause)
{
	batch_cause(((struct building *)data)->batch, cause == CHANGE_COMMON ? BATCH_NO_CAUSE : cause);
}

static void build_chain(void *data, uint32_t id, bool add)
{
	struct building *b = data;
	struct base_chain chain;

	(void)add; /* chains are deleted by sync_collect() */
	base_plan_chain(&b->sync->config, id, &chain);
	batch_chain(b->batch, &chain);
	strv_add(&b->made, chain.name);
	base_chain_done(&chain);
}

static void build_repair(struct building *b, const struct repair *repair)
{
	struct base_chain *chains;
	size_t n;

	if (repair->rebuild) {
		if (repair->exists)
			batch_table_delete(b->batch);
		batch_base(b->batch);
		return;
	}
	chains = base_chains(&b->sync->config, &n);
	for (size_t i = 0; i < n; i++)
		if (repair->refill[i])
			batch_chain(b->batch, &chains[i]);
	base_chains_free(chains, n);
}

static struct batch *build(struct sync *s, const struct changes *changes, bool singles)
{
	struct building b = { .sync = s, .batch = batch_new(&s->config, singles) };
	struct element_sink sink = { build_element, build_chain, &b };

	build_repair(&b, &s->repair);
	changes_emit(changes, &s->table, &sink, build_cause);
	for (size_t i = 0; !s->repair.rebuild && i < s->repair.foreign_chains.n; i++)
		if (!strv_has(&b.made, s->repair.foreign_chains.v[i]))
			batch_chain_delete(b.batch, s->repair.foreign_chains.v[i]);
	strv_done(&b.made);
	return b.batch;
}

/* ---- one run ---- */

/* Remembers UDP and SCTP frontends that change, for kernel/conntrack.c. */
static void note_flows(struct sync *s, const struct changes *changes)
{
	for (size_t i = 0; i < changes->n; i++) {
		const struct change *at = &changes->v[i];
		const struct frontend *f = at->wanted ? at->wanted : at->held;

		if (at->idle || f->key.protocol == IPPROTO_TCP)
			continue;
		s->flows_dirty = true;
		if (at->wanted)
			continue;
		if (s->n_gone == s->cap_gone) {
			s->cap_gone = MAX((size_t)16, s->cap_gone * 2);
			s->gone = xreallocarray(s->gone, s->cap_gone, sizeof(*s->gone));
		}
		s->gone[s->n_gone++] = f->key;
	}
}

void sync_flows_done(struct sync *s)
{
	s->flows_dirty = false;
	s->n_gone = 0;
}

static void finish(struct sync *s, struct changes *changes, const struct batch *batch, uint64_t start_ns)
{
	struct sync_stats *st = &s->stats;
	bool full = s->fresh;

	note_flows(s, changes);
	changes_apply(changes, s->services, &s->table);
	strays_done(&s->strays);
	repair_done(&s->repair);
	s->fresh = false;
	st->last_written = !batch_is_empty(batch);
	st->last_commit_ns = clock_monotonic_ns() - start_ns;
	st->last_elements = batch_elements(batch);
	st->elements += batch_elements(batch);
	st->commits += st->last_written;
	st->last_full = full;
	*(full ? &st->last_full_ns : &st->last_partial_ns) = st->last_commit_ns;
}

/* The kernel refused one frontend and keeps refusing it: the others go on without it. */
static void refuse(struct sync *s, struct changes *changes, uint32_t cause, const struct error *why)
{
	const struct change *at = &changes->v[cause];
	const struct frontend *f = at->wanted ? at->wanted : at->held;
	char text[FRONTEND_TEXT_MAX + ERROR_TEXT_MAX], name[FRONTEND_TEXT_MAX];

	snprintf(text, sizeof(text), "%s: %s", frontend_key_format(&f->key, name), why->text);
	problems_set(
		&s->services->problems, "Service refused by the kernel:", f->owner ? f->owner->key : "(none)", text);
	s->stats.refused++;
	changes_refuse(changes, &s->table, cause);
}

int sync_listen(struct sync *s, struct error *err)
{
	int r = monitor_open(&s->monitor, s->config.table, s->nl.portid, err);

	return r == -EPERM ? error_prefix(err, "nftables cannot be used without CAP_NET_ADMIN") : r;
}

bool sync_check_generation(struct sync *s)
{
	uint32_t gen = 0;

	if (s->loaded && (dump_generation(&s->nl, &gen, NULL) < 0 || gen != s->gen))
		s->loaded = false;
	return !s->loaded;
}

bool sync_hear(struct sync *s, struct monitor_news *news)
{
	struct error err = ERROR_INIT;
	bool was_loaded = s->loaded;

	if (monitor_read(&s->monitor, news, &err) < 0) {
		log_warning("%s", err.text);
		news->lost = true;
	}
	if (news->touched)
		s->loaded = false;
	else if (news->lost)
		sync_check_generation(s);
	else if ((int32_t)(news->gen - s->gen) > 0)
		s->gen = news->gen;
	return was_loaded && !s->loaded;
}

/* After -ERESTART: takes the new generation, or forgets what we know if our table may be concerned. */
static void settle(struct sync *s)
{
	struct monitor_news news;
	uint32_t before = s->gen;

	if (s->monitor.nl.fd < 0)
		s->loaded = false;
	else if (!sync_hear(s, &news) && s->gen == before)
		s->loaded = false; /* a generation that nobody told us of */
}

/* The generation of the answer stays the one that our commit made, unless somebody commits behind our back. */
static int commit(struct sync *s, struct batch *batch, struct batch_fault *fault, struct error *err)
{
	bool pause = s->monitor.nl.fd >= 0 && batch_bytes(batch) > BIG_COMMIT_BYTES;
	int r;

	if (pause)
		monitor_pause(&s->monitor, true);
	r = batch_commit(batch, &s->nl, s->gen, fault, err);
	if (r == 0)
		s->gen++;
	if (pause) {
		monitor_pause(&s->monitor, false);
		if (r == 0)
			s->check = true;
	}
	return r;
}

enum outcome { DONE, AGAIN, FAILED };

/* Plans and commits once; refused frontends are left out on the way. *reloaded: the table was read in this run. */
static enum outcome attempt(struct sync *s, bool *reloaded, struct error *err)
{
	uint64_t start_ns = clock_monotonic_ns();
	struct changes changes = { 0 };
	bool singles = false;

	changes_plan(&changes, s->services, &s->table, &s->contests, s->fresh, &s->strays);
	if (s->node_ips)
		changes_set_node_ips(&changes, s->node_ips, s->n_node_ips);
	for (int refusals = 0;;) {
		_cleanup_(batch_free_p) struct batch *batch = build(s, &changes, singles);
		struct batch_fault fault;
		int r = batch_is_empty(batch) ? 0 : commit(s, batch, &fault, err);

		if (r == 0) {
			finish(s, &changes, batch, start_ns);
			/* While we did not listen, somebody may have spoken. */
			if (s->check && sync_check_generation(s))
				log_debug("reading the table back, because somebody committed right after us");
			s->check = false;
			return DONE;
		}
		if (r != -ERESTART && fault.cause != BATCH_NO_CAUSE && *reloaded && r != -ENOMEM &&
			refusals < REFUSALS_MAX) {
			if (fault.exact) {
				refuse(s, &changes, fault.cause, err);
				refusals++;
			}
			singles = true;
			continue;
		}
		changes_drop(&changes, s->services, &s->table);
		if (r == -ERESTART) {
			settle(s);
			return AGAIN;
		}
		if (*reloaded)
			return FAILED;
		log_debug("reading the table back, because a batch was refused: %s", err->text);
		s->loaded = false;
		return AGAIN;
	}
}

int sync_run(struct sync *s, struct error *err)
{
	bool reloaded = false;

	for (int i = 0; i < RUN_TRIES; i++) {
		enum outcome outcome;

		if (!s->loaded) {
			int r = sync_load(s, err);

			if (r < 0) {
				s->stats.failures++;
				return r;
			}
			reloaded = true;
		}
		outcome = attempt(s, &reloaded, err);
		if (outcome == DONE)
			return 0;
		if (outcome == FAILED)
			break;
	}
	s->stats.failures++;
	s->loaded = false;
	return err && err->code ? error_prefix(err, "table %s", s->config.table) : -EAGAIN;
}

/* ---- chains out of use, and the end ---- */

static bool idle_chain(const struct ref *ref)
{
	return ref->used && ref->held && ref->count == 0;
}

size_t sync_idle_chains(const struct sync *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->table.plans.cap; i++)
		n += idle_chain(&s->table.plans.slots[i]);
	return n;
}

int sync_collect(struct sync *s, struct error *err)
{
	_cleanup_(batch_free_p) struct batch *batch = batch_new(&s->config, false);
	struct batch_fault fault;
	char name[PLAN_NAME_MAX];
	int r;

	if (!s->loaded)
		return 0;
	for (size_t i = 0; i < s->table.plans.cap; i++) {
		const struct ref *ref = &s->table.plans.slots[i];
		uint32_t id = ref_plan_id(&ref->key);

		if (!idle_chain(ref))
			continue;
		if (plan_set(id) != SET_COUNT)
			batch_element(batch, plan_set(id), false, (const uint8_t *)&id, NULL);
		batch_chain_delete(batch, plan_chain_name(id, name));
	}
	if (batch_is_empty(batch))
		return 0;
	r = commit(s, batch, &fault, err);
	if (r == -ERESTART) { /* the next time, then */
		settle(s);
		return 0;
	}
	if (r < 0) {
		s->loaded = false;
		return r;
	}
	for (size_t i = 0; i < s->table.plans.cap; i++)
		if (idle_chain(&s->table.plans.slots[i]))
			s->table.plans.slots[i].held = false;
	return 0;
}

int sync_cleanup(struct sync *s, struct error *err)
{
	_cleanup_(batch_free_p) struct batch *batch = batch_new(&s->config, false);
	struct batch_fault fault;
	int r;

	batch_table_delete(batch);
	r = batch_commit(batch, &s->nl, 0, &fault, err);
	if (r == -ENOENT)
		return 0;
	return r < 0 ? error_prefix(err, "delete table %s", s->config.table) : 0;
}
