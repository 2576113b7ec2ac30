/* challenge.h - purpose: WWW-Authenticate headers: which scheme, with what parameters (RFC 9110, 11.6.1). Pure. */
#pragma once
#include "common/base/str.h"

enum challenge_scheme { CHALLENGE_NONE, CHALLENGE_BASIC, CHALLENGE_BEARER };

struct challenge {
	enum challenge_scheme scheme;
	char *realm, *service, *scope, *error; /* "" if absent */
};

/* Picks the best challenge (Bearer, else Basic) out of a header's value, which may hold several, with unquoted or quoted
 * values, odd blanks and unknown schemes. CHALLENGE_NONE when there is nothing we can do. */
void challenge_parse(const char *header, struct challenge *ret);
void challenge_done(struct challenge *c);
