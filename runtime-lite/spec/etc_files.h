/*
 * etc_files.h - purpose: the text of a pod's resolv.conf, hosts and hostname. Pure.
 */
#pragma once
#include "common/cri/message.h"

/* "search", "nameserver" and "options" lines; NULL when `dns` asks for nothing: then the node's file is used. A word
 * with white space or control characters is an error. */
int etc_resolv_conf(const CRI(DNSConfig) * dns, char **ret, struct error *err) MUST_USE;
/* For containers to which the kubelet mounts no file of its own. */
char *etc_hosts(const char *hostname, const struct strv *ips) MUST_USE;
