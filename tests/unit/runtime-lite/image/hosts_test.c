/* hosts_test.c - purpose: hosts.toml, its TOML, and WWW-Authenticate headers: by table. */
#include "runtime-lite/image/hosts.h"

#include <check.h>

#include "runtime-lite/image/challenge.h"
#include "runtime-lite/image/toml.h"

static const struct {
	const char *text, *json; /* NULL: refused */
} tomls[] = {
	{ "", "{}" },
	{ "# only a comment", "{}" },
	{ "a = 1", "{\"a\":1}" },
	{ "a = -17 # x\nb = 1_000\r\n\n", "{\"a\":-17,\"b\":1000}" },
	{ "a = \"x\\ty\\u00e9\\\\\"", "{\"a\":\"x\\ty\u00e9\\\\\"}" },
	{ "a = 'x\\ty'", "{\"a\":\"x\\\\ty\"}" },
	{ "a = \"\"\"\nx\ny\\\n   z\"\"\"", "{\"a\":\"x\\nyz\"}" },
	{ "a = '''\nx'y'''", "{\"a\":\"x'y\"}" },
	{ "a = true\nb = false", "{\"a\":true,\"b\":false}" },
	{ "a = [1, \"b\", [true], # c\n]", "{\"a\":[1,\"b\",[true]]}" },
	{ "a = []", "{\"a\":[]}" },
	{ "a = { b = 1, c.d = 2 }", "{\"a\":{\"b\":1,\"c\":{\"d\":2}}}" },
	{ "[t]\na = 1\n[t.u]\nb = 2", "{\"t\":{\"a\":1,\"u\":{\"b\":2}}}" },
	{ "[host.\"https://x:5000\"]\n  capabilities = [\"pull\"]", "{\"host\":{\"https://x:5000\":{\"capabilities\":[\"pull\"]}}}" },
	{ "'quoted key' = 1", "{\"quoted key\":1}" },
	{ "a.b . c = 1", "{\"a\":{\"b\":{\"c\":1}}}" },
	{ "a", NULL },
	{ "a =", NULL },
	{ "a = 1 b = 2", NULL },
	{ "a = 1\na = 2", NULL },
	{ "a = 1\na.b = 2", NULL },
	{ "a = \"x", NULL },
	{ "a = \"x\ny\"", NULL },
	{ "a = \"\\q\"", NULL },
	{ "a = \"\\ud800\"", NULL },
	{ "a = [1", NULL },
	{ "a = [1 2]", NULL },
	{ "a = {b = 1", NULL },
	{ "a = 1.5", NULL },
	{ "a = 2026-01-01", NULL },
	{ "a = 99999999999999999999", NULL },
	{ "a = truely", NULL },
	{ "[t", NULL },
	{ "[[t]]", NULL },
	{ "[]", NULL },
	{ "= 1", NULL },
	{ "a = [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]", NULL },
	{ "a = \"\xff\"", NULL },
};

START_TEST(toml_case)
{
	_cleanup_json_ json_t *root = NULL;
	struct error err = ERROR_INIT;
	int r = toml_read(tomls[_i].text, strlen(tomls[_i].text), &root, &err);

	if (!tomls[_i].json) {
		ck_assert_msg(r < 0, "%s was taken", tomls[_i].text);
		ck_assert_msg(strstr(err.text, "line "), "%s", err.text);
		return;
	}
	ck_assert_msg(r == 0, "%s: %s", tomls[_i].text, err.text);
	_cleanup_free_ char *text = json_text(root);
	ck_assert_str_eq(text, tomls[_i].json);
}
END_TEST

/* Endpoints as text: URL, capabilities, flags. */
static char *describe(const struct endpoints *list)
{
	struct str out = STR_INIT;

	for (size_t i = 0; i < list->n; i++) {
		const struct endpoint *e = &list->v[i];

		str_addf(&out, "%s%s %s%s%s%s", i ? "; " : "", e->url, e->pull ? "p" : "", e->resolve ? "r" : "",
			e->mirror ? "m" : "", e->skip_verify ? "s" : "");
		for (size_t k = 0; k < e->ca.n; k++)
			str_addf(&out, " ca=%s", e->ca.v[k]);
		if (e->client_cert)
			str_addf(&out, " client=%s,%s", e->client_cert, e->client_key);
		for (size_t k = 0; k < e->headers.n; k++)
			str_addf(&out, " [%s]", e->headers.v[k]);
	}
	return str_take(&out);
}

static const struct {
	const char *registry, *text, *want; /* want begins with "!": refused with that in the text */
	bool plain;
} hosts[] = {
	{ "docker.io", NULL, "https://registry-1.docker.io/v2 pr", false },
	{ "r.example:5000", NULL, "https://r.example:5000/v2 pr", false },
	{ "localhost:5000", NULL, "http://localhost:5000/v2 pr", true },
	{ "r.example", "", "https://r.example/v2 pr", false },
	{ "r.example", "server = \"\"", "https://r.example/v2 pr", false },
	{ "r.example", "server = \"http://r.example:80/\"", "http://r.example:80/v2 pr", false },
	{ "r.example", "server = \"other.example\"", "https://other.example/v2 pr", false },
	{ "docker.io", "[host.\"https://m1\"]\n[host.\"https://m2\"]\ncapabilities = [\"pull\"]",
		"https://m1/v2 prm; https://m2/v2 pm; https://registry-1.docker.io/v2 pr", false },
	{ "r.example", "[host.z]\n[host.y]\n[host.x]",
		"https://z/v2 prm; https://y/v2 prm; https://x/v2 prm; https://r.example/v2 pr", false },
	{ "r.example", "[host.\"https://m/base\"]\noverride_path = true\nskip_verify = true",
		"https://m/base prms; https://r.example/v2 pr", false },
	{ "r.example", "[host.\"https://m/v2\"]\nca = \"m.pem\"\nclient = [[\"c.pem\", \"/k.pem\"]]",
		"https://m/v2 prm ca=/d/m.pem client=/d/c.pem,/k.pem; https://r.example/v2 pr", false },
	{ "r.example", "ca = [\"a\", \"/b\"]\nclient = \"both.pem\"", "https://r.example/v2 pr ca=/d/a ca=/b client=/d/both.pem,/d/both.pem",
		false },
	{ "r.example", "[host.m.header]\nx-a = \"1\"\nx-b = [\"2\", \"3\"]",
		"https://m/v2 prm [x-a: 1] [x-b: 2] [x-b: 3]; https://r.example/v2 pr", false },
	{ "r.example", "server = \"https://r.example\"\n[host.\"https://r.example\"]\nskip_verify = true", "https://r.example/v2 prs", false },
	{ "r.example", "[host.\"ftp://m\"]", "!http", false },
	{ "r.example", "[host.\"https://\"]", "!no host", false },
	{ "r.example", "[host.\"https://user:pw@m\"]", "!character", false },
	{ "r.example", "[host.\"https://m?x\"]", "!character", false },
	{ "r.example", "server = 5", "!server", false },
	{ "r.example", "host = 5", "!host", false },
	{ "r.example", "[host]\nm = 5", "!host.\"m\"", false },
	{ "r.example", "capabilities = [\"fly\"]", "!fly", false },
	{ "r.example", "capabilities = \"pull\"", "!capabilities", false },
	{ "r.example", "ca = 5", "!ca", false },
	{ "r.example", "ca = [[\"x\"]]", "!ca", false },
	{ "r.example", "client = [5]", "!client", false },
	{ "r.example", "[header]\nx = \"a\\nb\"", "!header", false },
	{ "r.example", "[header]\n\"x y\" = \"a\"", "!header", false },
};

START_TEST(hosts_case)
{
	struct endpoints list = { 0 };
	struct error err = ERROR_INIT;
	const char *text = hosts[_i].text;
	int r = hosts_parse(hosts[_i].registry, text, text ? strlen(text) : 0, "/d", hosts[_i].plain, &list, &err);

	if (hosts[_i].want[0] == '!') {
		ck_assert_msg(r < 0, "%s was taken", text);
		ck_assert_msg(strstr(err.text, hosts[_i].want + 1), "%s: %s", text, err.text);
		return;
	}
	ck_assert_msg(r == 0, "%s: %s", text, err.text);
	_cleanup_free_ char *got = describe(&list);
	ck_assert_str_eq(got, hosts[_i].want);
	endpoints_done(&list);
}
END_TEST

static const struct {
	const char *registry;
	bool local;
} locals[] = { { "localhost", true }, { "localhost:5000", true }, { "127.0.0.1", true }, { "127.1.2.3:80", true }, { "[::1]:5000", true },
	{ "[::1]", true }, { "localhost.example", false }, { "127.0.0.1.example", false }, { "[::2]:1", false }, { "docker.io", false },
	{ "notlocalhost", false } };

START_TEST(local_case)
{
	ck_assert_int_eq(registry_is_local(locals[_i].registry), locals[_i].local);
}
END_TEST

static const struct {
	const char *text;
	enum challenge_scheme scheme;
	const char *realm, *service, *scope;
} challenges[] = {
	{ "", CHALLENGE_NONE, "", "", "" },
	{ "Basic", CHALLENGE_BASIC, "", "", "" },
	{ "Basic realm=\"x\"", CHALLENGE_BASIC, "x", "", "" },
	{ "Bearer realm=\"https://a/t\",service=\"s\",scope=\"repository:a/b:pull\"", CHALLENGE_BEARER, "https://a/t", "s",
		"repository:a/b:pull" },
	{ "bearer Realm = \"https://a/t\" , SERVICE = s", CHALLENGE_BEARER, "https://a/t", "s", "" },
	{ "Bearer realm=\"https://a/t\",scope=\"a,b c\"", CHALLENGE_BEARER, "https://a/t", "", "a,b c" },
	{ "Bearer realm=\"a\\\"b\"", CHALLENGE_BEARER, "a\"b", "", "" },
	{ "Basic realm=\"b\", Bearer realm=\"t\"", CHALLENGE_BEARER, "t", "", "" },
	{ "Bearer realm=\"t\", Basic realm=\"b\"", CHALLENGE_BEARER, "t", "", "" },
	{ "Negotiate, Basic realm=\"b\"", CHALLENGE_BASIC, "b", "", "" },
	{ "Negotiate abc=, Bearer realm=\"t\"", CHALLENGE_BEARER, "t", "", "" },
	{ "Digest realm=\"d\", nonce=\"x\"", CHALLENGE_NONE, "", "", "" },
	{ "Bearer", CHALLENGE_NONE, "", "", "" },
	{ "Bearer service=\"s\"", CHALLENGE_NONE, "", "", "" },
	{ "Bearer realm=\"unterminated", CHALLENGE_BEARER, "unterminated", "", "" },
	{ "=,,==\"\"\x01 Bearer realm=t", CHALLENGE_BEARER, "t", "", "" },
};

START_TEST(challenge_case)
{
	struct challenge c;

	challenge_parse(challenges[_i].text, &c);
	ck_assert_msg(c.scheme == challenges[_i].scheme, "%s: %d", challenges[_i].text, c.scheme);
	ck_assert_str_eq(c.realm, challenges[_i].realm);
	ck_assert_str_eq(c.service, challenges[_i].service);
	ck_assert_str_eq(c.scope, challenges[_i].scope);
	challenge_done(&c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hosts");
	TCase *t = tcase_create("hosts");

	tcase_add_loop_test(t, toml_case, 0, ARRAY_LEN(tomls));
	tcase_add_loop_test(t, hosts_case, 0, ARRAY_LEN(hosts));
	tcase_add_loop_test(t, local_case, 0, ARRAY_LEN(locals));
	tcase_add_loop_test(t, challenge_case, 0, ARRAY_LEN(challenges));
	suite_add_tcase(s, t);
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
