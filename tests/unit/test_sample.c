/* SPDX-License-Identifier: Apache-2.0
 * test_sample.c: each sampler's set against its definition written out plainly, the distribution of
 * whole chains, seeds, orders, and settings and logits that must be refused. Seeds are fixed. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/cpu.h"
#include "sample/sample.h"
#include "sample/sampler.h"

enum { MAX_VOCAB = 3000 };

static const ob_sampling plain = {
    .temperature = 1, .top_p = 1, .repeat_penalty = 1, .typical_p = 1, .dry_base = 1.75f,
    .dry_penalty_last_n = 64, .dry_allowed_length = 2};

/* Vocabularies without texts, of every size that is needed; chains keep pointers to them. */
static const struct sample_vocab *numbers(uint32_t size) {
    static struct sample_vocab all[MAX_VOCAB + 1];
    all[size] = (struct sample_vocab){.size = size, .context = 4096, .end = -1};
    return &all[size];
}

static struct sample_chain *open_chain(ob_sampling settings, uint32_t vocab) {
    struct sample_chain *chain;
    ob_error error = {0};
    if (sample_open(&settings, numbers(vocab), &chain, &error) != OB_OK)
        fail_msg("%s: %s", error.where, error.message);
    return chain;
}

static int32_t token(struct sample_chain *chain, const float *row, const int32_t *history,
                     size_t n) {
    struct sample_input input = {.logits = row, .history = history, .history_n = n};
    return sample_token(chain, &input);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static struct sample_item items[MAX_VOCAB + 1];
static float weights[MAX_VOCAB], logits[MAX_VOCAB], owns[MAX_VOCAB];
static float blocks[MAX_VOCAB / SAMPLE_BLOCK + 1];
static uint32_t wheres[MAX_VOCAB];

/* Logits with many ties (few distinct values) when `steps` is small. */
static void random_logits(uint64_t seed, uint32_t vocab, double spread, double steps) {
    for (uint32_t i = 0; i < vocab; i++) {
        double x =
            (rng_unit(seed, i) + rng_unit(seed + 1, i) + rng_unit(seed + 2, i) - 1.5) * spread;
        logits[i] = (float)(round(x * steps) / steps);
        if (i && rng_u64(seed + 3, i) % 20 == 0) logits[i] = -INFINITY;
    }
}

static struct sample_list list_of(uint32_t vocab) {
    struct sample_list list = {.item = items, .weight = weights, .where = wheres, .own = owns,
                               .block = blocks, .vocab = vocab};
    sample_passes()->max(logits, vocab, blocks);
    sample_list_fill(&list, logits);
    return list;
}

static int best_first(const void *a, const void *b) {
    const struct sample_item *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return x->id < y->id ? -1 : 1;
}

/* The candidates best first, and their probabilities. */
static uint32_t define(uint32_t vocab, struct sample_item *out, double *p) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < vocab; i++)
        if (logits[i] > -INFINITY) out[n++] = (struct sample_item){logits[i], (int32_t)i};
    qsort(out, n, sizeof *out, best_first);
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += p[i] = exp((double)out[i].logit - (double)out[0].logit);
    for (uint32_t i = 0; i < n; i++) p[i] /= sum;
    return n;
}

/* The list holds exactly the first n of `want`, and its sorted part is in order. */
static void assert_is_top(const struct sample_list *list, const struct sample_item *want,
                          uint32_t n) {
    assert_int_equal(list->n, n);
    assert_true(list->sorted <= n);
    for (uint32_t i = 0; i < list->sorted; i++) assert_int_equal(list->item[i].id, want[i].id);
    struct sample_item *got = malloc((n + 1) * sizeof *got); /* a list may be empty */
    memcpy(got, list->item, n * sizeof *got);
    qsort(got, n, sizeof *got, best_first);
    for (uint32_t i = 0; i < n; i++) assert_int_equal(got[i].id, want[i].id);
    free(got);
}

static void each_set_is_its_definition(void **state) {
    (void)state;
    static struct sample_item want[MAX_VOCAB];
    static double p[MAX_VOCAB];
    for (uint64_t round = 0; round < 400; round++) {
        uint32_t vocab = 1 + (uint32_t)(rng_u64(100, round) % (round % 4 ? 60 : MAX_VOCAB));
        double spread = round % 3 == 0 ? 1 : round % 3 == 1 ? 12 : 90;
        random_logits(round * 10, vocab, spread, round % 2 ? 4 : 1e6);
        uint32_t n = define(vocab, want, p);
        ob_sampling s = plain;
        struct sample_context context = {.settings = &s};

        s.top_k = 1 + (int32_t)(rng_u64(101, round) % (vocab + 3));
        uint32_t top_k = (uint32_t)s.top_k < n ? (uint32_t)s.top_k : n;
        struct sample_list list = list_of(vocab);
        if (round % 3 == 0) sample_list_gather(&list); /* else the sampler meets it whole */
        if (round % 3 == 0) assert_int_equal(list.n, n);
        sampler_top_k.apply(&list, &context);
        assert_is_top(&list, want, top_k);

        s.top_p = (float)rng_unit(102, round);
        if (round % 10 == 0) s.top_p = round % 20 ? 0 : 0.99999f;
        double sum = 0;
        uint32_t top_p = 0;
        while (top_p < n && (top_p == 0 || sum < (double)s.top_p)) sum += p[top_p++];
        /* Where the sum meets p within rounding either set is right. */
        bool close =
            fabs(sum - (double)s.top_p) < 1e-6 || fabs(sum - p[top_p - 1] - (double)s.top_p) < 1e-6;
        list = list_of(vocab);
        if (round % 2) sample_list_gather(&list);
        if (round % 5 == 0) { /* an order may have sorted before */
            sample_list_gather(&list);
            sample_list_sort(&list, n / 2);
        }
        sampler_top_p.apply(&list, &context);
        assert_is_top(&list, want, close ? list.n : top_p);
        assert_true(list.n + 1 >= top_p && list.n <= top_p + 1);

        s.min_p = (float)rng_unit(103, round) * 0.5f + 1e-4f;
        uint32_t min_p = 0;
        while (min_p < n &&
               (double)want[min_p].logit >= (double)want[0].logit + log((double)s.min_p))
            min_p++;
        list = list_of(vocab);
        if (round % 5 == 0) {
            sample_list_gather(&list);
            sample_list_sort(&list, n / 2);
        }
        sampler_min_p.apply(&list, &context);
        assert_is_top(&list, want, min_p);
        if (round % 5 == 0) assert_int_equal(list.sorted, n / 2 < min_p ? n / 2 : min_p);
    }
}

static void sorting_continues_where_it_stopped(void **state) {
    (void)state;
    static struct sample_item want[MAX_VOCAB];
    static double p[MAX_VOCAB];
    random_logits(7, MAX_VOCAB, 5, 3);
    uint32_t n = define(MAX_VOCAB, want, p);
    struct sample_list list = list_of(MAX_VOCAB);
    sample_list_gather(&list);
    for (uint32_t k = 1; k < n + 5; k = k * 2 + 1) {
        sample_list_sort(&list, k);
        assert_true(list.sorted == (k < n ? k : n));
        assert_is_top(&list, want, n);
    }
}

static void exponentials_are_accurate(void **state) {
    (void)state;
    const struct sample_passes *passes = sample_passes();
    float x[2001], e[2001];
    double sum = 0;
    for (int i = 0; i < 2001; i++) {
        x[i] = 3.0f - (float)i * 0.0457f;
        sum += exp((double)x[i] - 3.0);
    }
    double got = passes->exp_sum(x, 2001, 3.0f, e);
    assert_true(fabs(got / sum - 1) < 1e-7);
    for (int i = 0; i < 2001; i++) {
        double want = exp((double)(x[i] - 3.0f));
        assert_true(fabs((double)e[i] - want) <= (x[i] - 3.0f < -87 ? 1e-37 : want * 3e-7));
    }
    assert_true(passes->exp_sum((float[]){-INFINITY, 0, -1e38f}, 3, 0, NULL) == 1);
    for (size_t n = 1; n < 20; n++)
        assert_true(passes->exp_sum((float[20]){0}, n, 0, e) == (double)n);
}

/* Every instruction set gives the same bits. */
static void assert_same_passes(const struct sample_passes *a, const struct sample_passes *b,
                               size_t n) {
    static float e[2][MAX_VOCAB], block[2][MAX_VOCAB];
    float max = a->max(logits, n, block[0]);
    size_t blocks_n = (n - 1) / SAMPLE_BLOCK + 1;
    if (isnan(max)) {
        assert_true(isnan(b->max(logits, n, block[1])));
        return;
    }
    assert_true(max == b->max(logits, n, block[1]));
    assert_memory_equal(block[0], block[1], blocks_n * sizeof(float));
    assert_true(a->exp_sum(logits, n, max, e[0]) == b->exp_sum(logits, n, max, e[1]));
    assert_memory_equal(e[0], e[1], n * sizeof(float));
    struct sample_entropy x = a->entropy(logits, n, max), y = b->entropy(logits, n, max);
    assert_true(x.sum == y.sum && x.moment == y.moment && x.n == y.n);
    struct sample_moments p = a->moments(logits, n), q = b->moments(logits, n);
    assert_true(p.mean == q.mean && p.deviation == q.deviation);
}

static void passes_agree_to_the_bit(void **state) {
    (void)state;
    for (size_t n = 1; n < MAX_VOCAB; n += n < 200 ? 1 : 37) {
        random_logits(n, (uint32_t)n, n % 2 ? 30 : 3, 1e6);
        assert_same_passes(&sample_passes_scalar, sample_passes(), n);
#if defined __x86_64__
        if (cpu_has(CPU_AVX2)) assert_same_passes(&sample_passes_scalar, &sample_passes_avx2, n);
#endif
    }
}

/* ---- penalties ------------------------------------------------------------------------------- */

static void penalties_follow_their_formula(void **state) {
    (void)state;
    const int32_t history[] = {0, 9, -3, 99, 1, 2, 2, 2, 1};
    ob_sampling s = plain;
    s.repeat_penalty = 2;
    s.frequency_penalty = 0.25f;
    s.presence_penalty = 0.5f;
    struct sample_context context = {.settings = &s, .history = history, .history_n = 9};
    uint32_t counts[4] = {0};
    context.state = counts;
    static const struct {
        int32_t last_n;
        float want[4];
    } row[] = {
        /* logits are 4, 3, -2, 0 */
        {-1, {4 / 2.0f - 0.75f, 3 / 2.0f - 1.0f, -4 - 1.25f, 0}},
        {64, {4 / 2.0f - 0.75f, 3 / 2.0f - 1.0f, -4 - 1.25f, 0}},
        {3, {4, 3 / 2.0f - 0.75f, -4 - 1.0f, 0}},
        {1, {4, 3 / 2.0f - 0.75f, -2, 0}},
    };
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        memcpy(logits, (float[]){4, 3, -2, 0}, 4 * sizeof *logits);
        s.penalty_last_n = row[r].last_n;
        struct sample_list list = list_of(4);
        if (r % 2) {
            sample_list_gather(&list);
            sample_list_sort(&list, 4);
        }
        assert_true(sampler_penalties.active(&s));
        sampler_penalties.apply(&list, &context);
        assert_int_equal(list.sorted, 0);
        sample_list_gather(&list);
        for (uint32_t i = 0; i < 4; i++) {
            assert_true(list.item[i].logit == row[r].want[list.item[i].id]);
            assert_int_equal(counts[i], 0);
            assert_int_equal(wheres[i], 0);
        }
    }
    s.penalty_last_n = 0;
    assert_false(sampler_penalties.active(&s));
}

static void penalties_change_the_greedy_choice(void **state) {
    (void)state;
    ob_sampling s = plain;
    s.temperature = 0;
    s.presence_penalty = 2;
    s.penalty_last_n = -1;
    struct sample_chain *chain = open_chain(s, 4);
    const float row[] = {3, 2, 1, 0};
    assert_int_equal(token(chain, row, (int32_t[]){3}, 1), 0);
    assert_int_equal(token(chain, row, (int32_t[]){0, 3}, 2), 1);
    assert_int_equal(token(chain, row, (int32_t[]){0, 1, 2}, 3), 0); /* 1 0 -1 0 */
    sample_close(&chain);
    s.order = "top_k;penalties"; /* the penalty only reorders what top_k left */
    s.top_k = 1;
    chain = open_chain(s, 4);
    assert_int_equal(token(chain, row, (int32_t[]){0, 3}, 2), 0);
    sample_close(&chain);
    s.order = "temperature;penalties"; /* temperature 0 leaves the best before it is penalized */
    s.top_k = 0;
    chain = open_chain(s, 4);
    assert_int_equal(token(chain, row, (int32_t[]){0, 3}, 2), 0);
    sample_close(&chain);
}

/* ---- chains ---------------------------------------------------------------------------------- */

/* Draws at positions 0..n-1 against probabilities: the chi-square statistic must be below its
 * degrees of freedom by more than 6 standard deviations only once in a very long time. */
static void assert_distribution(ob_sampling s, const float *row, const double *p, uint32_t vocab) {
    enum { DRAWS = 40000 };
    struct sample_chain *chain = open_chain(s, vocab);
    static uint32_t hits[64];
    memset(hits, 0, sizeof hits);
    static int32_t history[DRAWS]; /* all zero: token 0 */
    for (size_t i = 0; i < DRAWS; i++) {
        int32_t id = token(chain, row, history, i);
        assert_true(id >= 0 && (uint32_t)id < vocab);
        hits[id]++;
    }
    double chi = 0, freedom = -1;
    for (uint32_t i = 0; i < vocab; i++) {
        if (p[i] == 0) {
            assert_int_equal(hits[i], 0);
            continue;
        }
        double want = p[i] * DRAWS;
        chi += ((double)hits[i] - want) * ((double)hits[i] - want) / want;
        freedom++;
    }
    if (chi > freedom + 6 * sqrt(2 * freedom) + 6) fail_msg("chi-square %g for %g", chi, freedom);
    sample_close(&chain);
}

static void draws_follow_the_distribution(void **state) {
    (void)state;
    const float row[8] = {1, -1, 0.5f, -INFINITY, 2, 1, -3, 0};
    double p[8], sum = 0;
    ob_sampling s = plain;
    for (int t = 0; t < 3; t++) {
        s.temperature = (float[]){1, 0.5f, 2.5f}[t];
        s.seed = (uint64_t)t * 77;
        sum = 0;
        for (int i = 0; i < 8; i++) sum += p[i] = exp((double)row[i] / (double)s.temperature);
        for (int i = 0; i < 8; i++) p[i] /= sum;
        assert_distribution(s, row, p, 8);
    }
    /* Best first: 4 (2), 0 and 5 (1), 2 (0.5), 7 (0)... top_k 4 leaves 4 0 5 2; of these 4 and 0
     * have more than 0.6 of the weight (0.50, 0.18, 0.18, 0.11); the temperature comes last. */
    s = plain;
    s.top_k = 4;
    s.top_p = 0.6f;
    s.temperature = 0.7f;
    memset(p, 0, sizeof p);
    p[4] = 1 / (1 + exp(-1 / (double)s.temperature));
    p[0] = 1 - p[4];
    assert_distribution(s, row, p, 8);
}

static void the_order_is_the_request_s(void **state) {
    (void)state;
    const float row[3] = {0, -1, -2};
    ob_sampling s = plain;
    s.temperature = 4;
    s.min_p = 0.5f;
    double flat[3] = {1, exp(-0.25), exp(-0.5)}, sum = flat[0] + flat[1] + flat[2];
    for (int i = 0; i < 3; i++) flat[i] /= sum;
    assert_distribution(s, row, (double[]){1, 0, 0}, 3); /* min_p first, as by default */
    s.order = "temperature;min_p";
    assert_distribution(s, row, flat, 3);
    s.order = "temperature"; /* what is not named does not run */
    assert_distribution(s, row, flat, 3);
    s.order = "";
    double raw[3] = {1, exp(-1), exp(-2)};
    sum = raw[0] + raw[1] + raw[2];
    for (int i = 0; i < 3; i++) raw[i] /= sum;
    assert_distribution(s, row, raw, 3);
}

static void a_draw_depends_on_seed_and_position_alone(void **state) {
    (void)state;
    enum { N = 300 };
    random_logits(42, 500, 6, 1e6);
    int32_t history[N] = {0}, first[N];
    ob_sampling s = plain;
    s.temperature = 0.9f;
    s.top_k = 50;
    s.repeat_penalty = 1.1f;
    s.penalty_last_n = 64;
    s.seed = 1234;
    struct sample_chain *a = open_chain(s, 500), *b = open_chain(s, 500);
    for (size_t i = 0; i < N; i++) first[i] = token(a, logits, history, i);
    for (size_t i = N; i-- > 0;) { /* another chain, backwards, some of them twice */
        assert_int_equal(token(b, logits, history, i), first[i]);
        if (i % 3 == 0) assert_int_equal(token(b, logits, history, i), first[i]);
    }
    sample_close(&b);
    s.seed = 1235;
    b = open_chain(s, 500);
    size_t same = 0;
    for (size_t i = 0; i < N; i++) same += token(b, logits, history, i) == first[i];
    assert_true(same < N / 2);
    sample_close(&a);
    sample_close(&b);
    assert_null(a);
}

static void logprobs_before_and_after(void **state) {
    (void)state;
    static struct sample_item want[MAX_VOCAB];
    static double p[MAX_VOCAB];
    random_logits(5, 777, 8, 1e6);
    uint32_t n = define(777, want, p);
    for (int t = 0; t < 8; t++) {
        bool greedy = t & 1, after = t & 2;
        ob_sampling s = plain;
        s.temperature = greedy ? 0 : 0.5f;
        s.top_k = t & 4 ? 20 : 0;
        double sum = 0; /* of what is left after the chain */
        uint32_t left = greedy ? 1 : s.top_k ? 20 : n;
        for (uint32_t i = 0; i < left; i++) sum += greedy ? 1 : p[i] * p[i];
        struct sample_chain *chain = open_chain(s, 777);
        for (size_t i = 0; i < 20; i++) {
            int32_t history[20] = {0};
            ob_logprob top[30];
            size_t top_n, k = 0;
            struct sample_input input = {.logits = logits, .history = history, .history_n = i};
            int32_t id = sample_token(chain, &input);
            float got = sample_logprobs(chain, &input, after, id, top, i ? 30 : 0, &top_n);
            while (want[k].id != id) k++;
            double mine = !after ? log(p[k]) : greedy ? 0 : log(p[k] * p[k] / sum);
            assert_true(fabs(mine - (double)got) < 1e-5);
            assert_int_equal(top_n, i == 0 ? 0 : after && left < 30 ? left : 30);
            for (size_t j = 0; j < top_n; j++) {
                double theirs = !after ? log(p[j]) : greedy ? 0 : log(p[j] * p[j] / sum);
                assert_int_equal(top[j].id, want[j].id);
                assert_true(fabs(theirs - (double)top[j].logprob) < 1e-5);
            }
        }
        sample_close(&chain);
    }
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void greedy_takes_the_lowest_of_equals(void **state) {
    (void)state;
    ob_sampling s = plain;
    s.temperature = 0;
    struct sample_chain *chain = open_chain(s, 11);
    float row[11] = {-INFINITY, 0, 1, 5, 5, 2, 5, -1, 0, 5, 4};
    assert_int_equal(token(chain, row, NULL, 0), 3);
    row[10] = 6;
    assert_int_equal(token(chain, row, NULL, 0), 10);
    sample_close(&chain);
    memcpy(logits, (float[]){1, 3, 3, 3}, 4 * sizeof *logits);
    struct sample_list list = list_of(4);
    s.top_k = 2;
    sampler_top_k.apply(&list, &(struct sample_context){.settings = &s});
    assert_int_equal(list.n, 2);
    sample_list_sort(&list, 2);
    assert_int_equal(list.item[0].id, 1);
    assert_int_equal(list.item[1].id, 2);
}

static void broken_logits_are_refused(void **state) {
    (void)state;
    for (int t = 0; t < 2; t++) {
        ob_sampling s = plain;
        s.temperature = (float)t;
        for (uint32_t vocab = 1; vocab < 20; vocab++) {
            struct sample_chain *chain = open_chain(s, vocab);
            float row[20];
            for (uint32_t i = 0; i < vocab; i++) row[i] = -INFINITY;
            assert_int_equal(token(chain, row, NULL, 0), -1);
            for (uint32_t at = 0; at < vocab; at++) {
                for (uint32_t i = 0; i < vocab; i++) row[i] = -INFINITY;
                row[at] = -FLT_MAX; /* the only one allowed */
                assert_int_equal(token(chain, row, NULL, 0), at);
                for (uint32_t i = 0; i < vocab; i++) row[i] = (float)i;
                row[at] = NAN;
                assert_int_equal(token(chain, row, NULL, 0), -1);
                row[at] = INFINITY;
                assert_int_equal(token(chain, row, NULL, 0), -1);
            }
            sample_close(&chain);
        }
    }
}

static void extreme_settings_still_draw(void **state) {
    (void)state;
    const float row[5] = {3e38f, -3e38f, 1, -1, 2.9e38f};
    int32_t history[] = {0, 1, 2, 3, 4};
    for (int t = 0; t < 4; t++)
        for (int r = 0; r < 3; r++) {
            ob_sampling s = plain;
            s.temperature = (float[]){1e-45f, 1e-6f, 1, 1e6f}[t];
            s.repeat_penalty = (float[]){1e-6f, 1, 1e6f}[r];
            s.presence_penalty = (float[]){-1e6f, 0, 1e6f}[r];
            s.penalty_last_n = -1;
            s.min_p = 1e-45f;
            s.top_p = 0.9f;
            s.order = r == 1 ? "temperature" : "temperature;penalties;top_p;min_p";
            struct sample_chain *chain = open_chain(s, 5);
            for (size_t i = 0; i < 6; i++) {
                int32_t id = token(chain, row, history, i < 5 ? i : 5);
                assert_true(id >= 0 && id < 5);
                if (t < 2 && r == 1) assert_int_equal(id, 0);
            }
            sample_close(&chain);
        }
}

static void assert_refused(ob_sampling s, const char *setting) {
    struct sample_chain *chain = (void *)&s;
    ob_error error = {0};
    assert_int_equal(sample_open(&s, numbers(10), &chain, &error), OB_ERR_ARGUMENT);
    assert_null(chain);
    assert_string_equal(error.where, setting);
    assert_true(error.message[0] != 0);
    assert_int_equal(sample_open(&s, numbers(10), &chain, NULL), OB_ERR_ARGUMENT);
}

static void bad_settings_are_refused_by_name(void **state) {
    (void)state;
#define REFUSE(field, value, name) \
    do {                           \
        ob_sampling s = plain;     \
        s.field = (value);         \
        assert_refused(s, name);   \
    } while (0)
    REFUSE(temperature, -0.1f, "temperature");
    REFUSE(temperature, NAN, "temperature");
    REFUSE(temperature, INFINITY, "temperature");
    REFUSE(top_p, -0.1f, "top_p");
    REFUSE(top_p, 1.1f, "top_p");
    REFUSE(top_p, NAN, "top_p");
    REFUSE(min_p, -0.1f, "min_p");
    REFUSE(min_p, 1.1f, "min_p");
    REFUSE(min_p, NAN, "min_p");
    REFUSE(temperature, 1.1e6f, "temperature");
    REFUSE(top_k, -2, "top_k");
    REFUSE(typical_p, 1.1f, "typical_p");
    REFUSE(top_n_sigma, -1.1f, "top_n_sigma");
    REFUSE(xtc_probability, -0.1f, "xtc_probability");
    REFUSE(xtc_threshold, NAN, "xtc_threshold");
    REFUSE(dynatemp_range, -1, "dynatemp_range");
    REFUSE(dynatemp_exponent, -1, "dynatemp_exponent");
    REFUSE(dry_multiplier, -1, "dry_multiplier");
    REFUSE(dry_base, -1, "dry_base");
    REFUSE(dry_allowed_length, -1, "dry_allowed_length");
    REFUSE(dry_penalty_last_n, -2, "dry_penalty_last_n");
    REFUSE(dry_multiplier, 1, "dry_breakers"); /* texts, in a vocabulary that has none */
    REFUSE(mirostat, 3, "mirostat");
    REFUSE(mirostat_tau, -1, "mirostat_tau");
    REFUSE(mirostat_eta, NAN, "mirostat_eta");
    REFUSE(adaptive_target, -2, "adaptive_target");
    REFUSE(adaptive_decay, 1, "adaptive_decay");
    REFUSE(min_keep, -1, "min_keep");
    REFUSE(order, "mirostat", "order");
    REFUSE(order, "logit_bias", "order");
    REFUSE(order, "infill", "order");
    REFUSE(repeat_penalty, 0, "repeat_penalty");
    REFUSE(repeat_penalty, -1, "repeat_penalty");
    REFUSE(repeat_penalty, INFINITY, "repeat_penalty");
    REFUSE(frequency_penalty, NAN, "frequency_penalty");
    REFUSE(presence_penalty, INFINITY, "presence_penalty");
    REFUSE(penalty_last_n, -2, "penalty_last_n");
    REFUSE(order, "top_k;beam", "order");
    REFUSE(order, "top_k;", "order");
    REFUSE(order, "top_k;top_k", "order");
#undef REFUSE
    struct sample_chain *chain;
    assert_int_equal(sample_open(&plain, numbers(0), &chain, NULL), OB_ERR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_set_is_its_definition),
        cmocka_unit_test(sorting_continues_where_it_stopped),
        cmocka_unit_test(exponentials_are_accurate),
        cmocka_unit_test(passes_agree_to_the_bit),
        cmocka_unit_test(penalties_follow_their_formula),
        cmocka_unit_test(penalties_change_the_greedy_choice),
        cmocka_unit_test(draws_follow_the_distribution),
        cmocka_unit_test(the_order_is_the_request_s),
        cmocka_unit_test(a_draw_depends_on_seed_and_position_alone),
        cmocka_unit_test(logprobs_before_and_after),
        cmocka_unit_test(greedy_takes_the_lowest_of_equals),
        cmocka_unit_test(broken_logits_are_refused),
        cmocka_unit_test(extreme_settings_still_draw),
        cmocka_unit_test(bad_settings_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
