/* SPDX-License-Identifier: Apache-2.0
 *
 * json_pull.h: a pull reader for large JSON (tokenizer.json, safetensors headers and indexes): no
 * tree, memory only for the current string. Strict RFC 8259: UTF-8, no lone surrogates, nothing after
 * the value; nesting at most JSON_DEPTH. Keys may repeat, the caller looks. The text must outlive the
 * reader. Not thread safe. */
#ifndef FORMAT_JSON_PULL_H
#define FORMAT_JSON_PULL_H

#include "base/buf.h"
#include "base/str.h"
#include "onebit.h"

enum { JSON_DEPTH = 128 };

enum json_kind {
    JSON_END,     /* the document is complete */
    JSON_BAD,     /* malformed: see json_error */
    JSON_NULL,
    JSON_BOOL,
    JSON_NUMBER,  /* `text` is the number as written */
    JSON_STRING,  /* `text` decoded */
    JSON_KEY,     /* `text` decoded; its value follows */
    JSON_ARRAY,   /* [ */
    JSON_ARRAY_END,
    JSON_OBJECT,  /* { */
    JSON_OBJECT_END,
};

struct json_pull {
    const char *p, *start, *end;
    enum json_kind kind;  /* of the last event */
    struct str text;      /* valid until the next call */
    bool truth;           /* JSON_BOOL */
    /* private */
    struct buf scratch;
    unsigned depth;
    char stack[JSON_DEPTH];
    int state;
    const char *message;
};

void json_open(struct json_pull *j, const char *text, size_t n);
enum json_kind json_next(struct json_pull *j);
/* Skips the value that comes next: after a JSON_KEY, or an element, or a key with its value. false:
 * malformed, or nothing was left to skip (kind is the end that came instead). */
bool json_skip(struct json_pull *j);
/* The current JSON_NUMBER as a double (infinite if too large) / as an exact integer (false if it is none or out of range). */
double json_number(const struct json_pull *j);
bool json_u64(const struct json_pull *j, uint64_t *out);
bool json_i64(const struct json_pull *j, int64_t *out);
size_t json_offset(const struct json_pull *j);
/* Fills `error` with what JSON_BAD meant and where; returns OB_ERR_FORMAT (or _MEMORY). */
ob_status json_error(const struct json_pull *j, ob_error *error);
void json_close(struct json_pull *j);

#endif
