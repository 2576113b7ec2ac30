/*
 * store_tool.c - purpose: the image store from a shell, for integration tests: no daemon, no CRI.
 *
 *	store_tool ROOT LIBEXEC [--certs DIR] [--stall MS] [--max BYTES] [--ratio N] [--shared] [--platform P] [--auth user:password]
 *		[--deadline MS] COMMAND [ARG]...
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "common/base/log.h"
#include "common/sys/file.h"
#include "runtime-lite/image/store.h"

static struct image_store *store;
static struct image_pull_options pull_options = IMAGE_PULL_OPTIONS_INIT;
static struct image_auth auth;
static uint64_t deadline_ms;

static void print_image(const struct image *image)
{
	printf("%s size=%" PRIu64 " layers=%zu pinned=%d", image->id, image->size_bytes, image->chain_ids.n, image->pinned);
	for (size_t i = 0; i < image->repo_tags.n; i++)
		printf(" tag=%s", image->repo_tags.v[i]);
	for (size_t i = 0; i < image->repo_digests.n; i++)
		printf(" digest=%s", image->repo_digests.v[i]);
	if (image->config.cmd.n)
		printf(" cmd=%s", image->config.cmd.v[0]);
	putchar('\n');
}

static int print_list(const struct strv *list)
{
	for (size_t i = 0; i < list->n; i++)
		puts(list->v[i]);
	return 0;
}

static void on_progress(void *data, const struct image_progress *p)
{
	(void)data;
	fprintf(stderr, "progress %s %" PRIu64 "/%" PRIu64 " layers %u/%u\n", p->what, p->done_bytes, p->total_bytes,
		p->layers_done, p->layers);
}

static int run(int argc, char **argv, struct error *err)
{
	const char *name = argc > 0 ? argv[0] : "", *arg = argc > 1 ? argv[1] : "", *more = argc > 2 ? argv[2] : NULL;
	struct strv list = STRV_INIT;
	int r = 0;

	if (deadline_ms)
		pull_options.deadline_ns = clock_monotonic_ns() + deadline_ms * 1000000;
	if (str_eq(name, "pull")) {
		char *id = NULL;

		r = image_pull(store, arg, &pull_options, &id, err);
		if (r == 0)
			puts(id);
		free(id);
	} else if (str_eq(name, "load")) {
		r = image_load(store, arg, more, &pull_options, &list, err);
		print_list(&list);
	} else if (str_eq(name, "list")) {
		struct image **images;
		size_t n;

		r = image_store_list(store, arg, &images, &n, err);
		for (size_t i = 0; r == 0 && i < n; i++)
			print_image(images[i]);
		if (r == 0)
			image_list_free(images, n);
	} else if (str_eq(name, "find")) {
		struct image *image;

		r = image_store_find(store, arg, &image, err);
		if (r == 0) {
			print_image(image);
			image_unref(image);
		}
	} else if (str_eq(name, "rm")) {
		r = image_store_remove(store, arg, err);
	} else if (str_eq(name, "prune")) {
		r = image_store_prune(store, str_eq(arg, "all"), NULL, &list, err);
		print_list(&list);
	} else if (str_eq(name, "acquire")) {
		r = image_layers_acquire(store, arg, more, &list, err);
		print_list(&list);
	} else if (str_eq(name, "held")) {
		r = image_layers_held(store, arg, &list, err);
		print_list(&list);
	} else if (str_eq(name, "release")) {
		r = image_layers_release(store, arg, err);
	} else if (str_eq(name, "retain")) {
		struct strv keep = STRV_INIT;

		for (int i = 1; i < argc; i++)
			strv_add(&keep, argv[i]);
		r = image_layers_retain_only(store, &keep, err);
		strv_done(&keep);
	} else if (str_eq(name, "usage")) {
		uint64_t bytes, inodes;

		image_store_usage(store, &bytes, &inodes);
		printf("%" PRIu64 " %" PRIu64 "\n", bytes, inodes);
	} else {
		r = error_set(err, ERROR_INVALID, "unknown command %s", name);
	}
	strv_done(&list);
	return r;
}

int main(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	struct strv insecure = STRV_INIT;
	int i = 3;

	if (argc < 4)
		return 2;
	log_init("store_tool", LOG_LEVEL_INFO);
	struct image_store_options options = { .root = argv[1], .libexec_dir = argv[2], .registry_config_dir = "/nonexistent",
		.insecure_registries = &insecure };
	for (; i < argc && str_starts(argv[i], "--"); i++) {
		const char *name = argv[i];

		if (str_eq(name, "--shared")) {
			options.shared = true;
			continue;
		}
		if (str_eq(name, "--progress")) {
			pull_options.progress = on_progress;
			continue;
		}
		char *v = argv[++i];
		if (!v)
			return 2;
		if (str_eq(name, "--certs"))
			options.registry_config_dir = v;
		else if (str_eq(name, "--insecure"))
			strv_add(&insecure, v);
		else if (str_eq(name, "--stall"))
			options.limits.stall_timeout_ns = strtoull(v, NULL, 10) * 1000000;
		else if (str_eq(name, "--max"))
			options.limits.max_layer_bytes = strtoull(v, NULL, 10);
		else if (str_eq(name, "--ratio"))
			options.limits.max_layer_ratio = strtoull(v, NULL, 10);
		else if (str_eq(name, "--platform"))
			pull_options.platform = v;
		else if (str_eq(name, "--deadline"))
			deadline_ms = strtoull(v, NULL, 10);
		else if (str_eq(name, "--auth")) {
			char *colon = strchr(v, ':');

			*colon = '\0';
			auth = (struct image_auth){ .username = v, .password = colon + 1 };
			pull_options.auth = &auth;
		} else {
			return 2;
		}
	}
	int r = image_store_open(&options, &store, &err);
	if (r == 0)
		r = run(argc - i, argv + i, &err);
	if (r < 0)
		fprintf(stderr, "error %s: %s\n", error_code_name(err.code), err.text);
	image_store_close(store);
	strv_done(&insecure);
	return r < 0;
}
