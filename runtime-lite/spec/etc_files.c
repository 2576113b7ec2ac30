/* etc_files.c - purpose: the text of a pod's resolv.conf and hosts. Pure. */
#include "runtime-lite/spec/etc_files.h"

/* A line break in a word would let a pod's DNS settings write lines of their own. */
static int add_words(struct str *text, const char *keyword, size_t n, char *const *words, bool one_line,
	struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		for (const char *p = words[i]; *p; p++)
			if ((unsigned char)*p <= ' ' || *p == 0x7f)
				return error_set(err, ERROR_INVALID, "dns_config: %s \"%.80s\" has a white space", keyword,
					words[i]);
		if (i == 0 || !one_line)
			str_add(text, keyword);
		str_addf(text, " %s", words[i]);
		if (i == n - 1 || !one_line)
			str_add_char(text, '\n');
	}
	return 0;
}

int etc_resolv_conf(const CRI(DNSConfig) * dns, char **ret, struct error *err)
{
	_cleanup_(str_done) struct str text = STR_INIT;

	if (!dns || (!dns->n_servers && !dns->n_searches && !dns->n_options)) {
		*ret = NULL;
		return 0;
	}
	int r = add_words(&text, "search", dns->n_searches, dns->searches, true, err);
	if (r == 0)
		r = add_words(&text, "nameserver", dns->n_servers, dns->servers, false, err);
	if (r == 0)
		r = add_words(&text, "options", dns->n_options, dns->options, true, err);
	if (r < 0)
		return r;
	*ret = str_take(&text);
	return 0;
}

char *etc_hosts(const char *hostname, const struct strv *ips)
{
	struct str text = STR_INIT;

	str_add(&text, "127.0.0.1\tlocalhost\n"
		       "::1\tlocalhost ip6-localhost ip6-loopback\n"
		       "fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n");
	for (size_t i = 0; i < ips->n && !str_empty(hostname); i++)
		str_addf(&text, "%s\t%s\n", ips->v[i], hostname);
	return str_take(&text);
}
