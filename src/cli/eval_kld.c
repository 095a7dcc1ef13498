/* SPDX-License-Identifier: Apache-2.0
 * eval_kld.c: `1bit eval kld`: making a reference's table, and comparing a model with one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "cli/eval.h"

/* ---- --save ---------------------------------------------------------------------------------- */

struct saving {
    struct eval_job *job;
    struct eval_table_writer *writer;
};

static bool save_row(void *user, uint32_t chunk, uint32_t row, const float *logits) {
    return eval_table_put(((struct saving *)user)->writer, chunk, row, logits);
}

static ob_status save_end(void *user, uint32_t chunk, ob_error *error) {
    struct saving *s = user;
    ob_status status = eval_table_end(s->writer, chunk, error);
    cli_progress("saving", chunk + 1, s->job->chunks.chunks);
    return status;
}

static void describe(const struct eval_job *job, struct eval_table_head *head) {
    char device[64];
    eval_device(job, device);
    memset(head->model, 0, sizeof head->model);
    snprintf(head->model, sizeof head->model, "%.50s, %llu bytes, %.30s, KV %.9s", job->info.name,
             (unsigned long long)job->info.weight_bytes, device, job->info.kv_type);
    head->vocab = job->info.vocab;
    head->text = eval_hash(job->text.p, job->text.n);
    head->chunks = &job->chunks;
}

static ob_status save(struct eval_job *job, uint32_t *done, ob_error *error) {
    const struct options *o = job->options;
    struct saving saving = {.job = job};
    struct eval_table_head head;
    ob_status s = eval_open_text(job, error);
    if (s != OB_OK) return s;
    describe(job, &head);
    s = eval_table_create(o->save, &head, &saving.writer, done, error);
    const struct eval_run run = {.user = &saving, .row = save_row, .end = save_end};
    if (s == OB_OK) s = eval_chunks_run(job->engine, &job->chunks, *done, &run, error);
    cli_progress("", 1, 1);
    ob_status closed = eval_table_finish(&saving.writer, s == OB_OK ? error : NULL);
    return s == OB_OK ? closed : s;
}

static int run_save(struct eval_job *job) {
    ob_error error;
    uint32_t done = 0;
    if (save(job, &done, &error) != OB_OK) return cli_fail_error(&error);
    if (job->options->json)
        return cli_print_json(json_pack("{s:s, s:s, s:i, s:i, s:i}", "eval", "kld", "saved",
                                        job->options->save, "chunks", (int)job->chunks.chunks,
                                        "found", (int)done, "ctx", (int)job->chunks.ctx));
    printf("%s: %u chunk%s of %u tokens, %u of them there before\n", job->options->save,
           job->chunks.chunks, cli_plural(job->chunks.chunks), job->chunks.ctx, done);
    return EXIT_OK;
}

/* ---- --ref ----------------------------------------------------------------------------------- */

enum { FIELDS = 4 };
static const char *const fields[FIELDS] = {"kld", "nll", "nll_ref", "same_top"};

struct comparing {
    struct eval_job *job;
    struct eval_table *table;
    struct eval_chunks chunks; /* the table's, perhaps fewer; borrowed */
    struct eval_position *at;  /* [chunks][rows] */
    double *numbers;           /* [FIELDS][rows]: a record */
    double exps[65536];
};

static ob_status compare_begin(void *user, uint32_t chunk, ob_error *error) {
    return eval_table_check(((struct comparing *)user)->table, chunk, error);
}

static bool compare_row(void *user, uint32_t chunk, uint32_t row, const float *logits) {
    struct comparing *c = user;
    struct eval_table_row ref;
    eval_table_row(c->table, chunk, row, &ref);
    return eval_compare(&ref, c->job->info.vocab, logits,
                        eval_chunks_target(&c->chunks, chunk, row), c->exps,
                        &c->at[(size_t)chunk * c->chunks.rows + row]);
}

static ob_status compare_end(void *user, uint32_t chunk, ob_error *error) {
    struct comparing *c = user;
    uint32_t rows = c->chunks.rows;
    json_t *record = json_pack("{s:I}", "chunk", (json_int_t)chunk);
    for (uint32_t i = 0; i < rows; i++) {
        const struct eval_position *p = &c->at[(size_t)chunk * rows + i];
        const double values[FIELDS] = {p->kld, p->nll, p->nll_ref, p->same_top};
        for (size_t f = 0; f < FIELDS; f++) c->numbers[f * rows + i] = values[f];
    }
    for (size_t f = 0; f < FIELDS; f++)
        json_object_set_new(record, fields[f], eval_json_numbers(c->numbers + f * rows, rows));
    ob_status s = eval_journal_add(c->job->journal, record, error);
    json_decref(record);
    cli_progress("comparing", chunk + 1, c->chunks.chunks);
    return s;
}

/* Takes a chunk's figures out of the journal. */
static ob_status recall(struct comparing *c, uint32_t chunk, ob_error *error) {
    uint32_t rows = c->chunks.rows;
    ob_status s = eval_read_record(c->job, chunk, FIELDS, fields, rows, c->numbers, error);
    for (uint32_t i = 0; s == OB_OK && i < rows; i++)
        c->at[(size_t)chunk * rows + i] =
            (struct eval_position){.kld = c->numbers[i],
                                   .nll = c->numbers[rows + i],
                                   .nll_ref = c->numbers[2 * rows + i],
                                   .same_top = c->numbers[3 * rows + i] > 0.5};
    return s;
}

static ob_status open_table(struct comparing *c, ob_error *error) {
    const struct options *o = c->job->options;
    ob_status s = eval_table_open(o->ref, &c->table, error);
    if (s != OB_OK) return s;
    c->chunks = *eval_table_head(c->table)->chunks;
    if (o->chunks && o->chunks < c->chunks.chunks) c->chunks.chunks = (uint32_t)o->chunks;
    if (c->chunks.chunks > eval_table_chunks(c->table)) {
        s = error_set(
            error, OB_ERR_FORMAT,
            "it holds %u of %u chunks: finish it with --save, or compare fewer (--chunks)",
            eval_table_chunks(c->table), c->chunks.chunks);
        error_at(error, o->ref, NULL, OB_NO_OFFSET);
    }
    return s;
}

static ob_status open_model(struct comparing *c, ob_error *error) {
    struct eval_job *job = c->job;
    const struct eval_table_head *head = eval_table_head(c->table);
    char hash[17];
    uint32_t ctx = c->chunks.ctx;
    ob_status s = eval_open_engine(job, ctx, eval_chunks_parallel(ctx), error);
    if (s != OB_OK) return s;
    if (head->vocab != job->info.vocab) {
        s = error_set(error, OB_ERR_ARGUMENT,
                      "it was made with a vocabulary of %u, this model has %u", head->vocab,
                      job->info.vocab);
        error_at(error, job->options->ref, NULL, OB_NO_OFFSET);
        return s;
    }
    eval_hex(head->text, hash);
    return eval_open_journal(
        job,
        json_pack("{s:s, s:s, s:s, s:I, s:I}", "eval", "kld", "ref", head->model, "text", hash,
                  "ctx", (json_int_t)ctx, "stride", (json_int_t)c->chunks.stride),
        error);
}

static ob_status compare(struct comparing *c, ob_error *error) {
    ob_status s = open_table(c, error);
    if (s == OB_OK) s = open_model(c, error);
    if (s != OB_OK) return s;
    size_t n = (size_t)c->chunks.chunks * c->chunks.rows;
    c->at = malloc(n * sizeof *c->at);
    c->numbers = malloc(FIELDS * (size_t)c->chunks.rows * sizeof *c->numbers);
    if (!c->at || !c->numbers) return error_memory(error, "results", n * sizeof *c->at);
    for (uint32_t i = 0; i < 65536; i++) c->exps[i] = exp(eval_table_log(i));
    uint32_t done = 0;
    for (; s == OB_OK && done < c->chunks.chunks && done < json_array_size(c->job->records); done++)
        s = recall(c, done, error);
    const struct eval_run run = {
        .user = c, .begin = compare_begin, .row = compare_row, .end = compare_end};
    if (s == OB_OK) s = eval_chunks_run(c->job->engine, &c->chunks, done, &run, error);
    cli_progress("", 1, 1);
    return s;
}

/* ---- the report ------------------------------------------------------------------------------ */

static json_t *json_spread(double min, double median, double max, const double quantile[8]) {
    json_t *json = json_pack("{s:f, s:f, s:f}", "min", min, "median", median, "max", max);
    for (size_t i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "%g%%", eval_quantiles[i] * 100);
        json_object_set_new(json, name, eval_json_real(quantile[i]));
    }
    return json;
}

static json_t *json_of(const struct comparing *c, const struct eval_divergence *d) {
    json_t *json =
        json_pack("{s:s, s:o, s:s, s:s, s:i, s:i, s:I}", "eval", "kld", "model",
                  cli_json_text(str_of(c->job->info.name)), "device", c->job->info.device,
                  "reference", eval_table_head(c->table)->model, "ctx", (int)c->chunks.ctx,
                  "chunks", (int)c->chunks.chunks, "scored", (json_int_t)d->n);
    const struct {
        const char *name;
        struct eval_stat stat;
    } stats[] = {{"perplexity", d->ppl},
                 {"perplexity_ref", d->ppl_ref},
                 {"log_ratio", d->ppl_log_ratio},
                 {"ratio", d->ppl_ratio},
                 {"difference", d->ppl_difference},
                 {"kld", d->kld},
                 {"p_difference", d->p_difference},
                 {"p_rms", d->p_rms},
                 {"same_top", d->same_top}};
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++)
        json_object_set_new(json, stats[i].name, eval_json_stat(stats[i].stat));
    json_object_set_new(json, "correlation", eval_json_real(d->correlation));
    json_object_set_new(json, "kld_spread",
                        json_spread(d->kld_min, d->kld_median, d->kld_max, d->kld_quantile));
    json_object_set_new(json, "p_spread",
                        json_spread(d->p_min, d->p_median, d->p_max, d->p_quantile));
    return json;
}

static void line(const char *name, struct eval_stat stat, double scale, const char *unit) {
    printf("%-22s %11.6f +/- %9.6f%s\n", name, scale * stat.value, scale * stat.error, unit);
}

static void print_spread(const char *name, double scale, const char *unit, double min,
                         double median, double max, const double quantile[8]) {
    printf("%-22s %11.6f%s\n", name, scale * max, unit);
    for (size_t i = 0; i < 8; i++) {
        if (i == 4) printf("  %5s %14s %11.6f%s\n", "50%", "", scale * median, unit);
        printf("  %4g%% %14s %11.6f%s\n", eval_quantiles[i] * 100, "", scale * quantile[i], unit);
    }
    printf("  least %14s %11.6f%s\n", "", scale * min, unit);
}

static void print(const struct comparing *c, const struct eval_divergence *d) {
    printf("%s on %s\nagainst %s\n%u chunk%s of %u tokens, %zu positions\n\n", c->job->info.name,
           c->job->info.device, eval_table_head(c->table)->model, c->chunks.chunks,
           cli_plural(c->chunks.chunks), c->chunks.ctx, d->n);
    line("perplexity", d->ppl, 1, "");
    line("of the reference", d->ppl_ref, 1, "");
    line("ratio", d->ppl_ratio, 1, "");
    line("ln ratio", d->ppl_log_ratio, 1, "");
    line("difference", d->ppl_difference, 1, "");
    printf("%-22s %10.2f%%\n\n", "correlation of ln", 100 * d->correlation);
    line("mean KLD", d->kld, 1, "");
    print_spread("largest KLD", 1, "", d->kld_min, d->kld_median, d->kld_max, d->kld_quantile);
    putchar('\n');
    line("mean change of p", d->p_difference, 100, " %");
    line("RMS change of p", d->p_rms, 100, " %");
    print_spread("largest change of p", 100, " %", d->p_min, d->p_median, d->p_max, d->p_quantile);
    putchar('\n');
    line("same top token", d->same_top, 100, " %");
}

static int run_compare(struct eval_job *job) {
    struct comparing *c = calloc(1, sizeof *c);
    struct eval_divergence divergence;
    ob_error error;
    if (!c) return cli_fail("out of memory");
    c->job = job;
    ob_status s = compare(c, &error);
    if (s == OB_OK)
        s = eval_divergence(c->at, (size_t)c->chunks.chunks * c->chunks.rows, &divergence, &error);
    int code = EXIT_OK;
    if (s != OB_OK)
        code = cli_fail_error(&error);
    else if (job->options->json)
        code = cli_print_json(json_of(c, &divergence));
    else
        print(c, &divergence);
    free(c->at);
    free(c->numbers);
    eval_table_close(&c->table);
    free(c);
    return code;
}

int eval_kld(const struct options *options) {
    struct eval_job job = {.options = options};
    if (!options->save == !options->ref)
        return cli_misuse("kld needs --save FILE to make a reference or --ref FILE to compare");
    if (options->save && !options->file) return cli_misuse("--save needs a text (-f FILE)");
    if (options->save && options->resume)
        return cli_misuse("--save goes on by itself: --resume is for --ref");
    if (options->ref && (options->file || options->given[OPTION_INDEX_ctx] || options->stride))
        return cli_misuse("--ref holds the text and its chunks: no -f, --ctx or --stride with it");
    int code = options->save ? run_save(&job) : run_compare(&job);
    eval_close(&job);
    return code;
}
