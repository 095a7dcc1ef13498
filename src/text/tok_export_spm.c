/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_export_spm.c: a tokenizer.json made from a SentencePiece model, as llama.cpp has such
 * models: in place of merges each token has a score, and of neighbours those join first that make
 * the token of the highest. It is the same if all pairs that make a token have ranks before those
 * of the next, as where the merges were made from the scores. */
#include <stdlib.h>

#include "base/error.h"
#include "format/gguf_write.h"
#include "text/tok_impl.h"

#define SPACE "\xe2\x96\x81"

static bool is_replace(const struct normal_step *step) {
    return step->apply == normal_replace && str_is(step->from, " ") && str_is(step->to, SPACE);
}

/* A piece of text with spaces is never cut where spaces have been replaced before. */
static bool cuts_nothing(const struct tok *tok) {
    return tok->cuts == 0 ||
           (tok->cuts == 1 && tok->cut[0].apply == cut_split && !tok->cut[0].invert &&
            tok->cut[0].find == cut_find_string && str_is(tok->cut[0].string, " "));
}

bool tok_is_spm(const struct tok *tok, bool *prefix) {
    const struct tok_steps *n = &tok->normal;
    *prefix = n->n == 2 && n->step[0].apply == normal_prepend && str_is(n->step[0].to, SPACE);
    return tok->model == &tokenizer_bpe && !tok->byte_level && tok->byte_fallback &&
           !tok->whole_words && !tok->goes_on.n && !tok->ends.n && cuts_nothing(tok) &&
           n->n == 1u + *prefix && is_replace(&n->step[*prefix]);
}

static int by_rank(const void *a, const void *b) {
    const struct tok_pair *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* More than a character: a lone one is there without a merge. */
static bool is_joined(struct str text) {
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
    return n > 1;
}

/* score [n]: minus the place of the token among those that merges make, in their order. False: a
 * token is made by merges that are not neighbours, or by none, though its text could be joined. */
static bool make_scores(const struct tok *tok, struct tok_pair *pair, float *score) {
    size_t slots = (size_t)tok->pair_mask + 1, n = 0;
    float place = 0;
    for (size_t i = 0; i < slots; i++)
        if (tok->pair[i].id >= 0) pair[n++] = tok->pair[i];
    if (n) qsort(pair, n, sizeof *pair, by_rank);
    for (size_t i = 0; i < n; i++) {
        if (i && pair[i].id == pair[i - 1].id) continue;
        if (score[pair[i].id] < 0) return false;
        score[pair[i].id] = --place;
    }
    for (uint32_t id = 0; id < tok->vocab.n; id++) {
        if (score[id] < 0) continue;
        if (tok->vocab.kind[id] == TOK_NORMAL && is_joined(tok->vocab.text[id])) return false;
        score[id] = place - 1;
    }
    return true;
}

ob_status tok_export_spm(const struct tok *tok, uint32_t vocab, bool prefix,
                         struct gguf_writer *w, ob_error *error) {
    struct tok_pair *pair = tok->pair ? malloc(((size_t)tok->pair_mask + 1) * sizeof *pair) : NULL;
    float *score = calloc(vocab + (size_t)1, sizeof *score);
    ob_status s = OB_OK;
    if (!pair || !score) s = error_memory(error, "scores", vocab * sizeof *score);
    else if (!make_scores(tok, pair, score))
        s = error_set(error, OB_ERR_UNSUPPORTED, "%s has no form in GGUF: its merges follow no "
                      "scores of tokens", tok->describe);
    if (s == OB_OK) {
        gguf_put_array(w, "tokenizer.ggml.scores", GGUF_F32, score, vocab);
        gguf_put_whole(w, "tokenizer.ggml.add_space_prefix", GGUF_BOOL, prefix);
    }
    free(pair);
    free(score);
    return s;
}
