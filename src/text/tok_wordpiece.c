/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_wordpiece.c: BERT's WordPiece (arXiv 1609.08144, the greedy form): the longest token that
 * begins a word, then the longest that goes on, to its end; a word that cannot be spelled so is the
 * unknown token. tokenizer.json marks what goes on ("##ing"), a GGUF what begins (by U+2581). */
#include "base/error.h"
#include "base/utf8.h"
#include "text/tok_impl.h"

#define SPACE "\xe2\x96\x81"

static size_t characters(struct str text) {
    size_t n = 0;
    uint32_t code;
    for (size_t at = 0; at < text.n; n++) at += utf8_decode(text.p + at, text.n - at, &code);
    return n;
}

/* The longest token that is mark + the beginning of the text; *n: of the text. -1: none. */
static int32_t longest(const struct tok *tok, struct buf *scratch, struct str mark, struct str text,
                       size_t *n) {
    buf_clear(scratch);
    buf_add(scratch, mark.p, mark.n);
    buf_add(scratch, text.p, text.n);
    if (scratch->failed) return -1;
    size_t most = tok->vocab.longest > mark.n ? tok->vocab.longest - mark.n : 0;
    for (*n = text.n < most ? text.n : most; *n > 0; --*n) {
        if (*n < text.n && ((unsigned char)text.p[*n] & 0xc0) == 0x80) continue; /* inside one */
        int32_t id = vocab_find_data(&tok->vocab, (struct str){scratch->p, mark.n + *n});
        if (id >= 0) return id;
    }
    return -1;
}

static bool unknown(const struct tok *tok, struct tok_work *work) {
    return tok->unk < 0 || tok_work_put(work, tok->unk);
}

static bool encode(const struct tok *tok, struct tok_work *work, struct str piece) {
    size_t before = work->n;
    if (characters(piece) > tok->word_most) return unknown(tok, work);
    for (size_t at = 0, n; at < piece.n; at += n) {
        struct str rest = {piece.p + at, piece.n - at};
        struct str mark = at ? tok->word_goes_on : tok->word_begins;
        int32_t id = longest(tok, &work->piece, mark, rest, &n);
        if (work->piece.failed) return false;
        if (id < 0) {
            work->n = before;
            return unknown(tok, work);
        }
        if (!tok_work_put(work, id)) return false;
    }
    return true;
}

/* No key says whether a vocabulary has capitals; it shows in its words. */
static bool has_capitals(const struct vocab *vocab) {
    for (uint32_t id = 0; id < vocab->n; id++) {
        struct str text = vocab->text[id];
        if (vocab->kind[id] != TOK_NORMAL || !str_starts(text, SPACE)) continue;
        if (text.n > 3 && text.p[3] >= 'A' && text.p[3] <= 'Z') return true;
    }
    return false;
}

static ob_status read_id(struct tok *tok, const struct gguf *gguf, const char *key,
                         const char *text, int32_t *id, ob_error *error) {
    const struct gguf_value *value = gguf_find(gguf, key);
    uint64_t wide;
    *id = vocab_find(&tok->vocab, str_of(text));
    if (!value) return OB_OK;
    if (!gguf_u64(value, 0, &wide) || wide >= tok->vocab.n) {
        error_set(error, OB_ERR_FORMAT, "not the id of a token");
        error_at(error, NULL, key, OB_NO_OFFSET);
        return OB_ERR_FORMAT;
    }
    *id = (int32_t)wide;
    return OB_OK;
}

static ob_status open_gguf(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    static normal_fn *const steps[] = {normal_bert_clean, normal_bert_chinese, normal_bert_strip,
                                       normal_bert_lower};
    for (size_t i = 0; i < (has_capitals(&tok->vocab) ? 2 : 4); i++)
        tok_add_step(&tok->normal, (struct normal_step){.apply = steps[i]}, NULL);
    tok_add_bert_cuts(tok, NULL);
    tok_add_decoder(tok, (struct decode_step){.apply = decode_words, .left = true}, NULL);
    tok->word_begins = STR_LIT(SPACE);
    tok->word_goes_on = STR_LIT("");
    tok->word_most = TOK_WORD_MOST;
    tok->strip_space = tok->add_bos = tok->add_eos = true;
    tok->unk = vocab_find(&tok->vocab, STR_LIT("[UNK]"));
    tok->describe = "wordpiece (bert)";
    ob_status s =
        read_id(tok, gguf, "tokenizer.ggml.cls_token_id", "[CLS]", &tok->bos, error);
    if (s != OB_OK) return s;
    /* The key is spelled so. */
    return read_id(tok, gguf, "tokenizer.ggml.seperator_token_id", "[SEP]", &tok->eos, error);
}

const struct tok_model tokenizer_wordpiece = {
    .name = "wordpiece",
    .gguf = "bert",
    .open_gguf = open_gguf,
    .encode = encode,
};
