/*
 * report.h - purpose: the live state as text for people: all of it, or the answer to "where does this address go, and
 * why".
 *
 * Pure: from the model and the held table.
 */
#pragma once
#include "common/base/str.h"
#include "proxy-lite/sync/sync.h"

/* Every Service with its frontends, what is held and, where it differs, what is wanted. */
void report_dump(const struct sync *sync, struct str *out);
/* What the kernel holds, without a model: for when the daemon is not running. */
void report_held(const struct sync *sync, struct str *out);

/* "10.96.0.1:80", "[fd00::1]:53/UDP". */
struct report_address {
	struct ip ip;
	uint16_t port;
	uint8_t protocol;
};
int report_address_parse(const char *text, struct report_address *ret, struct error *err) MUST_USE;
void report_explain(const struct sync *sync, bool has_model, const struct report_address *at, struct str *out);
