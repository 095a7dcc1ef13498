/* SPDX-License-Identifier: Apache-2.0
 *
 * check_model.c: each family's fixture on each device against the FP32 logits that transformers
 * computed (tests/golden/models/README.md): a prompt whole, token by token and in chunks, and what
 * greedy decoding says next. Then the model of quantized weights on the cpu against the ref device.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices/device.h"
#include "npz.h"
#include "whole.h"

enum { TINY_TOKENS = 75 };
static const double BOUND = 2e-3; /* of the logits' standard deviation */

struct model_case {
    const char *family, *device, *isa, *config, *part;
};

static void *read_array(struct check_row *row, const char *npz, const char *what, const char *part,
                        size_t *n, size_t *size) {
    char name[64];
    snprintf(name, sizeof name, "%s_%s", what, part);
    void *out = npz_read(npz, name, n, size);
    if (!out) check_end(row, "%s: no array %s", npz, name);
    return out;
}

static int32_t *read_ids(struct check_row *row, const char *npz, const char *what,
                         const char *part, uint32_t *n) {
    size_t count, size;
    char *raw = read_array(row, npz, what, part, &count, &size);
    int32_t *out = malloc(count * sizeof *out);
    if (!out || size > 8) check_end(row, "%s: %s cannot be read", npz, what);
    for (size_t i = 0; i < count; i++) {
        int64_t v = 0;
        for (size_t k = size; k-- > 0;) v = v << 8 | (uint8_t)raw[i * size + k];
        out[i] = (int32_t)v;
    }
    free(raw);
    *n = (uint32_t)count;
    return out;
}

static double deviation(const float *x, size_t n) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i], square += (double)x[i] * (double)x[i];
    return sqrt(square / (double)n - sum / (double)n * (sum / (double)n));
}

/* Ties under 1e-3 may fall either way. The largest difference, in deviations. */
static double compare(struct check_row *row, const float *have, const float *want, uint32_t rows,
                      uint32_t vocab) {
    double unit = deviation(want, (size_t)rows * vocab), worst = 0;
    for (uint32_t r = 0; r < rows; r++) {
        const float *h = have + (size_t)r * vocab, *w = want + (size_t)r * vocab;
        uint32_t a = whole_argmax(h, vocab), b = whole_argmax(w, vocab);
        if (a != b && w[b] - w[a] >= 1e-3f)
            check_fail(row, "position %u: token %u, should be %u", r, a, b);
        for (uint32_t i = 0; i < vocab; i++) {
            double off = fabs((double)h[i] - (double)w[i]) / unit;
            if (!(off <= BOUND))
                check_fail(row, "position %u, logit %u: %g, should be %g", r, i, (double)h[i],
                           (double)w[i]);
            worst = off > worst ? off : worst;
        }
    }
    check_compared(row, (size_t)rows * vocab, worst);
    return worst;
}

static void generate(const struct whole *w, struct seq *seq, int32_t next, const int32_t *want,
                     uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (next != want[i])
            check_end(w->row, "generated token %u is %d, should be %d", i, (int)next, (int)want[i]);
        float *have = whole_run(w, seq, &next, 1, 1);
        next = (int32_t)whole_argmax(have, w->vocab);
        free(have);
    }
}

static void compare_fixture(struct check_row *row, const struct model_case *c, const char *dir) {
    const char *npz = check_golden(row, "models/%s/reference.npz", c->family);
    uint32_t n, more;
    size_t count, size;
    int32_t *id = read_ids(row, npz, "input_ids", c->part, &n);
    float *want = read_array(row, npz, "logits", c->part, &count, &size);
    int32_t *generated = read_ids(row, npz, "generated", c->part, &more);
    struct whole w;
    whole_open(&w, row, dir,
               &(ob_engine_options){.device = c->device, .cpu_isa = c->isa, .kv_type = "f32"});
    if (size != sizeof *want || count != (size_t)n * w.vocab)
        check_end(row, "%zu logits for %u tokens of %u", count, n, w.vocab);
    const uint32_t chunks[] = {128, 1, 7};
    double worst = 0;
    for (int k = 0; k < 3; k++) {
        struct seq *seq = seq_new(w.engine);
        float *have = whole_run(&w, seq, id, n, chunks[k]);
        worst = fmax(worst, compare(row, have, want, n, w.vocab));
        generate(&w, seq, (int32_t)whole_argmax(have + (size_t)(n - 1) * w.vocab, w.vocab),
                 generated, more);
        free(have);
        seq_free(&seq);
    }
    whole_close(&w);
    check_note(row, "%u x %u logits, 3 chunkings, %u more tokens; off by %.1e deviations", n,
               w.vocab, more, worst);
    free(id);
    free(want);
    free(generated);
}

/* A directory with the fixture's weights under another of its configurations. */
static void link_fixture(struct check_row *row, const struct model_case *c, const char *dir,
                         char link[2][256]) {
    const char *const names[2] = {"model.safetensors", "config.json"};
    for (int i = 0; i < 2; i++) {
        const char *from =
            check_golden(row, "models/%s/%s", c->family, i ? c->config : names[0]);
        char *whole = realpath(from, NULL);
        snprintf(link[i], sizeof link[i], "%s/%s", dir, names[i]);
        if (!whole || symlink(whole, link[i]) != 0) check_end(row, "%s: no link to it", from);
        free(whole);
    }
}

static void run_fixture(struct check_row *row, const void *arg) {
    const struct model_case *c = arg;
    if (!c->config) {
        compare_fixture(row, c, check_golden(row, "models/%s", c->family));
        return;
    }
    char dir[] = "/tmp/1bit-check-XXXXXX", link[2][256];
    if (!mkdtemp(dir)) check_end(row, "no temporary folder");
    link_fixture(row, c, dir, link);
    compare_fixture(row, c, dir);
    unlink(link[0]);
    unlink(link[1]);
    rmdir(dir);
}

/* The same weights as a GGUF file. */
static void run_gguf(struct check_row *row, const void *arg) {
    const struct model_case *c = arg;
    compare_fixture(row, c, check_golden(row, "models/%s/model.gguf", c->family));
}

/* 8-bit activations cost something; this bounds how much on random weights. Where two experts are
 * nearly tied, they can also swap one for the other. */
static void run_tiny(struct check_row *row, const void *arg) {
    const struct model_case *c = arg;
    int32_t id[TINY_TOKENS];
    float *out[2];
    struct whole w;
    for (int i = 0; i < 2; i++) {
        whole_open(&w, row, check_golden(row, "%s.gguf", c->family),
                   i ? &(ob_engine_options){.device = c->device, .cpu_isa = c->isa}
                     : &(ob_engine_options){.device = "ref"});
        whole_ids(&w, 1, id, TINY_TOKENS);
        out[i] = whole_run_once(&w, id, TINY_TOKENS);
        whole_close(&w);
    }
    check_nmse(row, out[1], out[0], (size_t)TINY_TOKENS * w.vocab,
               strcmp(c->family, "tiny_moe") == 0 ? 1e-2 : 1e-3);
}

static void run_on(struct check *check, const char *device, const char *isa) {
    static const char *const parts[] = {"a", "b"};
    const char *where = isa ? isa : device;
    for (int f = 0; f < WHOLE_FAMILIES; f++)
        for (int p = 0; p < 2; p++)
            check_run(check, run_fixture,
                      &(struct model_case){whole_family[f], device, isa, NULL, parts[p]},
                      "%s.%s.%s", whole_family[f], where, parts[p]);
    for (int i = 0; isa && i < WHOLE_TINIES; i++)
        check_run(check, run_tiny, &(struct model_case){whole_tiny[i], device, isa, NULL, NULL},
                  "%s.%s.near_ref", whole_tiny[i], where);
}

void check_model(struct check *check) {
    run_on(check, "ref", NULL);
    CHECK_ISAS(check, isa) run_on(check, "cpu", cpu_isa_name(isa));
    for (int f = 0; f < WHOLE_FAMILIES; f++)
        check_run(check, run_fixture,
                  &(struct model_case){whole_family[f], "cpu", NULL, "config.legacy.json", "a"},
                  "%s.cpu.legacy", whole_family[f]);
    static const char *const gguf[] = {"mixtral", "qwen3_moe"};
    for (int f = 0; f < 2; f++)
        check_run(check, run_gguf, &(struct model_case){gguf[f], "cpu", NULL, NULL, "a"},
                  "%s.cpu.gguf", gguf[f]);
}
