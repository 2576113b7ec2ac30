/*
 * json_scan.h - purpose: cut a stream of JSON bytes into objects without building a tree of the whole. Sans I/O.
 *
 * JSON_SCAN_STREAM: documents one behind the other (a watch). JSON_SCAN_LIST: one document whose "items" are cut out
 * one by one; what remains of it ({"kind":...,"metadata":...,"items":[]}) is kept as `rest`.
 *
 * Only strings, brackets and commas are understood here: an item is handed out as text, and whoever parses it finds
 * what is wrong inside. Memory: one item and the rest, both limited.
 */
#pragma once
#include "common/base/error.h"
#include "common/base/str.h"

enum json_scan_mode { JSON_SCAN_STREAM, JSON_SCAN_LIST };
enum json_scan_event { JSON_SCAN_MORE, JSON_SCAN_ITEM, JSON_SCAN_TOO_LARGE, JSON_SCAN_END };

enum { JSON_SCAN_ITEM_MAX = 8 * 1024 * 1024, JSON_SCAN_REST_MAX = 256 * 1024 };

struct json_scan {
	enum json_scan_mode mode;
	size_t item_max; /* larger items are skipped: TOO_LARGE; 0: JSON_SCAN_ITEM_MAX */
	struct str item; /* the current item, valid after ITEM until the next call */
	struct str rest; /* LIST: complete after END */

	/* private */
	int state;
	unsigned depth;
	bool in_string, escaped;
	bool too_large;
	bool given; /* the item has been handed out */
	char key[8];
	unsigned key_len;
	bool in_key, key_due;
};

void json_scan_init(struct json_scan *s, enum json_scan_mode mode);
void json_scan_done(struct json_scan *s);
/* Takes bytes from the front of *in up to the next event. END comes once in LIST mode; bytes behind it are an error, as
 * are bytes that cannot be JSON. */
int json_scan_read(struct json_scan *s, struct bytes *in, enum json_scan_event *ret, struct error *err) MUST_USE;
/* Has a document been begun and not ended? Then the stream was cut off. */
bool json_scan_inside(const struct json_scan *s);
