/* image_tar_fuzz.c - purpose: any bytes as a tar archive, in pieces of any size. make FUZZ=1 build-fuzz/tests/fuzz/image_tar_fuzz */
#include "runtime-lite/image/tar.h"

struct seen {
	uint64_t want, got; /* content of the current entry */
	bool open;
};

static int on_entry(void *data, const struct tar_entry *e, struct error *err)
{
	struct seen *s = data;

	(void)err;
	if (s->open || strlen(e->name) > TAR_NAME_MAX || strlen(e->link) > TAR_NAME_MAX || e->mode > 07777 ||
		e->mtime_ns > 999999999 || e->n_xattrs > TAR_XATTRS_MAX || (e->type != TAR_FILE && e->size))
		abort();
	for (size_t i = 0; i < e->n_xattrs; i++)
		if (!*e->xattrs[i].name || e->xattrs[i].len > TAR_XATTR_MAX)
			abort();
	*s = (struct seen){ .want = e->size, .open = true };
	return 0;
}

static int on_content(void *data, const void *p, size_t n, struct error *err)
{
	struct seen *s = data;

	(void)p, (void)err;
	s->got += n;
	if (!s->open || n == 0 || s->got > s->want)
		abort();
	return 0;
}

static int on_end(void *data, struct error *err)
{
	struct seen *s = data;

	(void)err;
	if (!s->open || s->got != s->want)
		abort();
	s->open = false;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct tar_handler handler = { on_entry, on_content, on_end };
	struct seen seen = { 0 };
	struct error err = ERROR_INIT;
	size_t piece = size ? (size_t)data[0] * 5 + 1 : 1;
	int r = 0;

	/* Checksums are right, or nothing would be found behind them. */
	uint8_t *copy = xmemdup(data, size);
	for (size_t at = 0; at + TAR_BLOCK <= size; at += TAR_BLOCK) {
		unsigned sum = 8 * ' ';

		if (memcmp(copy + at + 257, "ustar", 5) != 0)
			continue;
		for (size_t i = 0; i < TAR_BLOCK; i++)
			sum += i >= 148 && i < 156 ? 0 : copy[at + i];
		for (int i = 5; i >= 0; i--, sum >>= 3)
			copy[at + 148 + (size_t)i] = (uint8_t)('0' + (sum & 7));
		copy[at + 154] = 0;
		copy[at + 155] = ' ';
	}
	struct tar *tar = tar_new(&handler, &seen);
	for (size_t at = 0; at < size && r == 0; at += piece)
		r = tar_feed(tar, copy + at, MIN(piece, size - at), &err);
	if (r == 0)
		r = tar_finish(tar, &err);
	if ((r < 0) != (err.code != ERROR_OK))
		abort();
	tar_free(tar);
	free(copy);
	return 0;
}
