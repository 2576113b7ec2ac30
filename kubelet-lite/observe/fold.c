/* fold.c - purpose: the runtime's lists and statuses of one pod to struct pod_seen. */
#include "kubelet-lite/observe/fold.h"

#include "kubelet-lite/core/cri_config.h"

#include <stdlib.h>

void listing_done(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].id);
		free(l->v[i].name);
		free(l->v[i].sandbox_id);
	}
	free(l->v);
	*l = (struct listing){ 0 };
}

static struct listed *add(struct listing *l)
{
	l->v = xreallocarray(l->v, l->n + 1, sizeof(*l->v));
	l->v[l->n] = (struct listed){ 0 };
	return &l->v[l->n++];
}

void listing_add_sandbox(struct listing *l, const CRI(PodSandbox) * s)
{
	*add(l) = (struct listed){
		.is_sandbox = true,
		.id = xstrdup(s->id),
		.attempt = s->metadata ? s->metadata->attempt : 0,
		.created_at = s->created_at,
		.state = s->state == RUNTIME__V1__POD_SANDBOX_STATE__SANDBOX_READY ? STATE_RUNNING : STATE_EXITED,
	};
}

static enum container_state state_of(int cri)
{
	switch (cri) {
	case RUNTIME__V1__CONTAINER_STATE__CONTAINER_CREATED:
		return STATE_CREATED;
	case RUNTIME__V1__CONTAINER_STATE__CONTAINER_RUNNING:
		return STATE_RUNNING;
	case RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED:
		return STATE_EXITED;
	default:
		return STATE_UNKNOWN;
	}
}

void listing_add_container(struct listing *l, const CRI(Container) * c)
{
	*add(l) = (struct listed){
		.id = xstrdup(c->id),
		.name = xstrdup(c->metadata ? c->metadata->name : ""),
		.sandbox_id = xstrdup(c->pod_sandbox_id),
		.attempt = c->metadata ? c->metadata->attempt : 0,
		.created_at = c->created_at,
		.state = state_of(c->state),
	};
}

uint64_t listed_signature(bool is_sandbox, const char *id, int state)
{
	uint64_t h = 14695981039346656037u + is_sandbox;

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 1099511628211u;
	h = (h ^ (unsigned)(state + 1)) * 1099511628211u;
	return h ^ h >> 29;
}

uint64_t listing_signature(const struct listing *l)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < l->n; i++)
		sum += listed_signature(l->v[i].is_sandbox, l->v[i].id, (int)l->v[i].state);
	return sum;
}

/* A time of the runtime on our monotonic clock. The future counts as now. */
static int64_t monotonic(int64_t at, int64_t now_ns, uint64_t now_at)
{
	int64_t age = (int64_t)now_at - at;

	return at > 0 && age > 0 ? now_ns - age : now_ns;
}

static void set_user(const CRI(ContainerStatus) * s, struct instance *i)
{
	const CRI(LinuxContainerUser) *user = s->user ? s->user->linux : NULL;

	if (!user)
		return;
	i->has_user = true;
	i->uid = user->uid;
	i->gid = user->gid;
	i->n_groups = user->n_supplemental_groups;
	i->groups = xmemdup(user->supplemental_groups, i->n_groups * sizeof(int64_t));
}

void instance_from_status(const CRI(ContainerStatus) * s, int64_t now_ns, uint64_t now_at, struct instance *ret)
{
	const char *restarts = message_map_get(s->n_annotations, s->annotations, ANNOTATION_RESTARTS);
	const char *hash = message_map_get(s->n_annotations, s->annotations, ANNOTATION_HASH);
	const char *backoff = message_map_get(s->n_annotations, s->annotations, ANNOTATION_BACKOFF);
	bool exited = s->state == RUNTIME__V1__CONTAINER_STATE__CONTAINER_EXITED;

	*ret = (struct instance){
		.state = state_of(s->state),
		.id = xstrdup(s->id),
		.restarts = restarts	  ? (uint32_t)strtoul(restarts, NULL, 10)
			    : s->metadata ? s->metadata->attempt
					  : 0,
		.hash = hash ? (uint32_t)strtoul(hash, NULL, 16) : 0,
		.backoff_ns = backoff ? strtoll(backoff, NULL, 10) : 0,
		.created_at = (uint64_t)s->created_at,
		.started_at = s->started_at > 0 ? (uint64_t)s->started_at : 0,
		.finished_at = exited && s->finished_at > 0 ? (uint64_t)s->finished_at : 0,
		.started_ns = monotonic(s->started_at, now_ns, now_at),
		.finished_ns = exited ? monotonic(s->finished_at, now_ns, now_at) : 0,
		.exit_code = s->exit_code,
		.reason = *s->reason ? xstrdup(s->reason) : NULL,
		.message = *s->message ? xstrdup(s->message) : NULL,
		.image = s->image ? xstrdup(*s->image->user_specified_image ? s->image->user_specified_image
									    : s->image->image)
				  : NULL,
		.image_ref = xstrdup(s->image_ref),
	};
	set_user(s, ret);
}

/* Newest first: by attempt, then by time. */
static bool newer(const struct listed *a, const struct listed *b)
{
	return a->attempt != b->attempt ? a->attempt > b->attempt : a->created_at > b->created_at;
}

/* Index of the newest sandbox (name NULL) or container that is older than `than` (-1: than nothing); -1 if none. */
static int newest(const struct listing *l, const char *name, int than)
{
	int best = -1;

	for (size_t i = 0; i < l->n; i++) {
		const struct listed *x = &l->v[i];

		if (x->is_sandbox != (name == NULL) || (name && !str_eq(x->name, name)) || (int)i == than)
			continue;
		if (than >= 0 && !newer(&l->v[than], x))
			continue;
		if (best < 0 || newer(x, &l->v[best]))
			best = (int)i;
	}
	return best;
}

static bool known(const struct instance *i, const struct listed *l)
{
	return i->id && str_eq(i->id, l->id) && i->state == l->state && i->state != STATE_CREATED;
}

/* What we have just started ourselves is known, but its status may not have been read yet. */
static bool status_known(const struct instance *i, const struct listed *l)
{
	return known(i, l) && i->image_ref;
}

/* The one before the newest counts for lastState only when it has ended. */
static int previous(const struct listing *l, const char *name, int now)
{
	int i = now < 0 ? -1 : newest(l, name, now);

	return i >= 0 && l->v[i].state == STATE_EXITED ? i : -1;
}

size_t fold_wanted(const struct pod *pod, const struct pod_seen *seen, const struct listing *l, size_t *ret_indices,
	int *ret_sandbox)
{
	size_t n = 0;

	*ret_sandbox = newest(l, NULL, -1);
	for (size_t i = 0; i < pod->n_containers; i++) {
		int now = newest(l, pod->containers[i].name, -1), last = previous(l, pod->containers[i].name, now);
		const struct container_seen *c = &seen->c[i];

		if (now >= 0 && !status_known(&c->now, &l->v[now]))
			ret_indices[n++] = (size_t)now;
		if (last >= 0 && !status_known(&c->last, &l->v[last]) && !status_known(&c->now, &l->v[last]))
			ret_indices[n++] = (size_t)last;
	}
	return n;
}

static void move(struct instance *to, struct instance *from)
{
	instance_done(to);
	*to = *from;
	*from = (struct instance){ 0 };
}

/* Takes an asked-for instance, or finds the one that was known already, or makes what the list alone tells. */
static struct instance take(struct listed *l, struct instance *asked, struct container_seen *c)
{
	struct instance out = { 0 };

	if (asked->state != STATE_NONE) {
		move(&out, asked);
	} else if (known(&c->now, l)) {
		move(&out, &c->now);
	} else if (known(&c->last, l)) {
		move(&out, &c->last);
	} else {
		out.state = l->state;
		out.id = xstrdup(l->id);
		out.restarts = l->attempt;
	}
	free(out.sandbox_id);
	out.sandbox_id = xstrdup(l->sandbox_id);
	return out;
}

static bool fold_container(struct container_seen *c, struct listing *l, struct instance *instances, int now, int last)
{
	struct instance new_last = { 0 }, new_now = { 0 };
	_cleanup_free_ char *old_id = xstrdup(c->now.id);

	if (last >= 0)
		new_last = take(&l->v[last], &instances[last], c);
	if (now >= 0)
		new_now = take(&l->v[now], &instances[now], c);
	instance_done(&c->now);
	instance_done(&c->last);
	c->now = new_now;
	c->last = new_last;
	return c->now.id && !str_eq(old_id, c->now.id);
}

static const struct leftover *find_leftover(const struct leftover *v, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i].id, id))
			return &v[i];
	return NULL;
}

static bool holds_kept(const struct listing *l, const bool *used, const char *sandbox)
{
	for (size_t i = 0; i < l->n; i++)
		if (!l->v[i].is_sandbox && used[i] && str_eq(l->v[i].sandbox_id, sandbox))
			return true;
	return false;
}

static void fold_leftovers(struct pod_seen *seen, const struct listing *l, const bool *used)
{
	struct leftover *old = seen->leftovers, *v = NULL;
	size_t n_old = seen->n_leftovers, n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (used[i])
			continue;
		const struct leftover *before = find_leftover(old, n_old, l->v[i].id);

		v = xreallocarray(v, n + 1, sizeof(*v));
		v[n++] = (struct leftover){
			.id = xstrdup(l->v[i].id),
			.is_sandbox = l->v[i].is_sandbox,
			.running = l->v[i].state == STATE_RUNNING || l->v[i].state == STATE_UNKNOWN,
			.busy = before && before->busy,
			.retry_at_ns = before ? before->retry_at_ns : 0,
			.kept = l->v[i].is_sandbox && holds_kept(l, used, l->v[i].id),
		};
	}
	for (size_t i = 0; i < n_old; i++)
		free(old[i].id);
	free(old);
	seen->leftovers = v;
	seen->n_leftovers = n;
}

static void fold_sandbox(struct sandbox_seen *s, const struct listed *l)
{
	bool same = l && str_eq(s->id, l->id);

	if (!same) {
		free(s->id);
		s->id = l ? xstrdup(l->id) : NULL;
		s->stopped = false;
	}
	s->state = !l ? SANDBOX_NONE : l->state == STATE_RUNNING ? SANDBOX_READY : SANDBOX_NOT_READY;
	s->attempt = l ? l->attempt : s->attempt;
	s->created_at = l ? (uint64_t)l->created_at : 0;
}

void fold_listing(
	const struct pod *pod, struct pod_seen *seen, struct listing *l, struct instance *instances, bool *changed)
{
	_cleanup_free_ bool *used = xcalloc(l->n + 1, sizeof(*used));
	int sandbox = newest(l, NULL, -1);

	if (sandbox >= 0)
		used[sandbox] = true;
	fold_sandbox(&seen->sandbox, sandbox >= 0 ? &l->v[sandbox] : NULL);
	for (size_t i = 0; i < pod->n_containers; i++) {
		int now = newest(l, pod->containers[i].name, -1), last = previous(l, pod->containers[i].name, now);

		if (now >= 0)
			used[now] = true;
		if (last >= 0)
			used[last] = true;
		changed[i] = fold_container(&seen->c[i], l, instances, now, last);
	}
	fold_leftovers(seen, l, used);
}
