/* SPDX-License-Identifier: Apache-2.0
 *
 * test_engine.c: whole models: each family's fixture against transformers' FP32 logits, real files
 * against goldens made by transformers, and the laws: a sequence's logits depend on its tokens
 * alone, not on chunks, neighbours, threads, rollback or the ISA. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/engine.h"
#include "npz.h"

static const char *const families[] = {"gemma3_text", "llama", "mistral", "qwen2", "qwen3"};
enum { FAMILIES = sizeof families / sizeof families[0] };

struct opened {
    struct source *source;
    struct engine *engine;
};

static struct opened open_model(const char *path, const ob_engine_options *options) {
    struct opened o;
    ob_error error;
    char line[1024];
    ob_status s = source_open(path, &o.source, &error);
    if (s == OB_OK) s = engine_open(o.source, options, &o.engine, &error);
    if (s != OB_OK) fail_msg("%s", ob_error_line(&error, line, sizeof line));
    return o;
}

static void close_model(struct opened *o) {
    engine_close(&o->engine);
    source_close(&o->source);
}

static uint32_t vocab_of(struct engine *e) { return engine_model(e)->hp.vocab; }

/* Runs n tokens in chunks and gives all rows of logits, malloc'd. */
static float *run(struct engine *e, struct seq *seq, const int32_t *id, uint32_t n,
                  uint32_t chunk) {
    size_t vocab = vocab_of(e);
    float *out = malloc(n * vocab * sizeof *out);
    ob_error error;
    char line[1024];
    for (uint32_t at = 0, m; at < n; at += m) {
        const float *rows;
        m = n - at < chunk ? n - at : chunk;
        struct engine_item item = {.seq = seq, .id = id + at, .n = m, .logits = m};
        if (engine_step(e, &item, 1, &rows, &error) != OB_OK)
            fail_msg("%s", ob_error_line(&error, line, sizeof line));
        memcpy(out + at * vocab, rows, m * vocab * sizeof *rows);
    }
    return out;
}

static uint32_t argmax(const float *row, uint32_t n) {
    uint32_t best = 0;
    for (uint32_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

/* ---- fixtures -------------------------------------------------------------------------------- */

static double deviation(const float *x, size_t n) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i], square += (double)x[i] * (double)x[i];
    return sqrt(square / (double)n - sum / (double)n * (sum / (double)n));
}

static int32_t *read_ids(const char *npz, const char *name, uint32_t *n) {
    size_t count, size;
    char *raw = npz_read(npz, name, &count, &size);
    assert_non_null(raw);
    int32_t *out = malloc(count * sizeof *out);
    for (size_t i = 0; i < count; i++) {
        int64_t v = 0;
        memcpy(&v, raw + i * size, size);
        out[i] = (int32_t)v;
    }
    free(raw);
    *n = (uint32_t)count;
    return out;
}

static void compare(const char *what, const float *have, const float *want, uint32_t rows,
                    uint32_t vocab) {
    double bound = 2e-3 * deviation(want, (size_t)rows * vocab);
    for (uint32_t r = 0; r < rows; r++) {
        const float *h = have + (size_t)r * vocab, *w = want + (size_t)r * vocab;
        uint32_t a = argmax(h, vocab), b = argmax(w, vocab);
        if (a != b && w[b] - w[a] >= 1e-3f)
            fail_msg("%s: position %u: token %u, not %u", what, r, a, b);
        for (uint32_t i = 0; i < vocab; i++)
            if (!(fabs((double)h[i] - (double)w[i]) <= bound))
                fail_msg("%s: position %u, logit %u: %g, not %g", what, r, i, (double)h[i],
                         (double)w[i]);
    }
}

static void one_fixture(struct opened *o, const char *npz, const char *part) {
    char name[32];
    size_t count, size;
    uint32_t n, more;
    snprintf(name, sizeof name, "input_ids_%s", part);
    int32_t *id = read_ids(npz, name, &n);
    snprintf(name, sizeof name, "logits_%s", part);
    float *want = npz_read(npz, name, &count, &size);
    snprintf(name, sizeof name, "generated_%s", part);
    int32_t *generated = read_ids(npz, name, &more);
    assert_non_null(want);
    uint32_t vocab = vocab_of(o->engine);
    assert_int_equal(count, (size_t)n * vocab);

    const uint32_t chunks[] = {128, 1, 7};
    for (int c = 0; c < 3; c++) {
        struct seq *seq = seq_new(o->engine);
        float *have = run(o->engine, seq, id, n, chunks[c]);
        compare(npz, have, want, n, vocab);
        int32_t next = (int32_t)argmax(have + (size_t)(n - 1) * vocab, vocab);
        free(have);
        for (uint32_t i = 0; i < more; i++) {
            assert_int_equal(next, generated[i]);
            have = run(o->engine, seq, &next, 1, 1);
            next = (int32_t)argmax(have, vocab);
            free(have);
        }
        seq_free(&seq);
    }
    free(id);
    free(want);
    free(generated);
}

/* A directory with the fixture's weights under another of its configurations. */
static void link_fixture(const char *fixture, const char *config, const char *dir) {
    static const char *const file[2] = {"model.safetensors", "config.json"};
    char cwd[1024], from[1400], to[1400];
    assert_non_null(getcwd(cwd, sizeof cwd));
    for (int i = 0; i < 2; i++) {
        snprintf(from, sizeof from, "%s/%s/%s", cwd, fixture, i ? config : file[0]);
        snprintf(to, sizeof to, "%s/%s", dir, file[i]);
        unlink(to);
        assert_int_equal(symlink(from, to), 0);
    }
}

static void fixtures_on(const char *device, const char *config) {
    char temp[] = "/tmp/1bit-test-XXXXXX";
    assert_non_null(mkdtemp(temp));
    for (int f = 0; f < FAMILIES; f++) {
        char dir[200], npz[256];
        snprintf(dir, sizeof dir, "tests/golden/models/%s", families[f]);
        snprintf(npz, sizeof npz, "%s/reference.npz", dir);
        link_fixture(dir, config, temp);
        struct opened o =
            open_model(temp, &(ob_engine_options){.device = device, .kv_type = "f32"});
        one_fixture(&o, npz, "a");
        one_fixture(&o, npz, "b");
        close_model(&o);
    }
    char path[64];
    snprintf(path, sizeof path, "%s/model.safetensors", temp);
    unlink(path);
    snprintf(path, sizeof path, "%s/config.json", temp);
    unlink(path);
    assert_int_equal(rmdir(temp), 0);
}

static void fixtures_on_ref(void **state) {
    (void)state;
    fixtures_on("ref", "config.json");
}
static void fixtures_on_cpu(void **state) {
    (void)state;
    fixtures_on("cpu", "config.json");
}
static void older_configurations(void **state) {
    (void)state;
    fixtures_on("ref", "config.legacy.json");
}

/* ---- laws ------------------------------------------------------------------------------------ */

enum { LAW_TOKENS = 75 };

static void law_ids(int32_t *id, uint32_t n, uint32_t vocab, uint64_t seed) {
    for (uint32_t i = 0; i < n; i++) id[i] = (int32_t)(rng_u64(seed, i) % vocab);
}

static void same_bits(const char *law, const float *have, const float *want, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (memcmp(have + i, want + i, sizeof *have) != 0)
            fail_msg("%s: value %zu is %.9g, not %.9g", law, i, (double)have[i], (double)want[i]);
}

static void chunks_do_not_matter(struct engine *e, const int32_t *id, const float *want) {
    const uint32_t chunks[] = {1, 2, 5, 16, 64};
    for (int c = 0; c < 5; c++) {
        struct seq *seq = seq_new(e);
        float *have = run(e, seq, id, LAW_TOKENS, chunks[c]);
        same_bits("chunked = whole", have, want, (size_t)LAW_TOKENS * vocab_of(e));
        free(have);
        seq_free(&seq);
    }
}

/* Three sequences of other tokens and lengths advance beside the one that is looked at. */
static void neighbours_do_not_matter(struct engine *e, const int32_t *id, const float *want) {
    size_t vocab = vocab_of(e);
    struct seq *seq[4];
    int32_t other[3][LAW_TOKENS];
    for (int i = 0; i < 4; i++) seq[i] = seq_new(e);
    for (int i = 0; i < 3; i++) law_ids(other[i], LAW_TOKENS, (uint32_t)vocab, 100 + (uint64_t)i);
    for (uint32_t at = 0, step = 0, n; at < LAW_TOKENS; at += n, step++) {
        n = step % 3 == 2 ? 9 : 1;
        if (n > LAW_TOKENS - at) n = LAW_TOKENS - at;
        const float *rows;
        struct engine_item item[4];
        uint32_t items = 0;
        for (uint32_t i = 0; i < 3; i++)
            if (step % (i + 1) == 0 && seq_length(seq[i]) + i + 1 <= LAW_TOKENS)
                item[items++] = (struct engine_item){
                    .seq = seq[i], .id = other[i] + seq_length(seq[i]), .n = i + 1};
        item[items++] = (struct engine_item){.seq = seq[3], .id = id + at, .n = n, .logits = n};
        assert_int_equal(engine_step(e, item, items, &rows, NULL), OB_OK);
        same_bits("batch = single", rows, want + at * vocab, n * vocab);
    }
    for (int i = 0; i < 4; i++) seq_free(&seq[i]);
}

static void rollback_never_happened(struct engine *e, const int32_t *id, const float *want) {
    size_t vocab = vocab_of(e);
    struct seq *seq = seq_new(e);
    int32_t wrong[8];
    law_ids(wrong, 8, (uint32_t)vocab, 5);
    for (uint32_t at = 0; at < LAW_TOKENS; at += 15) {
        free(run(e, seq, wrong, 8, 3));
        if (!seq_truncate(seq, at)) fail_msg("rollback of 8 tokens at %u", at);
        float *have = run(e, seq, id + at, 15, 4);
        same_bits("rollback = never happened", have, want + at * vocab, 15 * vocab);
        free(have);
    }
    seq_free(&seq);
}

static void laws_on(const char *path, const char *device, const char *isa) {
    int32_t id[LAW_TOKENS];
    struct opened o =
        open_model(path, &(ob_engine_options){.device = device, .cpu_isa = isa, .threads = 1});
    law_ids(id, LAW_TOKENS, vocab_of(o.engine), 1);
    struct seq *seq = seq_new(o.engine);
    float *want = run(o.engine, seq, id, LAW_TOKENS, LAW_TOKENS);
    size_t size = (size_t)LAW_TOKENS * vocab_of(o.engine);
    for (size_t i = 0; i < size; i++) assert_true(isfinite(want[i]));
    seq_free(&seq);
    close_model(&o);

    o = open_model(path, &(ob_engine_options){.device = device, .cpu_isa = isa, .threads = 3});
    chunks_do_not_matter(o.engine, id, want);
    neighbours_do_not_matter(o.engine, id, want);
    rollback_never_happened(o.engine, id, want);
    close_model(&o);
    free(want);
}

static void laws_hold(void **state) {
    (void)state;
    for (int f = 0; f < FAMILIES; f++) {
        char dir[256];
        snprintf(dir, sizeof dir, "tests/golden/models/%s", families[f]);
        laws_on(dir, "cpu", NULL);
        laws_on(dir, "ref", NULL);
    }
    for (int isa = 0; isa < CPU_ISAS; isa++)
        if (cpu_has((enum cpu_isa)isa))
            laws_on("tests/golden/tiny.gguf", "cpu", cpu_isa_name((enum cpu_isa)isa));
}

/* The int8 arithmetic is the same in every ISA folder, so whole models are too. */
static void isas_agree(void **state) {
    (void)state;
    int32_t id[LAW_TOKENS];
    float *want = NULL;
    for (int isa = 0; isa < CPU_ISAS; isa++) {
        if (!cpu_has((enum cpu_isa)isa)) continue;
        struct opened o = open_model(
            "tests/golden/tiny.gguf",
            &(ob_engine_options){.device = "cpu", .cpu_isa = cpu_isa_name((enum cpu_isa)isa)});
        law_ids(id, LAW_TOKENS, vocab_of(o.engine), 1);
        struct seq *seq = seq_new(o.engine);
        float *have = run(o.engine, seq, id, LAW_TOKENS, LAW_TOKENS);
        if (want)
            same_bits(cpu_isa_name((enum cpu_isa)isa), have, want,
                      (size_t)LAW_TOKENS * vocab_of(o.engine));
        seq_free(&seq);
        close_model(&o);
        if (want)
            free(have);
        else
            want = have;
    }
    free(want);
}

/* 8-bit activations cost something; this bounds how much on random weights. */
static void cpu_is_near_ref(void **state) {
    (void)state;
    int32_t id[LAW_TOKENS];
    float *out[2];
    uint32_t vocab = 0;
    for (int i = 0; i < 2; i++) {
        struct opened o =
            open_model("tests/golden/tiny.gguf", &(ob_engine_options){.device = i ? "cpu" : "ref"});
        vocab = vocab_of(o.engine);
        law_ids(id, LAW_TOKENS, vocab, 1);
        struct seq *seq = seq_new(o.engine);
        out[i] = run(o.engine, seq, id, LAW_TOKENS, LAW_TOKENS);
        seq_free(&seq);
        close_model(&o);
    }
    double error = 0, square = 0;
    for (size_t i = 0; i < (size_t)LAW_TOKENS * vocab; i++) {
        double d = (double)out[1][i] - (double)out[0][i];
        error += d * d;
        square += (double)out[0][i] * (double)out[0][i];
    }
    assert_true(error / square < 1e-3);
    free(out[0]);
    free(out[1]);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void full_memory_changes_nothing(void **state) {
    (void)state;
    /* two pages: 2 layers x 64 positions x (128 + 128) x 2 bytes each */
    struct opened o =
        open_model("tests/golden/tiny.gguf",
                   &(ob_engine_options){.device = "cpu", .kv_memory = 2 * 65536, .context = 128});
    int32_t id[130];
    const float *rows;
    ob_error error;
    law_ids(id, 130, vocab_of(o.engine), 3);
    assert_int_equal(engine_capacity(o.engine), 128);
    struct seq *a = seq_new(o.engine), *b = seq_new(o.engine);
    struct engine_item item = {.seq = a, .id = id, .n = 60, .logits = 1},
                       other = {.seq = b, .id = id, .n = 65};
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_OK);
    assert_false(engine_fits(o.engine, &other, 1));
    assert_int_equal(engine_step(o.engine, &other, 1, &rows, &error), OB_ERR_LIMIT);
    assert_int_equal(seq_length(b), 0);
    other.n = 64;
    assert_int_equal(engine_step(o.engine, &other, 1, &rows, &error), OB_OK);
    item = (struct engine_item){.seq = a, .id = id + 60, .n = 70};
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_ERR_LIMIT);
    seq_free(&b);
    item.n = 69;
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error),
                     OB_ERR_LIMIT); /* 129 > context */
    item.n = 68;
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_OK);
    id[0] = -1;
    assert_true(seq_truncate(a, 0));
    item = (struct engine_item){.seq = a, .id = id, .n = 1};
    assert_int_equal(engine_step(o.engine, &item, 1, &rows, &error), OB_ERR_ARGUMENT);
    seq_free(&a);
    close_model(&o);
}

static void bad_options_are_named(void **state) {
    (void)state;
    static const struct {
        ob_engine_options options;
        const char *says;
    } bad[] = {
        {{.device = "abacus"}, "device: unknown value \"abacus\""},
        {{.kv_type = "f8"}, "kv-type: unknown value \"f8\""},
        {{.device = "cpu", .cpu_isa = "mmx"}, "mmx"},
        {{.kv_memory = 1000}, "kv-memory: 1000 bytes hold no page"},
        {{.context = 4096, .kv_memory = 65536}, "context: 4096 tokens do not fit"},
        {{.parallel = 100000}, "parallel is at most"},
    };
    struct source *source;
    assert_int_equal(source_open("tests/golden/tiny.gguf", &source, NULL), OB_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct engine *engine;
        ob_error error;
        char line[1024];
        assert_int_not_equal(engine_open(source, &bad[i].options, &engine, &error), OB_OK);
        assert_null(engine);
        if (!strstr(ob_error_line(&error, line, sizeof line), bad[i].says)) fail_msg("%s", line);
    }
    source_close(&source);
}

/* ---- real files ------------------------------------------------------------------------------ */

struct golden {
    uint32_t positions, k, vocab;
    int32_t *id;
    char *rows; /* f32 deviation, then k pairs */
    char *file;
};

static bool read_golden(const char *name, struct golden *g) {
    char path[256];
    size_t n;
    snprintf(path, sizeof path, "tests/golden/logits/%s.bin", name);
    if (os_read_file(path, 1 << 24, &g->file, &n, NULL) != OB_OK) return false;
    memcpy(&g->positions, g->file + 4, 4);
    memcpy(&g->k, g->file + 8, 4);
    memcpy(&g->vocab, g->file + 12, 4);
    g->id = malloc(g->positions * sizeof *g->id);
    memcpy(g->id, g->file + 16, g->positions * sizeof *g->id);
    g->rows = g->file + 16 + g->positions * sizeof *g->id;
    return n == 16 + (size_t)g->positions * (4 + 4 + 8 * (size_t)g->k);
}

/* The FP32 device against transformers, which decoded the same file. */
static void real_model(const char *name) {
    char *dir = os_models_dir(), path[1024];
    struct golden g;
    snprintf(path, sizeof path, "%s/%s.gguf", dir, name);
    free(dir);
    if (!os_is_file(path)) {
        print_message("SKIPPED: %s is not there (scripts/fetch-model %s)\n", path, name);
        return;
    }
    assert_true(read_golden(name, &g));
    struct opened o = open_model(path, &(ob_engine_options){.device = "ref"});
    assert_int_equal(vocab_of(o.engine), g.vocab);
    struct seq *seq = seq_new(o.engine);
    float *have = run(o.engine, seq, g.id, g.positions, g.positions);
    double worst = 0;
    for (uint32_t p = 0; p < g.positions; p++) {
        const char *row = g.rows + (size_t)p * (4 + 8 * (size_t)g.k);
        const float *logits = have + (size_t)p * g.vocab;
        float std;
        memcpy(&std, row, 4);
        for (uint32_t i = 0; i < g.k; i++) {
            int32_t id;
            float want;
            memcpy(&id, row + 4 + 8 * i, 4);
            memcpy(&want, row + 8 + 8 * i, 4);
            double off = fabs((double)logits[id] - (double)want) / (double)std;
            if (off > worst) worst = off;
            if (!(off <= 2e-3))
                fail_msg("%s: position %u, token %d: %g, not %g", name, p, (int)id,
                         (double)logits[id], (double)want);
            if (i == 0 && (int32_t)argmax(logits, g.vocab) != id &&
                logits[argmax(logits, g.vocab)] - want >= 1e-3f)
                fail_msg("%s: position %u: token %u, not %d", name, p, argmax(logits, g.vocab),
                         (int)id);
        }
    }
    print_message("%s: largest difference %.2g deviations\n", name, worst);
    seq_free(&seq);
    close_model(&o);
    free(have);
    free(g.id);
    free(g.file);
}

static void qwen2_is_what_transformers_computes(void **state) {
    (void)state;
    real_model("qwen2.5-coder-0.5b");
}
static void gemma3_is_what_transformers_computes(void **state) {
    (void)state;
    real_model("gemma3-270m");
}

int main(int argc, char **argv) {
    const struct CMUnitTest small[] = {
        cmocka_unit_test(fixtures_on_ref),
        cmocka_unit_test(fixtures_on_cpu),
        cmocka_unit_test(older_configurations),
        cmocka_unit_test(laws_hold),
        cmocka_unit_test(isas_agree),
        cmocka_unit_test(cpu_is_near_ref),
        cmocka_unit_test(full_memory_changes_nothing),
        cmocka_unit_test(bad_options_are_named),
    };
    const struct CMUnitTest real[] = {
        cmocka_unit_test(qwen2_is_what_transformers_computes),
        cmocka_unit_test(gemma3_is_what_transformers_computes),
    };
    if (argc > 1 && strcmp(argv[1], "real") == 0) return cmocka_run_group_tests(real, NULL, NULL);
    return cmocka_run_group_tests(small, NULL, NULL);
}
