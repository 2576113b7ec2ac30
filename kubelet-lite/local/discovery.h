/*
 * discovery.h - purpose: tell clients which kinds are served, in the plain and the aggregated form; version; a stub of
 * OpenAPI that says "validate on the server". Pure: builds documents.
 */
#pragma once
#include "kubelet-lite/store/objects.h"

/* The document for a path, NULL if it is none of discovery's. `accept` chooses the form; *ret_type is its content type
 * (static). New reference. `address`: where clients reach the server, may be "". */
json_t *discovery_document(const char *path, const char *accept, const char **ret_type) MUST_USE;
