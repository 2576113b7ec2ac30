/* report_lines.h - purpose: pieces of text that dump and explain share. Private to admin/. */
#pragma once
#include "proxy-lite/admin/report.h"

/* " 10.0.0.1:80 10.0.0.2:80", or " none: refused". */
void report_endpoints(const struct frontend *frontend, struct str *out);
