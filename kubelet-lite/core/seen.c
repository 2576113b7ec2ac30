/* seen.c - purpose: what is known about one pod. */
#include "kubelet-lite/core/seen.h"

void instance_done(struct instance *i)
{
	free(i->id);
	free(i->sandbox_id);
	free(i->reason);
	free(i->message);
	free(i->image);
	free(i->image_ref);
	free(i->groups);
	*i = (struct instance){ 0 };
}

void pod_seen_init(struct pod_seen *seen, size_t n_containers)
{
	*seen = (struct pod_seen){ .n = n_containers };
	seen->c = xcalloc(n_containers + 1, sizeof(*seen->c));
}

void pod_seen_done(struct pod_seen *seen)
{
	for (size_t i = 0; i < seen->n; i++) {
		struct container_seen *c = &seen->c[i];

		instance_done(&c->now);
		instance_done(&c->last);
		free(c->image_ref);
		free(c->image_user);
		free(c->wait_reason);
		free(c->wait_message);
	}
	free(seen->c);
	for (size_t i = 0; i < seen->n_leftovers; i++)
		free(seen->leftovers[i].id);
	free(seen->leftovers);
	for (size_t i = 0; i < seen->n_ips; i++)
		free(seen->ips[i]);
	free(seen->ips);
	free(seen->sandbox.id);
	*seen = (struct pod_seen){ 0 };
}

enum container_state seen_state(const struct pod_seen *seen, size_t i)
{
	const struct instance *now = &seen->c[i].now;

	if (now->state == STATE_NONE)
		return STATE_NONE;
	if (seen->sandbox.state == SANDBOX_NONE || str_eq(now->sandbox_id, seen->sandbox.id))
		return now->state;
	return now->state == STATE_RUNNING || now->state == STATE_UNKNOWN ? now->state : STATE_NONE;
}

bool seen_alive(const struct container_seen *c)
{
	return c->now.state == STATE_RUNNING || c->now.state == STATE_UNKNOWN;
}

bool seen_started(const struct container *spec, const struct container_seen *c)
{
	if (c->now.state != STATE_RUNNING)
		return false;
	return spec->probes[PROBE_STARTUP].handler.kind == HANDLER_NONE || c->probe[PROBE_STARTUP] == PROBE_SUCCESS;
}

bool seen_ready(const struct container *spec, const struct container_seen *c)
{
	if (spec->kind == CONTAINER_INIT)
		return c->now.state == STATE_EXITED && c->now.exit_code == 0;
	if (!seen_started(spec, c))
		return false;
	return spec->probes[PROBE_READINESS].handler.kind == HANDLER_NONE || c->probe[PROBE_READINESS] == PROBE_SUCCESS;
}
