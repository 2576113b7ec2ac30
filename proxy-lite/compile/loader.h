/*
 * loader.h - purpose: turn the elements that the kernel lists back into frontends; what fits nowhere is a stray.
 *
 * Pure. Sets must be given in the order of loader_steps(), so that each frontend is known before its endpoints.
 */
#pragma once
#include "proxy-lite/compile/table.h"

struct stray {
	enum set_id set;
	uint8_t key[SET_KEY_MAX];
	uint8_t last[SET_KEY_MAX]; /* of a range */
};

struct strays {
	struct stray *v;
	size_t n, cap;
};

void strays_done(struct strays *strays);

/* The order in which sets are to be read; ends with SET_COUNT. Those with session affinity are read twice: first for
 * how many endpoints there are, then for which. */
struct loader_step {
	enum set_id set;
	bool counts;
};
const struct loader_step *loader_steps(void);
/* key and value have the set's lengths (the dumper checked); `plan` is what a verdict element goes to, 0 if it goes
 * anywhere else than to the chain of a plan. */
void loader_element(struct table *table, struct strays *strays, const struct loader_step *step, const uint8_t *key,
	const uint8_t *value, uint32_t plan);
/* After the last element: frontends without a look-up become strays. */
void loader_finish(struct table *table, struct strays *strays);
