/* protocols.c - purpose: the versions of the streaming protocols. */
#include "runtime-lite/stream/protocols.h"

const struct protocol protocols_spdy[] = {
	{ .name = "v5.channel.k8s.io", .version = 5 },
	{ .name = "v4.channel.k8s.io", .version = 4 },
	{ .name = "v3.channel.k8s.io", .version = 3 },
	{ .name = "v2.channel.k8s.io", .version = 2 },
	{ .name = "channel.k8s.io", .version = 1 },
	{ .name = "", .version = 1 },
	{ 0 },
};

const struct protocol protocols_websocket[] = {
	{ .name = "v5.channel.k8s.io", .version = 5 },
	{ .name = "v4.channel.k8s.io", .version = 4 },
	{ .name = "v4.base64.channel.k8s.io", .version = 4, .base64 = true },
	{ .name = "channel.k8s.io", .version = 1 },
	{ .name = "base64.channel.k8s.io", .version = 1, .base64 = true },
	{ .name = "", .version = 1 },
	{ 0 },
};

const struct protocol protocols_forward_spdy[] = {
	{ .name = "portforward.k8s.io", .version = 1 },
	{ 0 },
};

const struct protocol protocols_forward_websocket[] = {
	{ .name = "SPDY/3.1+portforward.k8s.io", .version = 1, .tunnel = true },
	{ .name = "v4.channel.k8s.io", .version = 4 },
	{ .name = "v4.base64.channel.k8s.io", .version = 4, .base64 = true },
	{ .name = "", .version = 4 },
	{ 0 },
};

void protocols_add_offers(struct strv *offers, const char *value)
{
	while (*value) {
		size_t n = strcspn(value, ","), begin = strspn(value, " \t"), end = n;

		while (end > begin && (value[end - 1] == ' ' || value[end - 1] == '\t'))
			end--;
		if (end > begin)
			strv_add_take(offers, xstrndup(value + begin, end - begin));
		value += n + (value[n] == ',');
	}
}

static const struct protocol *find(const struct protocol *known, const char *name)
{
	while (known->name && !str_eq(known->name, name))
		known++;
	return known->name ? known : NULL;
}

const struct protocol *protocols_pick(const struct protocol *known, const struct strv *offers)
{
	for (size_t i = 0; i < offers->n; i++) {
		const struct protocol *p = find(known, offers->v[i]);

		if (p)
			return p;
	}
	return offers->n ? NULL : find(known, "");
}
