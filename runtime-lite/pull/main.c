/* main.c - purpose: the pull program: takes one request, gives up its powers, brings an image into the store, ends. */
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "common/base/codec.h"
#include "common/base/log.h"
#include "runtime-lite/image/hosts.h"
#include "runtime-lite/image/reference.h"
#include "runtime-lite/pull/fetch.h"
#include "runtime-lite/pull/load.h"
#include "runtime-lite/pull/opaque.h"
#include "runtime-lite/pull/sandbox.h"

static json_t *list_json(const struct strv *list)
{
	json_t *j = json_array();

	for (size_t i = 0; list && i < list->n; i++)
		json_array_append_new(j, json_string(list->v[i]));
	return j;
}

int pull_report_image(struct pull *p, const struct found_image *image, struct error *err)
{
	_cleanup_json_ json_t *answer = NULL;
	int r = channel_send(&p->channel,
		json_pack("{s:{s:s, s:s, s:I, s:o, s:o}}", "image", "config", image->config_digest, "manifest",
			image->manifest_digest, "size", (json_int_t)image->size_bytes, "tags", list_json(image->tags), "digests",
			list_json(image->digests)),
		err);

	if (r == 0)
		r = channel_receive(&p->channel, &answer, err);
	if (r < 0)
		return r;
	if (channel_is_error(answer, err))
		return error_code_errno(err->code);
	return 0;
}

int pull_store_blob(struct pull *p, const char *digest, const char *text, size_t len, int *ret_fd, struct error *err)
{
	/* Pinned first: what is there now stays there. */
	for (int i = 0; i < 8; i++) {
		_cleanup_free_ char *there = NULL;
		_cleanup_fd_ int fd = -1;
		size_t there_len;
		int r = layout_blob_pin(&p->layout, digest, &fd);

		if (r == 0 && layout_blob_read(&p->layout, digest, MAX(len, (size_t)1), &there, &there_len, NULL) == 0) {
			*ret_fd = steal_fd(&fd);
			return 0;
		}
		if (r < 0 && r != -ENOENT)
			return error_sys(err, r, "hold blob %s", digest);
		r = layout_blob_write(&p->layout, digest, text, len, err);
		if (r < 0)
			return r;
	}
	return error_set(err, ERROR_INTERNAL, "blob %s cannot be kept in the store", digest);
}

/* "auth" of the CRI is base64 of "user:password". */
static int decode_auth(json_t *auth, struct error *err)
{
	const char *encoded = json_str_at(auth, "auth", "");
	void *text = NULL;
	size_t len;

	if (!*encoded || *json_str_at(auth, "username", ""))
		return 0;
	if (base64_decode(encoded, strlen(encoded), &text, &len) < 0 || strlen(text) != len || !strchr(text, ':')) {
		free(text);
		return error_set(err, ERROR_INVALID, "the credentials' \"auth\" is not base64 of user:password");
	}
	char *colon = strchr(text, ':');
	*colon = '\0';
	/* Some writers pad with NULs or newlines. */
	json_object_set_new(auth, "username", json_string(text));
	json_object_set_new(auth, "password", json_string(colon + 1));
	free(text);
	return 0;
}

static int take_request(struct pull *p, struct error *err)
{
	const char *platform, *root;
	int r = channel_receive(&p->channel, &p->request, err);

	if (r < 0)
		return r;
	p->op = json_str_at(p->request, "op", "");
	p->reference = json_str_at(p->request, "reference", "");
	p->name = json_str_at(p->request, "name", NULL);
	p->registry_config_dir = json_str_at(p->request, "registryConfigDir", "/etc/runtime-lite/certs.d");
	p->stall_timeout_ms = (uint64_t)MAX(json_int_at(p->request, "stallTimeoutMs", 60000), 1000);
	p->max_layer_bytes = (uint64_t)json_int_at(p->request, "maxLayerBytes", 0);
	p->max_ratio = (uint64_t)json_int_at(p->request, "maxRatio", 0);
	p->want_progress = json_bool_at(p->request, "progress", false);
	const json_t *insecure = json_object_get(p->request, "insecureRegistries");
	for (size_t i = 0; i < json_array_size(insecure); i++)
		strv_add(&p->insecure_registries, json_string_value(json_array_get(insecure, i)));
	platform = json_str_at(p->request, "platform", NULL);
	if (platform)
		r = platform_parse(platform, &p->node, err);
	else
		platform_host(&p->node);
	root = json_str_at(p->request, "root", "");
	if (r == 0)
		r = decode_auth(json_object_get(p->request, "auth"), err);
	if (r == 0)
		r = layout_open(root, &p->layout, err);
	/* The requester may have died before our wish to die with it was known. */
	if (r == 0 && getppid() != (pid_t)json_int_at(p->request, "parent", 0))
		r = error_set(err, ERROR_CANCELLED, "the requester is gone");
	return r;
}

/* The administrator's certificates can be anywhere. Troubles with hosts.toml are reported when it is read again. */
static void add_certificates(const struct pull *p, struct strv *readable)
{
	_cleanup_(reference_done) struct reference ref = { 0 };
	_cleanup_(endpoints_done) struct endpoints hosts = { 0 };

	if (reference_parse(p->reference, &ref, NULL) < 0 ||
		hosts_load(p->registry_config_dir, ref.registry, false, &hosts, NULL) < 0)
		return;
	for (size_t i = 0; i < hosts.n; i++) {
		for (size_t k = 0; k < hosts.v[i].ca.n; k++)
			strv_add(readable, hosts.v[i].ca.v[k]);
		if (hosts.v[i].client_cert) {
			strv_add(readable, hosts.v[i].client_cert);
			strv_add(readable, hosts.v[i].client_key);
		}
	}
}

static int work(struct pull *p, struct error *err)
{
	bool load = str_eq(p->op, "load"), landlock;
	_cleanup_(strv_done) struct strv readable = STRV_INIT;
	_cleanup_fd_ int opaque_fd = -1;

	if (!load && !str_eq(p->op, "pull"))
		return error_set(err, ERROR_INVALID, "unknown operation \"%.50s\"", p->op);
	int r = opaque_start(&opaque_fd, err);
	if (r < 0)
		return r;
	strv_add(&readable, p->registry_config_dir);
	if (!load)
		add_certificates(p, &readable);
	struct sandbox sandbox = { .root_fd = p->layout.root_fd, .input_fd = load ? INPUT_FD : -1, .readable = &readable,
		.max_file_bytes = p->max_layer_bytes };
	r = sandbox_enter(&sandbox, &landlock, err);
	if (r < 0)
		return r;
	return load ? load_images(p, opaque_fd, err) : fetch_image(p, opaque_fd, err);
}

/* Callers look at the beginning of the text for this word. */
static void unavailable_first(struct error *err)
{
	static const char word[] = "RegistryUnavailable: ";
	char *at = strstr(err->text, word);

	if (!at || at == err->text)
		return;
	memmove(err->text + strlen(word), err->text, (size_t)(at - err->text));
	memcpy(err->text, word, strlen(word));
}

int main(int argc, char **argv)
{
	struct pull p = { .channel = { .fd = CHANNEL_FD }, .layout = LAYOUT_INIT };
	struct error err = ERROR_INIT;
	struct stat st;

	log_init("runtime-lite-pull", LOG_LEVEL_INFO);
	if (fstat(CHANNEL_FD, &st) < 0 || !S_ISSOCK(st.st_mode) || fstat(STAGING_FD, &st) < 0) {
		fprintf(stderr, "%s is run by runtime-lite, not by hand: try runtime-lite pull or runtime-lite load\n",
			argc > 0 ? argv[0] : "pull");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	umask(0);
	/* libcurl only takes the lower-case name, since CGI programs get the other from strangers. We are none. */
	if (getenv("HTTP_PROXY") && !getenv("http_proxy"))
		setenv("http_proxy", getenv("HTTP_PROXY"), 1);
	curl_global_init(CURL_GLOBAL_ALL);
	int r = take_request(&p, &err);
	if (r == 0)
		r = work(&p, &err);
	unavailable_first(&err);
	r = channel_send(&p.channel, r < 0 ? channel_error(&err) : json_pack("{s:b}", "done", 1), &err) < 0 ? -EIO : r;
	platform_done(&p.node);
	layout_done(&p.layout);
	channel_done(&p.channel);
	strv_done(&p.insecure_registries);
	json_decref(p.request);
	curl_global_cleanup();
	return r < 0;
}
