/* task.c - purpose: what exec, attach and port-forward have in common. */
#include "runtime-lite/stream/task.h"

#include "runtime-lite/stream/stdio.h"

void task_begin(struct task *task, struct task **list, void (*abort)(struct task *task))
{
	*task = (struct task){ .next = *list, .list = list, .abort = abort };
	if (task->next)
		task->next->prev = task;
	*list = task;
}

void task_end(struct task *task)
{
	*(task->prev ? &task->prev->next : task->list) = task->next;
	if (task->next)
		task->next->prev = task->prev;
}

int task_find_container(struct store *store, const char *id, struct container **ret, struct error *err)
{
	_cleanup_container_ struct container *c = NULL;
	int r = store_get_container(store, id, &c, err);

	if (r < 0)
		return r;
	store_lock(store);
	bool running = c->state == CONTAINER_RUNNING && c->sandbox->monitor;
	store_unlock(store);
	if (!running)
		return error_set(err, ERROR_PRECONDITION, "container %s is not running", c->id);
	*ret = steal(c);
	return 0;
}

int task_find_sandbox(struct store *store, const char *id, struct sandbox **ret, struct error *err)
{
	_cleanup_sandbox_ struct sandbox *s = NULL;
	int r = store_get_sandbox(store, id, &s, err);

	if (r < 0)
		return r;
	store_lock(store);
	bool ready = s->state == SANDBOX_READY && s->monitor && !s->monitor_gone;
	store_unlock(store);
	if (!ready)
		return error_set(err, ERROR_PRECONDITION, "pod sandbox %s is not ready", s->id);
	*ret = steal(s);
	return 0;
}

struct stdio *task_stdio(const struct task_client *client, const struct stream_request *request,
	const struct stdio_owner *owner, void *data)
{
	const struct session_wants wants = { request->in, request->out, request->err, request->tty };
	const struct protocol *p = client->protocol;
	struct session *session =
		client->websocket ? session_websocket(p->version, p->base64, &wants) : session_spdy(p->version, &wants);

	return stdio_new(client->loop, client->exchange, client->websocket ? "websocket" : "SPDY/3.1", session, &wants,
		owner, data);
}
