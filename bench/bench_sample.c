/* SPDX-License-Identifier: Apache-2.0
 * bench_sample.c: the time of a token's sampling over a large vocabulary.
 *   bench_sample [VOCAB]    (default: 151936)
 * A row a chain: each sampler alone, the default one, and the default one with everything switched
 * on; microseconds a token, the median and the best of many. Two kinds of logits: as a model that
 * is fairly sure gives them, and flat ones, where nearly every token is a candidate. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "sample/sample.h"

enum { ROUNDS = 301, HISTORY = 2048 };

static const ob_sampling off = {.temperature = 1, .top_p = 1, .typical_p = 1, .repeat_penalty = 1,
                                .dry_base = 1.75f, .dry_allowed_length = 2,
                                .dry_penalty_last_n = -1, .penalty_last_n = 64, .seed = 1};

/* A vocabulary of letters: enough for what breaks a repetition. */
static ob_status encode(const void *user, struct str text, ob_tokens *out, ob_error *error) {
    (void)user, (void)error;
    out->id = malloc((text.n + 1) * sizeof *out->id);
    for (out->n = 0; out->id && out->n < text.n; out->n++) out->id[out->n] = text.p[out->n];
    return OB_OK;
}
static void piece(const void *user, int32_t id, bool special, struct buf *out) {
    (void)user, (void)special;
    buf_putc(out, (char)(id % 64 + 64));
}
static bool is_end(const void *user, int32_t id) {
    (void)user;
    return id == 0;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, ob_sampling settings, const struct sample_vocab *vocab,
                    const float *logits, bool logprobs) {
    static int32_t history[HISTORY];
    static double time[ROUNDS];
    ob_logprob top[20];
    ob_error error;
    size_t n;
    struct sample_chain *chain;
    if (sample_open(&settings, vocab, &chain, &error) != OB_OK) {
        printf("  %-28s %s: %s\n", name, error.where, error.message);
        return;
    }
    for (size_t i = 0; i < HISTORY; i++) history[i] = (int32_t)(rng_u64(5, i) % 1000);
    for (size_t i = 0; i < ROUNDS; i++) {
        struct sample_input input = {
            .logits = logits, .history = history, .history_n = HISTORY - i};
        double start = os_seconds();
        int32_t id = sample_token(chain, &input);
        if (logprobs) sample_logprobs(chain, &input, false, id, top, 20, &n);
        time[i] = (os_seconds() - start) * 1e6;
    }
    qsort(time, ROUNDS, sizeof time[0], by_size);
    printf("  %-28s %8.1f %8.1f\n", name, time[ROUNDS / 2], time[0]);
    sample_close(&chain);
}

static void each(const struct sample_vocab *vocab, const float *logits) {
    ob_sampling s = off, all = ob_sampling_default();
#define ALONE(name, ...)                              \
    s = off;                                          \
    __VA_ARGS__;                                      \
    measure(name, s, vocab, logits, false);
    ALONE("greedy", s.temperature = 0)
    ALONE("draw from all", s.temperature = 1)
    ALONE("temperature", s.temperature = 0.8f)
    ALONE("dynamic temperature", s.dynatemp_range = 0.5f)
    ALONE("top_k 40", s.top_k = 40)
    ALONE("top_k 1000", s.top_k = 1000)
    ALONE("top_k 20000", s.top_k = 20000)
    ALONE("top_p 0.95", s.top_p = 0.95f)
    ALONE("min_p 0.05", s.min_p = 0.05f)
    ALONE("typ_p 0.9", s.typical_p = 0.9f)
    ALONE("top_n_sigma 1", s.top_n_sigma = 1)
    ALONE("penalties, top_k", s.repeat_penalty = 1.1f; s.top_k = 40)
    ALONE("dry of 2048, top_k", s.dry_multiplier = 0.8f; s.top_k = 40)
    ALONE("xtc after top_k", s.xtc_probability = 0.5f; s.xtc_threshold = 0.1f; s.top_k = 40)
    ALONE("mirostat", s.mirostat = 1; s.mirostat_tau = 5; s.mirostat_eta = 0.1f)
    ALONE("mirostat 2", s.mirostat = 2; s.mirostat_tau = 5; s.mirostat_eta = 0.1f)
#undef ALONE
    measure("default", all, vocab, logits, false);
    measure("default, 20 log probabilities", all, vocab, logits, true);
    all.repeat_penalty = 1.1f;
    all.dry_multiplier = 0.8f;
    all.top_n_sigma = 2;
    all.typical_p = 0.95f;
    all.xtc_probability = 0.5f;
    all.dynatemp_range = 0.2f;
    measure("default order, everything on", all, vocab, logits, false);
}

int main(int argc, char **argv) {
    long size = argc > 1 ? strtol(argv[1], NULL, 10) : 151936;
    if (size < 64 || size > 10000000) {
        fprintf(stderr, "bench_sample: VOCAB must be from 64 to 10000000\n");
        return 2;
    }
    struct sample_vocab vocab = {.size = (uint32_t)size, .context = HISTORY, .encode = encode,
                                 .piece = piece, .is_end = is_end};
    float *logits = malloc((size_t)size * sizeof *logits);
    if (!logits) return 1;
    for (int flat = 0; flat < 2; flat++) {
        for (size_t i = 0; i < (size_t)size; i++) {
            double u = 0;
            for (uint64_t k = 0; k < 12; k++) u += rng_unit(k, i) - 0.5; /* nearly normal */
            logits[i] = (float)(u * (flat ? 0.3 : 2.5) +
                                (!flat && rng_u64(99, i) % 9973 == 0 ? 12 : 0));
        }
        printf("%s logits, %ld tokens%*s median     best (microseconds)\n",
               flat ? "flat" : "sure", size, size < 100000 ? 5 : 4, "");
        each(&vocab, logits);
    }
    free(logits);
    return 0;
}
