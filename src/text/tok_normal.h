/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_normal.h: normalizers: rewriting of a text before it is cut up. Each carries the trust of its
 * bytes along (see tok.h): a byte made of several is trusted if they all are. */
#ifndef TEXT_TOK_NORMAL_H
#define TEXT_TOK_NORMAL_H

#include "base/buf.h"
#include "base/str.h"

struct normal_text {
    struct buf text, trust; /* trust: one byte for each of text */
    bool limit; /* text.failed because an expression costs too much */
};

struct normal_step;
/* `start`: the text is the beginning of what the caller gave. Steps append to *out. */
typedef void normal_fn(const struct normal_step *step, struct str in, const uint8_t *trust,
                       bool start, struct normal_text *out);

struct normal_step {
    normal_fn *apply;
    struct str from, to;
    struct regex *regex; /* owned by the tokenizer */
    const void *table;
};

normal_fn normal_accents;      /* combining marks dropped */
normal_fn normal_bert_clean;   /* controls removed, spaces to ' ' */
normal_fn normal_bert_chinese; /* spaces around each Chinese character */
normal_fn normal_bert_strip;   /* characters taken apart, accents dropped */
normal_fn normal_bert_lower;   /* lower case */
normal_fn normal_bytes;        /* bytes in the byte-level alphabet */
normal_fn normal_charsmap;     /* `table`: a struct charsmap */
normal_fn normal_compat;       /* compatibility characters taken apart: then nfc or nfd */
normal_fn normal_nfd;          /* Unicode's canonical decomposition */
normal_fn normal_nfc;          /* Unicode's canonical composition, of the reference's version */
normal_fn normal_nmt;          /* controls dropped, odd spaces to ' ' */
normal_fn normal_prepend;      /* `to` before a text that is not empty */
normal_fn normal_regex;        /* matches of `regex` by `to` */
normal_fn normal_replace;      /* `from` by `to` */
normal_fn normal_spaces;       /* runs of spaces to one, none at the ends */
normal_fn normal_strip_left;   /* white space at the start dropped */
normal_fn normal_strip_right;  /* at the end */

#endif
