/* image_commands.c - purpose: `runtime-lite images|pull|load|rmi`. */
#include "runtime-lite/admin/image_commands.h"

#include <runtime-lite.opts.h>
#include <stdio.h>

#include "runtime-lite/admin/tool.h"
#include "runtime-lite/image/store.h"

enum { PULL_TIMEOUT_MS = 4 * 3600 * 1000 };

struct context {
	const struct image_command_env *env;
	struct invocation in;
	struct admin admin;
};

/* "repository" and "tag" of a reference as tables show them. */
static void split_name(const char *name, char **ret_repository, char **ret_tag)
{
	const char *slash = strrchr(name, '/');
	const char *end = strchr(slash ? slash : name, '@');

	if (!end)
		end = strchr(slash ? slash : name, ':');
	*ret_repository = xstrndup(name, end ? (size_t)(end - name) : strlen(name));
	*ret_tag = xstrdup(end && *end == ':' ? end + 1 : "<none>");
}

static void add_row(struct table *t, const char *name, const CRI(Image) * image)
{
	_cleanup_free_ char *repository = NULL, *tag = NULL;
	const char *hex = str_starts(image->id, "sha256:") ? image->id + 7 : image->id;
	char id[14], size[32];

	split_name(name, &repository, &tag);
	tool_short_id(hex, id);
	tool_size(image->size, size);
	table_add(t, repository, tag, id, size);
}

static void print_images(const CRI(ListImagesResponse) * reply)
{
	_cleanup_(table_done) struct table t = { .columns = 4 };

	table_add(&t, "IMAGE", "TAG", "IMAGE ID", "SIZE");
	for (size_t i = 0; i < reply->n_images; i++) {
		const CRI(Image) *image = reply->images[i];

		for (size_t k = 0; k < image->n_repo_tags; k++)
			add_row(&t, image->repo_tags[k], image);
		if (image->n_repo_tags == 0)
			add_row(&t, image->n_repo_digests ? image->repo_digests[0] : "<none>", image);
	}
	table_print(&t);
}

static int run_images(struct context *c, struct error *err)
{
	CRI(ListImagesRequest) request = RUNTIME__V1__LIST_IMAGES_REQUEST__INIT;
	_cleanup_message_ CRI(ListImagesResponse) *reply = NULL;
	enum tool_output output;
	int r = tool_output(&c->in, true, &output, err);

	if (r == 0)
		r = tool_call(&c->admin, "ImageService/ListImages", &request, &runtime__v1__list_images_response__descriptor,
			TOOL_TIMEOUT_MS, &reply, err);
	if (r < 0)
		return r;
	if (output == OUTPUT_JSON)
		tool_print_message(reply);
	else if (output == OUTPUT_ID || option_bool(c->in.options, "quiet"))
		for (size_t i = 0; i < reply->n_images; i++)
			puts(reply->images[i]->id);
	else
		print_images(reply);
	return 0;
}

static int run_pull(struct context *c, struct error *err)
{
	CRI(ImageSpec) spec = RUNTIME__V1__IMAGE_SPEC__INIT;
	CRI(AuthConfig) auth = RUNTIME__V1__AUTH_CONFIG__INIT;
	CRI(PullImageRequest) request = RUNTIME__V1__PULL_IMAGE_REQUEST__INIT;
	_cleanup_message_ CRI(PullImageResponse) *reply = NULL;
	const char *credentials = option_string(c->in.options, "creds");
	_cleanup_free_ char *user = xstrdup(credentials);

	if (user) {
		char *colon = strchr(user, ':');

		if (!colon)
			return error_set(err, ERROR_INVALID, "--creds must be user:password");
		*colon = '\0';
		auth.username = user;
		auth.password = colon + 1;
		request.auth = &auth;
	}
	spec.image = c->in.argv[0];
	request.image = &spec;
	int r = tool_call(&c->admin, "ImageService/PullImage", &request, &runtime__v1__pull_image_response__descriptor,
		PULL_TIMEOUT_MS, &reply, err);
	if (r == 0)
		puts(reply->image_ref);
	return r;
}

static int run_rmi(struct context *c, struct error *err)
{
	for (int i = 0; i < c->in.argc; i++) {
		CRI(ImageSpec) spec = RUNTIME__V1__IMAGE_SPEC__INIT;
		CRI(ImageStatusRequest) look = RUNTIME__V1__IMAGE_STATUS_REQUEST__INIT;
		CRI(RemoveImageRequest) request = RUNTIME__V1__REMOVE_IMAGE_REQUEST__INIT;
		_cleanup_message_ CRI(ImageStatusResponse) *status = NULL;

		spec.image = c->in.argv[i];
		look.image = request.image = &spec;
		int r = tool_call(&c->admin, "ImageService/ImageStatus", &look, &runtime__v1__image_status_response__descriptor,
			TOOL_TIMEOUT_MS, &status, err);
		/* The CRI is happy when there is nothing to remove; a person who mistyped is not. */
		if (r == 0 && !status->image)
			r = error_set(err, ERROR_NOT_FOUND, "image %.200s is not present", c->in.argv[i]);
		if (r == 0)
			r = tool_do(&c->admin, "ImageService/RemoveImage", &request,
				&runtime__v1__remove_image_response__descriptor, TOOL_TIMEOUT_MS, err);
		if (r < 0)
			return r;
		for (size_t k = 0; k < status->image->n_repo_tags; k++)
			printf("removed %s\n", status->image->repo_tags[k]);
		if (status->image->n_repo_tags == 0)
			printf("removed %s\n", status->image->id);
	}
	return 0;
}

static void show_progress(void *data, const struct image_progress *p)
{
	char done[32], total[32];

	(void)data;
	tool_size(p->done_bytes, done);
	tool_size(p->total_bytes, total);
	fprintf(stderr, "\r%s of %s, %u of %u layers ", done, total, p->layers_done, p->layers);
}

/* On the store itself: the CRI has no call for it. The daemon sees the images at once; it need not run. */
static int run_load(struct context *c, struct error *err)
{
	const struct image_store_options options = { .root = c->env->root, .libexec_dir = c->env->libexec_dir,
		.registry_config_dir = c->env->registry_config_dir, .limits = c->env->limits, .shared = true };
	struct image_pull_options how = IMAGE_PULL_OPTIONS_INIT;
	struct image_store *store = NULL;
	int r = image_store_open(&options, &store, err);

	if (r < 0)
		return r;
	bool terminal = isatty(2);
	how.progress = terminal ? show_progress : NULL;
	for (int i = 0; r == 0 && i < c->in.argc; i++) {
		_cleanup_(strv_done) struct strv loaded = STRV_INIT;

		r = image_load(store, c->in.argv[i], option_string(c->in.options, "tag"), &how, &loaded, err);
		if (terminal)
			fputs("\r\x1b[K", stderr);
		for (size_t k = 0; k < loaded.n; k++)
			printf("loaded %s\n", loaded.v[k]);
	}
	image_store_close(store);
	return r;
}

static const struct option_spec no_options[] = { { 0 } };

static const struct {
	const char *name, *synopsis;
	const struct option_spec *options;
	int min_args, max_args; /* max -1: any number */
	int (*run)(struct context *c, struct error *err);
} commands[] = {
	{ "images", "images [options]", runtime_lite_images_options, 0, 0, run_images },
	{ "pull", "pull [options] reference", runtime_lite_pull_options, 1, 1, run_pull },
	{ "load", "load [options] file...", runtime_lite_load_options, 1, -1, run_load },
	{ "rmi", "rmi image...", no_options, 1, -1, run_rmi },
};

static int find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (str_eq(commands[i].name, name))
			return (int)i;
	return -1;
}

bool image_command_known(const char *name)
{
	return find(name) >= 0;
}

const char *image_command_synopsis(size_t i)
{
	return i < ARRAY_LEN(commands) ? commands[i].synopsis : NULL;
}

/* "-q" is the first flag that begins with q. "-" alone is a file. */
static void long_flags(const struct option_spec *table, int argc, char **argv, struct strv *ret)
{
	for (int i = 0; i < argc; i++) {
		const struct option_spec *spec = table;
		bool single = i > 0 && argv[i][0] == '-' && argv[i][1] && argv[i][1] != '-' && !argv[i][2];

		while (single && spec->name && spec->name[0] != argv[i][1])
			spec++;
		if (single && spec->name)
			strv_add_take(ret, xasprintf("--%s", spec->name));
		else
			strv_add(ret, argv[i]);
	}
}

int image_command_run(int argc, char **argv, const struct image_command_env *env)
{
	int index = argc > 0 ? find(argv[0]) : -1;
	struct context c = { .env = env, .admin = { .socket_path = env->socket_path, .root = env->root,
						 .libexec_dir = env->libexec_dir } };
	_cleanup_(strv_done) struct strv words = STRV_INIT;
	struct option_values *options = NULL;
	struct error err = ERROR_INIT;
	int rest = 0;

	assert(index >= 0);
	long_flags(commands[index].options, argc, argv, &words);
	int r = options_parse(commands[index].options, "runtime-lite", commands[index].synopsis, (int)words.n, words.v, &rest,
		&options, &err);
	int count = (int)words.n - rest;
	if (r == 0 && (count < commands[index].min_args || (commands[index].max_args >= 0 && count > commands[index].max_args)))
		r = error_set(&err, ERROR_INVALID, "usage: runtime-lite %s", commands[index].synopsis);
	if (r < 0) {
		fprintf(stderr, "runtime-lite %s: %s\n", commands[index].name, err.text);
		option_values_free(options);
		return 1;
	}
	c.in = (struct invocation){ .admin = &c.admin, .options = options, .argc = count, .argv = words.v + rest };
	r = commands[index].run(&c, &err);
	if (r < 0)
		fprintf(stderr, "runtime-lite %s: %s\n", commands[index].name, err.text);
	option_values_free(options);
	return r < 0 || fflush(stdout) != 0;
}
