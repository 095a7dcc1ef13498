/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_vocab.h: the tokens of a vocabulary: text by id and id by text. Filled once, then immutable.
 * If two ids have one text the later one is found, as in the reference. */
#ifndef TEXT_TOK_VOCAB_H
#define TEXT_TOK_VOCAB_H

#include "base/arena.h"
#include "base/str.h"
#include "onebit.h"

/* The values of tokenizer.ggml.token_type. */
enum tok_kind {
    TOK_NONE, /* a hole in the ids, never found */
    TOK_NORMAL,
    TOK_UNKNOWN, /* stands for what has no token */
    TOK_CONTROL, /* never made from data */
    TOK_ADDED,   /* cut out of the text before the model sees it */
    TOK_UNUSED,
    TOK_BYTE,    /* "<0x0A>": a byte of a character without a token */
    TOK_KINDS
};

struct vocab_slot {
    uint32_t tag; /* high half of the hash: other texts are passed by without reading them */
    int32_t id;   /* -1 free */
};

struct vocab {
    uint32_t n;
    struct str *text; /* as the file spells it */
    uint8_t *kind;    /* enum tok_kind */
    bool *end;        /* ends a generation */
    bool *outside;    /* only an added token: the model does not know it */
    size_t longest;   /* bytes of the longest text */
    struct vocab_slot *slot; /* hash table, open addressing */
    uint32_t mask;
    bool twins; /* two ids have one text */
};

/* Room for n tokens, all TOK_NONE; the caller sets text and kind, then calls vocab_index. */
ob_status vocab_init(struct vocab *vocab, struct arena *arena, uint32_t n, ob_error *error);
ob_status vocab_index(struct vocab *vocab, struct arena *arena, ob_error *error);
int32_t vocab_find(const struct vocab *vocab, struct str text); /* -1: none */
/* May text become this token by itself? No control token, none that is only an added one. */
bool vocab_is_data(const struct vocab *vocab, int32_t id);
/* As vocab_find, for what text may become by itself. */
int32_t vocab_find_data(const struct vocab *vocab, struct str text);

#endif
