/* SPDX-License-Identifier: Apache-2.0
 * pretok_bert.c: BERT's words: what is between spaces, cut at each punctuation character. Spaces
 * are pieces here, of which tok_wordpiece.c makes nothing. */
#include "text/bert.h"
#include "text/pretok.h"
#include "text/pretok_scan.h"

static bool word(struct scan_char c) {
    return c.n && !unicode_is_space(c.of) && !bert_is_punctuation(c.code);
}

static size_t next(const char *p, size_t n) {
    struct scan_char first = scan_at(p, n, 0);
    if (scan_space(first)) return scan_run(p, n, 0, scan_space, SIZE_MAX);
    return word(first) ? scan_run(p, n, 0, word, SIZE_MAX) : first.n;
}

const struct pretok pretok_bert = {
    .name = "bert",
    .gguf = (const char *const[]){NULL},
    .regex = "BertPreTokenizer", /* which is no expression, but a component of its own */
    .next = next,
};
