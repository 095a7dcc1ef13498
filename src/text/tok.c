/* SPDX-License-Identifier: Apache-2.0
 * tok.c: opening, and text to ids: see tok.h and the pipeline in tok_impl.h. */
#include "text/tok.h"

#include <stdlib.h>

#include "base/error.h"
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
    added_free(&(*tok)->raw);
    added_free(&(*tok)->normalized);
    arena_free(&(*tok)->arena);
    free(*tok);
    *tok = NULL;
}

/* ---- text to ids ----------------------------------------------------------------------------- */

bool tok_work_put(struct tok_work *work, int32_t id) {
    if (work->n == work->cap) {
        size_t cap = work->cap ? work->cap * 2 : 256;
        int32_t *p = realloc(work->id, cap * sizeof *p);
        if (!p) return false;
        work->id = p;
        work->cap = cap;
    }
    work->id[work->n++] = id;
    return true;
}

static void work_free(struct tok_work *work) {
    merge_free(&work->merge);
    for (int i = 0; i < 2; i++) {
        buf_free(&work->text[i].text);
        buf_free(&work->text[i].trust);
        buf_free(&work->piece_text[i].text);
        buf_free(&work->piece_text[i].trust);
    }
    buf_free(&work->piece);
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
        if (out->text.failed || out->trust.failed) return false;
        *text = (struct str){out->text.p, out->text.n};
        *trust = (const uint8_t *)out->trust.p;
    }
    return text->n <= UINT32_MAX; /* what the merges can count */
}

/* Pre-tokenizes and encodes normalized text without added tokens. */
static bool encode_pieces(const struct tok *tok, struct tok_work *work, struct str text) {
    while (text.n) {
        size_t n = tok->pretok ? tok->pretok->next(text.p, text.n) : text.n;
        if (!tok->model->encode(tok, work, (struct str){text.p, n})) return false;
        text.p += n;
        text.n -= n;
    }
    return true;
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

static bool encode_normalized(const struct tok *tok, struct tok_work *work, struct str text,
                              const uint8_t *trust, bool start) {
    return run_steps(&tok->pre, work, work->piece_text, &text, &trust, start) &&
           encode_pieces(tok, work, text);
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
    size_t n = work->n + bos + eos;
    if (n == 0) return true;
    int32_t *p = realloc(ids->id, (ids->n + n) * sizeof *p);
    if (!p) return false;
    ids->id = p;
    if (bos) p[ids->n++] = tok->bos;
    if (work->n) memcpy(p + ids->n, work->id, work->n * sizeof *p);
    ids->n += work->n;
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
    work_free(&work);
    return ok ? OB_OK : error_memory(error, "tokens of a text", n);
}

/* ---- opening: what both kinds of file share -------------------------------------------------- */

ob_status tok_add_step(struct tok_steps *steps, struct normal_step step, ob_error *error) {
    if (steps->n == TOK_STEPS) return error_set(error, OB_ERR_LIMIT, "too many normalizers");
    steps->step[steps->n++] = step;
    return OB_OK;
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
