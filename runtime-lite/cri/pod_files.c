/* pod_files.c - purpose: write the files of a pod that its containers see: resolv.conf, hosts, hostname. */
#include "runtime-lite/cri/pod_files.h"

#include "common/sys/file.h"
#include "runtime-lite/spec/etc_files.h"
#include "runtime-lite/spec/sandbox_plan.h"

#include <errno.h>
#include <fcntl.h>

enum { ETC_MAX_BYTES = 1 << 20 };

static int write_file(const struct sandbox *s, const char *name, const char *text, struct error *err)
{
	_cleanup_free_ char *path = xasprintf("%s/%s", s->dir, name);
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

	if (fd < 0)
		return error_sys(err, errno, "%s", path);
	int r = fd_write_full(fd, text, strlen(text));
	if (r == 0 && fchmod(fd, 0644) < 0) /* whatever our umask is */
		r = -errno;
	return r < 0 ? error_sys(err, r, "%s", path) : 0;
}

/* The node's own file; empty when the node has none. */
static int copy_of(const char *path, char **ret, struct error *err)
{
	int r = file_read(AT_FDCWD, path, ETC_MAX_BYTES, ret, NULL, err);

	if (r == -ENOENT) {
		*ret = xstrdup("");
		r = 0;
	}
	return r;
}

int pod_files_write(const struct service *svc, const struct sandbox *s, struct error *err)
{
	const char *hostname = sandbox_hostname(s->config, svc->node_hostname);
	_cleanup_free_ char *resolv = NULL, *hosts = NULL;
	_cleanup_free_ char *hostname_line = xasprintf("%s\n", hostname);
	int r = etc_resolv_conf(s->config->dns_config, &resolv, err);

	if (r == 0 && !resolv)
		r = copy_of("/etc/resolv.conf", &resolv, err);
	if (r == 0 && sandbox_host_network(s))
		r = copy_of("/etc/hosts", &hosts, err);
	if (r < 0)
		return r;
	if (!hosts)
		hosts = etc_hosts(hostname, &s->ips);
	r = write_file(s, "resolv.conf", resolv, err);
	if (r == 0)
		r = write_file(s, "hosts", hosts, err);
	if (r == 0)
		r = write_file(s, "hostname", hostname_line, err);
	return r;
}
