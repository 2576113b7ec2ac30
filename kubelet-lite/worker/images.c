/*
 * images.c - purpose: have an image there before a container is made.
 *
 *	request: [inspect ->] wait for the pull of its key -> inspect (who is its USER?) -> done
 *	pull:    queued -> running -> its requests go on
 */
#include "kubelet-lite/worker/images.h"

#include "common/base/map.h"
#include "common/sys/file.h"

struct pull {
	struct image_pulls *pulls;
	char *key; /* image and credential */
	char *image;
	struct image_credential credential;
	struct rpc_request *rpc; /* NULL: queued */
	unsigned waiters;
	uint64_t queued_ns, started_ns;
	struct pull *next; /* in the queue */
};

struct image_request {
	struct image_pulls *pulls;
	char *image;
	enum pull_policy policy;
	char *key;
	bool has_credential;
	struct image_credential credential;
	void *data;
	void (*pulling)(void *data);
	void (*done)(void *data, const struct image_result *result);
	struct rpc_request *inspect;
	struct pull *pull;
	bool pulled;
	char *ref;
	uint64_t pull_ns, wait_ns;
	struct image_request *next; /* of all */
};

struct image_pulls {
	uv_loop_t *loop;
	struct cri_client *cri;
	unsigned max;
	unsigned running;
	struct map by_key;  /* struct pull */
	struct pull *queue; /* oldest first */
	struct image_request *requests;
};

struct image_pulls *image_pulls_new(uv_loop_t *loop, struct cri_client *cri, unsigned max)
{
	struct image_pulls *p = xnew(struct image_pulls);

	*p = (struct image_pulls){ .loop = loop, .cri = cri, .max = max ? max : 1 };
	return p;
}

static void copy_credential(struct image_credential *to, const struct image_credential *from)
{
	to->username = xstrdup(from->username);
	to->password = xstrdup(from->password);
	to->registry_token = xstrdup(from->registry_token);
}

static void unlink_request(struct image_request *r)
{
	for (struct image_request **p = &r->pulls->requests; *p; p = &(*p)->next)
		if (*p == r) {
			*p = r->next;
			return;
		}
}

static void request_free(struct image_request *r)
{
	unlink_request(r);
	credential_done(&r->credential);
	free(r->image);
	free(r->key);
	free(r->ref);
	free(r);
}

static void report(struct image_request *r, const struct image_result *result)
{
	unlink_request(r);
	r->done(r->data, result);
	request_free(r);
}

static void report_failure(struct image_request *r, const char *reason, const char *message)
{
	report(r, &(struct image_result){ .reason = reason, .message = message, .ref = "", .user = "" });
}

/* ---- pulls */

static void start_queued(struct image_pulls *p);

static void pull_free(struct pull *pull)
{
	struct image_pulls *p = pull->pulls;

	map_remove(&p->by_key, pull->key);
	for (struct pull **q = &p->queue; *q; q = &(*q)->next)
		if (*q == pull) {
			*q = pull->next;
			break;
		}
	credential_done(&pull->credential);
	free(pull->key);
	free(pull->image);
	free(pull);
}

static void inspect(struct image_request *r);

/* What CRI runtimes put in front of two kinds of failure, and what the kubelet makes of it. */
static const struct {
	const char *prefix; /* the reason, too */
	const char *text;
} pull_errors[] = {
	{ "RegistryUnavailable", "the registry is unavailable" },
	{ "SignatureValidationFailed", "the signature validation failed" },
};

static void report_pull_failure(struct image_request *r, const struct error *status)
{
	for (size_t i = 0; i < ARRAY_LEN(pull_errors); i++)
		if (str_starts(status->text, pull_errors[i].prefix)) {
			_cleanup_free_ char *text = xasprintf("image pull failed for %s because %s%s", r->image,
				pull_errors[i].text, status->text + strlen(pull_errors[i].prefix));

			report_failure(r, pull_errors[i].prefix, text);
			return;
		}
	report_failure(r, "ErrImagePull", status->text);
}

/* The first request that waits for this pull; they are taken one by one, since reporting may change the list. */
static struct image_request *waiter_of(struct image_pulls *p, const struct pull *pull)
{
	for (struct image_request *r = p->requests; r; r = r->next)
		if (r->pull == pull)
			return r;
	return NULL;
}

static void on_pulled(void *data, const struct error *status, const void *reply)
{
	struct pull *pull = data;
	struct image_pulls *p = pull->pulls;
	const CRI(PullImageResponse) *answer = reply;
	uint64_t now = clock_monotonic_ns();
	struct image_request *r;

	p->running--;
	map_remove(&p->by_key, pull->key); /* who comes now starts another */
	while ((r = waiter_of(p, pull))) {
		r->pull = NULL;
		if (!answer) {
			report_pull_failure(r, status);
			continue;
		}
		r->pulled = true;
		r->pull_ns = now - pull->started_ns;
		r->wait_ns = pull->started_ns - pull->queued_ns;
		r->ref = xstrdup(answer->image_ref);
		inspect(r);
	}
	pull_free(pull);
	start_queued(p);
}

static void pull_start(struct pull *pull)
{
	CRI(PullImageRequest) request = RUNTIME__V1__PULL_IMAGE_REQUEST__INIT;
	CRI(ImageSpec) image = RUNTIME__V1__IMAGE_SPEC__INIT;
	CRI(AuthConfig) auth = RUNTIME__V1__AUTH_CONFIG__INIT;
	struct image_credential *c = &pull->credential;

	image.image = pull->image;
	request.image = &image;
	if (c->username || c->registry_token) {
		auth.username = c->username ? c->username : (char *)"";
		auth.password = c->password ? c->password : (char *)"";
		auth.registry_token = c->registry_token ? c->registry_token : (char *)"";
		request.auth = &auth;
	}
	pull->started_ns = clock_monotonic_ns();
	pull->pulls->running++;
	pull->rpc = cri_call(pull->pulls->cri, CRI_PULL_IMAGE, &request, CRI_NO_DEADLINE, on_pulled, pull);
}

static void start_queued(struct image_pulls *p)
{
	while (p->queue && p->running < p->max) {
		struct pull *pull = p->queue;

		p->queue = pull->next;
		pull->next = NULL;
		pull_start(pull);
	}
}

static void pull(struct image_request *r)
{
	struct image_pulls *p = r->pulls;
	struct pull *one = map_get(&p->by_key, r->key), **end = &p->queue;

	if (!one) {
		one = xnew(struct pull);
		*one = (struct pull){ .pulls = p, .key = xstrdup(r->key), .image = xstrdup(r->image) };
		one->queued_ns = clock_monotonic_ns();
		if (r->has_credential)
			copy_credential(&one->credential, &r->credential);
		map_put(&p->by_key, one->key, one);
		while (*end)
			end = &(*end)->next;
		*end = one;
	}
	one->waiters++;
	r->pull = one;
	r->pulling(r->data);
	start_queued(p);
}

/* ---- requests */

static void on_inspected(void *data, const struct error *status, const void *reply)
{
	struct image_request *r = data;
	const CRI(ImageStatusResponse) *s = reply;

	r->inspect = NULL;
	if (!s) {
		report_failure(
			r, status->code == ERROR_INVALID ? "InvalidImageName" : "ImageInspectError", status->text);
	} else if (s->image) {
		report(r, &(struct image_result){
				  .pulled = r->pulled,
				  .size = s->image->size,
				  .pull_ns = r->pull_ns,
				  .wait_ns = r->wait_ns,
				  .ref = !str_empty(r->ref) ? r->ref : s->image->id,
				  .has_uid = s->image->uid != NULL,
				  .uid = s->image->uid ? s->image->uid->value : 0,
				  .user = s->image->username,
			  });
	} else if (r->pulled) {
		report_failure(r, "ImageInspectError", "the image was pulled and is not there");
	} else if (r->policy == PULL_NEVER) {
		_cleanup_free_ char *text =
			xasprintf("Container image \"%s\" is not present with pull policy of Never", r->image);

		report_failure(r, "ErrImageNeverPull", text);
	} else {
		pull(r);
	}
}

static void inspect(struct image_request *r)
{
	CRI(ImageStatusRequest) request = RUNTIME__V1__IMAGE_STATUS_REQUEST__INIT;
	CRI(ImageSpec) image = RUNTIME__V1__IMAGE_SPEC__INIT;

	image.image = !str_empty(r->ref) ? r->ref : r->image;
	request.image = &image;
	r->inspect = cri_call(r->pulls->cri, CRI_IMAGE_STATUS, &request, 0, on_inspected, r);
}

struct image_request *image_ensure(struct image_pulls *p, const struct image_want *want)
{
	struct image_request *r = xnew(struct image_request);
	const struct image_credential *c = want->credential;

	*r = (struct image_request){ .pulls = p,
		.image = xstrdup(want->image),
		.policy = want->policy,
		.data = want->data,
		.pulling = want->pulling,
		.done = want->done,
		.next = p->requests };
	r->has_credential = c != NULL;
	if (c)
		copy_credential(&r->credential, c);
	r->key = xasprintf(
		"%s %s %s", want->image, c && c->username ? c->username : "", c && c->password ? c->password : "");
	p->requests = r;
	if (want->policy == PULL_ALWAYS)
		pull(r);
	else
		inspect(r);
	return r;
}

void image_cancel(struct image_request *r)
{
	struct image_pulls *p = r->pulls;
	struct pull *one = r->pull;

	if (r->inspect)
		rpc_cancel(r->inspect);
	r->pull = NULL;
	request_free(r);
	if (!one || waiter_of(p, one))
		return;
	if (one->rpc) {
		rpc_cancel(one->rpc);
		p->running--;
	}
	pull_free(one);
	start_queued(p);
}

void image_pulls_free(struct image_pulls *p)
{
	assert(!p->requests);
	map_done(&p->by_key);
	free(p);
}
