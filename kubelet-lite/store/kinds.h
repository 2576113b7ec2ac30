/*
 * kinds.h - purpose: the kinds of object that are served: names, groups, scope, sub-resources. Pure.
 */
#pragma once
#include "kubelet-lite/store/objects.h"

struct kind_info {
	const char *kind;        /* "Pod" */
	const char *plural;      /* "pods" */
	const char *singular;    /* "pod" */
	const char *short_names; /* "po", comma-separated */
	const char *group;       /* "" for core */
	const char *version;
	const char *api_version; /* "v1", "discovery.k8s.io/v1" */
	bool namespaced;
	bool status;   /* has a status sub-resource */
	bool category_all;
	bool writable; /* may stand in manifests and be written by the API */
};

const struct kind_info *kind_info(enum object_kind kind);
/* By apiVersion and kind of an object. */
bool kind_of(const char *api_version, const char *kind, enum object_kind *ret);
/* By the parts of a request path. */
bool kind_by_plural(const char *group, const char *version, const char *plural, enum object_kind *ret);
/* "Pod (v1), Service (v1), ...": what manifests may hold, for error messages. Static. */
const char *kinds_writable(void);
