/* SPDX-License-Identifier: Apache-2.0
 *
 * pretok.h: pre-tokenizers: the cutting of text into pieces that merges never cross. The reference
 * does it with a regular expression; ours are hand scanners that give the same pieces in linear
 * time. One pretok_<name>.c and one row in pretok.def each. */
#ifndef TEXT_PRETOK_H
#define TEXT_PRETOK_H

#include "base/str.h"

struct pretok {
    const char *name;
    const char *const *gguf; /* values of tokenizer.ggml.pre, NULL at the end */
    const char *regex;       /* as tokenizer.json spells it */
    /* Length of the piece at the start of p[0..n), n >= 1; at least 1, at most n. Malformed bytes
     * are characters of no class. */
    size_t (*next)(const char *p, size_t n);
    /* What a GGUF leaves to the name: */
    bool nfc;          /* the text is normalized first */
    bool whole_words;  /* a piece that is a token needs no merges ("ignore_merges") */
    bool bos;          /* BOS is added unless the file says otherwise */
};

#define PRETOK(name) extern const struct pretok pretok_##name;
#include "text/pretok.def"
#undef PRETOK

const struct pretok *pretok_for_gguf(struct str pre);     /* NULL: unknown */
const struct pretok *pretok_for_regex(struct str regex);

#endif
