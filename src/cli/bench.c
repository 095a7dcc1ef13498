/* SPDX-License-Identifier: Apache-2.0
 * bench.c: `1bit bench`: how fast a model reads a prompt (pp) and writes an answer (tg) here. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "base/rng.h"
#include "cli/cli.h"

#include <errno.h>

enum { LENGTHS = 32, RUNS = 1000 };

struct measure {
    const char *kind; /* "pp", "tg" */
    uint32_t n;       /* tokens */
    size_t runs;
    double rate[RUNS]; /* tokens a second, in the order measured */
    double mean, median, deviation;
};

/* "128,512": up to LENGTHS numbers; zeros are left out. false if it is anything else. */
static bool read_lengths(const char *text, uint32_t out[LENGTHS], size_t *n) {
    *n = 0;
    for (const char *p = text;; p++) {
        char *end;
        long long value = strtoll(p, &end, 10);
        if (end == p || value < 0 || value > 1 << 30 || *n == LENGTHS) return false;
        if (value) out[(*n)++] = (uint32_t)value;
        p = end;
        if (!*p) return true;
        if (*p != ',') return false;
    }
}

/* ---- measuring ------------------------------------------------------------------------------- */

static ob_status read_prompt(ob_engine *engine, const int32_t *ids, uint32_t n, double *rate,
                             ob_error *error) {
    double seconds = 0;
    ob_status status = ob_eval(engine, ids, n, 0, NULL, &seconds, error);
    *rate = seconds > 0 ? n / seconds : 0;
    return status;
}

struct ending {
    ob_finish finish;
    ob_timings timings;
    ob_error error;
};

static void on_event(void *user, const ob_event *event) {
    struct ending *ending = user; /* read after ob_release, which waits for the last event */
    if (event->finish == OB_FINISH_NONE) return;
    ending->finish = event->finish;
    ending->timings = event->timings;
    if (event->error) ending->error = *event->error;
}

static ob_status write_answer(ob_engine *engine, const int32_t *ids, uint32_t n, double *rate,
                              ob_error *error) {
    struct ending ending = {0};
    ob_request *request;
    ob_request_options options = {
        .prompt = ids,
        .prompt_n = 1,
        .max_tokens = n,
        .sampling = {.top_p = 1, .repeat_penalty = 1},
        .ignore_eos = true,
        .on_event = on_event,
        .user = &ending,
    };
    ob_status status = ob_submit(engine, &options, &request, error);
    if (status != OB_OK) return status;
    ob_release(&request);
    if (ending.finish == OB_FINISH_ERROR) {
        if (error) *error = ending.error;
        return ending.error.status;
    }
    const ob_timings *t = &ending.timings;
    if (t->predicted_n < n)
        return error_set(error, OB_ERR_LIMIT, "the context ended after %u of %u tokens",
                         t->predicted_n, n);
    *rate = t->predicted_ms > 0 ? t->predicted_n / t->predicted_ms * 1000 : 0;
    return OB_OK;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarize(struct measure *m) {
    double sorted[RUNS], sum = 0, squares = 0;
    memcpy(sorted, m->rate, m->runs * sizeof *sorted);
    qsort(sorted, m->runs, sizeof *sorted, ascending);
    for (size_t i = 0; i < m->runs; i++) sum += sorted[i];
    m->mean = sum / (double)m->runs;
    for (size_t i = 0; i < m->runs; i++) squares += (sorted[i] - m->mean) * (sorted[i] - m->mean);
    m->deviation = m->runs > 1 ? sqrt(squares / (double)(m->runs - 1)) : 0;
    m->median = (sorted[(m->runs - 1) / 2] + sorted[m->runs / 2]) / 2;
}

/* One length, `runs` times after one that warms up. */
static ob_status measure(ob_engine *engine, struct measure *m, ob_error *error) {
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    int32_t *ids = malloc(m->n * sizeof *ids);
    if (!ids) return error_memory(error, "tokens", m->n * sizeof *ids);
    for (uint32_t i = 0; i < m->n; i++) ids[i] = (int32_t)(rng_u64(1, i) % info.vocab);
    ob_status status = OB_OK;
    for (size_t i = 0; status == OB_OK && i <= m->runs; i++) {
        double rate = 0;
        char text[40];
        snprintf(text, sizeof text, "%s%u", m->kind, m->n);
        cli_progress(text, i, m->runs + 1);
        status = m->kind[0] == 'p' ? read_prompt(engine, ids, m->n, &rate, error)
                                   : write_answer(engine, ids, m->n, &rate, error);
        if (i) m->rate[i - 1] = rate;
    }
    cli_progress("", 1, 1);
    free(ids);
    if (status == OB_OK) summarize(m);
    return status;
}

/* ---- reporting ------------------------------------------------------------------------------- */

static json_t *json_of(const struct measure *m) {
    json_t *runs = json_array();
    for (size_t i = 0; i < m->runs; i++) json_array_append_new(runs, json_real(m->rate[i]));
    return json_pack("{s:s, s:i, s:f, s:f, s:f, s:o}", "test", m->kind, "tokens", (int)m->n, "mean",
                     m->mean, "median", m->median, "stddev", m->deviation, "runs", runs);
}

static void print_head(const ob_engine_info *info) {
    char weights[24], bytes[24];
    cli_count(info->parameters, weights);
    cli_bytes(info->weight_bytes, bytes);
    printf("%s (%s, %s weights, %s) on %s\n\n%8s %10s %10s %10s   tokens a second\n", info->name,
           info->family, weights, bytes, info->device, "test", "mean", "median", "stddev");
}

static int report(ob_engine *engine, struct measure *m, const char *kind, const uint32_t *lengths,
                  size_t n, const struct options *options, json_t *results) {
    ob_error error;
    for (size_t i = 0; i < n; i++) {
        *m = (struct measure){.kind = kind, .n = lengths[i], .runs = (size_t)options->repeat};
        if (measure(engine, m, &error) != OB_OK) return cli_fail_error(&error);
        char name[24];
        snprintf(name, sizeof name, "%s%u", kind, m->n);
        if (options->json)
            json_array_append_new(results, json_of(m));
        else
            printf("%8s %10.2f %10.2f %10.2f\n", name, m->mean, m->median, m->deviation);
        if (fflush(stdout) != 0) return cli_output_failed(errno);
    }
    return EXIT_OK;
}

static int run(const struct options *options) {
    ob_error error;
    ob_engine *engine;
    ob_engine_info info;
    uint32_t prompts[LENGTHS], answers[LENGTHS];
    size_t prompt_n, answer_n;
    if (!read_lengths(options->bench_prompt, prompts, &prompt_n))
        return cli_misuse("--prompt-tokens: \"%s\" is no list of lengths", options->bench_prompt);
    if (!read_lengths(options->bench_answer, answers, &answer_n))
        return cli_misuse("--answer-tokens: \"%s\" is no list of lengths", options->bench_answer);
    struct measure *m = malloc(sizeof *m);
    if (!m) return cli_fail("out of memory");
    if (cli_engine_open(options, 1, &engine, &error) != OB_OK) {
        free(m);
        return cli_fail_error(&error);
    }
    ob_engine_get_info(engine, &info);
    uint32_t longest = 0;
    for (size_t i = 0; i < prompt_n + answer_n; i++) {
        uint32_t n = i < prompt_n ? prompts[i] : answers[i - prompt_n];
        if (n > longest) longest = n;
    }
    if (longest > info.context) {
        free(m);
        ob_engine_close(&engine);
        return cli_fail("%u tokens are more than the context of %u", longest, info.context);
    }
    json_t *results = json_array();
    if (!options->json) print_head(&info);
    int code = report(engine, m, "pp", prompts, prompt_n, options, results);
    if (code == EXIT_OK) code = report(engine, m, "tg", answers, answer_n, options, results);
    if (code == EXIT_OK && options->json)
        code = cli_print_json(json_pack(
            "{s:s, s:s, s:s, s:I, s:I, s:i, s:O}", "model", info.name, "family", info.family,
            "device", info.device, "weights", (json_int_t)info.parameters, "weight_bytes",
            (json_int_t)info.weight_bytes, "threads", (int)info.threads, "results", results));
    json_decref(results);
    ob_engine_close(&engine);
    free(m);
    return code;
}

const struct command command_bench = {
    .name = "bench",
    .summary = "measure the speed of a model",
    .operands = "",
    .about =
        "Measures how many tokens a second a model reads (pp, prompt) and writes (tg, answer) at "
        "given lengths: each length several times, after one time that does not count.\n\n"
        "  1bit bench -m gemma3-270m -p 128,512 -n 128 -r 5",
    .run = run,
};
