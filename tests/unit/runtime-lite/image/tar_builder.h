/* tar_builder.h - purpose: tar archives as tests want them, right or wrong. */
#pragma once
#include <stdio.h>

#include "common/base/str.h"

struct tar_spec {
	char type; /* '0' file, '1' hard link, '2' symlink, '3' char, '4' block, '5' dir, '6' FIFO */
	const char *name, *link, *content;
	unsigned mode; /* 0: 0644 */
	unsigned uid, gid, major, minor;
	long mtime;
	const char *pax; /* records "key=value\n", lengths are added */
	bool gnu_long;   /* name by an 'L' header */
};

static inline void tar_put(uint8_t *field, size_t n, unsigned long v)
{
	snprintf((char *)field, n, "%0*lo", (int)n - 1, v);
}

static inline void tar_checksum(uint8_t *h)
{
	unsigned sum = 0;

	memset(h + 148, ' ', 8);
	for (int i = 0; i < 512; i++)
		sum += h[i];
	snprintf((char *)h + 148, 8, "%06o", sum);
}

static inline void tar_header(struct str *out, char type, const char *name, const char *link, size_t size,
	const struct tar_spec *s)
{
	uint8_t h[512] = { 0 };

	memcpy(h, name, MIN(strlen(name), (size_t)100));
	tar_put(h + 100, 8, s && s->mode ? s->mode : 0644);
	tar_put(h + 108, 8, s ? s->uid : 0);
	tar_put(h + 116, 8, s ? s->gid : 0);
	tar_put(h + 124, 12, size);
	tar_put(h + 136, 12, s ? (unsigned long)s->mtime : 0);
	h[156] = (uint8_t)type;
	if (link)
		memcpy(h + 157, link, MIN(strlen(link), (size_t)100));
	memcpy(h + 257, "ustar\00000", 8);
	tar_put(h + 329, 8, s ? s->major : 0);
	tar_put(h + 337, 8, s ? s->minor : 0);
	tar_checksum(h);
	str_add_bytes(out, h, sizeof(h));
}

static inline void tar_body(struct str *out, const char *p, size_t n)
{
	static const char zeros[512];

	str_add_bytes(out, p, n);
	str_add_bytes(out, zeros, (512 - n % 512) % 512);
}

/* One record "N key=value\n". */
static inline void tar_pax_record(struct str *out, const char *p, size_t n)
{
	size_t total = n + 3;
	char text[24];

	while ((size_t)snprintf(text, sizeof(text), "%zu ", total) + n + 1 != total)
		total++;
	str_add(out, text);
	str_add_bytes(out, p, n);
	str_add_char(out, '\n');
}

static inline void tar_add(struct str *out, const struct tar_spec *s)
{
	size_t size = s->content ? strlen(s->content) : 0;

	if (s->pax) {
		_cleanup_(str_done) struct str body = STR_INIT;

		for (const char *p = s->pax; *p;) {
			size_t n = strcspn(p, "\n");

			tar_pax_record(&body, p, n);
			p += n + (p[n] == '\n');
		}
		tar_header(out, 'x', "pax", NULL, body.len, NULL);
		tar_body(out, body.buf, body.len);
	}
	if (s->gnu_long) {
		tar_header(out, 'L', "././@LongLink", NULL, strlen(s->name) + 1, NULL);
		tar_body(out, s->name, strlen(s->name) + 1);
	}
	tar_header(out, s->type, s->name, s->link, size, s);
	if (size)
		tar_body(out, s->content, size);
}

static inline void tar_end(struct str *out)
{
	static const char zeros[1024];

	str_add_bytes(out, zeros, sizeof(zeros));
}
