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
};


struct normal_step;
/* `start`: the text is the beginning of what the caller gave. Steps append to *out. */
typedef void normal_fn(const struct normal_step *step, struct str in, const uint8_t *trust,
                       bool start, struct normal_text *out);

struct normal_step {
    normal_fn *apply;
    struct str from, to;
};

normal_fn normal_bert_clean;   /* controls removed, spaces to ' ' */
normal_fn normal_bert_chinese; /* spaces around each Chinese character */
normal_fn normal_bert_strip;   /* characters taken apart, accents dropped */
normal_fn normal_bert_lower;   /* lower case */
normal_fn normal_nfc;          /* Unicode's canonical composition, of the reference's version */
normal_fn normal_prepend;      /* `to` before a text that is not empty */
normal_fn normal_prefix;       /* `to` before a text that does not start with it */
normal_fn normal_prefix_start; /* the same, only at the start */
normal_fn normal_replace;      /* `from` by `to` */

#endif
