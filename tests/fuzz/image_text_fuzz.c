/* image_text_fuzz.c - purpose: any bytes as a reference, manifest, configuration, docker-archive list, hosts.toml, challenge and
 * platform. The first byte chooses. make FUZZ=1 build-fuzz/tests/fuzz/image_text_fuzz */
#include "runtime-lite/image/challenge.h"
#include "runtime-lite/image/hosts.h"
#include "runtime-lite/image/inroot.h"
#include "runtime-lite/image/manifest.h"
#include "runtime-lite/image/record.h"
#include "runtime-lite/image/reference.h"

static void fuzz_reference(const char *text)
{
	struct reference ref, again;

	if (reference_parse(text, &ref, NULL) < 0)
		return;
	char *name = *ref.digest ? reference_with_digest(&ref, ref.digest) : reference_tagged(&ref);

	/* What is normal stays as it is. */
	if (reference_parse(name, &again, NULL) < 0 || strcmp(again.registry, ref.registry) != 0 ||
		strcmp(again.path, ref.path) != 0 || strstr(ref.path, "..") || strchr(ref.registry, '/'))
		abort();
	reference_done(&again);
	reference_done(&ref);
	free(name);
}

static void fuzz_manifest(const char *text, size_t len)
{
	struct manifest m;
	struct platform node;
	const struct descriptor *d;

	if (manifest_parse(text, len, NULL, &m, NULL) < 0)
		return;
	platform_host(&node);
	if (m.kind == MANIFEST_INDEX && manifest_choose(&m, &node, &d, NULL) == 0 && !digest_valid(d->digest))
		abort();
	platform_done(&node);
	manifest_done(&m);
}

static void fuzz_config(const char *text, size_t len)
{
	struct image_spec spec;
	struct strv chains = STRV_INIT;

	if (image_spec_parse(text, len, &spec, NULL) < 0)
		return;
	chain_ids(&spec.diff_ids, &chains);
	strv_done(&chains);
	image_spec_done(&spec);
}

static void fuzz_archive(const char *text, size_t len)
{
	struct archive_image *images;
	size_t n;

	if (archive_manifest_parse(text, len, &images, &n, NULL) == 0)
		archive_images_free(images, n);
}

static void fuzz_hosts(const char *text, size_t len)
{
	struct endpoints e = { 0 };

	if (hosts_parse("r.example:5000", text, len, "/dir", false, &e, NULL) == 0) {
		if (e.n == 0)
			abort();
		endpoints_done(&e);
	}
}

static void fuzz_clean(const char *text)
{
	char *clean;

	if (inroot_clean(text, 64, &clean, NULL) < 0)
		return;
	/* No way up, no way from the top. */
	if (*clean == '/' || strcmp(clean, "..") == 0 || strncmp(clean, "../", 3) == 0 || strstr(clean, "/../") || str_ends(clean, "/.."))
		abort();
	free(clean);
}

static void fuzz_images(const char *text, size_t len)
{
	struct image **images;
	size_t n;

	if (images_read(text, len, &images, &n, NULL) < 0)
		return;
	free(images_write(images, n));
	image_list_free(images, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	char *text = xstrndup((const char *)data + 1, size - 1);
	struct challenge c;
	struct platform p;

	switch (data[0] % 9) {
	case 0:
		fuzz_reference(text);
		break;
	case 1:
		fuzz_manifest((const char *)data + 1, size - 1);
		break;
	case 2:
		fuzz_config((const char *)data + 1, size - 1);
		break;
	case 3:
		fuzz_archive((const char *)data + 1, size - 1);
		break;
	case 4:
		fuzz_hosts((const char *)data + 1, size - 1);
		break;
	case 5:
		challenge_parse(text, &c);
		challenge_done(&c);
		break;
	case 6:
		if (platform_parse(text, &p, NULL) == 0)
			platform_done(&p);
		break;
	case 7:
		fuzz_clean(text);
		break;
	default:
		fuzz_images((const char *)data + 1, size - 1);
		break;
	}
	free(text);
	return 0;
}
