/* SPDX-License-Identifier: Apache-2.0
 *
 * sample_run.c: sampler chains on the command line, for comparisons with a model in NumPy
 * (tests/tools/test_sampling.py).
 *   sample_run CASES.json    to a JSON array with an object for each case
 * {"pieces": [...], "ends": [ids], "cases": [{"settings": fields of a request, "seed", "history",
 *  "rows": [[logits], ...], "draws": N}]}: each row is a step, whose token joins the history;
 * {"steps": [{"id", "ids", "logprobs"}]} has the distribution it was drawn from. With "draws" the
 * first row is drawn from at N positions instead: {"counts": of each token}. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "sample/sample.h"
#include "server/sampling.h"

enum { VOCAB_MAX = 65536, HISTORY_MAX = 65536 };

struct world {
    const json_t *pieces, *ends;
    struct sample_vocab vocab;
};

/* The longest piece at each place; bytes that no piece begins with are left out. */
static ob_status encode(const void *user, struct str text, ob_tokens *out, ob_error *error) {
    const struct world *w = user;
    (void)error;
    out->id = malloc((text.n + 1) * sizeof *out->id);
    while (text.n) {
        size_t best = 0;
        int32_t id = -1;
        for (size_t i = 0; i < json_array_size(w->pieces); i++) {
            const char *piece = json_string_value(json_array_get(w->pieces, i));
            size_t n = strlen(piece);
            if (n <= best || n > text.n || memcmp(piece, text.p, n) != 0) continue;
            best = n;
            id = (int32_t)i;
        }
        if (id >= 0) out->id[out->n++] = id;
        text.p += best ? best : 1;
        text.n -= best ? best : 1;
    }
    return OB_OK;
}

static bool is_end(const void *user, int32_t id) {
    const struct world *w = user;
    for (size_t i = 0; i < json_array_size(w->ends); i++)
        if (json_integer_value(json_array_get(w->ends, i)) == id) return true;
    return false;
}

/* Tokens that end an answer are control tokens. */
static void piece(const void *user, int32_t id, bool special, struct buf *out) {
    const struct world *w = user;
    if (special || !is_end(user, id))
        buf_puts(out, json_string_value(json_array_get(w->pieces, (size_t)id)));
}

static void read_row(const json_t *list, float *row) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *x = json_array_get(list, i);
        row[i] = json_is_null(x) ? -INFINITY : (float)json_number_value(x);
    }
}

static json_t *step(struct sample_chain *chain, const struct sample_input *input, uint32_t vocab,
                    int32_t *id) {
    static ob_logprob top[VOCAB_MAX];
    size_t n = 0;
    *id = sample_token(chain, input);
    json_t *ids = json_array(), *logprobs = json_array();
    if (*id >= 0) sample_logprobs(chain, input, true, *id, top, vocab, &n);
    for (size_t i = 0; i < n; i++) {
        json_array_append_new(ids, json_integer(top[i].id));
        json_array_append_new(logprobs, json_real((double)top[i].logprob));
    }
    return json_pack("{s:i, s:o, s:o}", "id", (int)*id, "ids", ids, "logprobs", logprobs);
}

static json_t *steps(struct sample_chain *chain, const json_t *one, uint32_t vocab) {
    static float row[VOCAB_MAX];
    static int32_t history[HISTORY_MAX];
    const json_t *rows = json_object_get(one, "rows"), *list = json_object_get(one, "history");
    size_t n = json_array_size(list);
    json_t *out = json_array();
    for (size_t i = 0; i < n; i++)
        history[i] = (int32_t)json_integer_value(json_array_get(list, i));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        read_row(json_array_get(rows, i), row);
        struct sample_input input = {.logits = row, .history = history, .history_n = n};
        json_array_append_new(out, step(chain, &input, vocab, &history[n]));
        n++;
    }
    return json_pack("{s:o}", "steps", out);
}

static json_t *draws(struct sample_chain *chain, const json_t *one, uint32_t vocab) {
    static float row[VOCAB_MAX];
    static int64_t count[VOCAB_MAX];
    static int32_t history[HISTORY_MAX];
    json_int_t n = json_integer_value(json_object_get(one, "draws"));
    json_t *out = json_array();
    memset(count, 0, sizeof count);
    read_row(json_array_get(json_object_get(one, "rows"), 0), row);
    for (json_int_t i = 0; i < n && i < HISTORY_MAX; i++) {
        struct sample_input input = {.logits = row, .history = history, .history_n = (size_t)i};
        int32_t id = sample_token(chain, &input);
        if (id >= 0) count[id]++;
    }
    for (uint32_t i = 0; i < vocab; i++) json_array_append_new(out, json_integer(count[i]));
    return json_pack("{s:o}", "counts", out);
}

static json_t *run(const struct world *w, const json_t *one) {
    ob_sampling settings = ob_sampling_default();
    struct sampling_lists lists = {0};
    struct sample_chain *chain = NULL;
    ob_error error;
    char line[1024];
    json_t *out;
    ob_status s = sampling_read(json_object_get(one, "settings"), &settings, &lists, &error);
    settings.seed = (uint64_t)json_integer_value(json_object_get(one, "seed"));
    if (s == OB_OK) s = sample_open(&settings, &w->vocab, &chain, &error);
    if (s != OB_OK) out = json_pack("{s:s}", "error", ob_error_line(&error, line, sizeof line));
    else out = (json_object_get(one, "draws") ? draws : steps)(chain, one, w->vocab.size);
    sample_close(&chain);
    sampling_free(&lists);
    return out;
}

int main(int argc, char **argv) {
    json_error_t problem;
    json_t *all = argc == 2 ? json_load_file(argv[1], 0, &problem) : NULL, *one;
    json_t *out = json_array();
    size_t i;
    if (!all) {
        fprintf(stderr, "usage: sample_run CASES.json\n");
        return 1;
    }
    struct world w = {.pieces = json_object_get(all, "pieces"),
                      .ends = json_object_get(all, "ends")};
    int32_t end = (int32_t)json_integer_value(json_array_get(w.ends, 0));
    w.vocab = (struct sample_vocab){.user = &w, .size = (uint32_t)json_array_size(w.pieces),
                                    .context = HISTORY_MAX, .end = end, .encode = encode,
                                    .piece = piece, .is_end = is_end};
    json_array_foreach(json_object_get(all, "cases"), i, one)
        json_array_append_new(out, run(&w, one));
    json_dumpf(out, stdout, JSON_COMPACT);
    json_decref(out);
    json_decref(all);
    return 0;
}
