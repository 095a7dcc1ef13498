/* SPDX-License-Identifier: Apache-2.0
 * eval_perplexity.c: `1bit eval perplexity`. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/os.h"
#include "cli/eval.h"

struct measuring {
    struct eval_job *job;
    double *nll;     /* [chunks][rows] */
    double *running; /* [chunks]: perplexity up to each */
};

static bool on_row(void *user, uint32_t chunk, uint32_t row, const float *logits) {
    struct measuring *m = user;
    const struct eval_chunks *c = &m->job->chunks;
    double log_sum;
    uint32_t top;
    if (!eval_log_sum(logits, m->job->info.vocab, &log_sum, &top)) return false;
    m->nll[(size_t)chunk * c->rows + row] =
        log_sum - (double)logits[eval_chunks_target(c, chunk, row)];
    return true;
}

static void show(struct measuring *m, uint32_t chunk) {
    const struct eval_chunks *c = &m->job->chunks;
    char text[64];
    m->running[chunk] = exp(eval_mean(m->nll, (size_t)(chunk + 1) * c->rows).value);
    snprintf(text, sizeof text, "chunk %u of %u, perplexity %.4f", chunk + 1, c->chunks,
             m->running[chunk]);
    cli_progress(text, chunk + 1, c->chunks);
}

static ob_status on_end(void *user, uint32_t chunk, ob_error *error) {
    struct measuring *m = user;
    const struct eval_chunks *c = &m->job->chunks;
    json_t *record = json_pack("{s:I, s:o}", "chunk", (json_int_t)chunk, "nll",
                               eval_json_numbers(m->nll + (size_t)chunk * c->rows, c->rows));
    ob_status s = eval_journal_add(m->job->journal, record, error);
    json_decref(record);
    show(m, chunk);
    return s;
}

static ob_status prepare(struct measuring *m, ob_error *error) {
    struct eval_job *job = m->job;
    const struct options *o = job->options;
    uint32_t ctx = (uint32_t)o->ctx;
    char hash[17];
    ob_status s = eval_open_text(job, error);
    if (s != OB_OK) return s;
    eval_hex(eval_hash(job->text.p, job->text.n), hash);
    s = eval_open_journal(job,
                          json_pack("{s:s, s:s, s:I, s:I}", "eval", "perplexity", "text", hash,
                                    "ctx", (json_int_t)ctx, "stride", (json_int_t)o->stride),
                          error);
    size_t n = (size_t)job->chunks.chunks * job->chunks.rows;
    m->nll = malloc(n * sizeof *m->nll);
    m->running = malloc(job->chunks.chunks * sizeof *m->running);
    if (s == OB_OK && (!m->nll || !m->running)) s = error_memory(error, "results", n * 8);
    return s;
}

static ob_status measure(struct measuring *m, ob_error *error) {
    struct eval_job *job = m->job;
    const struct eval_chunks *c = &job->chunks;
    uint32_t done = 0;
    for (; done < c->chunks && done < json_array_size(job->records); done++) {
        ob_status s = eval_read_record(job, done, 1, (const char *const[]){"nll"}, c->rows,
                                       m->nll + (size_t)done * c->rows, error);
        if (s != OB_OK) return s;
        m->running[done] = exp(eval_mean(m->nll, (size_t)(done + 1) * c->rows).value);
    }
    const struct eval_run run = {.user = m, .row = on_row, .end = on_end};
    return eval_chunks_run(job->engine, c, done, &run, error);
}

static int report(struct measuring *m, double seconds) {
    const struct eval_job *job = m->job;
    const struct eval_chunks *c = &job->chunks;
    size_t n = (size_t)c->chunks * c->rows;
    struct eval_stat nll = eval_mean(m->nll, n);
    double value = exp(nll.value);
    if (job->options->json)
        return cli_print_json(json_pack(
            "{s:s, s:o, s:s, s:i, s:i, s:i, s:I, s:I, s:o, s:o, s:o, s:f}", "eval", "perplexity",
            "model", cli_json_text(str_of(job->info.name)), "device", job->info.device, "ctx",
            (int)c->ctx, "stride", (int)c->stride, "chunks", (int)c->chunks, "tokens",
            (json_int_t)c->n, "scored", (json_int_t)n, "nll", eval_json_stat(nll), "perplexity",
            eval_json_stat((struct eval_stat){value, value * nll.error}), "running",
            eval_json_numbers(m->running, c->chunks), "seconds", seconds));
    printf("%s on %s\n%u chunk%s of %u tokens, %zu of them scored\nperplexity %.4f +/- %.5f\n",
           job->info.name, job->info.device, c->chunks, cli_plural(c->chunks), c->ctx, n, value,
           value * nll.error);
    return EXIT_OK;
}

int eval_perplexity(const struct options *options) {
    struct eval_job job = {.options = options};
    struct measuring m = {.job = &job};
    ob_error error;
    if (!options->file) return cli_misuse("perplexity needs a text (-f FILE)");
    double start = os_seconds();
    ob_status s = prepare(&m, &error);
    if (s == OB_OK) s = measure(&m, &error);
    cli_progress("", 1, 1);
    int code = s == OB_OK ? report(&m, os_seconds() - start) : cli_fail_error(&error);
    free(m.nll);
    free(m.running);
    eval_close(&job);
    return code;
}
