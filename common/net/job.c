/*
 * job.c - purpose: run blocking work off the loop thread, and come back to it.
 *
 * A thread per job instead of a pool: jobs of a runtime wait (for a mount, a process, a plugin), so the cap must be
 * high, while an idle daemon should hold no threads at all. The loop joins each thread, which has nothing left to do
 * once its job is on the `finished` list; so nothing of ours is in use when job_shutdown() closes the handle.
 */
#include "common/net/job.h"

#include <pthread.h>

struct worker {
	pthread_t thread;
	struct job *job;
	struct worker *next;
};

static struct {
	uv_async_t async;
	bool open;
	size_t running;
	size_t queued;
	struct job *first, *last; /* waiting for a thread */
	pthread_mutex_t lock;
	struct worker *finished; /* under lock; newest first */
} jobs = { .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t stack_bytes(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return 8 * JOB_STACK_BYTES; /* red zones around every local */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
	return 8 * JOB_STACK_BYTES;
#endif
#endif
	return JOB_STACK_BYTES;
}

static void *worker_main(void *data)
{
	struct worker *worker = data;

	worker->job->work(worker->job);
	pthread_mutex_lock(&jobs.lock);
	worker->next = jobs.finished;
	jobs.finished = worker;
	pthread_mutex_unlock(&jobs.lock);
	uv_async_send(&jobs.async);
	return NULL;
}

static bool worker_start(struct job *job)
{
	struct worker *worker = xnew(struct worker);
	pthread_attr_t attr;
	int r;

	worker->job = job;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack_bytes());
	r = pthread_create(&worker->thread, &attr, worker_main, worker);
	pthread_attr_destroy(&attr);
	if (r != 0)
		free(worker);
	else
		jobs.running++;
	return r == 0;
}

/* Starts what the cap allows. A failing pthread_create (out of pids) is tried again when a job ends. */
static void start_queued(void)
{
	while (jobs.first && jobs.running < JOBS_MAX) {
		struct job *job = jobs.first;

		/* `next` is read first: once started, the job belongs to its thread and then to `done`. */
		struct job *next = job->next;

		if (!worker_start(job)) {
			if (jobs.running == 0) /* nobody would try again: take the loop thread rather than hang */
				uv_async_send(&jobs.async);
			return;
		}
		jobs.first = next;
		if (!next)
			jobs.last = NULL;
		jobs.queued--;
	}
}

static void on_async(uv_async_t *async)
{
	struct worker *list, *ordered = NULL;

	(void)async;
	pthread_mutex_lock(&jobs.lock);
	list = steal(jobs.finished);
	pthread_mutex_unlock(&jobs.lock);
	while (list) { /* oldest first */
		struct worker *next = list->next;

		list->next = ordered;
		ordered = list;
		list = next;
	}
	while (ordered) {
		struct worker *worker = ordered;
		struct job *job = worker->job;

		ordered = worker->next;
		pthread_join(worker->thread, NULL);
		free(worker);
		jobs.running--;
		job->done(job);
	}
	start_queued();
	if (jobs.running + jobs.queued == 0 && jobs.open)
		uv_unref((uv_handle_t *)&jobs.async);
}

void job_start(uv_loop_t *loop, struct job *job)
{
	if (!jobs.open) {
		uv_async_init(loop, &jobs.async, on_async);
		jobs.open = true;
	}
	assert(jobs.async.loop == loop);
	uv_ref((uv_handle_t *)&jobs.async);
	job->loop = loop;
	job->next = NULL;
	if (jobs.last)
		jobs.last->next = job;
	else
		jobs.first = job;
	jobs.last = job;
	jobs.queued++;
	start_queued();
}

size_t job_count(void)
{
	return jobs.running + jobs.queued;
}

void job_shutdown(void)
{
	assert(job_count() == 0);
	if (!jobs.open)
		return;
	jobs.open = false;
	uv_close((uv_handle_t *)&jobs.async, NULL);
}
