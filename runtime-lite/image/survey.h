/*
 * survey.h - purpose: what an unpacked layer takes on disk, and a checksum that shows whether anything in it was lost.
 *
 * The checksum covers names, types, modes, owners, sizes, device numbers, times and link targets of everything, not the
 * content of files: what power cuts lose shows in sizes and times. It does not depend on the order of directories.
 */
#pragma once
#include "common/base/error.h"

struct survey {
	uint64_t bytes;  /* on disk; a file with several names counts once */
	uint64_t inodes; /* the root counts too */
	uint64_t checksum;
};

int survey_tree(int dir_fd, struct survey *ret, struct error *err) MUST_USE;
