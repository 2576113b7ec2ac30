/*
 * yaml_scalar.h - purpose: what a plain YAML scalar means to Kubernetes' parser (go-yaml v2: YAML 1.1 core). Pure.
 */
#pragma once
#include "common/base/base.h"

enum yaml_kind { YAML_STRING, YAML_NULL, YAML_BOOL, YAML_INT, YAML_REAL, YAML_NOT_FINITE };

struct yaml_scalar {
	enum yaml_kind kind;
	bool boolean;
	int64_t integer;
	double real; /* integers beyond 64 bits are reals */
};

struct yaml_scalar yaml_resolve(const char *text);
/* Would a reader take the plain text for something else than a string (also as timestamp or base-60 number, which other
 * readers know)? Then a writer must quote it. */
bool yaml_needs_quotes(const char *text);
