/* SPDX-License-Identifier: Apache-2.0
 * fuzz_sample.c: sampler chains: a request's fields in the first line, the logits of some steps in
 * the rest, over a vocabulary of 96 printable characters and an end. What is drawn is a token of
 * it, has a probability, and was allowed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "sample/sample.h"
#include "server/sampling.h"

enum { VOCAB = 97, STEPS = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

static ob_status encode(const void *user, struct str text, ob_tokens *out, ob_error *error) {
    (void)user, (void)error;
    out->id = malloc((text.n + 1) * sizeof *out->id);
    check(out->id != NULL);
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] >= ' ') out->id[out->n++] = text.p[i] - ' ' + 1;
    return OB_OK;
}

static void piece(const void *user, int32_t id, bool special, struct buf *out) {
    (void)user, (void)special;
    if (id > 0) buf_putc(out, (char)(id - 1 + ' '));
}

static bool is_end(const void *user, int32_t id) {
    (void)user;
    return id == 0;
}

static void draw(struct sample_chain *chain, const uint8_t *bytes, size_t size) {
    int32_t history[STEPS + VOCAB] = {0};
    ob_logprob top[VOCAB];
    float row[VOCAB];
    size_t n = size % VOCAB, top_n;
    for (size_t i = 0; i < n; i++) history[i] = bytes[i % size] % VOCAB;
    for (size_t step = 0; step < STEPS; step++) {
        uint32_t mask[4] = {~0u, 0xffff00ffu, ~0u, 1};
        for (size_t i = 0; i < VOCAB; i++) {
            uint8_t b = bytes[(step * VOCAB + i) % size];
            row[i] = b == 255 ? -INFINITY : b == 254 ? 3e38f : (float)b / 16 - 8;
        }
        struct sample_input input = {.logits = row, .mask = step % 2 ? mask : NULL,
                                     .history = history, .history_n = n};
        int32_t id = sample_token(chain, &input);
        if (id < 0) return;
        check(id < VOCAB);
        bool after = step % 3 != 0;
        float logprob = sample_logprobs(chain, &input, after, id, top, VOCAB, &top_n);
        check(logprob <= 1e-4f && top_n <= VOCAB && (!after || top_n >= 1));
        history[n++] = id;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static const struct sample_vocab vocab = {.size = VOCAB, .context = STEPS + VOCAB,
                                              .encode = encode, .piece = piece, .is_end = is_end};
    const uint8_t *newline = memchr(bytes, '\n', size);
    if (!newline || newline + 1 == bytes + size) return 0;
    json_t *request = json_loadb((const char *)bytes, (size_t)(newline - bytes), 0, NULL);
    ob_sampling settings = {.temperature = 1, .top_p = 1, .typical_p = 1, .repeat_penalty = 1,
                            .dry_base = 1.75f, .dry_penalty_last_n = -1, .penalty_last_n = 64};
    struct sampling_lists lists = {0};
    struct sample_chain *chain = NULL;
    ob_error error = {0};
    ob_status s = sampling_read(request, &settings, &lists, &error);
    if (s == OB_OK) s = sample_open(&settings, &vocab, &chain, &error);
    check(s == OB_OK || error.message[0]);
    if (chain) draw(chain, newline + 1, size - (size_t)(newline + 1 - bytes));
    sample_close(&chain);
    sampling_free(&lists);
    json_decref(request);
    return 0;
}
