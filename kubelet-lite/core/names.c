/* names.c - purpose: a pod's host name, DNS settings and hosts file. */
#include "kubelet-lite/core/names.h"

enum { SERVERS_MAX = 3, SEARCHES_MAX = 32, SEARCH_CHARS_MAX = 2048, HOSTNAME_MAX = 63, FQDN_MAX = 64 };

void dns_config_done(struct dns_config *dns)
{
	strv_done(&dns->servers);
	strv_done(&dns->searches);
	strv_done(&dns->options);
}

static void add_once(struct strv *list, const char *s)
{
	if (*s && !strv_has(list, s))
		strv_add(list, s);
}

static size_t option_name_len(const char *option)
{
	return strcspn(option, ":");
}

/* An option of the same name is replaced. */
static void add_option(struct strv *list, const char *option)
{
	size_t n = option_name_len(option);

	for (size_t i = 0; i < list->n; i++)
		if (option_name_len(list->v[i]) == n && strncmp(list->v[i], option, n) == 0) {
			free(list->v[i]);
			list->v[i] = xstrdup(option);
			return;
		}
	strv_add(list, option);
}

static void parse_words(const char *p, size_t len, struct dns_config *ret)
{
	_cleanup_(strv_done) struct strv words = STRV_INIT;

	while (len) {
		size_t skip = strspn(p, " \t"), n = skip < len ? MIN(strcspn(p + skip, " \t\r\n"), len - skip) : 0;

		if (n)
			strv_add_take(&words, xstrndup(p + skip, n));
		if (skip + n >= len || n == 0)
			break;
		p += skip + n;
		len -= skip + n;
	}
	if (words.n < 2)
		return;
	if (str_eq(words.v[0], "nameserver"))
		add_once(&ret->servers, words.v[1]);
	if (str_eq(words.v[0], "search"))
		strv_done(&ret->searches); /* the last line counts */
	for (size_t i = 1; i < words.n; i++) {
		size_t n = strlen(words.v[i]);

		if (str_eq(words.v[0], "options"))
			add_option(&ret->options, words.v[i]);
		if (!str_eq(words.v[0], "search") || str_eq(words.v[i], "."))
			continue;
		if (words.v[i][n - 1] == '.')
			words.v[i][n - 1] = '\0';
		add_once(&ret->searches, words.v[i]);
	}
}

void dns_parse(const char *text, struct dns_config *ret)
{
	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n");

		if (*line != '#' && *line != ';')
			parse_words(line, n, ret);
		line += n + (line[n] == '\n');
	}
}

static void add_all(struct strv *to, const struct strv *from)
{
	for (size_t i = 0; i < from->n; i++)
		add_once(to, from->v[i]);
}

static void cluster_first(const struct pod *pod, const struct dns_config *host, const struct strv *cluster_dns,
	const char *domain, struct dns_config *ret)
{
	add_all(&ret->servers, cluster_dns);
	if (*domain) {
		strv_add_take(&ret->searches, xasprintf("%s.svc.%s", pod->ns, domain));
		strv_add_take(&ret->searches, xasprintf("svc.%s", domain));
		strv_add(&ret->searches, domain);
	}
	add_all(&ret->searches, &host->searches);
	strv_add(&ret->options, "ndots:5");
}

static void cut(struct strv *list, size_t max)
{
	while (list->n > max) {
		free(list->v[--list->n]);
		list->v[list->n] = NULL;
	}
}

static void apply_limits(struct dns_config *dns, const char **ret_reason, struct str *warning)
{
	size_t chars = 0, keep = 0;

	if (dns->servers.n > SERVERS_MAX) {
		cut(&dns->servers, SERVERS_MAX);
		*ret_reason = "DNSConfigForming";
		str_add(warning, "Nameserver limits were exceeded, some nameservers have been omitted");
	}
	while (keep < dns->searches.n && keep < SEARCHES_MAX &&
		chars + strlen(dns->searches.v[keep]) + (keep > 0) <= SEARCH_CHARS_MAX) {
		chars += strlen(dns->searches.v[keep]) + (keep > 0);
		keep++;
	}
	if (keep < dns->searches.n) {
		cut(&dns->searches, keep);
		*ret_reason = "DNSConfigForming";
		str_addf(warning, "%sSearch Line limits were exceeded, some search paths have been omitted",
			warning->len ? "; " : "");
	}
}

void dns_for_pod(const struct pod *pod, const struct dns_config *host, const struct strv *cluster_dns,
	const char *cluster_domain, struct dns_config *ret, const char **ret_reason, struct str *ret_warning)
{
	enum dns_policy policy = pod->dns;

	*ret_reason = "";
	if (policy == DNS_CLUSTER_FIRST && pod->host_network)
		policy = DNS_DEFAULT;
	if ((policy == DNS_CLUSTER_FIRST || policy == DNS_CLUSTER_FIRST_WITH_HOST_NET) && !cluster_dns->n) {
		policy = DNS_DEFAULT;
		*ret_reason = "MissingClusterDNS";
		str_add(ret_warning,
			"no --cluster-dns is set: the pod gets the node's DNS settings instead of ClusterFirst");
	}
	if (policy == DNS_DEFAULT) {
		add_all(&ret->servers, &host->servers);
		add_all(&ret->searches, &host->searches);
		add_all(&ret->options, &host->options);
	} else if (policy != DNS_NONE) {
		cluster_first(pod, host, cluster_dns, cluster_domain, ret);
	}
	for (size_t i = 0; i < pod->dns_servers.n; i++)
		add_once(&ret->servers, pod->dns_servers.v[i]);
	for (size_t i = 0; i < pod->dns_searches.n; i++)
		add_once(&ret->searches, pod->dns_searches.v[i]);
	for (size_t i = 0; i < pod->dns_options.n; i++) {
		const struct kv *o = &pod->dns_options.v[i];
		_cleanup_free_ char *text = *o->value ? xasprintf("%s:%s", o->key, o->value) : xstrdup(o->key);

		add_option(&ret->options, text);
	}
	apply_limits(ret, ret_reason, ret_warning);
}

/* At most 63 characters that do not end in a dash or dot. */
static char *short_name(const struct pod *pod)
{
	char *name = xstrndup(*pod->hostname ? pod->hostname : pod->name, HOSTNAME_MAX);
	size_t n = strlen(name);

	while (n && (name[n - 1] == '-' || name[n - 1] == '.'))
		name[--n] = '\0';
	return name;
}

char *pod_fqdn(const struct pod *pod, const char *cluster_domain)
{
	_cleanup_free_ char *name = short_name(pod);

	if (!*pod->subdomain || *pod->hostname_override)
		return xstrdup("");
	return xasprintf("%s.%s.%s.svc.%s", name, pod->subdomain, pod->ns, cluster_domain);
}

int pod_hostname(const struct pod *pod, const char *cluster_domain, char **ret, struct error *err)
{
	_cleanup_free_ char *fqdn = pod_fqdn(pod, cluster_domain);

	if (*pod->hostname_override) {
		*ret = xstrdup(pod->hostname_override);
		return 0;
	}
	if (pod->host_network) {
		*ret = xstrdup("");
		return 0;
	}
	if (!pod->hostname_as_fqdn || !*fqdn) {
		*ret = short_name(pod);
		return 0;
	}
	if (strlen(fqdn) > FQDN_MAX)
		return error_set(err, ERROR_INVALID,
			"failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (%d "
			"characters is the max, %zu characters requested)",
			fqdn, FQDN_MAX, strlen(fqdn));
	*ret = steal(fqdn);
	return 0;
}

static void add_aliases(const struct pod *pod, struct str *out)
{
	if (!pod->n_host_aliases)
		return;
	str_add(out, "\n# Entries added by HostAliases.\n");
	for (size_t i = 0; i < pod->n_host_aliases; i++) {
		str_add(out, pod->host_aliases[i].ip);
		for (size_t j = 0; j < pod->host_aliases[i].names.n; j++)
			str_addf(out, "\t%s", pod->host_aliases[i].names.v[j]);
		str_add_char(out, '\n');
	}
}

char *pod_hosts_file(
	const struct pod *pod, char *const *ips, size_t n_ips, const char *cluster_domain, const char *host_text)
{
	_cleanup_free_ char *fqdn = pod_fqdn(pod, cluster_domain);
	_cleanup_free_ char *name = *pod->hostname_override ? xstrdup(pod->hostname_override) : short_name(pod);
	struct str out = STR_INIT;

	if (pod->host_network) {
		str_addf(&out, "# Kubernetes-managed hosts file (host network).\n%s", host_text);
		add_aliases(pod, &out);
		return str_take(&out);
	}
	str_add(&out, "# Kubernetes-managed hosts file.\n"
		      "127.0.0.1\tlocalhost\n"
		      "::1\tlocalhost ip6-localhost ip6-loopback\n"
		      "fe00::0\tip6-localnet\n"
		      "fe00::0\tip6-mcastprefix\n"
		      "fe00::1\tip6-allnodes\n"
		      "fe00::2\tip6-allrouters\n");
	for (size_t i = 0; i < n_ips; i++) {
		str_addf(&out, "%s\t", ips[i]);
		if (*fqdn)
			str_addf(&out, "%s\t", fqdn);
		str_addf(&out, "%s\n", name);
	}
	add_aliases(pod, &out);
	return str_take(&out);
}
