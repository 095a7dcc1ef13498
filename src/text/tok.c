/* SPDX-License-Identifier: Apache-2.0
 * tok.c: opening, and text to ids: see tok.h and the pipeline in tok_impl.h. */
#include "text/tok.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/tok_impl.h"

struct tok *tok_new(void) {
    struct tok *tok = calloc(1, sizeof *tok);
    if (!tok) return NULL;
    tok->bos = tok->eos = tok->unk = -1;
    memset(tok->byte_id, 0xff, sizeof tok->byte_id);
    return tok;
}

ob_status tok_open(const struct source *source, struct tok **out, ob_error *error) {
    *out = NULL;
    struct tok *tok = tok_new();
    if (!tok) return error_memory(error, "tokenizer", sizeof *tok);
    ob_status status = source_kind(source) == SOURCE_GGUF
                           ? tok_open_gguf(tok, source_gguf(source), error)
                           : tok_open_hf(tok, source, error);
    if (status != OB_OK) {
        error_at(error, source_path(source), NULL, OB_NO_OFFSET);
        tok_close(&tok);
        return status;
    }
    *out = tok;
    return OB_OK;
}

void tok_close(struct tok **tok) {
    if (!*tok) return;
    for (size_t i = 0; i < (*tok)->cuts; i++) regex_close(&(*tok)->cut[i].regex);
    for (size_t i = 0; i < (*tok)->normal.n; i++) regex_close(&(*tok)->normal.step[i].regex);
    added_free(&(*tok)->raw);
    added_free(&(*tok)->normalized);
    arena_free(&(*tok)->arena);
    free(*tok);
    *tok = NULL;
}

/* ---- text to ids ----------------------------------------------------------------------------- */

bool tok_work_add(struct tok_work *work, const int32_t *id, size_t n) {
    if (work->cap - work->n < n) {
        size_t cap = work->cap ? work->cap * 2 : 256;
        while (cap - work->n < n) cap *= 2;
        int32_t *p = realloc(work->id, cap * sizeof *p);
        if (!p) return false;
        work->id = p;
        work->cap = cap;
    }
    for (size_t i = 0; i < n; i++) work->id[work->n++] = id[i];
    return true;
}

bool tok_work_put(struct tok_work *work, int32_t id) { return tok_work_add(work, &id, 1); }

static void work_free(struct tok_work *work) {
    merge_free(&work->merge);
    memo_free(&work->memo);
    for (int i = 0; i < 2; i++) {
        buf_free(&work->text[i].text);
        buf_free(&work->text[i].trust);
    }
    for (int i = 0; i < TOK_CUTS; i++) {
        buf_free(&work->stage_text[i]);
        buf_free(&work->repaired[i]);
    }
    regex_work_free(&work->regex);
    buf_free(&work->piece);
    free(work->way);
    free(work->id);
}

/* Runs steps over *text, from one buffer to the other; text and trust then point into them. */
static bool run_steps(const struct tok_steps *steps, struct tok_work *work, struct normal_text *buf,
                      struct str *text, const uint8_t **trust, bool start) {
    if (!*trust && steps->n) { /* the second buffer is free for the first step's input */
        buf_clear(&buf[1].trust);
        if (!buf_reserve(&buf[1].trust, text->n)) return false;
        memset(buf[1].trust.p, work->trusted, text->n);
        *trust = (const uint8_t *)buf[1].trust.p;
    }
    for (size_t i = 0; i < steps->n; i++) {
        struct normal_text *out = &buf[i & 1];
        buf_clear(&out->text);
        buf_clear(&out->trust);
        steps->step[i].apply(&steps->step[i], *text, *trust, start, out);
        if (out->text.failed || out->trust.failed) {
            work->limit = out->limit;
            return false;
        }
        *text = (struct str){out->text.p, out->text.n};
        *trust = (const uint8_t *)out->trust.p;
    }
    return text->n <= UINT32_MAX; /* what the merges can count */
}

/* Cuts the added tokens of `added` out of the text; `between` gets what is between them, with its
 * trust (NULL: all as work->trusted) and whether it starts the text. */
static bool cut(const struct tok *tok, struct tok_work *work, const struct added *added,
                struct str text, const uint8_t *trust, bool start,
                bool (*between)(const struct tok *, struct tok_work *, struct str,
                                const uint8_t *trust, bool start)) {
    for (size_t at = 0; at < text.n;) {
        struct added_match m = added_find(added, text.p, text.n, at, trust, work->trusted);
        struct str part = {text.p + at, m.start - at};
        if (part.n && !between(tok, work, part, trust ? trust + at : NULL, start && at == 0))
            return false;
        if (m.id >= 0 && !tok_work_put(work, m.id)) return false;
        at = m.end;
    }
    return true;
}

static bool well_formed(struct str text) {
    uint32_t code = 0;
    for (size_t at = 0; at < text.n && code != UTF8_BAD;)
        at += utf8_decode(text.p + at, text.n - at, &code);
    return code != UTF8_BAD;
}

static bool encode_normalized(const struct tok *tok, struct tok_work *work, struct str text,
                              const uint8_t *trust, bool start) {
    (void)trust;
    work->malformed = tok->regexes && !well_formed(text);
    return tok_cut_rest(tok, work, 0, text, start);
}

static bool encode_raw(const struct tok *tok, struct tok_work *work, struct str text,
                       const uint8_t *trust, bool start) {
    return run_steps(&tok->normal, work, work->text, &text, &trust, start) &&
           cut(tok, work, &tok->normalized, text, trust, start, encode_normalized);
}

/* Appends work's ids to *ids, with BOS and EOS as asked. */
static bool deliver(const struct tok *tok, const struct tok_work *work, bool special,
                    ob_tokens *ids) {
    bool bos = special && tok->add_bos && tok->bos >= 0 && !(work->n && work->id[0] == tok->bos);
    bool eos =
        special && tok->add_eos && tok->eos >= 0 && !(work->n && work->id[work->n - 1] == tok->eos);
    size_t n = work->n + bos + eos + tok->after_bos.n + tok->before_eos.n;
    if (n == 0) return true;
    int32_t *p = realloc(ids->id, (ids->n + n) * sizeof *p);
    if (!p) return false;
    ids->id = p;
    if (bos) p[ids->n++] = tok->bos;
    for (size_t i = 0; bos && i < tok->after_bos.n; i++) p[ids->n++] = tok->after_bos.id[i];
    if (work->n) memcpy(p + ids->n, work->id, work->n * sizeof *p);
    ids->n += work->n;
    for (size_t i = 0; eos && i < tok->before_eos.n; i++) p[ids->n++] = tok->before_eos.id[i];
    if (eos) p[ids->n++] = tok->eos;
    return true;
}

ob_status tok_encode(const struct tok *tok, const char *text, size_t n, const uint8_t *trust,
                     bool parse_special, bool add_special, ob_tokens *ids, ob_error *error) {
    /* Positions are 32 bits; normalization may grow a text, hence the margin. */
    if (n > UINT32_MAX / 64)
        return error_set(error, OB_ERR_LIMIT, "a text of %zu bytes is too long to tokenize", n);
    struct tok_work work = {.trusted = parse_special};
    bool ok = cut(tok, &work, &tok->raw, (struct str){text, n}, trust, true, encode_raw) &&
              deliver(tok, &work, add_special, ids);
    bool limit = work.limit;
    work_free(&work);
    if (!ok && limit)
        return error_set(error, OB_ERR_LIMIT, "the pre-tokenizer's expression costs too much here");
    return ok ? OB_OK : error_memory(error, "tokens of a text", n);
}

/* ---- opening: what both kinds of file share -------------------------------------------------- */

ob_status tok_add_step(struct tok_steps *steps, struct normal_step step, ob_error *error) {
    if (steps->n == TOK_STEPS) return error_set(error, OB_ERR_LIMIT, "too many normalizers");
    steps->step[steps->n++] = step;
    return OB_OK;
}

ob_status tok_add_cut(struct tok *tok, struct cut cut, ob_error *error) {
    if (tok->cuts == TOK_CUTS) {
        regex_close(&cut.regex);
        return error_set(error, OB_ERR_LIMIT, "too many pre-tokenizers");
    }
    if (cut.find == cut_find_regex) {
        tok->regexes = true;
        cut.length = tok->cuts;
    }
    tok->cut[tok->cuts++] = cut;
    return OB_OK;
}

ob_status tok_add_regex(struct tok *tok, struct str regex, ob_error *error) {
    struct cut cut;
    ob_status status = cut_open_regex(regex, &cut, error);
    return status == OB_OK ? tok_add_cut(tok, cut, error) : status;
}

const struct pretok *tok_pretok(const struct tok *tok) {
    const struct rule *rule[TOK_CUTS];
    bool nfc = tok->normal.n == 1 && tok->normal.step[0].apply == normal_nfc;
    if (tok->model != &tokenizer_bpe || !tok->byte_level || tok->normal.n > nfc) return NULL;
    for (size_t i = 0; i < tok->cuts; i++) {
        rule[i] = tok->cut[i].rule;
        if (!rule[i]) return NULL;
    }
    return pretok_like(rule, tok->cuts,
                       (nfc ? PRETOK_NFC : 0u) | (tok->whole_words ? PRETOK_WHOLE : 0u));
}

bool tok_normalize(struct tok *tok, struct str text, struct str *out) {
    struct tok_work work = {0};
    const uint8_t *trust = NULL;
    char *copy = NULL;
    if (run_steps(&tok->normal, &work, work.text, &text, &trust, true) &&
        (copy = arena_copy(&tok->arena, text.p, text.n)) != NULL)
        *out = (struct str){copy, text.n};
    work_free(&work);
    return copy != NULL;
}

ob_status tok_add_template(struct tok *tok, struct str name, struct str text, ob_error *error) {
    if (tok->template_count == TOK_TEMPLATES)
        return error_set(error, OB_ERR_LIMIT, "more than %d chat templates", TOK_TEMPLATES);
    struct tok_named *t = &tok->templates[tok->template_count];
    t->name = name.n ? arena_copy(&tok->arena, name.p, name.n) : NULL;
    t->text = (struct str){arena_copy(&tok->arena, text.p, text.n), text.n};
    if (!t->text.p || (name.n && !t->name)) return error_memory(error, "chat template", text.n);
    tok->template_count++;
    return OB_OK;
}

/* ---- what is known about tokens -------------------------------------------------------------- */

static bool valid(const struct tok *tok, int32_t id) {
    return id >= 0 && (uint32_t)id < tok->vocab.n;
}

uint32_t tok_count(const struct tok *tok) { return tok->vocab.n; }

struct str tok_text(const struct tok *tok, int32_t id) {
    return valid(tok, id) ? tok->vocab.text[id] : (struct str){"", 0};
}

int32_t tok_find(const struct tok *tok, struct str text) { return vocab_find(&tok->vocab, text); }

bool tok_is_control(const struct tok *tok, int32_t id) {
    return valid(tok, id) &&
           (tok->vocab.kind[id] == TOK_CONTROL || tok->vocab.kind[id] == TOK_UNKNOWN);
}

bool tok_is_end(const struct tok *tok, int32_t id) { return valid(tok, id) && tok->vocab.end[id]; }
int32_t tok_bos(const struct tok *tok) { return tok->bos; }
int32_t tok_eos(const struct tok *tok) { return tok->eos; }
bool tok_adds_bos(const struct tok *tok) { return tok->add_bos && tok->bos >= 0; }
const char *tok_describe(const struct tok *tok) { return tok->describe; }

struct str tok_template(const struct tok *tok, const char *name) {
    for (size_t i = 0; i < tok->template_count; i++) {
        const char *have = tok->templates[i].name;
        if (name && have ? strcmp(name, have) == 0 : !name && !have) return tok->templates[i].text;
    }
    return (struct str){"", 0};
}
