/* manifest_test.c - purpose: manifests, indexes, platforms, configurations, docker-archive lists: by table. */
#include "runtime-lite/image/manifest.h"

#include <check.h>

#define H1 "1111111111111111111111111111111111111111111111111111111111111111"
#define H2 "2222222222222222222222222222222222222222222222222222222222222222"
#define H3 "3333333333333333333333333333333333333333333333333333333333333333"
#define D(h) "\"digest\":\"sha256:" h "\""
#define OCI "application/vnd.oci.image."
#define CONFIG "\"config\":{\"mediaType\":\"" OCI "config.v1+json\"," D(H1) ",\"size\":10}"
#define LAYER "{\"mediaType\":\"" OCI "layer.v1.tar+gzip\"," D(H2) ",\"size\":20}"
#define ENTRY(h, os, arch, more)                                                                                       \
	"{\"mediaType\":\"" OCI "manifest.v1+json\"," D(h) ",\"size\":5,\"platform\":{\"os\":\"" os                       \
	"\",\"architecture\":\"" arch "\"" more "}}"

static const struct {
	const char *name, *text, *type;
	enum manifest_kind kind;
	size_t entries;
	const char *why; /* refused, with this in the text */
	enum error_code code;
} manifests[] = {
	{ "OCI image", "{\"schemaVersion\":2," CONFIG ",\"layers\":[" LAYER "," LAYER "]}", OCI "manifest.v1+json", MANIFEST_IMAGE, 2 },
	{ "no layers", "{" CONFIG ",\"layers\":[]}", "", MANIFEST_IMAGE, 0 },
	{ "docker image", "{\"mediaType\":\"application/vnd.docker.distribution.manifest.v2+json\",\"config\":{\"mediaType\":"
		"\"application/vnd.docker.container.image.v1+json\"," D(H1) ",\"size\":1},\"layers\":[{\"mediaType\":"
		"\"application/vnd.docker.image.rootfs.diff.tar.gzip\"," D(H2) ",\"size\":2}]}",
		"application/vnd.docker.distribution.manifest.v2+json", MANIFEST_IMAGE, 1 },
	{ "type with parameters", "{" CONFIG ",\"layers\":[]}", OCI "manifest.v1+json; charset=utf-8", MANIFEST_IMAGE, 0 },
	{ "type that says nothing", "{" CONFIG ",\"layers\":[]}", "application/json", MANIFEST_IMAGE, 0 },
	{ "zstd and plain and foreign layers", "{" CONFIG ",\"layers\":[{\"mediaType\":\"" OCI "layer.v1.tar+zstd\"," D(H1)
		",\"size\":1},{\"mediaType\":\"" OCI "layer.v1.tar\"," D(H1) ",\"size\":1},{\"mediaType\":\"" OCI
		"layer.nondistributable.v1.tar+gzip\"," D(H1) ",\"size\":1}]}", "", MANIFEST_IMAGE, 3 },
	{ "index", "{\"manifests\":[" ENTRY(H1, "linux", "amd64", "") "]}", OCI "index.v1+json", MANIFEST_INDEX, 1 },
	{ "docker list", "{\"mediaType\":\"application/vnd.docker.distribution.manifest.list.v2+json\",\"manifests\":["
		ENTRY(H1, "linux", "amd64", "") "]}", "application/vnd.docker.distribution.manifest.list.v2+json", MANIFEST_INDEX, 1 },

	{ "both at once", "{\"manifests\":[]," CONFIG ",\"layers\":[]}", "", 0, 0, "at once", ERROR_INVALID },
	{ "index as image", "{\"manifests\":[]}", OCI "manifest.v1+json", 0, 0, "does not fit", ERROR_INVALID },
	{ "image as index", "{" CONFIG ",\"layers\":[]}", OCI "index.v1+json", 0, 0, "does not fit", ERROR_INVALID },
	{ "own type lies", "{\"mediaType\":\"" OCI "index.v1+json\"," CONFIG ",\"layers\":[]}", "", 0, 0, "does not fit", ERROR_INVALID },
	{ "unknown type", "{" CONFIG ",\"layers\":[]}", "image/png", 0, 0, "unknown type", ERROR_INVALID },
	{ "schema 1", "{\"schemaVersion\":1,\"fsLayers\":[]}", "", 0, 0, "schema 1", ERROR_UNIMPLEMENTED },
	{ "neither", "{\"schemaVersion\":2}", "", 0, 0, "neither", ERROR_INVALID },
	{ "no JSON", "<html>", "", 0, 0, "manifest", ERROR_INVALID },
	{ "a list", "[]", "", 0, 0, "not a JSON object", ERROR_INVALID },
	{ "empty", "", "", 0, 0, "manifest", ERROR_INVALID },
	{ "digest is a path", "{\"config\":{\"digest\":\"sha256:../../etc/passwd\",\"size\":1},\"layers\":[]}", "", 0, 0, "config: digest",
		ERROR_INVALID },
	{ "digest of another kind", "{\"config\":{\"digest\":\"sha512:" H1 H1 "\",\"size\":1},\"layers\":[]}", "", 0, 0, "config: digest",
		ERROR_INVALID },
	{ "no size", "{\"config\":{" D(H1) "},\"layers\":[]}", "", 0, 0, "config: size", ERROR_INVALID },
	{ "negative size", "{" CONFIG ",\"layers\":[{" D(H1) ",\"size\":-1}]}", "", 0, 0, "layers[0]: size", ERROR_INVALID },
	{ "size is text", "{" CONFIG ",\"layers\":[{" D(H1) ",\"size\":\"1\"}]}", "", 0, 0, "layers[0]: size", ERROR_INVALID },
	{ "huge configuration", "{\"config\":{" D(H1) ",\"size\":99999999},\"layers\":[]}", "", 0, 0, "8 MiB", ERROR_INVALID },
	{ "layers is no list", "{" CONFIG ",\"layers\":{}}", "", 0, 0, "not a list", ERROR_INVALID },
	{ "no layers at all", "{" CONFIG "}", "", 0, 0, "not a list", ERROR_INVALID },
	{ "layer is a number", "{" CONFIG ",\"layers\":[1]}", "", 0, 0, "layers[0] is not an object", ERROR_INVALID },
	{ "artifact", "{\"config\":{\"mediaType\":\"application/vnd.oci.empty.v1+json\"," D(H1) ",\"size\":2},\"layers\":[]}", "", 0, 0,
		"not a container image", ERROR_UNIMPLEMENTED },
	{ "chart", "{" CONFIG ",\"layers\":[{\"mediaType\":\"application/vnd.cncf.helm.chart.content.v1.tar+gzip\"," D(H1)
		",\"size\":2}]}", "", 0, 0, "not a container image", ERROR_UNIMPLEMENTED },
	{ "encrypted", "{" CONFIG ",\"layers\":[{\"mediaType\":\"" OCI "layer.v1.tar+gzip+encrypted\"," D(H1) ",\"size\":2}]}", "", 0, 0,
		"encrypted", ERROR_UNIMPLEMENTED },
};

START_TEST(manifest_case)
{
	struct manifest m = { 0 };
	struct error err = ERROR_INIT;
	int r = manifest_parse(manifests[_i].text, strlen(manifests[_i].text), manifests[_i].type, &m, &err);

	if (manifests[_i].why) {
		ck_assert_msg(r < 0, "%s was taken", manifests[_i].name);
		ck_assert_msg(strstr(err.text, manifests[_i].why), "%s: %s", manifests[_i].name, err.text);
		ck_assert_int_eq(err.code, manifests[_i].code);
		ck_assert_ptr_null(m.entries);
		return;
	}
	ck_assert_msg(r == 0, "%s: %s", manifests[_i].name, err.text);
	ck_assert_int_eq(m.kind, manifests[_i].kind);
	ck_assert_uint_eq(m.n_entries, manifests[_i].entries);
	manifest_done(&m);
}
END_TEST

START_TEST(too_many_layers)
{
	_cleanup_(str_done) struct str text = STR_INIT;
	struct manifest m;
	struct error err = ERROR_INIT;

	str_add(&text, "{" CONFIG ",\"layers\":[" LAYER);
	for (int i = 0; i < LAYERS_MAX; i++)
		str_add(&text, "," LAYER);
	str_add(&text, "]}");
	ck_assert_int_lt(manifest_parse(text.buf, text.len, "", &m, &err), 0);
	ck_assert_str_eq(err.text, "501 layers, more than the 500 allowed");
}
END_TEST

static const struct {
	const char *node, *entries, *choice; /* digest's first digit; NULL: none */
	const char *text;
} choices[] = {
	{ "linux/amd64", ENTRY(H1, "linux", "arm64", "") "," ENTRY(H2, "linux", "amd64", ""), "2", NULL },
	{ "linux/amd64", ENTRY(H1, "windows", "amd64", "") "," ENTRY(H2, "linux", "amd64", ""), "2", NULL },
	{ "linux/amd64", ENTRY(H1, "linux", "amd64", "") "," ENTRY(H2, "linux", "amd64", ""), "1", NULL },
	{ "linux/amd64/v3", ENTRY(H1, "linux", "amd64", "") "," ENTRY(H2, "linux", "amd64", ",\"variant\":\"v2\""), "2", NULL },
	{ "linux/amd64/v3", ENTRY(H1, "linux", "amd64", ",\"variant\":\"v4\"") "," ENTRY(H2, "linux", "amd64", ""), "2", NULL },
	{ "linux/amd64", ENTRY(H1, "linux", "amd64", ",\"variant\":\"v1\""), "1", NULL },
	{ "linux/amd64", ENTRY(H1, "linux", "x86_64", ""), "1", NULL },
	{ "linux/arm64", ENTRY(H1, "linux", "arm64", ",\"variant\":\"v8\""), "1", NULL },
	{ "linux/arm64", ENTRY(H1, "linux", "aarch64", ""), "1", NULL },
	{ "linux/arm/v7", ENTRY(H1, "linux", "arm", ",\"variant\":\"v5\"") "," ENTRY(H2, "linux", "arm", ",\"variant\":\"v6\""), "2", NULL },
	{ "linux/arm/v6", ENTRY(H1, "linux", "arm", ",\"variant\":\"v7\"") "," ENTRY(H2, "linux", "arm", ",\"variant\":\"v5\""), "2", NULL },
	{ "linux/arm/v7", ENTRY(H1, "linux", "arm", ",\"variant\":\"7\"") "," ENTRY(H2, "linux", "arm", ",\"variant\":\"v6\""), "1", NULL },
	{ "linux/amd64", ENTRY(H1, "linux", "arm64", "") "," ENTRY(H2, "linux", "arm", ",\"variant\":\"v7\"") ","
		ENTRY(H3, "unknown", "unknown", ""), NULL, "there is no image for linux/amd64; there is: linux/arm64, linux/arm/v7" },
	{ "linux/amd64", ENTRY(H3, "unknown", "unknown", ""), NULL, "there is no image for linux/amd64; there is: nothing" },
	{ "linux/amd64", "", NULL, "there is no image for linux/amd64; there is: nothing" },
	{ "linux/386", ENTRY(H1, "linux", "amd64", ""), NULL, "there is no image for linux/386; there is: linux/amd64" },
};

START_TEST(choice_case)
{
	_cleanup_free_ char *text = xasprintf("{\"manifests\":[%s]}", choices[_i].entries);
	_cleanup_(manifest_done) struct manifest m = { 0 };
	_cleanup_(platform_done) struct platform node = { 0 };
	struct error err = ERROR_INIT;
	const struct descriptor *d = NULL;

	ck_assert_int_eq(platform_parse(choices[_i].node, &node, &err), 0);
	ck_assert_msg(manifest_parse(text, strlen(text), NULL, &m, &err) == 0, "%s", err.text);
	int r = manifest_choose(&m, &node, &d, &err);
	if (choices[_i].choice) {
		ck_assert_msg(r == 0, "%s", err.text);
		ck_assert_int_eq(d->digest[7], choices[_i].choice[0]);
	} else {
		ck_assert_int_lt(r, 0);
		ck_assert_int_eq(err.code, ERROR_NOT_FOUND);
		ck_assert_str_eq(err.text, choices[_i].text);
	}
}
END_TEST

START_TEST(attestation_is_skipped)
{
	static const char text[] = "{\"manifests\":[{" D(H1) ",\"size\":1,\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"},"
		"\"annotations\":{\"vnd.docker.reference.type\":\"attestation-manifest\"}},"
		ENTRY(H2, "linux", "amd64", "") "]}";
	_cleanup_(manifest_done) struct manifest m = { 0 };
	_cleanup_(platform_done) struct platform node = { 0 };
	const struct descriptor *d;

	ck_assert_int_eq(platform_parse("linux/amd64", &node, NULL), 0);
	ck_assert_int_eq(manifest_parse(text, strlen(text), NULL, &m, NULL), 0);
	ck_assert_int_eq(manifest_choose(&m, &node, &d, NULL), 0);
	ck_assert_int_eq(d->digest[7], '2');
}
END_TEST

static const char *const bad_platforms[] = { "", "linux", "linux/", "/amd64", "linux/amd64/v1/x", "Linux/amd64", "linux/am d64", "a/b/" };

START_TEST(bad_platform_case)
{
	struct platform p;
	struct error err = ERROR_INIT;

	ck_assert_msg(platform_parse(bad_platforms[_i], &p, &err) < 0, "\"%s\" was taken", bad_platforms[_i]);
}
END_TEST

START_TEST(host)
{
	_cleanup_(platform_done) struct platform p = { 0 };

	platform_host(&p);
	ck_assert_str_eq(p.os, "linux");
	ck_assert_int_gt(strlen(p.architecture), 0);
	struct platform plain = { (char *)"linux", p.architecture, (char *)"" };
	if (strcmp(p.architecture, "arm") != 0)
		ck_assert_uint_gt(platform_score(&p, &plain), 0);
}
END_TEST

START_TEST(config)
{
	static const char text[] = "{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"User\":\"1000:5\",\"Env\":[\"A=1\",\"B=2\"],"
		"\"Entrypoint\":[\"/e\"],\"Cmd\":[\"c\",\"d\"],\"WorkingDir\":\"/w\",\"StopSignal\":\"SIGINT\","
		"\"Volumes\":{\"/v\":{}},\"ExposedPorts\":{\"80/tcp\":{}},\"Labels\":{\"x\":\"y\"}},"
		"\"rootfs\":{\"type\":\"layers\",\"diff_ids\":[\"sha256:" H1 "\",\"sha256:" H2 "\"]}}";
	_cleanup_(image_spec_done) struct image_spec spec = { 0 };
	struct error err = ERROR_INIT;

	ck_assert_msg(image_spec_parse(text, strlen(text), &spec, &err) == 0, "%s", err.text);
	ck_assert_str_eq(spec.config.user, "1000:5");
	ck_assert_uint_eq(spec.config.env.n, 2);
	ck_assert_str_eq(spec.config.env.v[1], "B=2");
	ck_assert_str_eq(spec.config.entrypoint.v[0], "/e");
	ck_assert_uint_eq(spec.config.cmd.n, 2);
	ck_assert_str_eq(spec.config.working_dir, "/w");
	ck_assert_str_eq(spec.config.stop_signal, "SIGINT");
	ck_assert_str_eq(spec.config.volumes.v[0], "/v");
	ck_assert_str_eq(spec.config.exposed_ports.v[0], "80/tcp");
	ck_assert_uint_eq(spec.diff_ids.n, 2);

	_cleanup_(strv_done) struct strv chains = STRV_INIT;
	chain_ids(&spec.diff_ids, &chains);
	ck_assert_str_eq(chains.v[0], H1);
	/* printf 'sha256:1... sha256:2...' | sha256sum */
	ck_assert_str_eq(chains.v[1], "9932074217c35353d2e03a3f5a86549f7c67bfeb0ba53e23d69f4d4c8f7958f5");
}
END_TEST

static const struct {
	const char *text, *why; /* NULL: good */
} configs[] = {
	{ "{}", NULL },
	{ "{\"config\":null,\"rootfs\":{\"diff_ids\":null}}", NULL },
	{ "{\"config\":{\"Env\":null,\"Cmd\":null,\"Volumes\":null,\"User\":null}}", NULL },
	{ "{\"config\":[]}", "config is not" },
	{ "{\"config\":{\"Env\":\"A=1\"}}", "Env is not" },
	{ "{\"config\":{\"Env\":[1]}}", "Env is not" },
	{ "{\"config\":{\"Cmd\":{}}}", "Cmd is not" },
	{ "{\"config\":{\"User\":5}}", "User is not" },
	{ "{\"config\":{\"Volumes\":[]}}", "Volumes is not" },
	{ "{\"rootfs\":{\"diff_ids\":[\"sha256:x\"]}}", "diff_ids" },
	{ "{\"rootfs\":{\"diff_ids\":[5]}}", "diff_ids" },
	{ "{\"rootfs\":{\"diff_ids\":\"x\"}}", "diff_ids" },
	{ "{\"config\":{\"User\":\"a\\u0000b\"}}", "configuration" },
	{ "[]", "not a JSON object" },
	{ "", "configuration" },
};

START_TEST(config_case)
{
	struct image_spec spec = { 0 };
	struct error err = ERROR_INIT;
	int r = image_spec_parse(configs[_i].text, strlen(configs[_i].text), &spec, &err);

	if (configs[_i].why) {
		ck_assert_msg(r < 0, "%s was taken", configs[_i].text);
		ck_assert_msg(strstr(err.text, configs[_i].why), "%s: %s", configs[_i].text, err.text);
	} else {
		ck_assert_msg(r == 0, "%s: %s", configs[_i].text, err.text);
		ck_assert_str_eq(spec.config.user, "");
		image_spec_done(&spec);
	}
}
END_TEST

START_TEST(config_limits)
{
	_cleanup_(str_done) struct str text = STR_INIT;
	struct image_spec spec;
	struct error err = ERROR_INIT;

	str_add(&text, "{\"config\":{\"Env\":[\"A=1\"");
	for (int i = 0; i < 4096; i++)
		str_add(&text, ",\"A=1\"");
	str_add(&text, "]}}");
	ck_assert_int_lt(image_spec_parse(text.buf, text.len, &spec, &err), 0);
	ck_assert(strstr(err.text, "Env is not a list of at most 4096"));

	str_reset(&text);
	str_add(&text, "{\"config\":{\"Env\":[\"");
	for (int i = 0; i < 130 * 1024; i++)
		str_add_char(&text, 'x');
	str_add(&text, "\"]}}");
	ck_assert_int_lt(image_spec_parse(text.buf, text.len, &spec, &err), 0);
	ck_assert(strstr(err.text, "within the size"));
}
END_TEST

START_TEST(wrong_platform)
{
	static const char text[] = "{\"architecture\":\"arm64\",\"os\":\"linux\"}";
	_cleanup_(image_spec_done) struct image_spec spec = { 0 };
	_cleanup_(platform_done) struct platform node = { 0 };
	struct error err = ERROR_INIT;

	ck_assert_int_eq(platform_parse("linux/amd64", &node, NULL), 0);
	ck_assert_int_eq(image_spec_parse(text, strlen(text), &spec, NULL), 0);
	ck_assert_int_lt(image_spec_check_platform(&spec, &node, "app:1", &err), 0);
	ck_assert_str_eq(err.text, "image app:1 is linux/arm64, this node is linux/amd64");
	ck_assert_int_eq(err.code, ERROR_PRECONDITION);
}
END_TEST

static const struct {
	const char *text;
	size_t n; /* 0: refused */
} archives[] = {
	{ "[{\"Config\":\"c.json\",\"RepoTags\":[\"a:1\",\"b:2\"],\"Layers\":[\"x/layer.tar\"]}]", 1 },
	{ "[{\"Config\":\"c\",\"RepoTags\":null,\"Layers\":null},{\"Config\":\"d\"}]", 2 },
	{ "[]", 0 },
	{ "{}", 0 },
	{ "[{}]", 0 },
	{ "[{\"Config\":1}]", 0 },
	{ "[{\"Config\":\"c\",\"Layers\":\"x\"}]", 0 },
	{ "[{\"Config\":\"c\",\"Layers\":[1]}]", 0 },
	{ "[{\"Config\":\"c\",\"RepoTags\":{}}]", 0 },
	{ "[1]", 0 },
	{ "x", 0 },
};

START_TEST(archive_case)
{
	struct archive_image *images = NULL;
	struct error err = ERROR_INIT;
	size_t n = 0;
	int r = archive_manifest_parse(archives[_i].text, strlen(archives[_i].text), &images, &n, &err);

	ck_assert_msg((r == 0) == (archives[_i].n > 0), "%s: %s", archives[_i].text, err.text);
	ck_assert_uint_eq(n, archives[_i].n);
	archive_images_free(images, n);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("manifest");
	TCase *t = tcase_create("manifest");

	tcase_add_loop_test(t, manifest_case, 0, ARRAY_LEN(manifests));
	tcase_add_test(t, too_many_layers);
	tcase_add_loop_test(t, choice_case, 0, ARRAY_LEN(choices));
	tcase_add_test(t, attestation_is_skipped);
	tcase_add_loop_test(t, bad_platform_case, 0, ARRAY_LEN(bad_platforms));
	tcase_add_test(t, host);
	tcase_add_test(t, config);
	tcase_add_loop_test(t, config_case, 0, ARRAY_LEN(configs));
	tcase_add_test(t, config_limits);
	tcase_add_test(t, wrong_platform);
	tcase_add_loop_test(t, archive_case, 0, ARRAY_LEN(archives));
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
