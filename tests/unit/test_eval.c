/* SPDX-License-Identifier: Apache-2.0
 *
 * test_eval.c: the arithmetic of eval/ against figures written out, the reference's table against
 * bytes that were damaged, and the batches of onebit.h against one sequence at a time. */
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
#include "decode/decode.h"
#include "eval/table.h"
#include "family.h"
#include "format/source.h"
#include "tempdir.h"

#define MODEL "tests/golden/tiny.gguf"

static void near(double got, double want, double within) {
    if (!(fabs(got - want) <= within)) fail_msg("%.12g is not %.12g", got, want);
}

/* ---- statistics ------------------------------------------------------------------------------ */

static void test_stats(void **state) {
    (void)state;
    const double x[] = {1, 2, 3, 4}, y[] = {2, 4, 6, 9};
    struct eval_stat mean = eval_mean(x, 4);
    near(mean.value, 2.5, 0);
    near(mean.error, sqrt(1.25 / 3), 1e-15); /* variance 1.25 over n, error over n - 1 */
    near(eval_covariance(x, y, 4), (11.5 / 4) / 3, 1e-15);
    near(eval_mean(x, 1).error, 0, 0);
    near(eval_mean(x, 0).value, 0, 0);
    near(eval_share(3, 4).value, 0.75, 0);
    near(eval_share(3, 4).error, sqrt(0.75 * 0.25 / 3), 1e-15);
    near(eval_share(0, 0).error, 0, 0);
}

static void test_quantiles(void **state) {
    (void)state;
    double x[] = {5, 1, 4, 2, 3};
    eval_sort(x, 5);
    near(eval_quantile(x, 5, 0), 1, 0);
    near(eval_quantile(x, 5, 0.5), 3, 0);
    near(eval_quantile(x, 5, 0.9), 4.6, 1e-12);
    near(eval_quantile(x, 5, 1), 5, 0);
    near(eval_quantile(x, 4, 0.5), 2.5, 0);
    near(eval_quantile(x, 1, 0.3), 1, 0);
}

static void test_log_sum(void **state) {
    (void)state;
    enum { N = 10007 };
    static float x[N];
    for (size_t scale = 1; scale < 200; scale *= 5) {
        double sum = 0, got, max = -1e30;
        uint32_t top, want = 0;
        for (size_t i = 0; i < N; i++) {
            x[i] = (float)((rng_unit(scale, i) - 0.3) * (double)scale);
            if ((double)x[i] > max) max = (double)x[i], want = (uint32_t)i;
        }
        for (size_t i = 0; i < N; i++) sum += exp((double)x[i] - max);
        assert_true(eval_log_sum(x, N, &got, &top));
        near(got, max + log(sum), 1e-6);
        assert_int_equal(top, want);
    }
    double got;
    uint32_t top;
    for (size_t at = 0; at < N; at += 1000) { /* also in the tail behind whole lanes */
        float was = x[at];
        x[at] = NAN;
        assert_false(eval_log_sum(x, N, &got, &top));
        x[at] = -INFINITY;
        assert_false(eval_log_sum(x, N, &got, &top));
        x[at] = was;
    }
    x[N - 1] = NAN;
    assert_false(eval_log_sum(x, N, &got, &top));
}

/* ---- divergence ------------------------------------------------------------------------------ */

enum { VOCAB = 19, CTX = 8, ROWS = 3, CHUNKS = 2 };

static double exps[65536];

/* Two chunks of eight tokens; logits of a row by its number. */
static int32_t ids[CHUNKS * CTX] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18};
static const struct eval_chunks chunks = {
    .id = ids, .n = CHUNKS * CTX, .bos = 3, .ctx = CTX, .chunks = CHUNKS, .rows = ROWS};

static void logits_of(uint32_t row, float sharp, float out[VOCAB]) {
    for (uint32_t i = 0; i < VOCAB; i++) out[i] = sharp * (float)rng_unit(row, i);
}

static char *write_table(const char *dir, float sharp) {
    static char path[600];
    snprintf(path, sizeof path, "%s/table", dir);
    struct eval_table_head head = {.model = "test", .vocab = VOCAB, .text = 77, .chunks = &chunks};
    struct eval_table_writer *w;
    ob_error error;
    uint32_t done;
    assert_int_equal(eval_table_create(path, &head, &w, &done, &error), OB_OK);
    for (uint32_t c = done; c < CHUNKS; c++) {
        for (uint32_t r = 0; r < ROWS; r++) {
            float logits[VOCAB];
            logits_of(c * ROWS + r, sharp, logits);
            assert_true(eval_table_put(w, c, r, logits));
        }
        assert_int_equal(eval_table_end(w, c, &error), OB_OK);
    }
    assert_int_equal(eval_table_finish(&w, &error), OB_OK);
    return path;
}

static void test_compare(void **state) {
    const char *dir = *state;
    static const float sharpness[] = {0.5f, 2, 8, 32};
    for (size_t k = 0; k < sizeof sharpness / sizeof *sharpness; k++) {
        float sharp = sharpness[k];
        char *path = write_table(dir, sharp);
        struct eval_table *t;
        ob_error error;
        assert_int_equal(eval_table_open(path, &t, &error), OB_OK);
        assert_int_equal(eval_table_chunks(t), CHUNKS);
        for (uint32_t c = 0; c < CHUNKS; c++) {
            assert_int_equal(eval_table_check(t, c, &error), OB_OK);
            for (uint32_t r = 0; r < ROWS; r++) {
                float p[VOCAB], q[VOCAB];
                double lp, lq, kld = 0;
                uint32_t top_p, top_q;
                struct eval_table_row ref;
                struct eval_position got;
                logits_of(c * ROWS + r, sharp, p);
                logits_of(c * ROWS + r + 100, sharp, q);
                assert_true(eval_log_sum(p, VOCAB, &lp, &top_p));
                assert_true(eval_log_sum(q, VOCAB, &lq, &top_q));
                for (uint32_t i = 0; i < VOCAB; i++)
                    if ((double)p[i] - lp > EVAL_TABLE_FLOOR)
                        kld += exp((double)p[i] - lp) * ((double)p[i] - lp - (double)q[i] + lq);
                int32_t target = eval_chunks_target(&chunks, c, r);
                assert_int_equal(target, ids[c * CTX + CTX / 2 + r + 1]);
                eval_table_row(t, c, r, &ref);
                assert_true(eval_compare(&ref, VOCAB, q, target, exps, &got));
                near(got.kld, kld, 5e-5 * (1 + kld));
                near(got.nll, lq - (double)q[target], 1e-9);
                near(got.nll_ref, lp - (double)p[target], 1e-5);
                assert_int_equal(got.same_top, top_p == top_q);
                assert_true(eval_compare(&ref, VOCAB, p, target, exps, &got));
                near(got.kld, 0, 1e-4); /* what 16 bits cost */
                assert_true(got.same_top);
                q[5] = NAN;
                assert_false(eval_compare(&ref, VOCAB, q, target, exps, &got));
            }
        }
        eval_table_close(&t);
        unlink(path);
    }
}

static void test_divergence(void **state) {
    (void)state;
    const struct eval_position at[4] = {{0.1, log(2), log(2), true},
                                        {0.2, log(4), log(2), true},
                                        {0.3, log(2), log(4), true},
                                        {0.4, log(4), log(4), false}};
    struct eval_divergence d;
    assert_int_equal(eval_divergence(at, 4, &d, NULL), OB_OK);
    near(d.kld.value, 0.25, 1e-15);
    near(d.kld.error, sqrt(0.0125 / 3), 1e-15);
    near(d.kld_median, 0.25, 1e-15);
    near(d.kld_max, 0.4, 0);
    near(d.kld_min, 0.1, 0);
    near(d.kld_quantile[3], 0.37, 1e-12); /* 90% */
    near(d.ppl.value, exp((log(2) + log(4)) / 2), 1e-12);
    near(d.ppl_ratio.value, 1, 1e-12);
    near(d.correlation, 0, 1e-12);
    near(d.ppl_log_ratio.error, sqrt(2) * eval_mean((double[]){0, log(2), 0, log(2)}, 4).error,
         1e-12);
    near(d.p_difference.value, 0, 1e-15);
    near(d.p_rms.value, sqrt(0.125 / 4), 1e-15);
    near(d.p_max, 0.25, 1e-15);
    near(d.p_min, -0.25, 1e-15);
    near(d.same_top.value, 0.75, 0);
    ob_error error;
    assert_int_equal(eval_divergence(at, 0, &d, &error), OB_ERR_ARGUMENT);
}

/* ---- the table's file ------------------------------------------------------------------------ */

static char *read_all(const char *path, size_t *n) {
    char *bytes;
    assert_int_equal(os_read_file(path, 1 << 20, &bytes, n, NULL), OB_OK);
    return bytes;
}

static void test_damage(void **state) {
    const char *dir = *state;
    size_t n;
    char *path = write_table(dir, 4), *bytes = read_all(path, &n);
    for (size_t i = 0; i < n; i++) { /* any byte changed is found out */
        struct eval_table *t;
        ob_error error;
        bytes[i] ^= 0x41;
        ob_status s = eval_table_open_memory(bytes, n, "damaged", &t, &error);
        bool whole = s == OB_OK && eval_table_chunks(t) == CHUNKS;
        for (uint32_t c = 0; s == OB_OK && c < CHUNKS; c++) s = eval_table_check(t, c, &error);
        if (s == OB_OK && whole) fail_msg("byte %zu of %zu is not missed", i, n);
        eval_table_close(&t);
        bytes[i] ^= 0x41;
    }
    for (size_t size = 0; size < n; size++) { /* cut anywhere */
        struct eval_table *t;
        ob_error error;
        ob_status s = eval_table_open_memory(bytes, size, "cut", &t, &error);
        if (s == OB_OK) {
            assert_true(eval_table_chunks(t) < CHUNKS);
            assert_int_equal(eval_table_check(t, eval_table_chunks(t), &error), OB_ERR_FORMAT);
        }
        eval_table_close(&t);
    }
    free(bytes);
    unlink(path);
}

/* What only a forger does: the checksum is right, the rows are not. */
static void test_forged(void **state) {
    const char *dir = *state;
    enum { FIRST = TABLE_FIXED + sizeof ids + 8 + TABLE_CHUNK, LISTED = FIRST + TABLE_ROW };
    static const struct {
        size_t at;
        uint8_t value;
        const char *message;
    } forged[] = {
        {FIRST, 18, "count"}, /* 19 bits are set */
        {FIRST + 4, VOCAB, "most likely"},
        {FIRST + 11, 0x7f, "log probability"}, /* the sign and exponent of the target */
        {LISTED + 2, 0x0b, "count"},           /* token 19 of 0..18, in the place of 18 */
    };
    size_t n;
    char *path = write_table(dir, 4), *bytes = read_all(path, &n);
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        uint8_t *p = (uint8_t *)bytes + forged[i].at, was = *p;
        struct eval_table *t;
        ob_error error;
        *p = forged[i].value;
        uint8_t *rows = (uint8_t *)bytes + FIRST;
        table_set(rows - 8, 8, eval_hash(rows, table_get(rows - TABLE_CHUNK, 8)));
        assert_int_equal(eval_table_open_memory(bytes, n, "forged", &t, &error), OB_OK);
        assert_int_equal(eval_table_check(t, 0, &error), OB_ERR_FORMAT);
        if (!strstr(error.message, forged[i].message)) fail_msg("%zu: %s", i, error.message);
        eval_table_close(&t);
        *p = was;
    }
    free(bytes);
    unlink(path);
}

static void test_resume(void **state) {
    const char *dir = *state;
    size_t n, again;
    char *path = write_table(dir, 4), *whole = read_all(path, &n);
    for (size_t cut = 1; cut < n; cut += 13) {
        char *bytes;
        size_t left = n - cut;
        if (left < TABLE_FIXED + sizeof ids + 8) break; /* torn within the head: refused */
        assert_true(os_truncate(path, left));
        bytes = read_all(write_table(dir, 4), &again);
        assert_int_equal(again, n);
        assert_memory_equal(bytes, whole, n);
        free(bytes);
    }
    struct eval_table_head other = {
        .model = "other", .vocab = VOCAB, .text = 77, .chunks = &chunks};
    struct eval_table_writer *w;
    uint32_t done;
    ob_error error;
    assert_int_equal(eval_table_create(path, &other, &w, &done, &error), OB_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "another model"));
    assert_null(w);
    free(whole);
    unlink(path);
}

/* ---- the journal ----------------------------------------------------------------------------- */

static void test_journal(void **state) {
    const char *dir = *state;
    struct eval_journal *j;
    json_t *records, *head = json_pack("{s:s}", "eval", "test"),
                     *one = json_pack("{s:f}", "x", 0.1);
    ob_error error;
    char path[600];
    snprintf(path, sizeof path, "%s/journal", dir);
    for (size_t n = 0; n < 3; n++) {
        assert_int_equal(eval_journal_open(path, head, &j, &records, &error), OB_OK);
        assert_int_equal(json_array_size(records), n);
        if (n) assert_true(json_equal(json_array_get(records, n - 1), one));
        assert_int_equal(eval_journal_add(j, one, &error), OB_OK);
        eval_journal_close(&j);
        json_decref(records);
    }
    size_t size;
    free(read_all(path, &size));
    assert_true(os_truncate(path, size - 3)); /* torn within the last line */
    assert_int_equal(eval_journal_open(path, head, &j, &records, &error), OB_OK);
    assert_int_equal(json_array_size(records), 2);
    assert_int_equal(eval_journal_add(j, one, &error), OB_OK);
    eval_journal_close(&j);
    json_decref(records);
    json_object_set_new(head, "model", json_string("other"));
    assert_int_equal(eval_journal_open(path, head, &j, &records, &error), OB_ERR_ARGUMENT);
    assert_null(j);
    json_decref(records);
    assert_int_equal(eval_journal_open(NULL, head, &j, &records, &error), OB_OK);
    assert_int_equal(eval_journal_add(j, one, &error), OB_OK);
    json_decref(records);
    json_decref(head);
    json_decref(one);
    unlink(path);
}

/* ---- questions ------------------------------------------------------------------------------- */

static void test_questions(void **state) {
    (void)state;
    static const struct {
        const char *line, *message;
    } bad[] = {
        {"", "no JSON"},
        {"[1]", "no JSON object"},
        {"{\"choices\": [\"a\", \"b\"], \"answer\": 0}", "missing or no string"},
        {"{\"context\": \"c\", \"choices\": [\"a\"], \"answer\": 0}", "2 to 64"},
        {"{\"context\": \"c\", \"choices\": [\"a\", \"\"], \"answer\": 0}", "empty"},
        {"{\"context\": \"c\", \"choices\": [\"a\", 3], \"answer\": 0}", "no string"},
        {"{\"context\": \"c\", \"choices\": [\"a\", \"b\"], \"answer\": 2}", "index"},
        {"{\"context\": \"c\", \"choices\": [\"a\", \"b\"], \"answer\": true}", "index"},
        {"{\"context\": \"c\", \"choices\": [\"a\", \"b\"], \"answer\": 0, \"ending\": 1}",
         "no str"},
    };
    struct eval_question q;
    ob_error error;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(eval_question_read(bad[i].line, strlen(bad[i].line), &q, &error),
                         OB_ERR_FORMAT);
        assert_non_null(strstr(error.message, bad[i].message));
    }
    const char *good =
        "{\"context\": \"c\", \"choices\": [\"abcd\", \"b\", \"xx\"], \"answer\": 2}";
    assert_int_equal(eval_question_read(good, strlen(good), &q, &error), OB_OK);
    struct eval_score score = {.log = {-4, -2, -3}, .tokens = {4, 1, 2}, .bytes = {40, 1, 100}};
    assert_int_equal(eval_pick(&q, &score, EVAL_SUM), 1);
    assert_int_equal(eval_pick(&q, &score, EVAL_TOKENS), 0);
    assert_int_equal(eval_pick(&q, &score, EVAL_BYTES), 2);
    eval_question_free(&q);
}

/* ---- batches and chunks on the tiny model ---------------------------------------------------- */

static ob_engine *open_engine(uint32_t parallel, uint32_t step_logits) {
    ob_engine *engine;
    ob_error error;
    ob_engine_options options = {.model = MODEL,
                                 .threads = 2,
                                 .context = 256,
                                 .parallel = parallel,
                                 .step_tokens = 64,
                                 .step_logits = step_logits};
    assert_int_equal(ob_engine_open(&options, &engine, &error), OB_OK);
    return engine;
}

struct kept {
    uint32_t vocab;
    float *of[3]; /* by part */
    size_t seen[3];
};

static ob_status keep_rows(void *user, uint32_t part, size_t first, size_t n, const float *logits,
                           ob_error *error) {
    struct kept *r = user;
    (void)error;
    assert_int_equal(first, r->seen[part]);
    memcpy(r->of[part] + first * r->vocab, logits, n * r->vocab * sizeof *logits);
    r->seen[part] += n;
    return OB_OK;
}

static void test_batch(void **state) {
    (void)state;
    enum { N = 150 };
    int32_t id[3][N];
    ob_engine *engine = open_engine(3, 7);
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    assert_true(info.token_bytes < info.weight_bytes && info.token_bytes > info.weight_bytes / 4);
    assert_true(info.token_products > 0 && info.logits_products > 0);
    float *want = malloc(N * info.vocab * sizeof *want);
    struct kept rows = {.vocab = info.vocab};
    ob_batch_part part[3];
    for (uint32_t i = 0; i < 3; i++) {
        size_t n = N - 20 * i;
        for (size_t k = 0; k < n; k++) id[i][k] = (int32_t)(rng_u64(i, k) % info.vocab);
        part[i] = (ob_batch_part){.sequence = i, .id = id[i], .n = n, .logits = n - 30 * i};
        rows.of[i] = malloc(n * info.vocab * sizeof(float));
    }
    ob_batch *batch;
    ob_error error;
    double seconds;
    assert_int_equal(ob_batch_open(engine, 3, &batch, &error), OB_OK);
    for (uint32_t chunk = 0; chunk < 2; chunk++) {
        memset(rows.seen, 0, sizeof rows.seen);
        assert_int_equal(ob_batch_run(batch, part, 3, chunk, keep_rows, &rows, &seconds, &error),
                         OB_OK);
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(rows.seen[i], part[i].logits);
            assert_int_equal(ob_eval(engine, part[i].id, part[i].n, 0, want, NULL, &error), OB_OK);
            assert_memory_equal(rows.of[i], want + (part[i].n - part[i].logits) * info.vocab,
                                part[i].logits * info.vocab * sizeof *want);
        }
        /* A prefix is kept, what follows is as computed in one go. */
        assert_int_equal(ob_batch_keep(batch, 1, 50), 50);
        rows.seen[0] = 0;
        ob_batch_part rest = {.sequence = 1, .id = id[1] + 50, .n = part[1].n - 50, .logits = 1};
        assert_int_equal(ob_batch_run(batch, &rest, 1, 0, keep_rows, &rows, NULL, &error), OB_OK);
        assert_memory_equal(rows.of[0], rows.of[1] + (part[1].logits - 1) * info.vocab,
                            info.vocab * sizeof *want);
        for (uint32_t i = 0; i < 3; i++) assert_int_equal(ob_batch_keep(batch, i, 0), 0);
    }
    part[1].sequence = 0;
    assert_int_equal(ob_batch_run(batch, part, 2, 0, NULL, NULL, NULL, &error), OB_ERR_ARGUMENT);
    part[1].sequence = 3;
    assert_int_equal(ob_batch_run(batch, part, 2, 0, NULL, NULL, NULL, &error), OB_ERR_ARGUMENT);
    part[0].n = 0;
    assert_int_equal(ob_batch_run(batch, part, 1, 0, NULL, NULL, NULL, &error), OB_ERR_ARGUMENT);
    ob_batch_close(&batch);
    assert_int_equal(ob_batch_open(engine, 4, &batch, &error), OB_ERR_ARGUMENT);
    for (uint32_t i = 0; i < 3; i++) free(rows.of[i]);
    free(want);
    ob_engine_close(&engine);
}

/* A window model cannot go back to what its window has left. */
static void test_window(void **state) {
    enum { N = 200 };
    int32_t id[N];
    struct source *source;
    struct engine *engine;
    struct loop *loop;
    ob_batch *batch;
    ob_error error;
    const ob_engine_options options = {.threads = 1, .context = 256, .parallel = 1};
    assert_int_equal(source_open(family_unpack("gemma3_text", *state), &source, &error), OB_OK);
    assert_int_equal(engine_open(source, &options, &engine, &error), OB_OK);
    assert_int_equal(loop_open(engine, NULL, &loop, &error), OB_OK);
    assert_int_equal(batch_open(loop, engine, 1, &batch, &error), OB_OK);
    uint32_t vocab = engine_model(engine)->hp.vocab;
    for (uint32_t i = 0; i < N; i++) id[i] = (int32_t)(rng_u64(9, i) % vocab);
    struct kept rows = {.vocab = vocab};
    for (int i = 0; i < 3; i++) rows.of[i] = malloc(N * vocab * sizeof(float));
    ob_batch_part all = {.id = id, .n = N, .logits = N};
    assert_int_equal(batch_run(batch, &all, 1, 0, keep_rows, &rows, NULL, &error), OB_OK);
    float *want = rows.of[0];
    assert_int_equal(batch_keep(batch, 0, N + 1), N);
    assert_int_equal(batch_keep(batch, 0, N - 5), N - 5); /* the window is still there */
    ob_batch_part last = {.id = id + N - 5, .n = 5, .logits = 5};
    rows.of[0] = rows.of[1];
    rows.seen[0] = 0;
    assert_int_equal(batch_run(batch, &last, 1, 1, keep_rows, &rows, NULL, &error), OB_OK);
    assert_memory_equal(rows.of[0], want + (N - 5) * vocab, 5 * vocab * sizeof *want);
    assert_int_equal(batch_keep(batch, 0, 70), 0);
    rows.seen[0] = 0;
    assert_int_equal(batch_run(batch, &all, 1, 0, keep_rows, &rows, NULL, &error), OB_OK);
    assert_memory_equal(rows.of[0], want, N * vocab * sizeof *want);
    rows.of[0] = want;
    for (int i = 0; i < 3; i++) free(rows.of[i]);
    batch_close(&batch);
    loop_close(&loop);
    engine_close(&engine);
    source_close(&source);
    tempdir_empty(*state);
}

struct scored {
    const struct eval_chunks *chunks;
    uint32_t vocab, ended;
    double nll[200];
};

static bool score_row(void *user, uint32_t chunk, uint32_t row, const float *logits) {
    struct scored *s = user;
    double log_sum;
    uint32_t top;
    if (!eval_log_sum(logits, s->vocab, &log_sum, &top)) return false;
    s->nll[chunk * s->chunks->rows + row] =
        log_sum - (double)logits[eval_chunks_target(s->chunks, chunk, row)];
    return true;
}

static ob_status score_end(void *user, uint32_t chunk, ob_error *error) {
    struct scored *s = user;
    (void)error;
    assert_int_equal(chunk, s->ended++);
    return OB_OK;
}

static void test_chunks(void **state) {
    (void)state;
    ob_engine *engine = open_engine(4, 0);
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    struct buf text = BUF_INIT;
    for (int i = 0; i < 200; i++) buf_printf(&text, "word %d of a text, ", i * 7919);
    for (uint32_t stride = 0; stride < 10; stride += 5) {
        struct eval_chunks c;
        ob_error error;
        assert_int_equal(eval_chunks_make(engine, text.p, text.n, 16, stride, 9, &c, &error),
                         OB_OK);
        assert_int_equal(c.chunks, 9);
        assert_int_equal(c.rows, stride ? 5 : 7);
        if (stride) c.bos = 7; /* as a tokenizer that adds one would have it */
        struct scored s = {.chunks = &c, .vocab = info.vocab};
        const struct eval_run run = {.user = &s, .row = score_row, .end = score_end};
        assert_int_equal(eval_chunks_run(engine, &c, 0, &run, &error), OB_OK);
        assert_int_equal(s.ended, 9);
        float *logits = malloc(16 * info.vocab * sizeof *logits);
        for (uint32_t k = 0; k < 9; k++) { /* the same by hand */
            int32_t id[16];
            memcpy(id, c.id + k * (stride ? stride : 16), sizeof id);
            int32_t last = id[15];
            if (c.bos >= 0) id[0] = c.bos;
            assert_int_equal(ob_eval(engine, id, 16, 0, logits, NULL, &error), OB_OK);
            double log_sum;
            uint32_t top;
            assert_true(eval_log_sum(logits + 14 * info.vocab, info.vocab, &log_sum, &top));
            near(s.nll[(k + 1) * c.rows - 1],
                 log_sum - (double)logits[14 * info.vocab + (uint32_t)last], 1e-9);
        }
        free(logits);
        eval_chunks_free(&c);
    }
    struct eval_chunks c;
    ob_error error;
    assert_int_equal(eval_chunks_make(engine, "short", 5, 16, 0, 0, &c, &error), OB_ERR_LIMIT);
    assert_int_equal(eval_chunks_make(engine, text.p, text.n, 7, 0, 0, &c, &error),
                     OB_ERR_ARGUMENT);
    assert_int_equal(eval_chunks_make(engine, text.p, text.n, 16, 16, 0, &c, &error),
                     OB_ERR_ARGUMENT);
    buf_free(&text);
    ob_engine_close(&engine);
}

static int setup(void **state) {
    for (uint32_t i = 0; i < 65536; i++) exps[i] = exp(eval_table_log(i));
    return tempdir_make(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stats),      cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_log_sum),    cmocka_unit_test(test_compare),
        cmocka_unit_test(test_divergence), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_forged),     cmocka_unit_test(test_resume),
        cmocka_unit_test(test_journal),    cmocka_unit_test(test_questions),
        cmocka_unit_test(test_batch),      cmocka_unit_test(test_window),
        cmocka_unit_test(test_chunks),
    };
    return cmocka_run_group_tests(tests, setup, tempdir_remove);
}
