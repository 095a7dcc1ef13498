/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_export.c: a tokenizer as GGUF metadata, as llama.cpp's converters write it. A vocabulary that
 * is shorter than the model's embedding is filled up with unused tokens, which llama.cpp wants. */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "format/gguf_write.h"
#include "text/pretok.h"
#include "text/tok_impl.h"

static int by_rank(const void *a, const void *b) {
    const struct tok_pair *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Merges in their order, "left right". */
static ob_status put_merges(const struct tok *tok, struct gguf_writer *w, ob_error *error) {
    size_t slots = tok->pair ? (size_t)tok->pair_mask + 1 : 0, n = 0;
    struct tok_pair *pair = malloc((slots + 1) * sizeof *pair);
    struct str *text = malloc((slots + 1) * sizeof *text);
    struct buf all = BUF_INIT;
    for (size_t i = 0; pair && i < slots; i++)
        if (tok->pair[i].id >= 0) pair[n++] = tok->pair[i];
    if (pair && n) qsort(pair, n, sizeof *pair, by_rank);
    for (size_t i = 0; pair && text && i < n; i++) {
        struct str left = tok->vocab.text[pair[i].left], right = tok->vocab.text[pair[i].right];
        text[i].n = left.n + 1 + right.n;
        buf_printf(&all, "%.*s %.*s", STR_ARG(left), STR_ARG(right));
    }
    bool ok = pair && text && !all.failed;
    const char *at = all.p;
    for (size_t i = 0; ok && i < n; i++) {
        text[i].p = at;
        at += text[i].n;
    }
    if (ok) gguf_put_strs(w, "tokenizer.ggml.merges", text, n);
    free(pair);
    free(text);
    buf_free(&all);
    return ok ? OB_OK : error_memory(error, "merges", n);
}

/* Scores by which joins of smaller rank come first. */
static ob_status put_scores(const struct tok *tok, uint32_t n, struct gguf_writer *w,
                            ob_error *error) {
    float *score = calloc(n, sizeof *score);
    if (!score) return error_memory(error, "scores", n * sizeof *score);
    for (uint32_t i = 0; i < tok->vocab.n; i++) score[i] = -(float)tok->rank[i];
    gguf_put_array(w, "tokenizer.ggml.scores", GGUF_F32, score, n);
    free(score);
    return OB_OK;
}

/* WordPiece's words begin with U+2581 in a GGUF; those that go on have no mark. */
static struct str word_of(const struct tok *tok, int32_t id, char *room) {
    static const char mark[] = "\xe2\x96\x81";
    struct str text = tok->vocab.text[id], on = tok->word_goes_on;
    if (tok->model != &tokenizer_wordpiece || !on.n || tok->vocab.kind[id] != TOK_NORMAL)
        return text;
    if (text.n >= on.n && memcmp(text.p, on.p, on.n) == 0)
        return (struct str){text.p + on.n, text.n - on.n};
    memcpy(room, mark, 3);
    if (text.n) memcpy(room + 3, text.p, text.n);
    return (struct str){room, text.n + 3};
}

static ob_status put_vocab(const struct tok *tok, uint32_t n, struct gguf_writer *w,
                           ob_error *error) {
    struct str *text = malloc(n * sizeof *text);
    int32_t *kind = malloc(n * sizeof *kind);
    char(*filler)[32] = malloc(n * sizeof *filler);
    size_t bytes = 1, at = 0;
    for (uint32_t i = 0; i < tok->vocab.n; i++) bytes += tok->vocab.text[i].n + 3;
    char *room = malloc(bytes);
    bool ok = text && kind && filler && room;
    for (uint32_t i = 0; ok && i < n; i++) {
        bool there = i < tok->vocab.n && tok->vocab.kind[i] != TOK_NONE;
        kind[i] = there ? tok->vocab.kind[i] : TOK_UNUSED;
        snprintf(filler[i], sizeof *filler, "[PAD%u]", i);
        text[i] = there ? word_of(tok, (int32_t)i, room + at) : str_of(filler[i]);
        if (there) at += tok->vocab.text[i].n + 3;
    }
    if (ok) {
        gguf_put_strs(w, "tokenizer.ggml.tokens", text, n);
        gguf_put_array(w, "tokenizer.ggml.token_type", GGUF_I32, kind, n);
    }
    free(text);
    free(kind);
    free(filler);
    free(room);
    return ok ? OB_OK : error_memory(error, "a vocabulary", n);
}

static void put_id(struct gguf_writer *w, const char *key, int32_t id) {
    if (id >= 0) gguf_put_whole(w, key, GGUF_U32, (uint32_t)id);
}

static void put_templates(const struct tok *tok, struct gguf_writer *w) {
    char key[160];
    for (size_t i = 0; i < tok->template_count; i++) {
        const char *name = tok->templates[i].name;
        int n = snprintf(key, sizeof key, "tokenizer.chat_template%s%s", name ? "." : "",
                         name ? name : "");
        if (n > 0 && (size_t)n < sizeof key) gguf_put_str(w, key, tok->templates[i].text);
    }
}

/* What a GGUF of WordPiece means: BERT's words, cased or not. */
static bool is_bert(const struct tok *tok) {
    static normal_fn *const steps[] = {normal_bert_clean, normal_bert_chinese, normal_bert_strip,
                                       normal_bert_lower};
    if (tok->normal.n != 2 && tok->normal.n != 4) return false;
    for (size_t i = 0; i < tok->normal.n; i++)
        if (tok->normal.step[i].apply != steps[i]) return false;
    return tok->cuts == 2 && tok->cut[0].in == cut_is_space &&
           tok->cut[0].behavior == CUT_REMOVED && tok->cut[1].in == cut_is_punctuation &&
           tok->cut[1].behavior == CUT_ISOLATED && !tok->cut[1].invert;
}

ob_status tok_export(const struct tok *tok, uint32_t vocab, struct gguf_writer *w,
                     ob_error *error) {
    bool prefix, spm = tok_is_spm(tok, &prefix);
    bool bpe = tok->model == &tokenizer_bpe && !spm, words = tok->model == &tokenizer_wordpiece;
    const struct pretok *pretok = spm ? NULL : tok_pretok(tok);
    bool odd = words && !is_bert(tok);
    if (!tok->model->gguf || (bpe && !pretok) || odd || tok->model->gguf == tokenizer_rwkv.gguf ||
        tok->model->gguf == tokenizer_unigram.gguf || tok->after_bos.n || tok->before_eos.n)
        return error_set(error, OB_ERR_UNSUPPORTED, "%s has no form in GGUF", tok->describe);
    if (tok->vocab.n > vocab)
        return error_set(error, OB_ERR_FORMAT, "%u tokens, the model embeds %u", tok->vocab.n,
                         vocab);
    gguf_put_str(w, "tokenizer.ggml.model", str_of(spm ? tokenizer_spm.gguf : tok->model->gguf));
    if (pretok) gguf_put_str(w, "tokenizer.ggml.pre", str_of(pretok->name));
    ob_status s = put_vocab(tok, vocab, w, error);
    if (s == OB_OK && bpe) s = put_merges(tok, w, error);
    if (s == OB_OK && spm) s = tok_export_spm(tok, vocab, prefix, w, error);
    else if (s == OB_OK && !bpe && !words) s = put_scores(tok, vocab, w, error);
    put_id(w, words ? "tokenizer.ggml.cls_token_id" : "tokenizer.ggml.bos_token_id", tok->bos);
    put_id(w, words ? "tokenizer.ggml.seperator_token_id" : "tokenizer.ggml.eos_token_id",
           tok->eos);
    put_id(w, "tokenizer.ggml.unknown_token_id", tok->unk);
    gguf_put_whole(w, "tokenizer.ggml.add_bos_token", GGUF_BOOL, tok->add_bos);
    gguf_put_whole(w, "tokenizer.ggml.add_eos_token", GGUF_BOOL, tok->add_eos);
    put_templates(tok, w);
    return s;
}
