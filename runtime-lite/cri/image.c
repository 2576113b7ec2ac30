/* image.c - purpose: ListImages, ImageStatus, PullImage, RemoveImage, ImageFsInfo. */
#include "runtime-lite/cri/image.h"

#include "common/base/log.h"
#include "common/sys/file.h"
#include "common/wire/json.h"
#include "runtime-lite/cri/handlers.h"

#include <errno.h>
#include <sys/eventfd.h>

enum { CANCEL_POLL_MS = 200 };

/* Pulls under way: the loop looks now and then whether their clients are still there. */
struct pull {
	const struct rpc_call *call;
	int cancel_fd;
	struct pull *next;
};

struct pulls {
	pthread_mutex_t lock;
	struct pull *first;
	uv_timer_t timer;
};

struct pulls *pulls_new(struct service *svc)
{
	struct pulls *pulls = xnew(struct pulls);

	pthread_mutex_init(&pulls->lock, NULL);
	uv_timer_init(svc->loop, &pulls->timer);
	pulls->timer.data = pulls;
	return pulls;
}

void pulls_close(struct pulls *pulls)
{
	uv_timer_stop(&pulls->timer);
	uv_close((uv_handle_t *)&pulls->timer, NULL);
}

void pulls_free(struct pulls *pulls)
{
	pthread_mutex_destroy(&pulls->lock);
	free(pulls);
}

static void on_timer(uv_timer_t *timer)
{
	struct pulls *pulls = timer->data;

	pthread_mutex_lock(&pulls->lock);
	for (struct pull *p = pulls->first; p; p = p->next)
		if (p->call->cancelled(p->call))
			eventfd_write(p->cancel_fd, 1);
	bool idle = !pulls->first;
	pthread_mutex_unlock(&pulls->lock);
	if (idle)
		uv_timer_stop(timer);
}

static void start_timer(void *data)
{
	struct pulls *pulls = data;

	if (!uv_is_closing((uv_handle_t *)&pulls->timer))
		uv_timer_start(&pulls->timer, on_timer, CANCEL_POLL_MS, CANCEL_POLL_MS);
}

static void pull_begin(struct service *svc, struct pull *pull)
{
	struct pulls *pulls = svc->pulls;

	pthread_mutex_lock(&pulls->lock);
	pull->next = pulls->first;
	pulls->first = pull;
	pthread_mutex_unlock(&pulls->lock);
	service_post(svc, start_timer, pulls);
}

static void pull_end(struct service *svc, struct pull *pull)
{
	struct pulls *pulls = svc->pulls;

	pthread_mutex_lock(&pulls->lock);
	struct pull **link = &pulls->first;
	while (*link != pull)
		link = &(*link)->next;
	*link = pull->next;
	pthread_mutex_unlock(&pulls->lock);
}

/* "1002", "1002:5" are uids, "www-data" is a name; both unset means root. */
static void set_user(CRI(Image) * m, const char *user)
{
	const char *colon = strchr(user, ':');
	_cleanup_free_ char *name = xstrndup(user, colon ? (size_t)(colon - user) : strlen(user));

	if (!*name)
		return;
	if (strlen(name) <= 10 && strspn(name, "0123456789") == strlen(name)) {
		m->uid = CRI_NEW(Int64Value, int64_value);
		m->uid->value = strtoll(name, NULL, 10);
	} else {
		message_set(&m->username, name);
	}
}

static void set_list(size_t *n, char ***field, const struct strv *from)
{
	*n = from->n;
	*field = from->n ? xcalloc(from->n, sizeof(char *)) : NULL;
	for (size_t i = 0; i < from->n; i++)
		(*field)[i] = xstrdup(from->v[i]);
}

static CRI(Image) * convert_image(const struct image *image)
{
	CRI(Image) *m = CRI_NEW(Image, image);

	message_set(&m->id, image->id);
	set_list(&m->n_repo_tags, &m->repo_tags, &image->repo_tags);
	set_list(&m->n_repo_digests, &m->repo_digests, &image->repo_digests);
	m->size = image->size_bytes;
	set_user(m, image->config.user ? image->config.user : "");
	m->spec = CRI_NEW(ImageSpec, image_spec);
	message_set(&m->spec->image, image->id);
	m->pinned = image->pinned;
	return m;
}

HANDLER(image_list)
{
	struct service *svc = call->context;
	const CRI(ListImagesRequest) *req = request;
	const char *reference = req->filter && req->filter->image ? req->filter->image->image : NULL;
	struct image **list = NULL;
	size_t n = 0;
	int r = image_store_list(svc->images, reference, &list, &n, err);

	if (r < 0)
		return r;
	CRI(ListImagesResponse) *reply = CRI_NEW(ListImagesResponse, list_images_response);
	for (size_t i = 0; i < n; i++)
		message_add(&reply->n_images, &reply->images, convert_image(list[i]));
	image_list_free(list, n);
	*ret_reply = &reply->base;
	return 0;
}

static json_t *strv_json(const struct strv *list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(array, json_string(list->v[i]));
	return array;
}

static char *info_text(const struct image *image)
{
	const struct image_config *c = &image->config;
	_cleanup_json_ json_t *json = json_pack("{s:o, s:{s:s?, s:o, s:o, s:o, s:s?, s:s?, s:o, s:o}, s:s?, s:I}", "chainIDs",
		strv_json(&image->chain_ids), "config", "User", c->user, "Entrypoint", strv_json(&c->entrypoint), "Cmd",
		strv_json(&c->cmd), "Env", strv_json(&c->env), "WorkingDir", c->working_dir, "StopSignal", c->stop_signal,
		"Volumes", strv_json(&c->volumes), "ExposedPorts", strv_json(&c->exposed_ports), "manifestDigest",
		image->manifest_digest, "createdNs", (json_int_t)image->created_ns);

	return json ? json_text(json) : xstrdup("{}");
}

HANDLER(image_status)
{
	struct service *svc = call->context;
	const CRI(ImageStatusRequest) *req = request;
	_cleanup_image_ struct image *image = NULL;

	if (!req->image || !*req->image->image)
		return error_set(err, ERROR_INVALID, "image is empty");
	int r = image_store_find(svc->images, req->image->image, &image, err);
	if (r < 0 && err->code != ERROR_NOT_FOUND)
		return r;
	CRI(ImageStatusResponse) *reply = CRI_NEW(ImageStatusResponse, image_status_response);
	if (image)
		reply->image = convert_image(image);
	if (image && req->verbose) {
		_cleanup_free_ char *info = info_text(image);

		message_map_add(&reply->n_info, &reply->info, &runtime__v1__image_status_response__info_entry__descriptor,
			"info", info);
	}
	*ret_reply = &reply->base;
	return 0;
}

HANDLER(image_pull_rpc)
{
	struct service *svc = call->context;
	const CRI(PullImageRequest) *req = request;
	struct image_pull_options options = IMAGE_PULL_OPTIONS_INIT;
	struct image_auth auth = { 0 };
	_cleanup_fd_ int cancel_fd = eventfd(0, EFD_CLOEXEC);
	char *id = NULL;

	if (!req->image || !*req->image->image)
		return error_set(err, ERROR_INVALID, "image is empty");
	if (cancel_fd < 0)
		return error_sys(err, errno, "eventfd");
	if (req->auth) {
		auth = (struct image_auth){ req->auth->username, req->auth->password, req->auth->auth,
			req->auth->server_address, req->auth->identity_token, req->auth->registry_token };
		options.auth = &auth;
	}
	options.deadline_ns = call->deadline_ns;
	options.cancel_fd = cancel_fd;
	struct pull pull = { .call = call, .cancel_fd = cancel_fd };
	uint64_t begin_ns = clock_monotonic_ns();
	pull_begin(svc, &pull);
	int r = image_pull(svc->images, req->image->image, &options, &id, err);
	pull_end(svc, &pull);
	if (r < 0) {
		log_warning("image %s: pull: %s", req->image->image, err->text);
		return r;
	}
	log_info("image %s pulled as %s in %llu ms", req->image->image, id,
		(unsigned long long)((clock_monotonic_ns() - begin_ns) / 1000000));
	CRI(PullImageResponse) *reply = CRI_NEW(PullImageResponse, pull_image_response);
	message_set_take(&reply->image_ref, id);
	*ret_reply = &reply->base;
	return 0;
}

HANDLER(image_remove)
{
	struct service *svc = call->context;
	const CRI(RemoveImageRequest) *req = request;

	if (!req->image || !*req->image->image)
		return error_set(err, ERROR_INVALID, "image is empty");
	int r = image_store_remove(svc->images, req->image->image, err);
	if (r < 0)
		return r;
	*ret_reply = &CRI_NEW(RemoveImageResponse, remove_image_response)->base;
	return 0;
}

static CRI(UInt64Value) * number(uint64_t v)
{
	CRI(UInt64Value) *m = CRI_NEW(UInt64Value, uint64_value);

	m->value = v;
	return m;
}

static CRI(FilesystemUsage) * usage(const struct service *svc, uint64_t bytes, uint64_t inodes)
{
	CRI(FilesystemUsage) *m = CRI_NEW(FilesystemUsage, filesystem_usage);

	m->timestamp = (int64_t)clock_realtime_ns();
	m->fs_id = CRI_NEW(FilesystemIdentifier, filesystem_identifier);
	message_set(&m->fs_id->mountpoint, svc->options.root_dir);
	m->used_bytes = number(bytes);
	m->inodes_used = number(inodes);
	return m;
}

/* One place holds both, so both are named alike: different mount points would make the kubelet watch two disks. */
HANDLER(image_fs_info)
{
	struct service *svc = call->context;
	CRI(ImageFsInfoResponse) *reply = CRI_NEW(ImageFsInfoResponse, image_fs_info_response);
	struct map_iter it = MAP_ITER_INIT;
	uint64_t bytes = 0, inodes = 0;

	(void)request, (void)err;
	image_store_usage(svc->images, &bytes, &inodes);
	message_add(&reply->n_image_filesystems, &reply->image_filesystems, usage(svc, bytes, inodes));
	bytes = inodes = 0;
	store_lock(svc->store);
	while (map_next(&svc->store->containers, &it)) {
		const struct container *c = it.value;

		bytes += c->layer_bytes;
		inodes += c->layer_inodes;
	}
	store_unlock(svc->store);
	message_add(&reply->n_container_filesystems, &reply->container_filesystems, usage(svc, bytes, inodes));
	*ret_reply = &reply->base;
	return 0;
}
