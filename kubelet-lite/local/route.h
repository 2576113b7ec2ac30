/*
 * route.h - purpose: what a request path of the Kubernetes API names. Pure.
 */
#pragma once
#include "kubelet-lite/store/objects.h"

enum { ROUTE_NAME_MAX = 254 };

struct route {
	enum object_kind kind;
	char ns[ROUTE_NAME_MAX];   /* "": all namespaces, or a kind without */
	char name[ROUTE_NAME_MAX]; /* "": the collection */
	char sub[32];              /* sub-resource, "" */
};

/* "/api/v1/namespaces/default/pods/web/log". False: no path of an object that is served. */
bool route_parse(const char *path, struct route *ret);
