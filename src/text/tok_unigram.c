/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_unigram.c: SentencePiece's Unigram model (Kudo, arXiv 1804.10959): of all ways to spell a
 * text with tokens the most likely one, found from left to right (Viterbi); a character without a
 * token costs ten more than the unlikeliest token. Runs of unknown characters are one token.
 *
 * The reference gives the best way of a whole piece; so do we, but in blocks: where no token
 * reaches across a place, what is before it is settled. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/tok_charsmap.h"
#include "text/tok_impl.h"

#define SPACE "\xe2\x96\x81"

enum { UNKNOWN_COSTS = 10 };

/* The best way to a place: the token that ends there and where it starts. */
struct tok_way {
    double score;
    uint32_t start;
    int32_t id; /* -1: an unknown character; -2: none yet */
};

static bool reserve(struct tok_work *work, size_t n) {
    if (n <= work->way_cap) return true;
    size_t cap = work->way_cap ? work->way_cap : 256;
    while (cap < n) cap *= 2;
    struct tok_way *way = realloc(work->way, cap * sizeof *way);
    if (!way) return false;
    work->way = way;
    work->way_cap = cap;
    return true;
}

static void offer(struct tok_way *way, double score, size_t start, int32_t id) {
    if (way->id != -2 && !(score > way->score)) return;
    *way = (struct tok_way){score, (uint32_t)start, id};
}

/* The tokens that begin at `at`, which has n bytes of its character. */
static void extend(const struct tok *tok, struct tok_way *way, struct str piece, size_t at,
                   size_t n) {
    const struct trie *trie = &tok->trie;
    double here = way[at].score;
    bool single = false;
    uint32_t node = 0;
    for (size_t end = at; end < piece.n;) {
        node = trie_child(trie, node, (unsigned char)piece.p[end++]);
        if (!node) break;
        int32_t id = trie->node[node].id;
        if (id < 0) continue;
        offer(&way[end], here + tok->score[id], at, id);
        single = single || end - at == n;
    }
    if (!single) offer(&way[at + n], here + tok->unknown_score, at, -1);
}

/* The tokens of a stretch of unknown characters. */
static bool put_unknown(const struct tok *tok, struct tok_work *work, struct str text) {
    bool bytes = tok->byte_fallback;
    for (size_t i = 0; bytes && i < text.n; i++) bytes = tok->byte_id[(uint8_t)text.p[i]] >= 0;
    for (size_t i = 0; bytes && i < text.n; i++)
        if (!tok_work_put(work, tok->byte_id[(uint8_t)text.p[i]])) return false;
    return bytes || tok->unk < 0 || tok_work_put(work, tok->unk);
}

/* From the ends to the beginnings, then forward. */
static bool deliver(const struct tok *tok, struct tok_work *work, struct str piece) {
    struct tok_way *way = work->way;
    size_t n = 0, at = piece.n;
    while (at > 0) { /* links turned around: way[start].start is the end */
        struct tok_way step = way[at];
        size_t start = step.start;
        while (step.id == -1 && start > 0 && way[start].id == -1) start = way[start].start;
        way[piece.n - n] = (struct tok_way){0, (uint32_t)start, step.id};
        n++; /* at most one a byte, and those from the end on are done with */
        at = start;
    }
    for (size_t start = 0; n > 0;) {
        struct tok_way step = way[piece.n - --n];
        size_t end = n ? way[piece.n - (n - 1)].start : piece.n;
        struct str text = {piece.p + start, end - start};
        if (!(step.id >= 0 ? tok_work_put(work, step.id) : put_unknown(tok, work, text)))
            return false;
        start = end;
    }
    return true;
}

static bool encode(const struct tok *tok, struct tok_work *work, struct str piece) {
    if (!reserve(work, piece.n + 1)) return false;
    struct tok_way *way = work->way;
    for (size_t i = 1; i <= piece.n; i++) way[i].id = -2;
    way[0] = (struct tok_way){0, 0, -3};
    uint32_t code;
    for (size_t at = 0, n; at < piece.n; at += n) {
        n = utf8_decode(piece.p + at, piece.n - at, &code);
        extend(tok, way, piece, at, n);
    }
    return deliver(tok, work, piece);
}

/* ---- opening ---- */

ob_status tok_unigram_index(struct tok *tok, ob_error *error) {
    size_t n = 0;
    double least = INFINITY;
    struct trie_entry *entry = malloc(((size_t)tok->vocab.n + 1) * sizeof *entry);
    if (!entry) return error_memory(error, "trie of tokens", tok->vocab.n);
    for (uint32_t id = 0; id < tok->vocab.n; id++) {
        uint8_t kind = tok->vocab.kind[id];
        if (kind == TOK_NORMAL || (kind != TOK_NONE && tok->scored_all))
            least = fmin(least, tok->score[id]);
        if (kind == TOK_NONE || !vocab_is_data(&tok->vocab, (int32_t)id)) continue;
        if (kind == TOK_BYTE && !tok->scored_all) continue;
        struct str text = tok->vocab.text[id];
        if (text.n) entry[n++] = (struct trie_entry){text, (int32_t)id};
    }
    if (!isfinite(least)) least = 0;
    tok->unknown_score = least - UNKNOWN_COSTS;
    ob_status status = trie_build(&tok->trie, entry, n, &tok->arena, error);
    free(entry);
    return status;
}

static ob_status bad(ob_error *error, const char *key, const char *what) {
    error_set(error, OB_ERR_FORMAT, "%s", what);
    error_at(error, NULL, key, OB_NO_OFFSET);
    return OB_ERR_FORMAT;
}

static ob_status read_scores(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    static const char key[] = "tokenizer.ggml.scores";
    const struct gguf_value *scores = gguf_find(gguf, key);
    if (!scores || scores->n != tok->vocab.n) return bad(error, key, "missing or not one a token");
    tok->score = arena_array(&tok->arena, tok->vocab.n, sizeof *tok->score);
    if (!tok->score) return error_memory(error, "scores", tok->vocab.n);
    for (uint32_t id = 0; id < tok->vocab.n; id++) {
        if (!gguf_f64(scores, id, &tok->score[id]) || !isfinite(tok->score[id]))
            return bad(error, key, "an element is no finite number");
        if (tok->vocab.kind[id] == TOK_ADDED) tok->score[id] = 0;
    }
    return tok_unigram_index(tok, error);
}

static ob_status read_charsmap(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    static const char key[] = "tokenizer.ggml.precompiled_charsmap";
    const struct gguf_value *value = gguf_find(gguf, key);
    struct charsmap *map;
    struct buf bytes = BUF_INIT;
    if (value && value->type != GGUF_ARRAY) return bad(error, key, "not an array of bytes");
    for (uint64_t i = 0; value && i < value->n; i++) {
        double byte;
        if (!gguf_f64(value, i, &byte) || byte < -128 || byte > 255) {
            buf_free(&bytes);
            return bad(error, key, "not an array of bytes");
        }
        buf_putc(&bytes, (char)(unsigned char)((int)byte & 255));
    }
    ob_status status = bytes.failed ? error_memory(error, key, 0)
                                    : charsmap_open((struct str){bytes.p ? bytes.p : "", bytes.n},
                                                    false, &tok->arena, &map, error);
    buf_free(&bytes);
    if (status != OB_OK) return status;
    return tok_add_step(&tok->normal,
                        (struct normal_step){.apply = normal_charsmap, .table = map}, error);
}

static ob_status read_flag(const struct gguf *gguf, const char *key, bool *flag, ob_error *error) {
    const struct gguf_value *value = gguf_find(gguf, key);
    return !value || gguf_bool(value, 0, flag) ? OB_OK : bad(error, key, "not a boolean");
}

static ob_status open_gguf(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    static const struct str space = {SPACE, 3}, blank = {" ", 1};
    bool prefix = false, extra = false;
    ob_status s = read_flag(gguf, "tokenizer.ggml.add_space_prefix", &prefix, error);
    if (s == OB_OK) s = read_flag(gguf, "tokenizer.ggml.remove_extra_whitespaces", &extra, error);
    if (s == OB_OK) s = read_scores(tok, gguf, error);
    if (s == OB_OK) s = read_charsmap(tok, gguf, error);
    if (s == OB_OK && extra) s = tok_add_step(&tok->normal, (struct normal_step){
                                                                .apply = normal_spaces}, error);
    /* Without extra spaces each word has one before it, the first one too. */
    if (s == OB_OK && (prefix || extra))
        s = tok_add_step(&tok->normal, (struct normal_step){.apply = normal_prepend, .to = space},
                         error);
    if (s == OB_OK)
        s = tok_add_step(&tok->normal, (struct normal_step){.apply = normal_replace, .from = blank,
                                                            .to = space}, error);
    if (s == OB_OK)
        s = tok_add_decoder(tok, (struct decode_step){.apply = decode_replace, .from = space,
                                                      .to = blank}, error);
    tok->strip_space = prefix || extra;
    tok->add_eos = true;
    tok->eos = 1;
    tok->unk = 2;
    tok->describe = "unigram";
    return s;
}

const struct tok_model tokenizer_unigram = {
    .name = "unigram",
    .gguf = "t5",
    .open_gguf = open_gguf,
    .encode = encode,
};
