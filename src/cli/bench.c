/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.c: `1bit bench`: how fast a model reads a prompt (pp) and writes an answer (tg) here, at
 * any depth of the cache, for one or several sequences. Steps are timed as the engine runs them:
 * nothing is sampled or printed, as in llama.cpp's llama-bench. */
#include "cli/bench.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/rng.h"

enum { LENGTHS = 32 };

struct list {
    uint32_t of[LENGTHS];
    size_t n;
};

struct plan {
    struct list prompts, answers, depths, batches, threads;
    const char *kv_type[LENGTHS];
    size_t kv_types;
    uint32_t most_batch, most_tokens; /* of a sequence */
    char words[256];                  /* kv_type points into it */
};

/* One engine and what its sequences hold. */
struct bench_run {
    const struct options *options;
    const struct plan *plan;
    struct bench *bench;
    struct bench_machine *machine; /* NULL: no limits (the reference device) */
    enum bench_form form;
    ob_engine *engine;
    ob_engine_info info;
    ob_batch *batch;
    uint32_t threads;
    const char *kv_type;
    uint32_t *held; /* [most_batch] tokens in each sequence */
    int32_t *ids;   /* [most_batch][most_tokens] */
    ob_batch_part *part;
};

/* ---- lists on the command line --------------------------------------------------------------- */

/* "128,512": up to LENGTHS numbers of at least `least`; skip_zero leaves zeros out. */
static bool read_list(const char *text, long long least, long long most, bool skip_zero,
                      struct list *out) {
    out->n = 0;
    for (const char *p = text;; p++) {
        char *end;
        long long value = strtoll(p, &end, 10);
        if (end == p || value < least || value > most || out->n == LENGTHS) return false;
        if (value || !skip_zero) out->of[out->n++] = (uint32_t)value;
        p = end;
        if (!*p) return true;
        if (*p != ',') return false;
    }
}

/* The names that --kv-type of other commands knows, comma between them. */
static bool read_types(struct plan *plan, const char *text) {
    const struct option *option = &option_list[OPTION_INDEX_kv_type];
    if (strlen(text) >= sizeof plan->words) return false;
    strcpy(plan->words, text);
    for (char *p = plan->words, *next; p; p = next) {
        const char *word;
        size_t n;
        bool known = false;
        if ((next = strchr(p, ','))) *next++ = 0;
        for (size_t i = 0; option_choice_at(option, i, &word, &n); i++)
            known = known || (strlen(p) == n && memcmp(p, word, n) == 0);
        if (!known || plan->kv_types == LENGTHS) return false;
        plan->kv_type[plan->kv_types++] = p;
    }
    return true;
}

static uint32_t largest(const struct list *list) {
    uint32_t most = 0;
    for (size_t i = 0; i < list->n; i++)
        if (list->of[i] > most) most = list->of[i];
    return most;
}

/* EXIT_OK, or says what is wrong. */
static int read_plan(const struct options *o, struct plan *plan) {
    char name[40];
    *plan = (struct plan){0};
    if (!read_list(o->bench_prompt, 0, 1 << 30, true, &plan->prompts))
        return cli_misuse("--prompt-tokens: \"%s\" is no list of lengths", o->bench_prompt);
    if (!read_list(o->bench_answer, 0, 1 << 30, true, &plan->answers))
        return cli_misuse("--answer-tokens: \"%s\" is no list of lengths", o->bench_answer);
    if (!read_list(o->bench_depth, 0, 1 << 30, false, &plan->depths))
        return cli_misuse("--depth: \"%s\" is no list of lengths", o->bench_depth);
    if (!read_list(o->bench_batch, 1, 4096, false, &plan->batches))
        return cli_misuse("--batch: \"%s\" is no list of 1 to 4096 sequences", o->bench_batch);
    if (!read_list(o->bench_threads, 0, 1024, false, &plan->threads)) {
        option_name(&option_list[OPTION_INDEX_bench_threads], o, name);
        return cli_misuse("%s: \"%s\" is no list of 0 to 1024 threads", name, o->bench_threads);
    }
    if (!read_types(plan, o->bench_kv))
        return cli_misuse("--kv-type: \"%s\" is no list of %s", o->bench_kv,
                          option_list[OPTION_INDEX_kv_type].value);
    if (o->csv + o->md + o->json > 1)
        return cli_misuse("--csv, --md and --json exclude each other");
    uint32_t prompt = largest(&plan->prompts), answer = largest(&plan->answers);
    plan->most_tokens = largest(&plan->depths) + (prompt > answer ? prompt : answer);
    plan->most_batch = largest(&plan->batches);
    return EXIT_OK;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static const int32_t *ids_of(const struct bench_run *r, uint32_t sequence) {
    return r->ids + (size_t)sequence * r->plan->most_tokens;
}

/* Brings `batch` sequences to `depth` tokens; what they hold is kept where it can be. */
static ob_status fill(struct bench_run *r, uint32_t batch, uint32_t depth, ob_error *error) {
    uint32_t parts = 0;
    for (uint32_t i = 0; i < r->plan->most_batch; i++) {
        uint32_t want = i < batch ? depth : 0; /* others give their memory back */
        if (r->held[i] > want) r->held[i] = ob_batch_keep(r->batch, i, want);
        if (r->held[i] >= want) continue;
        r->part[parts++] =
            (ob_batch_part){.sequence = i, .id = ids_of(r, i) + r->held[i], .n = want - r->held[i]};
        r->held[i] = want;
    }
    return parts ? ob_batch_run(r->batch, r->part, parts, 0, NULL, NULL, NULL, error) : OB_OK;
}

static ob_status run_once(struct bench_run *r, const struct bench_result *test, double *rate,
                          ob_error *error) {
    bool prompt = test->kind[0] == 'p';
    double seconds = 0;
    ob_status s = fill(r, test->batch, test->depth, error);
    if (s != OB_OK) return s;
    for (uint32_t i = 0; i < test->batch; i++) {
        r->part[i] = (ob_batch_part){.sequence = i,
                                     .id = ids_of(r, i) + test->depth,
                                     .n = test->n,
                                     .logits = prompt ? 1 : test->n};
        r->held[i] += test->n;
    }
    s = ob_batch_run(r->batch, r->part, test->batch, prompt ? 0 : 1, NULL, NULL, &seconds, error);
    *rate = seconds > 0 ? (double)test->n * test->batch / seconds : 0;
    return s;
}

/* How many times the bytes of one token's experts n tokens read, if they choose at random. */
static double experts_read(const ob_engine_info *info, double n) {
    if (!info->experts) return 0;
    double used = (double)info->experts_used / info->experts;
    return (1 - pow(1 - used, n)) / used;
}

/* What a token costs: in "tg" a step reads the weights once for all sequences, of experts those
 * that one of them is routed to. */
static void cost(const struct bench_run *r, struct bench_result *test) {
    double batch = test->batch, n = test->n;
    double cache = (double)ob_engine_kv_bytes(r->engine, test->depth + test->n / 2);
    bool prompt = test->kind[0] == 'p';
    double tokens = prompt ? n * batch : batch, experts = (double)r->info.expert_bytes;
    double weights = (double)r->info.token_bytes + experts * (experts_read(&r->info, tokens) - 1);
    test->bytes_token = weights / tokens + (prompt ? cache / n : cache);
    test->ops_token =
        2 * ((double)r->info.token_products + (double)r->info.logits_products / (prompt ? n : 1));
}

static ob_status measure(struct bench_run *r, struct bench_result *test, ob_error *error) {
    size_t warm = (size_t)r->options->warm_up;
    test->rate = calloc(test->runs, sizeof *test->rate);
    if (!test->rate) return error_memory(error, "runs", test->runs * sizeof *test->rate);
    ob_status s = OB_OK;
    for (size_t i = 0; s == OB_OK && i < warm + test->runs; i++) {
        double rate;
        char text[64];
        snprintf(text, sizeof text, "%s%u, depth %u, batch %u", test->kind, test->n, test->depth,
                 test->batch);
        cli_progress(text, i, warm + test->runs);
        if (i == warm && r->machine)
            s = bench_machine_measure(r->machine, r->info.threads, test, error);
        if (s == OB_OK) s = run_once(r, test, &rate, error);
        if (s == OB_OK && i >= warm) test->rate[i - warm] = rate;
    }
    cli_progress("", 1, 1);
    if (s != OB_OK) return s;
    bench_summarize(test);
    cost(r, test);
    return OB_OK;
}

/* ---- going through the plan ------------------------------------------------------------------ */

/* EXIT_OK, or the output failed. */
static int show(struct buf *text) {
    if (text->n) fwrite(text->p, 1, text->n, stdout);
    bool failed = text->failed;
    buf_free(text);
    if (failed) return cli_fail("out of memory");
    errno = 0;
    return fflush(stdout) == 0 ? EXIT_OK : cli_output_failed(errno);
}

static int one_test(struct bench_run *r, const char *kind, uint32_t n, uint32_t depth,
                    uint32_t batch) {
    struct bench *b = r->bench;
    struct buf row = BUF_INIT;
    ob_error error;
    struct bench_result *more = realloc(b->result, (b->results + 1) * sizeof *more);
    if (!more) return cli_fail("out of memory");
    b->result = more;
    struct bench_result *test = &b->result[b->results++];
    *test = (struct bench_result){.kind = kind,
                                  .n = n,
                                  .depth = depth,
                                  .batch = batch,
                                  .threads = r->info.threads,
                                  .kv_type = r->kv_type,
                                  .runs = (size_t)r->options->repeat};
    if (measure(r, test, &error) != OB_OK) return cli_fail_error(&error);
    bench_row(b, test, r->form, &row);
    return show(&row);
}

static int all_tests(struct bench_run *r) {
    const struct plan *p = r->plan;
    int code = EXIT_OK;
    for (size_t d = 0; d < p->depths.n; d++)
        for (size_t b = 0; b < p->batches.n; b++) {
            for (size_t i = 0; code == EXIT_OK && i < p->prompts.n; i++)
                code = one_test(r, "pp", p->prompts.of[i], p->depths.of[d], p->batches.of[b]);
            for (size_t i = 0; code == EXIT_OK && i < p->answers.n; i++)
                code = one_test(r, "tg", p->answers.of[i], p->depths.of[d], p->batches.of[b]);
        }
    return code;
}

static void describe(struct bench *b, const ob_engine_info *info) {
    snprintf(b->name, sizeof b->name, "%s", info->name);
    snprintf(b->family, sizeof b->family, "%s", info->family);
    snprintf(b->device, sizeof b->device, "%.*s", (int)strcspn(info->device, ","), info->device);
    b->parameters = info->parameters;
    b->active = info->active_parameters;
    b->weight_bytes = info->weight_bytes;
}

static ob_status open_engine(struct bench_run *r, ob_error *error) {
    const struct plan *p = r->plan;
    ob_engine_options options = cli_engine_options(r->options);
    options.threads = r->threads;
    options.kv_type = r->kv_type;
    options.parallel = p->most_batch;
    if (!options.context) options.context = p->most_tokens;
    ob_status s = cli_engine_open_with(r->options, options, &r->engine, error);
    if (s != OB_OK) return s;
    ob_engine_get_info(r->engine, &r->info);
    uint32_t most = r->options->context ? r->info.context : r->info.train_context;
    if (p->most_tokens > most)
        return error_set(error, OB_ERR_LIMIT, "%u tokens are more than the context of %u",
                         p->most_tokens, most);
    for (uint32_t i = 0; i < p->most_batch; i++) {
        r->held[i] = 0;
        for (uint32_t k = 0; k < p->most_tokens; k++)
            r->ids[(size_t)i * p->most_tokens + k] = (int32_t)(rng_u64(i + 1, k) % r->info.vocab);
    }
    return ob_batch_open(r->engine, p->most_batch, &r->batch, error);
}

/* One engine: a number of threads and a type of cache. */
static int one_engine(struct bench_run *r) {
    ob_error error;
    int code = open_engine(r, &error) == OB_OK ? EXIT_OK : cli_fail_error(&error);
    if (code == EXIT_OK && r->bench->results == 0) {
        struct buf head = BUF_INIT;
        describe(r->bench, &r->info);
        bench_head(r->bench, r->form, &head);
        code = show(&head);
    }
    if (code == EXIT_OK) code = all_tests(r);
    ob_batch_close(&r->batch);
    if (r->engine) ob_engine_close(&r->engine);
    return code;
}

static int all_engines(struct bench_run *r) {
    int code = EXIT_OK;
    for (size_t k = 0; k < r->plan->kv_types; k++)
        for (size_t t = 0; code == EXIT_OK && t < r->plan->threads.n; t++) {
            r->kv_type = r->plan->kv_type[k];
            r->threads = r->plan->threads.of[t];
            code = one_engine(r);
        }
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int write_page(const struct bench *b, const char *path) {
    struct buf page = BUF_INIT;
    bench_html(b, &page);
    if (page.failed) {
        buf_free(&page);
        return cli_fail("out of memory");
    }
    errno = 0;
    FILE *file = fopen(path, "wb");
    bool good = file && fwrite(page.p, 1, page.n, file) == page.n;
    if (file && fclose(file) != 0) good = false;
    buf_free(&page);
    return good ? EXIT_OK : cli_fail("%s: cannot write: %s", path, strerror(errno));
}

static int run_plan(struct bench_run *r) {
    const struct options *o = r->options;
    const struct plan *p = r->plan;
    ob_error error;
    bool ref = o->device && strcmp(o->device, "ref") == 0;
    if (p->most_tokens == 0) return cli_misuse("no lengths: nothing to measure");
    r->held = calloc(p->most_batch, sizeof *r->held);
    r->part = calloc(p->most_batch, sizeof *r->part);
    r->ids = malloc((size_t)p->most_batch * p->most_tokens * sizeof *r->ids);
    if (!r->held || !r->part || !r->ids) return cli_fail("out of memory");
    if (!ref && bench_machine_open(o->model, o->cpu_isa, &r->machine, &error) != OB_OK)
        return cli_fail_error(&error);
    int code = all_engines(r);
    if (code == EXIT_OK && o->json) code = cli_print_json(bench_json(r->bench));
    if (code == EXIT_OK && o->html) code = write_page(r->bench, o->html);
    return code;
}

static int run(const struct options *options) {
    struct plan plan;
    struct bench bench = {.result = NULL};
    struct bench_run r = {.options = options, .plan = &plan, .bench = &bench};
    int code = read_plan(options, &plan);
    if (code != EXIT_OK) return code;
    r.form = options->json  ? BENCH_JSON
             : options->csv ? BENCH_CSV
             : options->md  ? BENCH_MARKDOWN
                            : BENCH_TABLE;
    code = run_plan(&r);
    for (size_t i = 0; i < bench.results; i++) free(bench.result[i].rate);
    free(bench.result);
    bench_machine_close(&r.machine);
    free(r.held);
    free(r.part);
    free(r.ids);
    return code;
}

const struct command command_bench = {
    .name = "bench",
    .summary = "measure the speed of a model",
    .operands = "",
    .about =
        "Measures how many tokens a second a model reads (pp, prompt) and writes (tg, answer): "
        "every combination of the given lengths, depths, batches, threads and cache types, each "
        "several times, after a time that does not count.\n\n"
        "\"of limit\" sets the median beside what the machine could do in the same minute: for "
        "answers the bytes of weights and cache read, of the bandwidth of vector loads over the "
        "model's file; for prompts the operations of the matrix products, of int8 dot products in "
        "registers.\n\n"
        "  1bit bench -m gemma3-270m -p 128,512 -n 128 -r 5\n"
        "  1bit bench -p 512 -n 64 -d 0,4096,16384 --kv-type f16,f32\n"
        "  1bit bench -p 0 -n 64 -b 1,2,4,8,16 --html batches.html",
    .run = run,
};
