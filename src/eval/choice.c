/* SPDX-License-Identifier: Apache-2.0
 *
 * choice.c: multiple choice: the log probability of each choice after its context. What is scored
 * of context + choice are the tokens from the first one on that differs from the context's own, so
 * a token that joins the two counts as the choice's.
 *
 * The questions of a batch advance together: first the beginning that all choices of each share,
 * then the first choice of all, cut back, the second of all, ... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "eval/eval.h"

/* ---- reading --------------------------------------------------------------------------------- */

static ob_status wrong(ob_error *error, const char *field, const char *what) {
    error_set(error, OB_ERR_FORMAT, "%s", what);
    error_at(error, NULL, field, OB_NO_OFFSET);
    return OB_ERR_FORMAT;
}

static ob_status fields(struct eval_question *q, ob_error *error) {
    const json_t *context = json_object_get(q->json, "context");
    const json_t *choices = json_object_get(q->json, "choices");
    const json_t *answer = json_object_get(q->json, "answer");
    const json_t *ending = json_object_get(q->json, "ending");
    if (!json_is_string(context)) return wrong(error, "context", "it is missing or no string");
    if (ending && (!json_is_string(ending) || json_string_length(ending) == 0))
        return wrong(error, "ending", "it is no string, or empty");
    if (!json_is_array(choices) || json_array_size(choices) < 2 ||
        json_array_size(choices) > EVAL_CHOICES)
        return wrong(error, "choices", "it is missing or no list of 2 to 64 strings");
    q->context = json_string_value(context);
    q->ending = ending ? json_string_value(ending) : NULL;
    q->choices = (uint32_t)json_array_size(choices);
    for (uint32_t i = 0; i < q->choices; i++) {
        q->choice[i] = json_string_value(json_array_get(choices, i));
        if (!q->choice[i] || !*q->choice[i])
            return wrong(error, "choices", "a choice is no string, or empty");
    }
    if (!json_is_integer(answer) || json_integer_value(answer) < 0 ||
        json_integer_value(answer) >= q->choices)
        return wrong(error, "answer", "it is missing or not the index of a choice");
    q->answer = (uint32_t)json_integer_value(answer);
    return OB_OK;
}

ob_status eval_question_read(const char *line, size_t n, struct eval_question *out,
                             ob_error *error) {
    json_error_t where;
    *out = (struct eval_question){.json = json_loadb(line, n, JSON_REJECT_DUPLICATES, &where)};
    ob_status s;
    if (!out->json)
        s = error_set(error, OB_ERR_FORMAT, "no JSON: %s", where.text);
    else if (!json_is_object(out->json))
        s = error_set(error, OB_ERR_FORMAT, "no JSON object");
    else
        s = fields(out, error);
    if (s != OB_OK) eval_question_free(out);
    return s;
}

void eval_question_free(struct eval_question *q) {
    json_decref(q->json);
    *q = (struct eval_question){0};
}

/* ---- picking --------------------------------------------------------------------------------- */

uint32_t eval_pick(const struct eval_question *q, const struct eval_score *score,
                   enum eval_norm norm) {
    uint32_t best = 0;
    double highest = 0;
    for (uint32_t i = 0; i < q->choices; i++) {
        double log = score->log[i];
        if (norm == EVAL_TOKENS) log /= score->tokens[i];
        if (norm == EVAL_BYTES) log /= score->bytes[i];
        if (i > 0 && !(log > highest)) continue;
        best = i;
        highest = log;
    }
    return best;
}

/* ---- scoring --------------------------------------------------------------------------------- */

/* A question in tokens. */
struct asked {
    ob_tokens whole[EVAL_CHOICES];
    size_t start[EVAL_CHOICES]; /* the first scored token of each */
    size_t shared;              /* tokens that are computed once for all choices */
    uint32_t choices, held;     /* held: tokens in the sequence now */
};

struct choosing {
    const ob_engine *engine;
    ob_batch *batch;
    uint32_t vocab, n;
    struct asked *asked;      /* [n] */
    struct eval_score *score; /* [n] */
    ob_batch_part *part;      /* [n] */
    uint32_t *of;             /* [n]: the question of each part */
    uint32_t choice;          /* being computed */
};

static size_t common(const ob_tokens *a, const ob_tokens *b) {
    size_t i = 0;
    while (i < a->n && i < b->n && a->id[i] == b->id[i]) i++;
    return i;
}

static char *join(const char *a, const char *b, const char *c) {
    size_t x = strlen(a), y = strlen(b), z = strlen(c);
    char *out = malloc(x + y + z + 1);
    if (!out) return NULL;
    memcpy(out, a, x);
    memcpy(out + x, b, y);
    memcpy(out + x + y, c, z + 1);
    return out;
}

static ob_status tokenize(const ob_engine *engine, const char *a, const char *b, const char *c,
                          ob_tokens *out, ob_error *error) {
    char *text = join(a, b, c);
    if (!text) return error_memory(error, "a text", 0);
    ob_status s = ob_tokenize(engine, text, strlen(text), true, false, out, error);
    free(text);
    return s;
}

static ob_status ask(const struct choosing *c, const struct eval_question *q, struct asked *a,
                     struct eval_score *score, ob_error *error) {
    ob_engine_info info;
    ob_engine_get_info(c->engine, &info);
    *a = (struct asked){.shared = SIZE_MAX, .choices = q->choices};
    for (uint32_t i = 0; i < q->choices; i++) {
        const char *ending = q->ending ? q->ending : "";
        ob_tokens before = {0}, *whole = &a->whole[i];
        ob_status s = tokenize(c->engine, q->context, q->choice[i], ending, whole, error);
        if (s == OB_OK)
            s = tokenize(c->engine, q->context, q->ending ? q->choice[i] : "", "", &before, error);
        a->start[i] = s == OB_OK ? common(whole, &before) : 0;
        ob_tokens_free(&before);
        if (s != OB_OK) return s;
        if (a->start[i] == 0)
            return error_set(error, OB_ERR_ARGUMENT,
                             "choice %u has no token of the context before it", i);
        if (a->start[i] == whole->n)
            return error_set(error, OB_ERR_ARGUMENT, "choice %u adds no token to its context", i);
        if (whole->n - 1 > info.context)
            return error_set(error, OB_ERR_LIMIT, "choice %u has %zu tokens, the context holds %u",
                             i, whole->n, info.context);
        score->log[i] = 0;
        score->tokens[i] = (uint32_t)(whole->n - a->start[i]);
        score->bytes[i] = (uint32_t)strlen(q->ending ? q->ending : q->choice[i]);
        size_t alike = i ? common(whole, &a->whole[0]) : whole->n;
        if (a->start[i] < alike) alike = a->start[i];
        if (alike < a->shared) a->shared = alike;
    }
    a->shared--; /* the last one's row is a prediction, computed with each choice */
    return OB_OK;
}

static ob_status on_rows(void *user, uint32_t part, size_t first, size_t n, const float *logits,
                         ob_error *error) {
    struct choosing *c = user;
    const struct asked *a = &c->asked[c->of[part]];
    for (size_t i = 0; i < n; i++) {
        const float *row = logits + i * c->vocab;
        double log_sum;
        uint32_t top;
        if (!eval_log_sum(row, c->vocab, &log_sum, &top))
            return error_set(error, OB_ERR_NUMERIC, "the logits are not finite");
        int32_t target = a->whole[c->choice].id[a->start[c->choice] + first + i];
        c->score[c->of[part]].log[c->choice] += (double)row[target] - log_sum;
    }
    return OB_OK;
}

/* The shared beginnings. */
static ob_status begin(struct choosing *c, ob_error *error) {
    uint32_t parts = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        struct asked *a = &c->asked[i];
        ob_batch_keep(c->batch, i, 0);
        a->held = (uint32_t)a->shared;
        if (a->shared == 0) continue;
        c->part[parts++] = (ob_batch_part){.sequence = i, .id = a->whole[0].id, .n = a->shared};
    }
    return parts ? ob_batch_run(c->batch, c->part, parts, 0, NULL, NULL, NULL, error) : OB_OK;
}

static ob_status one_choice(struct choosing *c, ob_error *error) {
    uint32_t parts = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        struct asked *a = &c->asked[i];
        if (c->choice >= a->choices) continue;
        const ob_tokens *whole = &a->whole[c->choice];
        c->of[parts] = i;
        c->part[parts++] = (ob_batch_part){.sequence = i,
                                           .id = whole->id + a->held,
                                           .n = whole->n - 1 - a->held,
                                           .logits = whole->n - a->start[c->choice]};
    }
    ob_status s = ob_batch_run(c->batch, c->part, parts, 0, on_rows, c, NULL, error);
    for (uint32_t i = 0; i < parts; i++) {
        struct asked *a = &c->asked[c->of[i]];
        a->held = ob_batch_keep(c->batch, c->of[i], (uint32_t)a->shared);
    }
    return s;
}

ob_status eval_choose(ob_engine *engine, ob_batch *batch, const struct eval_question *question,
                      uint32_t n, struct eval_score *score, ob_error *error) {
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    struct choosing c = {.engine = engine,
                         .batch = batch,
                         .vocab = info.vocab,
                         .n = n,
                         .asked = calloc(n, sizeof *c.asked),
                         .score = score,
                         .part = calloc(n, sizeof *c.part),
                         .of = calloc(n, sizeof *c.of)};
    uint32_t choices = 0;
    ob_status s = OB_OK;
    if (!c.asked || !c.part || !c.of) s = error_memory(error, "questions", n * sizeof *c.asked);
    for (uint32_t i = 0; s == OB_OK && i < n; i++) {
        char line[24];
        s = ask(&c, &question[i], &c.asked[i], &score[i], error);
        snprintf(line, sizeof line, "line %u", question[i].line);
        if (s != OB_OK) error_at(error, NULL, line, OB_NO_OFFSET);
        if (question[i].choices > choices) choices = question[i].choices;
    }
    if (s == OB_OK) s = begin(&c, error);
    for (; s == OB_OK && c.choice < choices; c.choice++) s = one_choice(&c, error);
    for (uint32_t i = 0; c.asked && i < n; i++)
        for (uint32_t k = 0; k < EVAL_CHOICES; k++) ob_tokens_free(&c.asked[i].whole[k]);
    free(c.asked);
    free(c.part);
    free(c.of);
    return s;
}
