/* credentials.h - purpose: give privileges up, step by step, in the only order that works. */
#pragma once
#include "runtime-lite/spec/launch.h"

/* Resource limits, a session keyring of its own. Still with all capabilities. */
int credentials_limits(const struct launch *l, struct error *err);
/* Bounding set, groups, user, capabilities. Loads the filter before when there will be no no_new_privs, because loading
 * takes CAP_SYS_ADMIN then. */
int credentials_switch(const struct launch *l, struct error *err);
/* no_new_privs and then the filter: the last thing before exec. */
int credentials_seal(const struct launch *l, struct error *err);
