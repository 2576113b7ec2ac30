/* problems.c - purpose: what was left out and why, one text for each object, told once. */
#include "proxy-lite/model/problems.h"

#include <stdio.h>

void problems_init(struct problems *p, void (*report)(void *data, const char *object, const char *text), void *data)
{
	*p = (struct problems){ .report = report, .data = data };
}

void problems_done(struct problems *p)
{
	map_done_values(&p->texts, free);
	*p = (struct problems){ 0 };
}

void problems_set(struct problems *p, const char *kind, const char *key, const char *text)
{
	char object[600];
	char *before;

	if (str_empty(text) && p->texts.count == 0)
		return;
	snprintf(object, sizeof(object), "%s %s", kind, key);
	if (str_empty(text)) {
		free(map_remove(&p->texts, object));
		return;
	}
	before = map_get(&p->texts, object);
	if (str_eq(before, text))
		return;
	free(map_put(&p->texts, object, xstrdup(text)));
	p->total++;
	if (p->report)
		p->report(p->data, object, text);
}
