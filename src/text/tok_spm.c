/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_spm.c: SentencePiece's BPE (Kudo and Richardson 2018): neighbours join when their text is a
 * token, the token with the highest score first; a character without a token becomes bytes or the
 * unknown token. Spaces are U+2581 in the vocabulary. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/tok_impl.h"

#define SPACE "\xe2\x96\x81"

struct context {
    const struct tok *tok;
    const char *text;
};

/* What text may become by merging: no control, unknown or byte token. */
static int32_t token_of(const struct tok *tok, struct str text) {
    int32_t id = vocab_find_data(&tok->vocab, text);
    return id >= 0 && tok->vocab.kind[id] != TOK_BYTE ? id : -1;
}

static bool find(const void *ctx, const struct merge *merge, uint32_t left, uint32_t right,
                 struct merge_rule *rule) {
    const struct context *c = ctx;
    uint32_t from = merge->at[left], to = merge->at[right + merge->cell[right].span];
    int32_t id = token_of(c->tok, (struct str){c->text + from, to - from});
    if (id < 0) return false;
    *rule = (struct merge_rule){c->tok->rank[id], id};
    return true;
}

static bool put_unknown(const struct tok *tok, struct tok_work *work, struct str c) {
    for (size_t i = 0; i < c.n; i++) {
        int32_t id = tok->byte_id[(uint8_t)c.p[i]];
        if (id < 0) id = tok->unk;
        bool again = id == tok->unk && work->n && work->id[work->n - 1] == id;
        if (id >= 0 && !again && !tok_work_put(work, id)) return false;
    }
    return true;
}

static bool encode_word(const struct tok *tok, struct tok_work *work, struct str piece) {
    struct merge *m = &work->merge;
    struct context context = {tok, piece.p};
    uint32_t code;
    m->n = 0;
    for (size_t at = 0, n; at < piece.n; at += n) {
        n = utf8_decode(piece.p + at, piece.n - at, &code);
        if (!merge_push(m, token_of(tok, (struct str){piece.p + at, n}), at, n)) return false;
    }
    if (!merge_run(m, tok->ranks, find, &context)) return false;
    for (size_t i = 0, next; i < m->n; i = next) {
        next = i + m->cell[i].span;
        struct str text = {piece.p + m->at[i], m->at[next] - m->at[i]};
        bool ok = m->cell[i].id >= 0 ? tok_work_put(work, m->cell[i].id)
                                     : put_unknown(tok, work, text);
        if (!ok) return false;
    }
    return true;
}

static bool is_space(struct str text, size_t at) {
    return text.n - at >= 3 && memcmp(text.p + at, SPACE, 3) == 0;
}

/* The first space that follows something else than a space and one of `joins`; the end of the text
 * if there is none. No token lies across it, so what is before can be encoded on its own. */
static size_t word_end(struct str text, const bool *joins) {
    bool cut = false;
    for (size_t at = 0; at < text.n; at++) {
        if (is_space(text, at)) {
            if (cut) return at;
            at += 2;
            cut = false;
        } else {
            cut = !joins[(uint8_t)text.p[at]];
        }
    }
    return text.n;
}

static void find_joins(struct str token, bool *joins) {
    for (size_t n; (n = word_end(token, joins)) < token.n;) joins[(uint8_t)token.p[n - 1]] = true;
}

/* Runs of unknown tokens are one, across words too: what has one is not remembered. */
static bool remember(const struct tok *tok, struct tok_work *work, struct str word, size_t from) {
    for (size_t i = from; i < work->n; i++)
        if (work->id[i] == tok->unk) return true;
    if (work->n > from) memo_put(&work->memo, word, work->id + from, work->n - from);
    return true;
}

static bool encode(const struct tok *tok, struct tok_work *work, struct str piece) {
    while (piece.n) {
        struct str word = {piece.p, word_end(piece, tok->joins)};
        const struct memo_word *known = memo_find(&work->memo, word);
        size_t from = work->n;
        bool ok = known ? tok_work_add(work, known->id, known->ids)
                        : encode_word(tok, work, word) && remember(tok, work, word, from);
        if (!ok) return false;
        piece.p += word.n;
        piece.n -= word.n;
    }
    return true;
}

/* A number that is lower for a higher score, equal for equal scores. The bits of floats are in the
 * order of the numbers, those of negative ones in the opposite order. */
static uint32_t order_of(float score) {
    uint32_t bits;
    score += 0.0f; /* -0 to +0 */
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? bits : ~bits & 0x7fffffffu;
}

/* Dense ranks from keys: the order of a score in the high half, in the low half the id. Sorts them
 * by byte, from the last to the first: qsort would be a third of opening the tokenizer. */
static void make_ranks(struct tok *tok, uint64_t *key, uint64_t *spare) {
    uint32_t n = tok->vocab.n, rank = 0;
    for (int shift = 32; shift < 64; shift += 8) { /* four passes: the result is in key */
        uint32_t at[257] = {0};
        for (uint32_t i = 0; i < n; i++) at[(key[i] >> shift & 255) + 1]++;
        for (int b = 0; b < 256; b++) at[b + 1] += at[b];
        for (uint32_t i = 0; i < n; i++) spare[at[key[i] >> shift & 255]++] = key[i];
        uint64_t *p = key;
        key = spare;
        spare = p;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (i && key[i] >> 32 != key[i - 1] >> 32) rank++;
        tok->rank[(uint32_t)key[i]] = rank;
    }
    tok->ranks = rank + 1;
}

static ob_status open_gguf(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    static const char key[] = "tokenizer.ggml.scores";
    const struct gguf_value *scores = gguf_find(gguf, key);
    if (!scores || scores->n != tok->vocab.n)
        return error_set(error, OB_ERR_FORMAT, "%s is missing or not one a token", key);
    tok->rank = arena_array(&tok->arena, tok->vocab.n, sizeof *tok->rank);
    uint64_t *order = malloc(2 * (size_t)tok->vocab.n * sizeof *order); /* half is scratch */
    if (!tok->rank || !order) {
        free(order);
        return error_memory(error, "scores", tok->vocab.n);
    }
    for (uint32_t id = 0; id < tok->vocab.n; id++) {
        double score;
        if (!gguf_f64(scores, id, &score) || !isfinite(score)) {
            free(order);
            return error_set(error, OB_ERR_FORMAT, "%s: element %u is no finite number", key, id);
        }
        order[id] = (uint64_t)order_of((float)score) << 32 | id;
        find_joins(tok->vocab.text[id], tok->joins);
    }
    make_ranks(tok, order, order + tok->vocab.n);
    free(order);
    bool prefix = true;
    const struct gguf_value *value = gguf_find(gguf, "tokenizer.ggml.add_space_prefix");
    if (value && !gguf_bool(value, 0, &prefix))
        return error_set(error, OB_ERR_FORMAT, "tokenizer.ggml.add_space_prefix is no bool");
    tok->strip_space = prefix;
    /* SentencePiece finds its user-defined pieces in normalized text: Gemma's runs of spaces are
     * one token also where the text has U+2581. With a prefix, llama.cpp and the reference cut them
     * out before and prefix what follows. */
    tok->added_normalized = !prefix;
    struct str space = STR_LIT(SPACE);
    struct normal_step before = {.apply = normal_prepend, .to = space},
                       marks = {.apply = normal_replace, .from = STR_LIT(" "), .to = space};
    if (prefix) tok_add_step(&tok->normal, before, NULL);
    tok_add_step(&tok->normal, marks, NULL);
    tok_add_decoder(tok, (struct decode_step){.apply = decode_replace, .from = space,
                                              .to = STR_LIT(" ")}, NULL);
    tok->add_bos = true;
    tok->bos = 1, tok->eos = 2, tok->unk = 0;
    tok_find_bytes(tok);
    tok->describe = "spm";
    return OB_OK;
}

const struct tok_model tokenizer_spm = {
    .name = "spm",
    .gguf = "llama",
    .open_gguf = open_gguf,
    .encode = encode,
};
