/* kubeconfig_test.c - purpose: tests of kubeconfig.c: what is read, and what is refused by which words. */
#include "common/kube/kubeconfig.h"

#include "common/sys/file.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>

static char dir[] = "/tmp/kubeconfig_test.XXXXXX";

static void write_file(const char *name, const char *text)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", dir, name);
	struct error err = ERROR_INIT;

	ck_assert_msg(file_replace(AT_FDCWD, path, text, strlen(text), 0600, &err) == 0, "%s", err.text);
}

static int load(const char *cluster, const char *user, struct kubeconfig *ret, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/config", dir);
	_cleanup_free_ char *text =
		xasprintf("clusters:\n- name: other\n  cluster: {server: 'http://127.0.0.9'}\n- name: c\n"
			  "  cluster: {%s}\nusers:\n- name: u\n  user: {%s}\ncontexts:\n- name: x\n"
			  "  context: {cluster: c, user: u}\ncurrent-context: x\n",
			cluster, user);

	write_file("config", text);
	return kubeconfig_load(path, ret, err);
}

static const struct {
	const char *server, *host, *server_name;
	int port;
	bool tls, v6;
} servers[] = {
	{ "https://127.0.0.1:6443", "127.0.0.1:6443", "127.0.0.1", 6443, true, false },
	{ "https://127.0.0.1:6443/", "127.0.0.1:6443", "127.0.0.1", 6443, true, false },
	{ "https://127.0.0.1", "127.0.0.1", "127.0.0.1", 443, true, false },
	{ "http://127.0.0.1", "127.0.0.1", "127.0.0.1", 80, false, false },
	{ "https://[::1]:6443", "[::1]:6443", "::1", 6443, true, true },
	{ "https://[::1]", "[::1]", "::1", 443, true, true },
	{ "https://localhost:6443", "localhost:6443", "localhost", 6443, true, false },
};

START_TEST(reads_servers)
{
	struct kubeconfig c;
	struct error err = ERROR_INIT;
	char cluster[200];
	uint16_t port;

	/* A system of nothing but packages has no /etc/hosts. */
	if (str_eq(servers[_i].server_name, "localhost") && !gethostbyname("localhost"))
		return;
	snprintf(cluster, sizeof(cluster), "server: '%s'", servers[_i].server);
	ck_assert_msg(load(cluster, "", &c, &err) == 0, "%s", err.text);
	ck_assert_str_eq(c.host, servers[_i].host);
	ck_assert_str_eq(c.server_name, servers[_i].server_name);
	ck_assert_int_eq(c.tls, servers[_i].tls);
	if (!str_eq(servers[_i].server_name, "localhost"))
		ck_assert_int_eq(c.address.sa.sa_family == AF_INET6, servers[_i].v6);
	port = c.address.sa.sa_family == AF_INET6 ? ((struct sockaddr_in6 *)&c.address.storage)->sin6_port
						  : ((struct sockaddr_in *)&c.address.storage)->sin_port;
	ck_assert_int_eq(ntohs(port), servers[_i].port);
	kubeconfig_done(&c);
}
END_TEST

#define GOOD "server: 'https://127.0.0.1:6443'"
static const struct {
	const char *cluster, *user, *text;
} refused[] = {
	{ "server: ''", "", "server: \"\" is not https://HOST:PORT" },
	{ "server: 'ftp://x'", "", "is not https://HOST:PORT" },
	{ "server: 'https://'", "", "is not https://HOST:PORT" },
	{ "server: 'https://[::1'", "", "is not https://HOST:PORT" },
	{ "server: 'https://[::1]x'", "", "is not https://HOST:PORT" },
	{ "server: 'https://127.0.0.1:'", "", "is not https://HOST:PORT" },
	{ "server: 'https://127.0.0.1/prefix'", "", "a path is not supported" },
	{ "server: 'https://no-such-host.invalid'", "", "server no-such-host.invalid" },
	{ GOOD ", insecure-skip-tls-verify: true", "", "cluster: insecure-skip-tls-verify is not supported" },
	{ GOOD ", proxy-url: 'http://x'", "", "cluster: proxy-url is not supported" },
	{ GOOD ", certificate-authority: missing", "", "missing" },
	{ GOOD ", certificate-authority-data: '***'", "", "certificate-authority-data: is not base64" },
	{ GOOD, "exec: {command: x}", "user: exec is not supported" },
	{ GOOD, "auth-provider: {name: x}", "user: auth-provider is not supported" },
	{ GOOD, "username: x, password: y", "user: username is not supported" },
	{ GOOD, "as: x", "user: as is not supported" },
	{ GOOD, "tokenFile: missing", "missing" },
	{ GOOD, "client-certificate-data: 'eA=='", "belong together" },
};

START_TEST(refuses)
{
	struct kubeconfig c = { 0 };
	struct error err = ERROR_INIT;

	ck_assert_int_lt(load(refused[_i].cluster, refused[_i].user, &c, &err), 0);
	ck_assert_msg(
		strstr(err.text, refused[_i].text) != NULL, "\"%s\" is not in \"%s\"", refused[_i].text, err.text);
	ck_assert_ptr_null(c.host);
}
END_TEST

START_TEST(reads_credentials)
{
	struct kubeconfig c;
	struct error err = ERROR_INIT;

	write_file("ca", "the CA");
	write_file("token", "the token\n");
	ck_assert_msg(
		load(GOOD ", certificate-authority: ca, tls-server-name: kube, insecure-skip-tls-verify: false",
			"client-certificate-data: 'Y2VydA==', client-key-data: 'a2V5', tokenFile: token, token: inline",
			&c, &err) == 0,
		"%s", err.text);
	ck_assert_str_eq(c.ca_pem, "the CA");
	ck_assert_str_eq(c.server_name, "kube");
	ck_assert_str_eq(c.cert_pem, "cert");
	ck_assert_str_eq(c.key_pem, "key");
	ck_assert_str_eq(c.token, "the token");
	ck_assert_uint_eq(c.files.n, 3);
	kubeconfig_done(&c);
	ck_assert(load(GOOD, "token: inline", &c, &err) == 0);
	ck_assert_str_eq(c.token, "inline");
	kubeconfig_done(&c);
}
END_TEST

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void teardown(void)
{
	struct error err = ERROR_INIT;

	ck_assert(dir_remove(AT_FDCWD, dir, &err) == 0);
}

int main(void)
{
	Suite *suite = suite_create("kubeconfig");
	TCase *t = tcase_create("kubeconfig");
	SRunner *runner;
	int failed;

	tcase_add_unchecked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, reads_servers, 0, ARRAY_LEN(servers));
	tcase_add_loop_test(t, refuses, 0, ARRAY_LEN(refused));
	tcase_add_test(t, reads_credentials);
	suite_add_tcase(suite, t);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
