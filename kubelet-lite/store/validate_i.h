/* validate_i.h - purpose: what the validation modules share: causes, paths, checks of one field. */
#pragma once
#include "common/wire/json.h"
#include "kubelet-lite/store/validate.h"

enum { CAUSES_MAX = 50 };

void cause_add(struct causes *c, const char *reason, const char *field, const char *fmt, ...) PRINTF(4, 5);
void cause_required(struct causes *c, const char *field, const char *why);
/* value NULL: none shown */
void cause_invalid(struct causes *c, const char *field, const char *value, const char *why);
void cause_duplicate(struct causes *c, const char *field, const char *value);

/* Formats a path; static ring of buffers, good for a few nested levels. */
const char *path_of(const char *fmt, ...) PRINTF(1, 2);

/* The text of a member if it is one of `allowed` (NULL-terminated); absent is fine. */
void check_enum(struct causes *c, const json_t *object, const char *base, const char *key, const char *const *allowed);
void check_range(struct causes *c, const json_t *object, const char *base, const char *key, int64_t min, int64_t max);
/* Values of a map are quantities and not negative. */
void check_quantities(struct causes *c, const json_t *map, const char *base);
/* Number 1-65535, or a port name. */
void check_port_ref(struct causes *c, const json_t *value, const char *field);
/* IPv4 or IPv6 */
bool is_ip(const char *s);

void validate_pod(const json_t *tree, struct causes *c);
