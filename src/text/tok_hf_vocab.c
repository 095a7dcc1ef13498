/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_hf_vocab.c: the large parts of tokenizer.json, by the pull reader: the model's vocabulary and
 * merges, and the added tokens. */
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "format/json_pull.h"
#include "text/tok_impl.h"

/* An error of a part of the file gets the offset in the file. */
static ob_status malformed(const struct json_pull *j, struct str base, ob_error *error) {
    ob_status status = pull_error(j, error);
    if (error) error->offset = (uint64_t)(j->start - base.p) + pull_offset(j);
    return status;
}

static ob_status wrong(const struct json_pull *j, struct str base, const char *what,
                       ob_error *error) {
    if (j->kind == PULL_BAD) return malformed(j, base, error);
    error_set(error, OB_ERR_FORMAT, "%s", what);
    error_at(error, NULL, NULL, (uint64_t)(j->start - base.p) + pull_offset(j));
    return OB_ERR_FORMAT;
}

ob_status tok_hf_members(struct str object, struct str base, struct tok_hf_member *member, size_t n,
                         ob_error *error) {
    struct json_pull j;
    ob_status status = OB_OK;
    pull_open(&j, object.p, object.n);
    if (pull_next(&j) != PULL_OBJECT) status = wrong(&j, base, "an object is expected", error);
    while (status == OB_OK && pull_next(&j) == PULL_KEY) {
        struct tok_hf_member *found = NULL;
        for (size_t i = 0; i < n; i++)
            if (str_is(j.text, member[i].name)) found = &member[i];
        const char *start = j.p;
        if (!pull_skip(&j)) break;
        if (found) found->value = (struct str){start, (size_t)(j.p - start)};
    }
    if (status == OB_OK && j.kind != PULL_OBJECT_END) status = malformed(&j, base, error);
    if (status == OB_OK && pull_next(&j) != PULL_END) status = malformed(&j, base, error);
    pull_close(&j);
    return status;
}

/* ---- added tokens ---- */

struct count {
    uint64_t n, top; /* entries, highest id */
};

struct entry { /* an element of "added_tokens" */
    uint64_t id;
    struct str content; /* in scratch */
    bool has_id, has_content, word, left, right, normalized, special;
};

/* Reads the members of the object that was just opened. */
static ob_status read_entry(struct json_pull *j, struct str base, struct entry *e,
                            struct buf *scratch, ob_error *error) {
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"single_word", &e->word},
                 {"lstrip", &e->left},
                 {"rstrip", &e->right},
                 {"normalized", &e->normalized},
                 {"special", &e->special}};
    *e = (struct entry){0};
    buf_clear(scratch);
    while (pull_next(j) == PULL_KEY) {
        bool *flag = NULL, id = str_is(j->text, "id"), content = str_is(j->text, "content");
        for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
            if (str_is(j->text, flags[i].name)) flag = flags[i].flag;
        if (!id && !content && !flag) {
            if (!pull_skip(j)) return malformed(j, base, error);
            continue;
        }
        pull_next(j);
        if (id && !(j->kind == PULL_NUMBER && pull_u64(j, &e->id)))
            return wrong(j, base, "the id of an added token is no whole number", error);
        if (content && j->kind != PULL_STRING)
            return wrong(j, base, "the content of an added token is no string", error);
        if (flag && j->kind != PULL_BOOL)
            return wrong(j, base, "a property of an added token is no boolean", error);
        if (content) {
            buf_clear(scratch);
            buf_add(scratch, j->text.p, j->text.n);
        }
        if (flag) *flag = j->truth;
        e->has_id = e->has_id || id;
        e->has_content = e->has_content || content;
    }
    if (j->kind != PULL_OBJECT_END) return malformed(j, base, error);
    if (!e->has_id || !e->has_content)
        return wrong(j, base, "an added token lacks its id or content", error);
    if (scratch->failed) return error_memory(error, "added tokens", 0);
    e->content = (struct str){scratch->p ? scratch->p : "", scratch->n};
    return OB_OK;
}

typedef ob_status entry_fn(struct tok *tok, const struct entry *e, struct count *count,
                           ob_error *error);

/* Calls `each` for the elements of "added_tokens". */
static ob_status each_added(struct tok *tok, struct str added, struct str base, entry_fn *each,
                            struct count *count, ob_error *error) {
    struct json_pull j;
    struct entry e;
    struct buf scratch = BUF_INIT;
    ob_status status = OB_OK;
    if (!added.p) return OB_OK;
    pull_open(&j, added.p, added.n);
    if (pull_next(&j) != PULL_ARRAY) status = wrong(&j, base, "an array is expected", error);
    while (status == OB_OK && pull_next(&j) == PULL_OBJECT) {
        status = read_entry(&j, base, &e, &scratch, error);
        if (status == OB_OK) status = each(tok, &e, count, error);
    }
    if (status == OB_OK && j.kind != PULL_ARRAY_END)
        status = wrong(&j, base, "an added token is no object", error);
    buf_free(&scratch);
    pull_close(&j);
    error_at(error, NULL, status == OB_OK ? NULL : "added_tokens", OB_NO_OFFSET);
    return status;
}

/* ---- the vocabulary ---- */

static ob_status count_added(struct tok *tok, const struct entry *e, struct count *count,
                             ob_error *error) {
    (void)tok, (void)error;
    count->n++;
    if (e->id > count->top) count->top = e->id;
    return OB_OK;
}

/* Counts the entries of "vocab", or, count = NULL, puts them into the vocabulary. */
static ob_status each_word(struct tok *tok, struct str vocab, struct str base, struct count *count,
                           ob_error *error) {
    struct json_pull j;
    ob_status status = OB_OK;
    pull_open(&j, vocab.p, vocab.n);
    if (pull_next(&j) != PULL_OBJECT) status = wrong(&j, base, "an object is expected", error);
    while (status == OB_OK && pull_next(&j) == PULL_KEY) {
        char *text = NULL;
        size_t n = j.text.n;
        uint64_t id;
        if (!count && !(text = arena_copy(&tok->arena, j.text.p, n))) {
            status = error_memory(error, "vocabulary", n);
            break;
        }
        if (pull_next(&j) != PULL_NUMBER || !pull_u64(&j, &id) || id > INT32_MAX) {
            status = wrong(&j, base, "the id of a token is no whole number", error);
        } else if (count) {
            count->n++;
            if (id > count->top) count->top = id;
        } else {
            tok->vocab.text[id] = (struct str){text, n};
            tok->vocab.kind[id] = TOK_NORMAL;
        }
    }
    if (status == OB_OK && j.kind != PULL_OBJECT_END) status = malformed(&j, base, error);
    pull_close(&j);
    error_at(error, NULL, status == OB_OK ? NULL : "model.vocab", OB_NO_OFFSET);
    return status;
}

/* The same of a list of ["text", score]: ids are places in the list. */
static ob_status each_scored(struct tok *tok, struct str vocab, struct str base,
                             struct count *count, ob_error *error) {
    struct json_pull j;
    ob_status status = OB_OK;
    uint64_t id = 0;
    pull_open(&j, vocab.p, vocab.n);
    if (pull_next(&j) != PULL_ARRAY) status = wrong(&j, base, "an array is expected", error);
    for (; status == OB_OK && pull_next(&j) == PULL_ARRAY; id++) {
        if (pull_next(&j) != PULL_STRING) {
            status = wrong(&j, base, "a token is no pair of a text and a score", error);
            break;
        }
        if (!count) {
            size_t n = j.text.n;
            char *text = arena_copy(&tok->arena, j.text.p, n);
            if (!text) {
                status = error_memory(error, "vocabulary", n);
                break;
            }
            tok->vocab.text[id] = (struct str){text, n};
            tok->vocab.kind[id] = TOK_NORMAL;
        }
        double score = pull_next(&j) == PULL_NUMBER ? pull_number(&j) : NAN;
        if (!isfinite(score) || pull_next(&j) != PULL_ARRAY_END)
            status = wrong(&j, base, "a token is no pair of a text and a score", error);
        else if (!count) tok->score[id] = score;
    }
    if (status == OB_OK && j.kind != PULL_ARRAY_END) status = malformed(&j, base, error);
    pull_close(&j);
    if (count) {
        count->n += id;
        if (id && id - 1 > count->top) count->top = id - 1;
    }
    error_at(error, NULL, status == OB_OK ? NULL : "model.vocab", OB_NO_OFFSET);
    return status;
}

static ob_status put_added(struct tok *tok, const struct entry *e, struct count *count,
                           ob_error *error) {
    (void)count;
    struct str *text = &tok->vocab.text[e->id];
    if (tok->vocab.kind[e->id] == TOK_NONE) {
        *text = (struct str){arena_copy(&tok->arena, e->content.p, e->content.n), e->content.n};
        if (!text->p) return error_memory(error, "vocabulary", e->content.n);
        tok->vocab.outside[e->id] = true;
    } else if (!str_eq(*text, e->content)) {
        return error_set(error, OB_ERR_FORMAT, "\"%.*s\" has the id of \"%.*s\"",
                         STR_ARG(e->content), STR_ARG(*text));
    }
    tok->vocab.kind[e->id] = e->special ? TOK_CONTROL : TOK_ADDED;
    return OB_OK;
}

static ob_status make_vocab(struct tok *tok, struct str vocab, struct str added, struct str base,
                            ob_error *error) {
    struct count count = {0};
    bool scored = tok->model == &tokenizer_unigram;
    ob_status (*each)(struct tok *, struct str, struct str, struct count *, ob_error *) =
        scored ? each_scored : each_word;
    ob_status status = each_added(tok, added, base, count_added, &count, error);
    if (status == OB_OK) status = each(tok, vocab, base, &count, error);
    if (status != OB_OK) return status;
    if (count.n == 0) return error_set(error, OB_ERR_FORMAT, "the vocabulary is empty");
    /* Holes are allowed, but memory follows the size of the file. */
    if (count.top > 2 * count.n + 65536)
        return error_set(error, OB_ERR_FORMAT, "the id %llu is out of proportion to the vocabulary",
                         (unsigned long long)count.top);
    status = vocab_init(&tok->vocab, &tok->arena, (uint32_t)count.top + 1, error);
    if (status == OB_OK && scored) {
        tok->score = arena_array(&tok->arena, tok->vocab.n, sizeof *tok->score);
        if (!tok->score) status = error_memory(error, "scores", tok->vocab.n);
    }
    if (status == OB_OK) status = each(tok, vocab, base, NULL, error);
    if (status == OB_OK) status = each_added(tok, added, base, put_added, NULL, error);
    return status == OB_OK ? vocab_index(&tok->vocab, &tok->arena, error) : status;
}

static ob_status put_entry(struct tok *tok, const struct entry *e, struct count *count,
                           ob_error *error) {
    (void)count;
    struct added_token token = {.id = (int32_t)e->id,
                                .control = e->special,
                                .left = e->left,
                                .right = e->right,
                                .word = e->word};
    struct str text = e->content;
    if (e->normalized && !tok_normalize(tok, text, &text))
        return error_memory(error, "added tokens", text.n);
    return added_put(e->normalized ? &tok->normalized : &tok->raw, text, token, error);
}

ob_status tok_hf_added(struct tok *tok, struct str added, struct str base, ob_error *error) {
    return each_added(tok, added, base, put_entry, NULL, error);
}

/* ---- the model ---- */

/* One merge: "left right", or ["left", "right"]. */
static ob_status read_merge(struct tok *tok, struct json_pull *j, struct str base, uint32_t rank,
                            struct buf scratch[2], ob_error *error) {
    static const char what[] = "a merge is no pair";
    struct str left, right;
    buf_clear(&scratch[0]);
    if (j->kind == PULL_STRING) {
        buf_add(&scratch[0], j->text.p, j->text.n);
        const char *space = scratch[0].n ? memchr(scratch[0].p, ' ', scratch[0].n) : NULL;
        if (!space) return wrong(j, base, what, error);
        left = (struct str){scratch[0].p, (size_t)(space - scratch[0].p)};
        right = (struct str){space + 1, scratch[0].n - left.n - 1};
    } else {
        if (j->kind != PULL_ARRAY || pull_next(j) != PULL_STRING)
            return wrong(j, base, what, error);
        buf_add(&scratch[0], j->text.p, j->text.n);
        size_t n = scratch[0].n;
        if (pull_next(j) != PULL_STRING) return wrong(j, base, what, error);
        buf_add(&scratch[0], j->text.p, j->text.n);
        left = (struct str){scratch[0].p ? scratch[0].p : "", n};
        right = (struct str){left.p + n, scratch[0].n - n};
        if (pull_next(j) != PULL_ARRAY_END) return wrong(j, base, what, error);
    }
    if (scratch[0].failed) return error_memory(error, "merges", 0);
    return tok_pairs_put(tok, rank, left, right, &scratch[1], error);
}

static ob_status read_merges(struct tok *tok, struct str merges, struct str base, ob_error *error) {
    struct json_pull j;
    struct buf scratch[2] = {BUF_INIT, BUF_INIT};
    uint64_t n = 0;
    pull_open(&j, merges.p, merges.n);
    ob_status status = OB_OK;
    if (pull_next(&j) != PULL_ARRAY) status = wrong(&j, base, "an array is expected", error);
    while (status == OB_OK && pull_skip(&j)) n++;
    if (status == OB_OK && j.kind != PULL_ARRAY_END) status = malformed(&j, base, error);
    pull_close(&j);
    if (status == OB_OK) status = tok_pairs_init(tok, n, error);
    if (status == OB_OK) {
        pull_open(&j, merges.p, merges.n);
        pull_next(&j);
        for (uint32_t rank = 0; status == OB_OK && pull_next(&j) != PULL_ARRAY_END; rank++)
            status = read_merge(tok, &j, base, rank, scratch, error);
        pull_close(&j);
        tok_pairs_end(tok);
    }
    buf_free(&scratch[0]);
    buf_free(&scratch[1]);
    error_at(error, NULL, status == OB_OK ? NULL : "model.merges", OB_NO_OFFSET);
    return status;
}

/* Is a member there and not null, false, "" or 0? */
static bool asks(struct str value) {
    struct json_pull j;
    bool yes = false;
    if (!value.p) return false;
    pull_open(&j, value.p, value.n);
    switch (pull_next(&j)) {
        case PULL_NULL: break;
        case PULL_BOOL: yes = j.truth; break;
        case PULL_NUMBER: yes = pull_number(&j) != 0; break;
        case PULL_STRING: yes = j.text.n != 0; break;
        default: yes = true;
    }
    pull_close(&j);
    return yes;
}

static ob_status read_unknown(struct tok *tok, struct str value, ob_error *error) {
    struct json_pull j;
    ob_status status = OB_OK;
    if (!value.p) return OB_OK;
    pull_open(&j, value.p, value.n);
    if (pull_next(&j) == PULL_STRING && (tok->unk = vocab_find(&tok->vocab, j.text)) < 0)
        status = error_set(error, OB_ERR_FORMAT, "\"%.*s\" is no token", STR_ARG(j.text));
    pull_close(&j);
    error_at(error, NULL, status == OB_OK ? NULL : "model.unk_token", OB_NO_OFFSET);
    return status;
}

ob_status tok_hf_type(struct tok *tok, struct str model, struct str base, ob_error *error) {
    static const struct {
        const char *name;
        const struct tok_model *model;
    } types[] = {{"BPE", &tokenizer_bpe},
                 {"Unigram", &tokenizer_unigram},
                 {"WordLevel", &tokenizer_wordlevel},
                 {"WordPiece", &tokenizer_wordpiece}};
    struct tok_hf_member m = {.name = "type"};
    struct json_pull j;
    char name[64] = "BPE"; /* old files: BPE has merges, which are looked for */
    ob_status status = tok_hf_members(model, base, &m, 1, error);
    if (status != OB_OK) return status;
    if (m.value.p) {
        name[0] = 0;
        pull_open(&j, m.value.p, m.value.n);
        if (pull_next(&j) == PULL_STRING) snprintf(name, sizeof name, "%.*s", STR_ARG(j.text));
        pull_close(&j);
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(types[i].name, name) == 0) tok->model = types[i].model;
    return tok->model ? OB_OK : tok_hf_refuse(error, "model", name);
}

/* A member that is a string; null is "". */
static ob_status read_text(struct tok *tok, const struct tok_hf_member *m, struct str *out,
                           ob_error *error) {
    struct json_pull j;
    if (!m->value.p) return OB_OK;
    pull_open(&j, m->value.p, m->value.n);
    ob_status status = OB_OK;
    enum pull_kind kind = pull_next(&j);
    if (kind != PULL_STRING && kind != PULL_NULL) {
        status = error_set(error, OB_ERR_FORMAT, "%s is no string", m->name);
    } else if (kind == PULL_STRING) {
        const char *copy = arena_copy(&tok->arena, j.text.p, j.text.n);
        if (copy) *out = (struct str){copy, j.text.n};
        else status = error_memory(error, m->name, j.text.n);
    } else {
        *out = (struct str){"", 0};
    }
    pull_close(&j);
    return status;
}

static ob_status read_number(const struct tok_hf_member *m, uint64_t *out, ob_error *error) {
    struct json_pull j;
    ob_status status = OB_OK;
    if (!m->value.p) return OB_OK;
    pull_open(&j, m->value.p, m->value.n);
    if (pull_next(&j) != PULL_NULL && (j.kind != PULL_NUMBER || !pull_u64(&j, out)))
        status = error_set(error, OB_ERR_FORMAT, "%s is no whole number", m->name);
    pull_close(&j);
    return status;
}

enum {
    VOCAB, MERGES, UNK, UNK_ID, FUSE, FALLBACK, WHOLE, MOST, SUFFIX, PREFIX, MEMBERS
};

static ob_status read_bpe(struct tok *tok, const struct tok_hf_member *m, struct str base,
                          ob_error *error) {
    if (!m[MERGES].value.p)
        return error_set(error, OB_ERR_FORMAT, "the model has no merges");
    tok->fuse_unk = asks(m[FUSE].value);
    tok->whole_words = asks(m[WHOLE].value);
    tok->byte_fallback = asks(m[FALLBACK].value);
    ob_status status = read_text(tok, &m[PREFIX], &tok->goes_on, error);
    if (status == OB_OK) status = read_text(tok, &m[SUFFIX], &tok->ends, error);
    /* Bytes of words that mark their beginning or end have no tokens of one kind. */
    if (status == OB_OK && tok->byte_level && (tok->goes_on.n || tok->ends.n)) {
        tok->byte_level = false;
        status = tok_add_cut(tok, (struct cut){.apply = cut_bytes}, error);
    }
    if (status == OB_OK) status = read_merges(tok, m[MERGES].value, base, error);
    if (status == OB_OK) status = read_unknown(tok, m[UNK].value, error);
    return status;
}

static ob_status read_words(struct tok *tok, const struct tok_hf_member *m, ob_error *error) {
    uint64_t most = TOK_WORD_MOST;
    tok->word_goes_on = STR_LIT("##");
    tok->word_begins = STR_LIT("");
    ob_status status = read_text(tok, &m[PREFIX], &tok->word_goes_on, error);
    if (status == OB_OK) status = read_number(&m[MOST], &most, error);
    if (status == OB_OK) status = read_unknown(tok, m[UNK].value, error);
    tok->word_most = most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
    return status;
}

static ob_status read_unigram(struct tok *tok, const struct tok_hf_member *m, ob_error *error) {
    uint64_t unk = UINT64_MAX;
    tok->byte_fallback = asks(m[FALLBACK].value);
    tok->scored_all = true;
    ob_status status = read_number(&m[UNK_ID], &unk, error);
    if (status != OB_OK) return status;
    if (unk != UINT64_MAX && unk >= tok->vocab.n)
        return error_set(error, OB_ERR_FORMAT, "unk_id is no token");
    tok->unk = unk == UINT64_MAX ? -1 : (int32_t)unk;
    /* What stands for the unknown is not found by its own text. */
    if (tok->unk >= 0 && tok->vocab.kind[tok->unk] == TOK_NORMAL)
        tok->vocab.kind[tok->unk] = TOK_UNKNOWN;
    return tok_unigram_index(tok, error);
}

ob_status tok_hf_vocab(struct tok *tok, struct str model, struct str added, struct str base,
                       ob_error *error) {
    struct tok_hf_member m[MEMBERS] = {
        [VOCAB] = {.name = "vocab"},
        [MERGES] = {.name = "merges"},
        [UNK] = {.name = "unk_token"},
        [UNK_ID] = {.name = "unk_id"},
        [FUSE] = {.name = "fuse_unk"},
        [FALLBACK] = {.name = "byte_fallback"},
        [WHOLE] = {.name = "ignore_merges"},
        [MOST] = {.name = "max_input_chars_per_word"},
        [SUFFIX] = {.name = "end_of_word_suffix"},
        [PREFIX] = {.name = "continuing_subword_prefix"},
    };
    ob_status status = tok_hf_members(model, base, m, MEMBERS, error);
    if (status != OB_OK) return status;
    if (!m[VOCAB].value.p)
        return error_set(error, OB_ERR_FORMAT, "the model has no vocabulary");
    status = make_vocab(tok, m[VOCAB].value, added, base, error);
    if (status != OB_OK) return status;
    if (tok->model == &tokenizer_unigram) status = read_unigram(tok, m, error);
    else if (tok->model == &tokenizer_wordpiece) status = read_words(tok, m, error);
    else if (tok->model == &tokenizer_bpe) status = read_bpe(tok, m, base, error);
    else status = read_unknown(tok, m[UNK].value, error);
    if (status != OB_OK || (!tok->byte_level && !tok->byte_fallback)) return status;
    tok_find_bytes(tok);
    for (int b = 0; b < 256 && !tok->byte_level; b++)
        if (tok->byte_id[b] >= 0) tok->vocab.kind[tok->byte_id[b]] = TOK_BYTE;
    return status;
}
