/*
 * names.h - purpose: a pod's host name, DNS settings and hosts file. Pure.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"
#include "kubelet-lite/model/pod.h"

/* The DNS settings of the node or of a pod. */
struct dns_config {
	struct strv servers;
	struct strv searches;
	struct strv options;
};
void dns_config_done(struct dns_config *dns);
/* Reads the text of a resolv.conf. */
void dns_parse(const char *text, struct dns_config *ret);

/* What a pod gets. `cluster_dns` may be empty (*ret_warning then says MissingClusterDNS); `host` is the node's.
 * *ret_warning: text for an event (DNSConfigForming, MissingClusterDNS) or "". */
void dns_for_pod(const struct pod *pod, const struct dns_config *host, const struct strv *cluster_dns,
	const char *cluster_domain, struct dns_config *ret, const char **ret_reason, struct str *ret_warning);

/* Host name of the sandbox ("" for one that has the host's). An FQDN that is too long is an error. */
int pod_hostname(const struct pod *pod, const char *cluster_domain, char **ret, struct error *err) MUST_USE;
/* "name.subdomain.ns.svc.domain", or "" when it has no domain. */
char *pod_fqdn(const struct pod *pod, const char *cluster_domain) MUST_USE;
/* Text of /etc/hosts. `host_text`: the node's own file, for pods on the host's network. */
char *pod_hosts_file(const struct pod *pod, char *const *ips, size_t n_ips, const char *cluster_domain,
	const char *host_text) MUST_USE;
