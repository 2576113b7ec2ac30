/*
 * table.h - purpose: objects as rows of the Table that kubectl prints. Pure.
 */
#pragma once
#include "kubelet-lite/store/objects.h"

enum table_include { TABLE_METADATA, TABLE_OBJECT, TABLE_NONE };

/* columnDefinitions; new reference. */
json_t *table_columns(enum object_kind kind) MUST_USE;
/* One row: cells, and the object as asked for; new reference. `tree` is borrowed. */
json_t *table_row(enum object_kind kind, const json_t *tree, int64_t now_ns, enum table_include include) MUST_USE;
/* PartialObjectMetadata of the object; new reference. */
json_t *table_partial(const json_t *tree) MUST_USE;
