/* SPDX-License-Identifier: Apache-2.0
 *
 * format.h: what both ways of formatting (format.c) share with numbers (format_num.c). */
#ifndef TEXT_JINJA_FORMAT_H
#define TEXT_JINJA_FORMAT_H

#include "text/jinja/run.h"

enum { MOST_WIDTH = 100000 };

/* How one value is laid out; the union of what both syntaxes can say. */
struct layout {
    uint32_t fill;
    char align; /* '<', '>', '^', '=' or 0: the type's own */
    char sign;  /* '+', ' ' or 0 */
    char group; /* ',', '_' or 0 */
    bool alternate, signs; /* signs: one was asked for, the usual '-' too */
    int64_t width, precision; /* precision -1: not given */
    char type;                /* 0: none */
    bool trusted;             /* the format is */
};

/* The body with padding; the first `head` bytes (sign, 0x) stay in front of '=' padding. */
bool format_padded(struct run *r, const struct text *body, size_t head, char align,
                   const struct layout *f);
/* A whole number; any number as a float. */
bool format_whole(struct run *r, struct value v, const struct layout *f);
bool format_float(struct run *r, struct value v, const struct layout *f);

#endif
