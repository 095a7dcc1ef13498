/* SPDX-License-Identifier: Apache-2.0
 * eval_choice.c: `1bit eval choice`: multiple choice over a file of JSON lines. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/eval.h"

enum { TOGETHER = 8 }; /* questions in a batch */

static const char *const norm_name[EVAL_NORMS] = {"sum", "token", "byte"};
static const char *const norm_text[EVAL_NORMS] = {"log probability", "a token", "a byte"};

struct choosing {
    struct eval_job *job;
    struct eval_question *question;
    struct eval_score *score;
    size_t n, cap;
    size_t right[EVAL_NORMS];
};

/* ---- questions ------------------------------------------------------------------------------- */

static ob_status add(struct choosing *c, const char *line, size_t n, uint32_t number,
                     ob_error *error) {
    if (c->n == c->cap) {
        size_t cap = c->cap ? 2 * c->cap : 64;
        struct eval_question *more = realloc(c->question, cap * sizeof *more);
        if (!more) return error_memory(error, "questions", cap * sizeof *more);
        c->question = more;
        c->cap = cap;
    }
    ob_status s = eval_question_read(line, n, &c->question[c->n], error);
    if (s != OB_OK) return s;
    c->question[c->n++].line = number;
    return OB_OK;
}

static ob_status read_questions(struct choosing *c, ob_error *error) {
    const char *p = c->job->text.p, *end = p + c->job->text.n;
    size_t most = (size_t)c->job->options->chunks;
    for (uint32_t number = 1; p < end && (!most || c->n < most); number++) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((stop ? stop : end) - p);
        if (n > strspn(p, " \t\r")) {
            ob_status s = add(c, p, n, number, error);
            if (s != OB_OK) {
                char field[64], where[160];
                snprintf(field, sizeof field, "%.60s", error->where);
                snprintf(where, sizeof where, "line %u%s%s", number, *field ? ", " : "", field);
                snprintf(error->where, sizeof error->where, "%.120s", where);
                error_at(error, c->job->options->file, NULL, OB_NO_OFFSET);
                return s;
            }
        }
        p += n + 1;
    }
    if (c->n) return OB_OK;
    error_set(error, OB_ERR_FORMAT, "there are no questions in it");
    error_at(error, c->job->options->file, NULL, OB_NO_OFFSET);
    return OB_ERR_FORMAT;
}

/* ---- scoring --------------------------------------------------------------------------------- */

static json_t *json_score(const struct choosing *c, size_t i) {
    const struct eval_question *q = &c->question[i];
    const struct eval_score *score = &c->score[i];
    json_t *record = json_pack("{s:I, s:i, s:o}", "line", (json_int_t)q->line, "answer",
                               (int)q->answer, "log", eval_json_numbers(score->log, q->choices));
    json_t *tokens = json_array(), *bytes = json_array();
    for (uint32_t k = 0; k < q->choices; k++) {
        json_array_append_new(tokens, json_integer(score->tokens[k]));
        json_array_append_new(bytes, json_integer(score->bytes[k]));
    }
    json_object_set_new(record, "tokens", tokens);
    json_object_set_new(record, "bytes", bytes);
    return record;
}

/* A count of at least one. */
static bool take_count(const json_t *list, size_t i, uint32_t *out) {
    const json_t *x = json_array_get(list, i);
    if (!json_is_integer(x) || json_integer_value(x) < 1 || json_integer_value(x) > UINT32_MAX)
        return false;
    *out = (uint32_t)json_integer_value(x);
    return true;
}

static ob_status recall(struct choosing *c, size_t i, ob_error *error) {
    const struct eval_question *q = &c->question[i];
    const json_t *record = json_array_get(c->job->records, i);
    const json_t *log = json_object_get(record, "log");
    bool good = json_integer_value(json_object_get(record, "line")) == q->line &&
                json_array_size(log) == q->choices;
    for (uint32_t k = 0; good && k < q->choices; k++) {
        const json_t *x = json_array_get(log, k);
        good = json_is_number(x) &&
               take_count(json_object_get(record, "tokens"), k, &c->score[i].tokens[k]) &&
               take_count(json_object_get(record, "bytes"), k, &c->score[i].bytes[k]);
        c->score[i].log[k] = json_number_value(x);
    }
    if (good) return OB_OK;
    error_set(error, OB_ERR_FORMAT, "line %zu is no record of this run", i + 2);
    error_at(error, c->job->options->resume, NULL, OB_NO_OFFSET);
    return OB_ERR_FORMAT;
}

static void count(struct choosing *c, size_t i) {
    for (enum eval_norm norm = 0; norm < EVAL_NORMS; norm++)
        c->right[norm] += eval_pick(&c->question[i], &c->score[i], norm) == c->question[i].answer;
    char text[64];
    snprintf(text, sizeof text, "question %zu of %zu, %.1f%% right", i + 1, c->n,
             100.0 * (double)c->right[EVAL_TOKENS] / (double)(i + 1));
    cli_progress(text, i + 1, c->n);
}

static ob_status score_some(struct choosing *c, ob_batch *batch, size_t at, uint32_t n,
                            ob_error *error) {
    ob_status s = eval_choose(c->job->engine, batch, c->question + at, n, c->score + at, error);
    if (s != OB_OK) error_at(error, c->job->options->file, NULL, OB_NO_OFFSET);
    for (uint32_t i = 0; s == OB_OK && i < n; i++) {
        json_t *record = json_score(c, at + i);
        s = eval_journal_add(c->job->journal, record, error);
        json_decref(record);
        count(c, at + i);
    }
    return s;
}

static ob_status choose(struct choosing *c, ob_error *error) {
    struct eval_job *job = c->job;
    char hash[17];
    ob_batch *batch = NULL;
    ob_status s = eval_read_text(job, error);
    if (s == OB_OK) s = read_questions(c, error);
    uint32_t ctx = job->options->given[OPTION_INDEX_ctx] ? (uint32_t)job->options->ctx : 0;
    if (s == OB_OK) s = eval_open_engine(job, ctx, TOGETHER, error);
    if (s != OB_OK) return s;
    eval_hex(eval_hash(job->text.p, job->text.n), hash);
    s = eval_open_journal(job, json_pack("{s:s, s:s}", "eval", "choice", "questions", hash), error);
    if (s == OB_OK && !(c->score = calloc(c->n, sizeof *c->score)))
        s = error_memory(error, "scores", c->n * sizeof *c->score);
    size_t at = 0;
    for (; s == OB_OK && at < c->n && at < json_array_size(job->records); at++) {
        s = recall(c, at, error);
        if (s == OB_OK) count(c, at);
    }
    if (s == OB_OK) s = ob_batch_open(job->engine, TOGETHER, &batch, error);
    for (uint32_t n; s == OB_OK && at < c->n; at += n) {
        n = c->n - at < TOGETHER ? (uint32_t)(c->n - at) : TOGETHER;
        s = score_some(c, batch, at, n, error);
    }
    ob_batch_close(&batch);
    cli_progress("", 1, 1);
    return s;
}

static int report(const struct choosing *c) {
    const ob_engine_info *info = &c->job->info;
    json_t *json = NULL;
    double chance = 0;
    for (size_t i = 0; i < c->n; i++) chance += 1.0 / c->question[i].choices;
    chance /= (double)c->n;
    if (c->job->options->json)
        json = json_pack("{s:s, s:o, s:s, s:I, s:f}", "eval", "choice", "model",
                         cli_json_text(str_of(info->name)), "device", info->device, "questions",
                         (json_int_t)c->n, "chance", chance);
    else
        printf("%s on %s\n%zu question%s, right by chance %.2f%%\n\n", info->name, info->device,
               c->n, cli_plural(c->n), 100 * chance);
    for (size_t norm = 0; norm < EVAL_NORMS; norm++) {
        struct eval_stat share = eval_share(c->right[norm], c->n);
        if (json)
            json_object_set_new(json, norm_name[norm], eval_json_stat(share));
        else
            printf("right by %-16s %6.2f%% +/- %.2f\n", norm_text[norm], 100 * share.value,
                   100 * share.error);
    }
    if (!json) return EXIT_OK;
    json_t *list = json_array();
    for (size_t i = 0; i < c->n; i++) json_array_append_new(list, json_score(c, i));
    json_object_set_new(json, "scores", list);
    return cli_print_json(json);
}

int eval_choice(const struct options *options) {
    struct eval_job job = {.options = options};
    struct choosing c = {.job = &job};
    ob_error error;
    if (!options->file) return cli_misuse("choice needs questions (-f FILE.jsonl)");
    int code = choose(&c, &error) == OB_OK ? report(&c) : cli_fail_error(&error);
    for (size_t i = 0; i < c.n; i++) eval_question_free(&c.question[i]);
    free(c.question);
    free(c.score);
    eval_close(&job);
    return code;
}
