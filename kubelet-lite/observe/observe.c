/*
 * observe.c - purpose: ask the runtime what it has of one pod.
 *
 *	lists of sandboxes and containers (both at once) -> statuses of what is new or changed (all at once) -> fold
 */
#include "kubelet-lite/observe/observe.h"

#include "kubelet-lite/observe/fold.h"

#define OBSERVE_RETRY_NS SECOND_NS

struct observation {
	struct pod_worker *worker; /* NULL: cancelled */
	uint64_t epoch;
	unsigned waiting; /* answers that are still to come */
	bool failed;
	struct listing listing;
	struct instance *instances; /* as listing.v */
	char **message_files;	    /* as listing.v: where termination messages are, NULL: unknown */
	char **ips;
	size_t n_ips;
	bool has_ips;
};

/* One ContainerStatus call. */
struct asked {
	struct observation *observation;
	size_t index;
};

static void observation_free(struct observation *o)
{
	for (size_t i = 0; o->instances && i < o->listing.n; i++) {
		instance_done(&o->instances[i]);
		free(o->message_files[i]);
	}
	free(o->instances);
	free(o->message_files);
	for (size_t i = 0; i < o->n_ips; i++)
		free(o->ips[i]);
	free(o->ips);
	listing_done(&o->listing);
	free(o);
}

void observe_cancel(struct pod_worker *w)
{
	if (!w->observation)
		return;
	w->observation->worker = NULL; /* its answers free it */
	w->observation = NULL;
}

static void take_ips(struct pod_worker *w, struct observation *o)
{
	if (!o->has_ips)
		return;
	for (size_t i = 0; i < w->seen.n_ips; i++)
		free(w->seen.ips[i]);
	free(w->seen.ips);
	w->seen.ips = steal(o->ips);
	w->seen.n_ips = o->n_ips;
	o->n_ips = 0;
}

/* The termination message of those that have ended; once, since it is a file of the pod. */
static void read_messages(struct pod_worker *w, const struct observation *o)
{
	for (size_t i = 0; i < w->pod->n_containers; i++) {
		struct instance *both[] = { &w->seen.c[i].now, &w->seen.c[i].last };

		for (size_t k = 0; k < ARRAY_LEN(both); k++) {
			const char *file = NULL;

			if (both[k]->state != STATE_EXITED || both[k]->message_read)
				continue;
			for (size_t j = 0; j < o->listing.n; j++)
				if (str_eq(o->listing.v[j].id, both[k]->id))
					file = o->message_files[j];
			char *text = termination_message(w, i, both[k], file);
			if (text) {
				free(both[k]->message);
				both[k]->message = text;
			}
			both[k]->message_read = true;
		}
	}
}

static void fold(struct pod_worker *w, struct observation *o)
{
	_cleanup_free_ bool *changed = xcalloc(w->pod->n_containers + 1, sizeof(*changed));
	bool first = !w->adopted;

	fold_listing(w->pod, &w->seen, &o->listing, o->instances, changed);
	take_ips(w, o);
	read_messages(w, o);
	w->signature = listing_signature(&o->listing);
	w->seen.observed = w->adopted = true;
	for (size_t i = 0; i < w->pod->n_containers; i++) {
		if (changed[i])
			pod_new_instance(w, i, true);
		else if (w->seen.c[i].now.state == STATE_EXITED &&
			 (w->seen.c[i].op == OP_PRE_STOP || w->seen.c[i].op == OP_POST_START))
			effect_give_up(w, i);
	}
	if (first) {
		json_decref(w->last_status);
		w->last_status = NULL;
	}
}

static void finish(struct observation *o)
{
	struct pod_worker *w = o->worker;

	if (w) {
		w->observation = NULL;
		if (o->failed) {
			w->observe_retry_ns = node_now(w->node) + OBSERVE_RETRY_NS;
		} else if (o->epoch != w->epoch) {
			w->observe_again = true;
		} else {
			fold(w, o);
		}
		if (w->observe_again)
			observe_pod(w);
		pod_kick(w);
	}
	observation_free(o);
}

static void answered(struct observation *o)
{
	if (--o->waiting == 0)
		finish(o);
}

static void on_status(void *data, const struct error *status, const void *reply)
{
	struct asked *asked = data;
	struct observation *o = asked->observation;
	const CRI(ContainerStatusResponse) *r = reply;

	/* One that is gone meanwhile is as if it had not been listed; the next list will not have it. */
	if (status->code != ERROR_OK && status->code != ERROR_NOT_FOUND)
		o->failed = true;
	if (o->worker && r && r->status) {
		const char *file =
			message_map_get(r->status->n_annotations, r->status->annotations, ANNOTATION_MESSAGE_FILE);

		instance_from_status(
			r->status, node_now(o->worker->node), clock_realtime_ns(), &o->instances[asked->index]);
		o->message_files[asked->index] = xstrdup(file);
	}
	free(asked);
	answered(o);
}

static void add_ip(struct observation *o, const char *ip)
{
	if (str_empty(ip))
		return;
	o->ips = xreallocarray(o->ips, o->n_ips + 1, sizeof(*o->ips));
	o->ips[o->n_ips++] = xstrdup(ip);
}

static void on_sandbox_status(void *data, const struct error *status, const void *reply)
{
	struct observation *o = data;
	const CRI(PodSandboxStatusResponse) *r = reply;
	const CRI(PodSandboxNetworkStatus) *network = r && r->status ? r->status->network : NULL;

	if (status->code != ERROR_OK && status->code != ERROR_NOT_FOUND)
		o->failed = true;
	if (network) {
		add_ip(o, network->ip);
		for (size_t i = 0; i < network->n_additional_ips; i++)
			add_ip(o, network->additional_ips[i]->ip);
		o->has_ips = o->n_ips > 0;
	}
	answered(o);
}

static void ask_statuses(struct observation *o)
{
	struct pod_worker *w = o->worker;
	_cleanup_free_ size_t *wanted = xcalloc(w->pod->n_containers * 2 + 1, sizeof(*wanted));
	int sandbox;
	size_t n = fold_wanted(w->pod, &w->seen, &o->listing, wanted, &sandbox);

	o->instances = xcalloc(o->listing.n + 1, sizeof(*o->instances));
	o->message_files = xcalloc(o->listing.n + 1, sizeof(*o->message_files));
	o->waiting = 1; /* ours, until all have been asked */
	for (size_t i = 0; i < n; i++) {
		CRI(ContainerStatusRequest) request = RUNTIME__V1__CONTAINER_STATUS_REQUEST__INIT;
		struct asked *asked = xnew(struct asked);

		*asked = (struct asked){ o, wanted[i] };
		request.container_id = o->listing.v[wanted[i]].id;
		o->waiting++;
		cri_call(w->node->cri, CRI_CONTAINER_STATUS, &request, 0, on_status, asked);
	}
	if (sandbox >= 0 && o->listing.v[sandbox].state == STATE_RUNNING &&
		(!str_eq(w->seen.sandbox.id, o->listing.v[sandbox].id) || !w->seen.n_ips)) {
		CRI(PodSandboxStatusRequest) request = RUNTIME__V1__POD_SANDBOX_STATUS_REQUEST__INIT;

		request.pod_sandbox_id = o->listing.v[sandbox].id;
		o->waiting++;
		cri_call(w->node->cri, CRI_POD_SANDBOX_STATUS, &request, 0, on_sandbox_status, o);
	}
	answered(o);
}

/* Both lists are in. */
static void listed(struct observation *o)
{
	if (--o->waiting > 0)
		return;
	if (!o->worker || o->failed)
		finish(o);
	else
		ask_statuses(o);
}

static void on_sandboxes(void *data, const struct error *status, const void *reply)
{
	struct observation *o = data;
	const CRI(ListPodSandboxResponse) *r = reply;

	o->failed = o->failed || status->code != ERROR_OK;
	for (size_t i = 0; r && i < r->n_items; i++)
		listing_add_sandbox(&o->listing, r->items[i]);
	listed(o);
}

static void on_containers(void *data, const struct error *status, const void *reply)
{
	struct observation *o = data;
	const CRI(ListContainersResponse) *r = reply;

	o->failed = o->failed || status->code != ERROR_OK;
	for (size_t i = 0; r && i < r->n_containers; i++)
		listing_add_container(&o->listing, r->containers[i]);
	listed(o);
}

void observe_pod(struct pod_worker *w)
{
	if (w->observation) {
		w->observe_again = true;
		return;
	}
	w->observe_again = false;

	CRI(ListPodSandboxRequest) sandboxes = RUNTIME__V1__LIST_POD_SANDBOX_REQUEST__INIT;
	CRI(PodSandboxFilter) sandbox_filter = RUNTIME__V1__POD_SANDBOX_FILTER__INIT;
	CRI(PodSandboxFilter__LabelSelectorEntry)
	sandbox_label = RUNTIME__V1__POD_SANDBOX_FILTER__LABEL_SELECTOR_ENTRY__INIT;
	CRI(PodSandboxFilter__LabelSelectorEntry) * sandbox_labels[] = { &sandbox_label };
	CRI(ListContainersRequest) containers = RUNTIME__V1__LIST_CONTAINERS_REQUEST__INIT;
	CRI(ContainerFilter) container_filter = RUNTIME__V1__CONTAINER_FILTER__INIT;
	CRI(ContainerFilter__LabelSelectorEntry)
	container_label = RUNTIME__V1__CONTAINER_FILTER__LABEL_SELECTOR_ENTRY__INIT;
	CRI(ContainerFilter__LabelSelectorEntry) * container_labels[] = { &container_label };
	struct observation *o = xnew(struct observation);

	*o = (struct observation){ .worker = w, .epoch = w->epoch, .waiting = 2 };
	w->observation = o;
	sandbox_label.key = container_label.key = (char *)LABEL_POD_UID;
	sandbox_label.value = container_label.value = (char *)w->pod->uid;
	sandbox_filter.n_label_selector = container_filter.n_label_selector = 1;
	sandbox_filter.label_selector = sandbox_labels;
	container_filter.label_selector = container_labels;
	sandboxes.filter = &sandbox_filter;
	containers.filter = &container_filter;
	cri_call(w->node->cri, CRI_LIST_POD_SANDBOX, &sandboxes, 0, on_sandboxes, o);
	cri_call(w->node->cri, CRI_LIST_CONTAINERS, &containers, 0, on_containers, o);
}
