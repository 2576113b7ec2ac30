/*
 * toml.h - purpose: the part of TOML 1.0 that hosts.toml files use, read into JSON. Pure.
 *
 * Tables and dotted or quoted keys, basic and literal strings (also multi-line), integers, booleans, arrays, inline tables.
 * Floats, dates and arrays of tables are refused. Order of keys is kept (jansson keeps insertion order). Errors say the line.
 */
#pragma once
#include "common/wire/json.h"

enum { TOML_SIZE_MAX = 256 * 1024 };

/* *ret is a new reference to an object. */
int toml_read(const char *text, size_t len, json_t **ret, struct error *err) MUST_USE;
