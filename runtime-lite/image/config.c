/* config.c - purpose: image configurations: what process, which platform, which layers. */
#include "common/base/sha256.h"
#include "common/wire/json.h"
#include "runtime-lite/image/manifest.h"
#include "runtime-lite/image/reference.h"

enum {
	LIST_MAX = 4096,            /* strings in Env, Cmd, Entrypoint, ... */
	STRING_MAX = 128 * 1024,    /* the kernel's limit for one argument */
	STRINGS_MAX = 1024 * 1024,  /* all of them together */
};

void image_config_done(struct image_config *c)
{
	free(c->user);
	free(c->working_dir);
	free(c->stop_signal);
	strv_done(&c->entrypoint);
	strv_done(&c->cmd);
	strv_done(&c->env);
	strv_done(&c->volumes);
	strv_done(&c->exposed_ports);
	*c = (struct image_config){ 0 };
}

void image_spec_done(struct image_spec *spec)
{
	platform_done(&spec->platform);
	image_config_done(&spec->config);
	strv_done(&spec->diff_ids);
}

static int refuse(struct error *err, const char *field, const char *want)
{
	return error_set(err, ERROR_INVALID, "image configuration: %s is not %s", field, want);
}

static int take(const json_t *v, const char *field, size_t *budget, const char **ret, struct error *err)
{
	if (!json_is_string(v))
		return refuse(err, field, "a string");
	if (json_string_length(v) > STRING_MAX || json_string_length(v) + 1 > *budget)
		return refuse(err, field, "within the size allowed");
	*budget -= json_string_length(v) + 1;
	*ret = json_string_value(v);
	return 0;
}

static int string(const json_t *config, const char *key, size_t *budget, char **ret, struct error *err)
{
	const json_t *v = json_object_get(config, key);
	const char *text = "";
	int r = v && !json_is_null(v) ? take(v, key, budget, &text, err) : 0;

	if (r == 0)
		*ret = xstrdup(text);
	return r;
}

static int list(const json_t *config, const char *key, size_t *budget, struct strv *ret, struct error *err)
{
	const json_t *v = json_object_get(config, key);

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_array(v) || json_array_size(v) > LIST_MAX)
		return refuse(err, key, "a list of at most 4096 strings");
	for (size_t i = 0; i < json_array_size(v); i++) {
		const char *text;
		int r = take(json_array_get(v, i), key, budget, &text, err);

		if (r < 0)
			return r;
		strv_add(ret, text);
	}
	return 0;
}

/* A Go map[string]struct{}: only the keys count. */
static int keys(const json_t *config, const char *key, size_t *budget, struct strv *ret, struct error *err)
{
	json_t *v = json_object_get(config, key);
	const char *name;
	json_t *ignored;

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_object(v) || json_object_size(v) > LIST_MAX)
		return refuse(err, key, "an object of at most 4096 keys");
	json_object_foreach(v, name, ignored) {
		if (strlen(name) > STRING_MAX || strlen(name) + 1 > *budget)
			return refuse(err, key, "within the size allowed");
		*budget -= strlen(name) + 1;
		strv_add(ret, name);
	}
	return 0;
}

static int config_parse(const json_t *config, struct image_config *c, struct error *err)
{
	size_t budget = STRINGS_MAX;

	if (config && !json_is_null(config) && !json_is_object(config))
		return refuse(err, "config", "an object");
	int r = string(config, "User", &budget, &c->user, err);
	if (r == 0)
		r = string(config, "WorkingDir", &budget, &c->working_dir, err);
	if (r == 0)
		r = string(config, "StopSignal", &budget, &c->stop_signal, err);
	if (r == 0)
		r = list(config, "Entrypoint", &budget, &c->entrypoint, err);
	if (r == 0)
		r = list(config, "Cmd", &budget, &c->cmd, err);
	if (r == 0)
		r = list(config, "Env", &budget, &c->env, err);
	if (r == 0)
		r = keys(config, "Volumes", &budget, &c->volumes, err);
	if (r == 0)
		r = keys(config, "ExposedPorts", &budget, &c->exposed_ports, err);
	return r;
}

static int diff_ids_parse(const json_t *rootfs, struct strv *ret, struct error *err)
{
	const json_t *ids = json_object_get(rootfs, "diff_ids");

	if (!ids || json_is_null(ids))
		return 0;
	if (!json_is_array(ids) || json_array_size(ids) > LAYERS_MAX)
		return refuse(err, "rootfs.diff_ids", "a list of at most 500 digests");
	for (size_t i = 0; i < json_array_size(ids); i++) {
		const char *id = json_string_value(json_array_get(ids, i));

		if (!digest_valid(id))
			return refuse(err, "rootfs.diff_ids", "a list of sha256 digests");
		strv_add(ret, id);
	}
	return 0;
}

static const char *text_at(const json_t *root, const char *key)
{
	const char *text = json_string_value(json_object_get(root, key));

	return text && strlen(text) < 64 ? text : "";
}

int image_spec_parse(const char *text, size_t len, struct image_spec *ret, struct error *err)
{
	_cleanup_json_ json_t *root = NULL;
	_cleanup_(image_spec_done) struct image_spec spec = { 0 };

	if (len > CONFIG_SIZE_MAX)
		return error_set(err, ERROR_INVALID, "image configuration: %zu bytes, more than the 8 MiB allowed", len);
	int r = json_read(text, len, false, &root, err);
	if (r < 0)
		return error_prefix(err, "image configuration");
	if (!json_is_object(root))
		return error_set(err, ERROR_INVALID, "image configuration: not a JSON object");
	platform_set(&spec.platform, text_at(root, "os"), text_at(root, "architecture"), text_at(root, "variant"));
	r = config_parse(json_object_get(root, "config"), &spec.config, err);
	if (r == 0)
		r = diff_ids_parse(json_object_get(root, "rootfs"), &spec.diff_ids, err);
	if (r < 0)
		return r;
	*ret = spec;
	spec = (struct image_spec){ 0 };
	return 0;
}

int image_spec_check_platform(const struct image_spec *spec, const struct platform *node, const char *image,
	struct error *err)
{
	if (platform_score(node, &spec->platform) > 0)
		return 0;
	_cleanup_free_ char *have = platform_text(&spec->platform);
	_cleanup_free_ char *want = platform_text(node);

	return error_set(err, ERROR_PRECONDITION, "image %.200s is %s%s, this node is %s", image, have,
		str_eq(spec->platform.architecture, "amd64") ? spec->platform.variant : "", want);
}

void chain_ids(const struct strv *diff_ids, struct strv *ret)
{
	char hex[SHA256_HEX_LEN + 1] = "";

	for (size_t i = 0; i < diff_ids->n; i++) {
		if (i == 0) {
			strcpy(hex, digest_hex(diff_ids->v[0]));
		} else {
			_cleanup_free_ char *both = xasprintf("sha256:%s %s", hex, diff_ids->v[i]);

			sha256_hex(both, strlen(both), hex);
		}
		strv_add(ret, hex);
	}
}
