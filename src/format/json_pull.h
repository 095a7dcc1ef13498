/* SPDX-License-Identifier: Apache-2.0
 *
 * json_pull.h: a pull reader for large JSON (tokenizer.json, safetensors headers and indexes): no
 * tree, memory only for the current string. Strict RFC 8259: UTF-8, no lone surrogates, nothing
 * after the value; nesting at most PULL_DEPTH. Keys may repeat, the caller looks. The text must
 * outlive the reader. Not thread safe. Names say pull, because json_ and JSON_ are jansson's. */
#ifndef FORMAT_JSON_PULL_H
#define FORMAT_JSON_PULL_H

#include "base/buf.h"
#include "base/str.h"
#include "onebit.h"

enum { PULL_DEPTH = 128 };

enum pull_kind {
    PULL_END,     /* the document is complete */
    PULL_BAD,     /* malformed: see pull_error */
    PULL_NULL,
    PULL_BOOL,
    PULL_NUMBER,  /* `text` is the number as written */
    PULL_STRING,  /* `text` decoded */
    PULL_KEY,     /* `text` decoded; its value follows */
    PULL_ARRAY,   /* [ */
    PULL_ARRAY_END,
    PULL_OBJECT,  /* { */
    PULL_OBJECT_END,
};

struct json_pull {
    const char *p, *start, *end;
    enum pull_kind kind;  /* of the last event */
    struct str text;      /* valid until the next call */
    bool truth;           /* PULL_BOOL */
    /* private */
    struct buf scratch;
    unsigned depth;
    char stack[PULL_DEPTH];
    int state;
    const char *message;
};

void pull_open(struct json_pull *j, const char *text, size_t n);
enum pull_kind pull_next(struct json_pull *j);
/* Skips the value that comes next: after a PULL_KEY, or an element, or a key with its value. false:
 * malformed, or nothing was left to skip (kind is the end that came instead). */
bool pull_skip(struct json_pull *j);
/* The current PULL_NUMBER as a double (infinite if too large), or as an exact integer: false if it
 * is none or out of range. */
double pull_number(const struct json_pull *j);
bool pull_u64(const struct json_pull *j, uint64_t *out);
bool pull_i64(const struct json_pull *j, int64_t *out);
size_t pull_offset(const struct json_pull *j);
/* Fills `error` with what PULL_BAD meant and where; returns OB_ERR_FORMAT (or _MEMORY). */
ob_status pull_error(const struct json_pull *j, ob_error *error);
void pull_close(struct json_pull *j);

#endif
