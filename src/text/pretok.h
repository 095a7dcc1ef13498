/* SPDX-License-Identifier: Apache-2.0
 *
 * pretok.h: pre-tokenizers by name: the cutting of text into pieces that merges never cross, as a
 * GGUF names it. A rule is one expression; where it matches, the text is cut before and after. A
 * pre-tokenizer (a row of pretok.def) is rules, one after the other over the pieces of the one
 * before, and what else llama.cpp and the models' own files tie to the name.
 *
 * The common rules are hand scanners that give the expression's matches in linear time, the others
 * go through PCRE2. Malformed bytes are characters of no class. */
#ifndef TEXT_PRETOK_H
#define TEXT_PRETOK_H

#include "base/str.h"

/* A row of rules.def. */
struct rule {
    const char *regex; /* as tokenizer.json spells it */
    /* NULL: by PCRE2. Length of the match at the start of p[0..n), n >= 1, for an expression that
     * matches everywhere: at least 1, at most n. */
    size_t (*next)(const char *p, size_t n);
    /* Or, for others: the first match at or after `from`; false: none. May be empty. */
    bool (*find)(const char *p, size_t n, size_t from, size_t *start, size_t *end);
};
#define RULE(name) extern const struct rule rule_##name;
#include "text/rules.def"
#undef RULE

enum { PRETOK_RULES = 6 };
enum {
    PRETOK_NFC = 1,    /* the text is normalized first */
    PRETOK_WHOLE = 2,  /* a piece that is a token needs no merges ("ignore_merges") */
    PRETOK_BOS = 4,    /* BOS is added unless the file says otherwise */
    PRETOK_NO_BOS = 8, /* there is none unless the file names one */
    PRETOK_CHARS = 16, /* tokens spell characters, not bytes in the byte-level alphabet */
    PRETOK_SPACES = 32, /* spaces are U+2581 */
    PRETOK_WORDS = 64,  /* and begin words, as does each line */
};

struct pretok {
    const char *name;
    unsigned flags;
    const struct rule *rule[PRETOK_RULES + 1]; /* NULL at the end */
};

const struct pretok *pretok_find(struct str name); /* of tokenizer.ggml.pre; NULL: unknown */
/* A row with these rules and this NFC and WHOLE, for writing a GGUF. NULL: none. */
const struct pretok *pretok_like(const struct rule *const *rule, size_t n, unsigned flags);
/* The rule of an expression of tokenizer.json; NULL: not one of the list. */
const struct rule *rule_find(struct str regex);

#endif
