/* SPDX-License-Identifier: Apache-2.0
 * chat_scan.h: JSON (RFC 8259) checked byte by byte, for values whose end is not known. One thing
 * is more than the RFC's: control characters in strings, which models write as they are. */
#ifndef TEXT_CHAT_SCAN_H
#define TEXT_CHAT_SCAN_H

#include "base/buf.h"
#include "base/str.h"

enum { SCAN_DEPTH = 512 };

/* What a byte was; several may hold. The value is at `depth`, the number of containers around. */
enum {
    SCAN_BEGINS = 1,       /* the first of a value or key */
    SCAN_ENDS = 2,         /* the last of one */
    SCAN_ENDED = 4,        /* the byte behind a number, which shows its end */
    SCAN_KEY = 8,          /* that is a key */
    SCAN_BAD = 16,         /* no JSON can go on so; the scan is over */
};

struct scan {
    int state;
    unsigned depth;
    const char *rest; /* of true, false, null */
    bool key;
    uint64_t object[SCAN_DEPTH / 64]; /* bit: the container at that depth is an object */
};
#define SCAN_INIT {0}

int scan_byte(struct scan *scan, char c);
/* Whether a value is whole, were the text to end here. */
bool scan_is_whole(const struct scan *scan);
bool scan_in_string(const struct scan *scan);
/* Whether the text is one JSON value, white space around it apart. */
bool scan_is_json(struct str text);

/* Appends the text as the inside of a JSON string: quotes, backslashes and control characters
 * escaped. */
void scan_put_string(struct buf *out, struct str text);
/* The text that a JSON string, without its quotes, stands for. */
void scan_put_decoded(struct buf *out, struct str inside);

#endif
