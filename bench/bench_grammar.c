/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_grammar.c: the time of masks over a model's vocabulary.
 *   bench_grammar MODEL CASES.json [MASKS]
 * CASES: [{"name": ..., "schema": {...} or "gbnf": "..." or "regex": "...", "texts": [...]}, ...];
 * each text is gone through token by token, twice: with nothing known, and again with a grammar
 * compiled anew over what the vocabulary has kept. Prints a JSON line a case, in microseconds.
 * MASKS gets all masks as words of 32 bits, for comparisons (bench/grammar_peers.py). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/base.h"
#include "decode/vocab.h"
#include "sample/schema/schema.h"
#include "text/tok.h"

struct times { double *us; size_t n, cap; };

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add(struct times *t, double seconds) {
    if (t->n == t->cap) t->us = realloc(t->us, (t->cap = t->cap * 2 + 64) * sizeof *t->us);
    if (t->us) t->us[t->n++] = seconds * 1e6;
}

static void print(const char *name, struct times *t) {
    double sum = 0;
    if (!t->n) return;
    for (size_t i = 0; i < t->n; i++) sum += t->us[i];
    printf(", \"%s_first\": %.1f", name, t->us[0]);
    qsort(t->us, t->n, sizeof *t->us, by_size);
    printf(", \"%s_mean\": %.2f, \"%s_p50\": %.2f, \"%s_p99\": %.2f, \"%s_max\": %.1f", name,
           sum / (double)t->n, name, t->us[t->n / 2], name, t->us[t->n - 1 - t->n / 100], name,
           t->us[t->n - 1]);
}

static int fail(const char *what, const ob_error *error) {
    char line[1024];
    fprintf(stderr, "bench_grammar: %s: %s\n", what, ob_error_line(error, line, sizeof line));
    return 1;
}

static ob_status compile(const json_t *test, const struct sample_vocab *words,
                         struct grammar **out, ob_error *error) {
    const json_t *schema = json_object_get(test, "schema"), *text = json_object_get(test, "gbnf");
    const struct schema_options options = {.compact = false};
    if (schema) return schema_json(schema, &options, out, error);
    if (text) return schema_gbnf(str_of(json_string_value(text)), words, out, error);
    return schema_regex(str_of(json_string_value(json_object_get(test, "regex"))), out, error);
}

/* One text; false with a message if the grammar refuses it. */
static bool go_through(struct grammar *g, struct grammar_vocab *vocab, const ob_tokens *ids,
                       uint32_t *mask, size_t words, struct times *masks, struct times *accepts,
                       FILE *file) {
    struct grammar_state *state;
    ob_error error;
    bool good = grammar_state_open(g, vocab, &state, &error) == OB_OK;
    for (size_t i = 0; good && i <= ids->n; i++) {
        double start = os_seconds();
        if (grammar_mask(state, mask, &error) != OB_OK) return !fail("mask", &error);
        add(masks, os_seconds() - start);
        if (file) fwrite(mask, sizeof *mask, words, file);
        if (i == ids->n) break;
        start = os_seconds();
        good = grammar_accept(state, ids->id[i]);
        add(accepts, os_seconds() - start);
        if (!good) fprintf(stderr, "bench_grammar: token %zu of a text is refused\n", i);
    }
    if (good && !grammar_is_whole(state)) fprintf(stderr, "bench_grammar: a text is not whole\n");
    grammar_state_close(&state);
    return good;
}

static int run(const json_t *test, const struct sample_vocab *words, FILE *file) {
    const char *name = json_string_value(json_object_get(test, "name"));
    size_t n = ((size_t)words->size + 31) / 32;
    uint32_t *mask = malloc(n * sizeof *mask);
    struct grammar_vocab *vocab = NULL;
    struct times masks[2] = {{0}}, accepts = {0};
    double compiled = 0;
    ob_error error;
    bool good = mask && grammar_vocab_open(words, &vocab, &error) == OB_OK;
    for (int round = 0; good && round < 2; round++) {
        struct grammar *g;
        const json_t *text;
        size_t i;
        double start = os_seconds();
        if (compile(test, words, &g, &error) != OB_OK) {
            grammar_vocab_close(&vocab);
            return fail(name, &error);
        }
        compiled = os_seconds() - start;
        json_array_foreach(json_object_get(test, "texts"), i, text) {
            ob_tokens ids = {0};
            good = good && words->encode(words->user, str_of(json_string_value(text)), &ids,
                                         &error) == OB_OK;
            good = good && go_through(g, vocab, &ids, mask, n, &masks[round], &accepts,
                                      round ? file : NULL);
            ob_tokens_free(&ids);
        }
        grammar_drop(&g);
    }
    if (good) {
        printf("{\"name\": \"%s\", \"tokens\": %zu, \"compile\": %.0f", name, masks[1].n,
               compiled * 1e6);
        print("cold", &masks[0]);
        print("mask", &masks[1]);
        print("accept", &accepts);
        printf("}\n");
        fflush(stdout);
    }
    free(masks[0].us), free(masks[1].us), free(accepts.us), free(mask);
    grammar_vocab_close(&vocab);
    return good ? 0 : 1;
}

int main(int argc, char **argv) {
    struct source *source = NULL;
    struct tok *tok = NULL;
    json_error_t problem;
    ob_error error;
    int bad = 0;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_grammar MODEL CASES.json [MASKS]\n");
        return 2;
    }
    json_t *cases = json_load_file(argv[2], 0, &problem), *test;
    if (!cases) {
        fprintf(stderr, "bench_grammar: %s: %s\n", argv[2], problem.text);
        return 1;
    }
    FILE *file = argc > 3 ? fopen(argv[3], "wb") : NULL;
    if (source_open(argv[1], &source, &error) != OB_OK || tok_open(source, &tok, &error) != OB_OK)
        return fail(argv[1], &error);
    struct sample_vocab words = vocab_of(tok, tok_count(tok), 1 << 20);
    size_t i;
    json_array_foreach(cases, i, test) bad |= run(test, &words, file);
    if (file) bad |= fclose(file) != 0;
    tok_close(&tok);
    source_close(&source);
    json_decref(cases);
    return bad;
}
