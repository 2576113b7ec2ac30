/*
 * payload.h - purpose: which files a configMap, secret, downwardAPI or projected volume has. Pure.
 */
#pragma once
#include "kubelet-lite/core/env.h"

struct payload_file {
	char *path; /* relative, checked: no "..", no empty parts */
	char *data;
	size_t len;
	mode_t mode;
};
struct payload {
	struct payload_file *v;
	size_t n;
};
void payload_done(struct payload *payload);
/* Errors have the kubelet's texts: `configmap "x" not found`, `references non-existent config key: k`. */
int payload_build(const struct pod *pod, const struct volume *volume, const struct env_sources *sources,
	struct payload *ret, struct error *err) MUST_USE;
