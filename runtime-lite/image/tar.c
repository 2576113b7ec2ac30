/* tar.c - purpose: read a tar stream (v7, ustar, star, GNU, pax) in pieces of any size. */
#include "runtime-lite/image/tar.h"

#include <errno.h>

#include "runtime-lite/image/pax.h"

/* Where the fields of a header block stand. */
enum {
	AT_NAME = 0, AT_MODE = 100, AT_UID = 108, AT_GID = 116, AT_SIZE = 124, AT_MTIME = 136, AT_CHECKSUM = 148, AT_TYPE = 156,
	AT_LINK = 157, AT_MAGIC = 257, AT_MAJOR = 329, AT_MINOR = 337, AT_PREFIX = 345, AT_STAR = 508,
	STAR_PREFIX_LEN = 131, PREFIX_LEN = 155, NAME_LEN = 100, META_IN_A_ROW_MAX = 16,
};

enum state { STATE_HEADER, STATE_META, STATE_CONTENT, STATE_PADDING, STATE_END };

struct tar {
	struct tar_handler handler;
	void *data;
	enum state state;
	uint8_t block[TAR_BLOCK];
	size_t have;          /* bytes of the block, in STATE_HEADER */
	uint64_t left;        /* bytes of content or of a meta header still to come */
	size_t padding;       /* and of padding behind them */
	uint64_t offset;      /* bytes consumed */
	unsigned zero_blocks; /* in a row */
	unsigned meta_in_a_row;
	char meta_type;  /* 'x', 'g', 'L', 'K' */
	struct str meta; /* the content of that header */
	struct pax pax;  /* for the next entry */
	struct str long_name, long_link;
	bool have_long_name, have_long_link;
};

struct tar *tar_new(const struct tar_handler *handler, void *data)
{
	struct tar *tar = xnew(struct tar);

	tar->handler = *handler;
	tar->data = data;
	return tar;
}

struct tar *tar_free(struct tar *tar)
{
	if (!tar)
		return NULL;
	str_done(&tar->meta);
	str_done(&tar->long_name);
	str_done(&tar->long_link);
	pax_done(&tar->pax);
	free(tar);
	return NULL;
}

uint64_t tar_content_offset(const struct tar *tar)
{
	return tar->offset;
}

static int bad(struct tar *tar, struct error *err, const char *what)
{
	return error_set(err, ERROR_DATA_LOSS, "not a tar archive, or damaged: %s (header that ends at byte %llu)", what,
		(unsigned long long)tar->offset);
}

/* Octal text, ended by NUL or blank; or base 256 when the top bit is set. Empty is 0. */
static int number(const uint8_t *p, size_t n, int64_t *ret)
{
	if (p[0] & 0x80) {
		bool negative = p[0] & 0x40;
		uint64_t v = negative ? UINT64_MAX : 0;

		for (size_t i = 0; i < n; i++) {
			uint8_t byte = i ? p[i] : (negative ? p[0] | 0x80 : p[0] & 0x7f);
			uint8_t lost = (uint8_t)(v >> 56);

			if (lost != (negative ? 0xff : 0))
				return -ERANGE;
			v = v << 8 | byte;
		}
		if ((v >> 63 != 0) != negative)
			return -ERANGE;
		*ret = (int64_t)v;
		return 0;
	}
	uint64_t v = 0;
	size_t i = 0;

	while (i < n && p[i] == ' ')
		i++;
	for (; i < n && p[i] >= '0' && p[i] <= '7'; i++) {
		if (v >> 60)
			return -ERANGE;
		v = v << 3 | (uint64_t)(p[i] - '0');
	}
	for (; i < n; i++)
		if (p[i] != ' ' && p[i] != '\0')
			return -EINVAL;
	*ret = (int64_t)v;
	return 0;
}

static bool all_zero(const uint8_t *p)
{
	for (size_t i = 0; i < TAR_BLOCK; i++)
		if (p[i])
			return false;
	return true;
}

/* The sum is over unsigned bytes; some old programs summed signed ones. */
static bool checksum_right(const uint8_t *b)
{
	int64_t stored, sum = 0, signed_sum = 0;

	if (number(b + AT_CHECKSUM, 8, &stored) < 0)
		return false;
	for (size_t i = 0; i < TAR_BLOCK; i++) {
		bool blank = i >= AT_CHECKSUM && i < AT_CHECKSUM + 8;

		sum += blank ? ' ' : b[i];
		signed_sum += blank ? ' ' : (int8_t)b[i];
	}
	return stored == sum || stored == signed_sum;
}

/* The name of the header with its prefix, into `out`. */
static void header_name(const uint8_t *b, struct str *out)
{
	const char *name = (const char *)b + AT_NAME, *prefix = (const char *)b + AT_PREFIX;

	if (memcmp(b + AT_MAGIC, "ustar\0", 6) == 0) {
		bool star = memcmp(b + AT_STAR, "tar\0", 4) == 0;
		size_t n = strnlen(prefix, star ? STAR_PREFIX_LEN : PREFIX_LEN);

		if (n) {
			str_add_bytes(out, prefix, n);
			str_add_char(out, '/');
		}
	}
	str_add_bytes(out, name, strnlen(name, NAME_LEN));
}

static int entry_type(struct tar *tar, uint8_t flag, const char *name, enum tar_type *ret, struct error *err)
{
	switch (flag) {
	case '\0':
	case '0':
	case '7':
		/* v7 had no directories of their own: a file whose name ends in a slash. */
		*ret = str_ends(name, "/") ? TAR_DIR : TAR_FILE;
		return 0;
	case '1':
		*ret = TAR_HARDLINK;
		return 0;
	case '2':
		*ret = TAR_SYMLINK;
		return 0;
	case '3':
		*ret = TAR_CHAR;
		return 0;
	case '4':
		*ret = TAR_BLOCK_DEVICE;
		return 0;
	case '5':
		*ret = TAR_DIR;
		return 0;
	case '6':
		*ret = TAR_FIFO;
		return 0;
	case 'S':
		return error_set(err, ERROR_INVALID, "%.200s: sparse files are not supported", name);
	default:
		if (flag < 0x20 || flag > 0x7e)
			return bad(tar, err, "unknown type of entry");
		return error_set(err, ERROR_INVALID, "%.200s: entries of type \"%c\" are not supported", name, flag);
	}
}

static int id_field(struct tar *tar, const uint8_t *p, bool have_pax, int64_t pax, uint32_t *ret, struct error *err)
{
	int64_t v = pax;

	if (!have_pax && number(p, 8, &v) < 0)
		return bad(tar, err, "a user or group id that is no number");
	/* -1 means "leave it" to chown(). */
	if (v < 0 || v >= (int64_t)UINT32_MAX)
		return bad(tar, err, "a user or group id out of range");
	*ret = (uint32_t)v;
	return 0;
}

static int device_fields(struct tar *tar, struct tar_entry *e, struct error *err)
{
	int64_t major, minor;

	if (e->type != TAR_CHAR && e->type != TAR_BLOCK_DEVICE)
		return 0;
	if (number(tar->block + AT_MAJOR, 8, &major) < 0 || number(tar->block + AT_MINOR, 8, &minor) < 0)
		return bad(tar, err, "a device number that is no number");
	if (major < 0 || major > 0xfff || minor < 0 || minor > 0xfffff)
		return bad(tar, err, "a device number out of range");
	e->major = (uint32_t)major;
	e->minor = (uint32_t)minor;
	return 0;
}

static int meta_fields(struct tar *tar, struct tar_entry *e, struct error *err)
{
	int64_t v;
	int r = id_field(tar, tar->block + AT_UID, tar->pax.have_uid, tar->pax.uid, &e->uid, err);

	if (r == 0)
		r = id_field(tar, tar->block + AT_GID, tar->pax.have_gid, tar->pax.gid, &e->gid, err);
	if (r < 0)
		return r;
	if (number(tar->block + AT_MODE, 8, &v) < 0 || v < 0)
		return bad(tar, err, "a mode that is no number");
	e->mode = (uint32_t)v & 07777;
	if (tar->pax.have_mtime) {
		e->mtime_s = tar->pax.mtime_s;
		e->mtime_ns = tar->pax.mtime_ns;
	} else if (number(tar->block + AT_MTIME, 12, &e->mtime_s) < 0) {
		return bad(tar, err, "a time that is no number");
	}
	return device_fields(tar, e, err);
}

static void forget_meta(struct tar *tar)
{
	pax_done(&tar->pax);
	str_reset(&tar->long_name);
	str_reset(&tar->long_link);
	tar->have_long_name = tar->have_long_link = false;
	tar->meta_in_a_row = 0;
}

static int after_content(struct tar *tar, struct error *err)
{
	int r = tar->handler.end(tar->data, err);

	tar->state = tar->padding ? STATE_PADDING : STATE_HEADER;
	return r;
}

static int emit(struct tar *tar, uint64_t size, struct error *err)
{
	_cleanup_(str_done) struct str name = STR_INIT;
	_cleanup_(str_done) struct str link = STR_INIT;
	const uint8_t *b = tar->block;
	struct tar_entry e = { .xattrs = tar->pax.xattrs, .n_xattrs = tar->pax.n_xattrs };

	header_name(b, &name);
	str_add_bytes(&link, b + AT_LINK, strnlen((const char *)b + AT_LINK, NAME_LEN));
	e.name = tar->have_long_name ? str_get(&tar->long_name) : tar->pax.path ? tar->pax.path : str_get(&name);
	e.link = tar->have_long_link ? str_get(&tar->long_link) : tar->pax.linkpath ? tar->pax.linkpath : str_get(&link);
	if (strlen(e.name) > TAR_NAME_MAX || strlen(e.link) > TAR_NAME_MAX)
		return error_set(err, ERROR_INVALID, "%.100s...: a name of more than %d bytes", e.name, TAR_NAME_MAX);
	if (tar->pax.sparse)
		return error_set(err, ERROR_INVALID, "%.200s: sparse files are not supported", e.name);
	int r = entry_type(tar, b[AT_TYPE], e.name, &e.type, err);
	if (r == 0)
		r = meta_fields(tar, &e, err);
	if (r < 0)
		return r;
	if (e.type != TAR_HARDLINK && e.type != TAR_SYMLINK)
		e.link = "";
	e.size = e.type == TAR_FILE ? size : 0;
	tar->left = e.size;
	tar->padding = (TAR_BLOCK - e.size % TAR_BLOCK) % TAR_BLOCK;
	r = tar->handler.entry(tar->data, &e, err);
	forget_meta(tar);
	if (r < 0)
		return r;
	tar->state = STATE_CONTENT;
	return tar->left == 0 ? after_content(tar, err) : 0;
}

static int header(struct tar *tar, struct error *err)
{
	const uint8_t *b = tar->block;
	int64_t size;

	tar->have = 0;
	if (all_zero(b)) {
		if (++tar->zero_blocks == 2)
			tar->state = STATE_END;
		return 0;
	}
	if (tar->zero_blocks)
		return bad(tar, err, "a header behind a block of zeros");
	if (!checksum_right(b))
		return bad(tar, err, "wrong checksum");
	uint8_t type = b[AT_TYPE];
	bool meta = type == 'x' || type == 'g' || type == 'X' || type == 'L' || type == 'K';
	if (!meta && tar->pax.have_size)
		size = tar->pax.size;
	else if (number(b + AT_SIZE, 12, &size) < 0)
		return bad(tar, err, "a size that is no number");
	/* Room for the padding, so that no sum below can overflow. */
	if (size < 0 || size > INT64_MAX - TAR_BLOCK)
		return bad(tar, err, "a size out of range");
	if (!meta)
		return emit(tar, (uint64_t)size, err);
	if (size > TAR_META_MAX)
		return bad(tar, err, "an extended header of more than 1 MiB");
	if (++tar->meta_in_a_row > META_IN_A_ROW_MAX)
		return bad(tar, err, "more than 16 extended headers in a row");
	tar->meta_type = (char)(type == 'X' ? 'x' : type);
	str_reset(&tar->meta);
	tar->left = (uint64_t)size;
	tar->padding = (TAR_BLOCK - (size_t)size % TAR_BLOCK) % TAR_BLOCK;
	tar->state = STATE_META;
	return 0;
}

/* A GNU long name: up to its first NUL. */
static int take_long(struct tar *tar, struct str *out, bool *have, struct error *err)
{
	size_t n = strnlen(str_get(&tar->meta), tar->meta.len);

	if (n > TAR_NAME_MAX)
		return error_set(err, ERROR_INVALID, "%.100s...: a name of more than %d bytes", str_get(&tar->meta), TAR_NAME_MAX);
	str_reset(out);
	str_add_bytes(out, str_get(&tar->meta), n);
	*have = n > 0;
	return 0;
}

static int meta_complete(struct tar *tar, struct error *err)
{
	int r = 0;

	if (tar->meta_type == 'L')
		r = take_long(tar, &tar->long_name, &tar->have_long_name, err);
	else if (tar->meta_type == 'K')
		r = take_long(tar, &tar->long_link, &tar->have_long_link, err);
	else if (tar->meta_type == 'x')
		r = pax_parse(&tar->pax, str_get(&tar->meta), tar->meta.len, err);
	/* 'g': defaults for all entries; image builders only put comments there, and containerd ignores it too. */
	tar->state = tar->padding ? STATE_PADDING : STATE_HEADER;
	return r;
}

/* Consumes some of p; returns how much, or an error. */
static ssize_t step(struct tar *tar, const uint8_t *p, size_t n, struct error *err)
{
	size_t take;
	int r = 0;

	switch (tar->state) {
	case STATE_HEADER:
		take = MIN(n, TAR_BLOCK - tar->have);
		memcpy(tar->block + tar->have, p, take);
		tar->have += take;
		tar->offset += take;
		if (tar->have == TAR_BLOCK)
			r = header(tar, err);
		break;
	case STATE_META:
		take = (size_t)MIN(n, tar->left);
		str_add_bytes(&tar->meta, p, take);
		tar->offset += take;
		tar->left -= take;
		if (tar->left == 0)
			r = meta_complete(tar, err);
		break;
	case STATE_CONTENT:
		take = (size_t)MIN(n, tar->left);
		r = tar->handler.content(tar->data, p, take, err);
		tar->offset += take;
		tar->left -= take;
		if (r == 0 && tar->left == 0)
			r = after_content(tar, err);
		break;
	case STATE_PADDING:
		take = MIN(n, tar->padding);
		tar->offset += take;
		tar->padding -= take;
		if (tar->padding == 0)
			tar->state = STATE_HEADER;
		break;
	default:
		take = n;
		tar->offset += take;
		break;
	}
	return r < 0 ? r : (ssize_t)take;
}

int tar_feed(struct tar *tar, const void *data, size_t n, struct error *err)
{
	const uint8_t *p = data;

	/* An empty meta header consumes nothing: step() must run once more even when the input is used up. */
	while (n > 0 || (tar->state == STATE_META && tar->left == 0)) {
		ssize_t done = step(tar, p, n, err);

		if (done < 0)
			return (int)done;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

int tar_finish(struct tar *tar, struct error *err)
{
	if (tar->state == STATE_END)
		return 0;
	/* Missing padding behind the last entry is harmless, and seen in the wild. */
	if (tar->state == STATE_PADDING || (tar->state == STATE_HEADER && tar->have == 0)) {
		if (tar->meta_in_a_row == 0)
			return 0;
	}
	if (tar->offset < TAR_BLOCK)
		return error_set(err, ERROR_DATA_LOSS, "not a tar archive: it has only %llu bytes", (unsigned long long)tar->offset);
	return error_set(err, ERROR_DATA_LOSS, "the archive is truncated (it ends at byte %llu, inside of an entry)",
		(unsigned long long)tar->offset);
}
