/* SPDX-License-Identifier: Apache-2.0
 *
 * check_model.c: each family of the goldens (families.h) on each device against the FP32 logits
 * that transformers computed (tests/golden/families/README.md): a prompt whole, token by token and
 * in chunks, and what greedy decoding says next; of encoders the last states. Then the model of
 * quantized weights on the cpu against the ref device.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices/device.h"
#include "families.h"
#include "models/recipe.h"
#include "whole.h"

enum { TINY_TOKENS = 75 };

struct model_case {
    const char *path; /* of the model */
    const struct golden *golden;
    const char *device, *isa, *part;
    const char *layers; /* that run on the device, the others on the CPU; NULL: all */
};

/* What a model may differ by. */
struct bound {
    double off;      /* of a logit, in deviations */
    uint32_t swaps;  /* positions where another token may be the largest without a tie */
    double tie;      /* first less second */
};

/* Where activations are rounded inside, a last bit can move a rounding boundary. */
static struct bound bound_of(const struct whole *w, double deviation) {
    struct str method;
    if (source_str(w->source, "quantization_config.quant_method", 0, &method) &&
        str_is(method, "bitnet"))
        return (struct bound){.off = 5e-2, .swaps = 2, .tie = 2 * 5e-2 * deviation};
    return (struct bound){.off = 2e-3, .tie = 1e-3};
}

static int32_t *read_ints(struct check_row *row, const struct model_case *c, const char *what,
                          uint32_t *n) {
    char name[64];
    size_t count = 0;
    snprintf(name, sizeof name, "%s_%s", what, c->part);
    int32_t *out = golden_ints(c->golden, name, &count);
    if (!out || count == 0 || count > 4096) check_end(row, "the golden has no good %s", name);
    *n = (uint32_t)count;
    return out;
}

static float *read_logits(struct check_row *row, const struct model_case *c, size_t n) {
    char name[64];
    size_t count = 0;
    snprintf(name, sizeof name, "logits_%s", c->part);
    float *out = golden_floats(c->golden, name, &count);
    if (!out || count != n) check_end(row, "the golden has %zu of %zu %s", count, n, name);
    return out;
}

static double deviation(const float *x, size_t n) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i], square += (double)x[i] * (double)x[i];
    return sqrt(square / (double)n - sum / (double)n * (sum / (double)n));
}

/* What is compared: the reference of one sequence. */
struct want {
    const int32_t *argmax, *generated;
    const float *logits;
    uint32_t n, generated_n, vocab;
    double deviation;
    struct bound bound;
};

/* The largest difference, in deviations. */
static double compare(struct check_row *row, const float *have, const struct want *want) {
    double worst = 0;
    uint32_t swaps = 0;
    for (uint32_t r = 0; r < want->n; r++) {
        const float *h = have + (size_t)r * want->vocab, *w = want->logits + (h - have);
        uint32_t a = whole_argmax(h, want->vocab), b = (uint32_t)want->argmax[r];
        if (a != b && w[b] - w[a] >= 1e-3f && ++swaps > want->bound.swaps)
            check_fail(row, "position %u: token %u, should be %u", r, a, b);
        for (uint32_t i = 0; i < want->vocab; i++) {
            double off = fabs((double)h[i] - (double)w[i]) / want->deviation;
            if (!(off <= want->bound.off))
                check_fail(row, "position %u, logit %u: %g, should be %g", r, i, (double)h[i],
                           (double)w[i]);
            worst = off > worst ? off : worst;
        }
    }
    check_compared(row, (size_t)want->n * want->vocab, worst);
    return worst;
}

/* From the last row of the prompt's logits on. A tie may fall either way, and then what follows
 * differs. */
static void generate(const struct whole *w, struct seq *seq, const float *last,
                     const struct want *want) {
    float *row = NULL;
    for (uint32_t i = 0; i < want->generated_n; i++) {
        int32_t next = (int32_t)whole_argmax(last, w->vocab), right = want->generated[i];
        if (next != right) {
            if ((double)(last[next] - last[right]) >= want->bound.tie)
                check_end(w->row, "generated token %u is %d, should be %d", i, (int)next,
                          (int)right);
            break;
        }
        float *more = whole_run(w, seq, &next, 1, 1);
        free(row);
        last = row = more;
    }
    free(row);
}

static void run_golden(struct check_row *row, const void *arg) {
    const struct model_case *c = arg;
    struct want want = {0};
    struct whole w;
    whole_open(&w, row, c->path,
               &(ob_engine_options){
                   .device = c->device, .cpu_isa = c->isa, .kv_type = "f32", .threads = 1,
                   .gpu_layers = c->layers});
    uint32_t n;
    int32_t *id = read_ints(row, c, "input_ids", &want.n);
    int32_t *argmax = read_ints(row, c, "argmax", &n);
    int32_t *generated = read_ints(row, c, "generated", &want.generated_n);
    size_t count = (size_t)want.n * w.vocab;
    float *logits = read_logits(row, c, count);
    want.argmax = argmax;
    want.generated = generated;
    want.logits = logits;
    want.vocab = w.vocab;
    want.deviation = deviation(logits, count);
    want.bound = bound_of(&w, want.deviation);
    const uint32_t chunks[] = {128, 1, 7};
    double worst = 0;
    for (int k = 0; k < 3; k++) {
        struct seq *seq = seq_new(w.engine);
        seq_admit(seq, want.n + want.generated_n);
        float *have = whole_run(&w, seq, id, want.n, chunks[k]);
        worst = fmax(worst, compare(row, have, &want));
        generate(&w, seq, have + count - w.vocab, &want);
        free(have);
        seq_free(&seq);
    }
    check_note(row, "%u x %u logits, 3 chunkings, %u more tokens; off by %.1e deviations", want.n,
               w.vocab, want.generated_n, worst);
    whole_close(&w);
    free(id);
    free(argmax);
    free(generated);
    free(logits);
}

/* The output and the last layer, or the layers that share a cache with it, on the device. */
static void run_cut(struct check_row *row, const void *arg) {
    struct model_case c = *(const struct model_case *)arg;
    char layers[16];
    ob_error error = {0};
    struct source *source;
    if (source_open(c.path, &source, &error) != OB_OK) check_end(row, "%s", error.message);
    for (uint32_t n = 2; !c.layers || strcmp(error.where, "gpu_layers") == 0; n++) {
        error = (ob_error){0};
        c.layers = layers;
        snprintf(layers, sizeof layers, "%u", n);
        engine_check(source, &(ob_engine_options){.device = c.device, .gpu_layers = layers},
                     &error);
    }
    source_close(&source);
    run_golden(row, &c);
}

/* ---- encoders, classifiers: last states, their mean, and what a head says ---- */

/* An array of the golden that must have n numbers; NULL if there is none of this name. */
static float *read_array(struct check_row *row, const struct model_case *c, const char *what,
                         size_t n) {
    char name[64];
    size_t count = 0;
    snprintf(name, sizeof name, "%s_%s", what, c->part);
    float *out = golden_floats(c->golden, name, &count);
    if (out && count != n)
        check_end(row, "%s has %zu numbers, the model gives %zu", name, count, n);
    return out;
}

/* The largest difference, in deviations. */
static double compare_states(struct check_row *row, const char *what, const float *have,
                             const float *want, size_t n, double deviation) {
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        double off = fabs((double)have[i] - (double)want[i]) / deviation;
        if (!(off <= 2e-3))
            check_fail(row, "%s, number %zu: %g, should be %g", what, i, (double)have[i],
                       (double)want[i]);
        worst = fmax(worst, off);
    }
    check_compared(row, n, worst);
    return worst;
}

/* Where the file says that embeddings have length 1. */
static void shorten(const struct whole *w, float *vector, uint32_t n) {
    double sum = 0;
    if (!engine_model(w->engine)->hp.modules.unit) return;
    for (uint32_t i = 0; i < n; i++) sum += (double)vector[i] * (double)vector[i];
    for (uint32_t i = 0; i < n; i++) vector[i] = (float)((double)vector[i] / sqrt(sum));
}

static void run_encoder(struct check_row *row, const void *arg) {
    const struct model_case *c = arg;
    struct whole w;
    whole_open(&w, row, c->path,
               &(ob_engine_options){.device = c->device, .cpu_isa = c->isa, .threads = 1});
    uint32_t n, cols, width = w.cols;
    int32_t *id = read_ints(row, c, "input_ids", &n);
    float *hidden = read_array(row, c, "hidden", (size_t)n * width);
    float *mean = read_array(row, c, "mean", width);
    float *have = whole_run_once(&w, id, n);
    if (!hidden || !mean) check_end(row, "the golden has no states");
    double unit = deviation(hidden, (size_t)n * width);
    double worst = compare_states(row, "states", have, hidden, (size_t)n * width, unit);
    const float *embedding = engine_embedding(w.engine), *pooled = engine_pooled(w.engine, &cols);
    if (!embedding && !engine_model(w.engine)->hp.scores)
        check_end(row, "the model does not embed");
    shorten(&w, mean, width);
    if (embedding)
        worst = fmax(worst, compare_states(row, "mean", embedding, mean, width, unit));
    static const char *const heads[] = {"pooler", "class_logits"};
    /* A GGUF has no pooler. */
    bool head = false, dropped = !pooled && source_kind(w.source) == SOURCE_GGUF;
    for (int i = 0; i < 2 && !dropped; i++) {
        float *want = read_array(row, c, heads[i], cols);
        if (want) worst = fmax(worst, compare_states(row, heads[i], pooled, want, cols, unit));
        head |= want != NULL;
        free(want);
    }
    if (head != (pooled != NULL)) check_end(row, "the model has a head, or the golden, not both");
    check_note(row, "%u x %u states; off by %.1e deviations", n, width, worst);
    whole_close(&w);
    free(id);
    free(hidden);
    free(mean);
    free(have);
}

/* 8-bit activations cost something; this bounds how much on random weights. Where two experts are
 * nearly tied, they can also swap one for the other. */
static void run_tiny(struct check_row *row, const void *arg) {
    const struct model_case *c = arg;
    int32_t id[TINY_TOKENS];
    float *out[2];
    struct whole w;
    for (int i = 0; i < 2; i++) {
        whole_open(&w, row, c->path,
                   i ? &(ob_engine_options){.device = c->device, .cpu_isa = c->isa}
                     : &(ob_engine_options){.device = "ref"});
        whole_ids(&w, 1, id, TINY_TOKENS);
        out[i] = whole_run_once(&w, id, TINY_TOKENS);
        whole_close(&w);
    }
    check_nmse(row, out[1], out[0], (size_t)TINY_TOKENS * w.vocab,
               strstr(c->path, "_moe") ? 1e-2 : 1e-3);
}

/* The model written as a GGUF file: read again, it gives the same bits, or where weights have been
 * multiplied there by what the model otherwise multiplies states by, the same but for rounding. */
static void run_converted(struct check_row *row, const void *arg) {
    const struct model_case *c = arg;
    enum { TOKENS = 40 };
    char path[] = "/tmp/1bit-check-XXXXXX";
    int32_t id[TOKENS];
    float *out[2];
    struct whole w;
    int file = mkstemp(path);
    if (file < 0) check_end(row, "no temporary file");
    close(file);
    bool multiplied = false;
    for (int i = 0; i < 2; i++) {
        whole_open(&w, row, i ? path : c->path,
                   &(ob_engine_options){.device = "cpu", .threads = 1});
        multiplied = engine_model(w.engine)->recipe->gguf_factor != NULL;
        if (i == 0) whole_export(&w, path);
        whole_ids(&w, 1, id, TOKENS);
        out[i] = whole_run_once(&w, id, TOKENS);
        whole_close(&w);
    }
    unlink(path);
    const size_t n = (size_t)TOKENS * w.cols;
    if (multiplied) check_nmse(row, out[1], out[0], n, 1e-5); /* caches round, too */
    else check_equal(row, out[1], out[0], n);
    free(out[0]);
    free(out[1]);
}

static void skip(struct check_row *row, const void *why) {
    check_skip(row, "%s", (const char *)why);
}

/* Sequence b tells little that a does not, so the instruction sets, which give the same bits, share
 * it: the best one takes it. */
static void run_family(struct check *check, const struct family *f) {
    if (f->unknown) {
        check_run(check, skip, f->unknown, "%s", f->name);
        return;
    }
    size_t n;
    float *states = golden_floats(f->golden, "hidden_a", &n);
    void (*run)(struct check_row *, const void *) = states ? run_encoder : run_golden;
    free(states);
    struct model_case c = {.path = f->model, .golden = f->golden, .device = "ref", .part = "a"};
    if (!check_quick(check)) {
        check_run(check, run, &c, "%s.ref.a", f->name);
        c.part = "b";
        check_run(check, run, &c, "%s.ref.b", f->name);
        if (run == run_golden) check_run(check, run_cut, &c, "%s.ref.cut", f->name);
    }
    if (check_device(check)) {
        c.device = check_device(check);
        check_run(check, run, &c, "%s.%s.a", f->name, c.device);
        return;
    }
    c.device = "cpu";
    CHECK_ISAS(check, isa) {
        c.isa = cpu_isa_name(isa);
        c.part = "a";
        check_run(check, run, &c, "%s.%s.a", f->name, c.isa);
    }
    c.isa = NULL; /* the best */
    c.part = "b";
    check_run(check, run, &c, "%s.cpu.b", f->name);
    check_run(check, run_converted, &c, "%s.cpu.converted", f->name);
    c.part = "a";
    c.path = f->legacy;
    if (c.path) check_run(check, run, &c, "%s.cpu.legacy", f->name);
    c.path = f->gguf;
    if (c.path) check_run(check, run, &c, "%s.cpu.gguf", f->name);
}

void check_model(struct check *check) {
    families_each(check, run_family);
    for (int i = 0; i < WHOLE_TINIES; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s.gguf", check_goldens(check), whole_tiny[i]);
        struct model_case c = {.path = path, .device = check_device(check)};
        if (c.device) check_run(check, run_tiny, &c, "%s.%s.near_ref", whole_tiny[i], c.device);
        CHECK_ISAS(check, isa)
            check_run(check, run_tiny,
                      &(struct model_case){.path = path, .device = "cpu", .isa = cpu_isa_name(isa)},
                      "%s.%s.near_ref", whole_tiny[i], cpu_isa_name(isa));
    }
}
