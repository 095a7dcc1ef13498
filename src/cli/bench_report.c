/* SPDX-License-Identifier: Apache-2.0
 * bench_report.c: what was measured, as a table, CSV, Markdown or JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"
#include "eval/eval.h"

void bench_summarize(struct bench_result *r) {
    double sorted[1000]; /* --repeat allows no more */
    size_t n = r->runs;
    memcpy(sorted, r->rate, n * sizeof *sorted);
    eval_sort(sorted, n);
    struct eval_stat mean = eval_mean(sorted, n);
    r->mean = mean.value;
    r->deviation = mean.error * sqrt((double)n);
    r->median = eval_quantile(sorted, n, 0.5);
    r->min = sorted[0];
    r->max = sorted[n - 1];
}

double bench_share(const struct bench_result *r) {
    bool prompt = r->kind[0] == 'p';
    double limit = prompt ? r->int8_limit : r->read_limit;
    return limit > 0 ? r->median * (prompt ? r->ops_token : r->bytes_token) / limit : -1;
}

/* "81% of 45.2 GB/s", "72% of 2.06 TOPS", or "-". */
static void share_text(const struct bench_result *r, char out[32]) {
    double part = 100 * bench_share(r);
    if (part < 0)
        snprintf(out, 32, "-");
    else if (r->kind[0] == 'p')
        snprintf(out, 32, "%.0f%% of %.2f TOPS", part, r->int8_limit * 1e-12);
    else
        snprintf(out, 32, "%.0f%% of %.1f GB/s", part, r->read_limit * 1e-9);
}

/* "pp512" */
static void name_of(const struct bench_result *r, char out[24]) {
    snprintf(out, 24, "%s%u", r->kind, r->n);
}

void bench_weights(const struct bench *b, char out[80]) {
    char weights[24], bytes[24], active[40] = "";
    cli_count(b->active, weights);
    if (b->active < b->parameters) snprintf(active, sizeof active, " (%s a token)", weights);
    cli_count(b->parameters, weights);
    cli_bytes(b->weight_bytes, bytes);
    snprintf(out, 80, "%s weights%s, %s", weights, active, bytes);
}

/* ---- table ----------------------------------------------------------------------------------- */

static void table_row(const struct bench_result *r, struct buf *out) {
    char name[24], share[32];
    name_of(r, name);
    share_text(r, share);
    buf_printf(out, "%8s %6u %5u %7u %6s %10.2f %10.2f %10.2f  %s\n", name, r->depth, r->batch,
               r->threads, r->kv_type, r->median, r->min, r->max, share);
}

static void table_head(const struct bench *b, struct buf *out) {
    char weights[80];
    bench_weights(b, weights);
    buf_printf(out, "%s (%s, %s) on %s; tokens a second\n\n", b->name, b->family, weights,
               b->device);
    buf_printf(out, "%8s %6s %5s %7s %6s %10s %10s %10s  %s\n", "test", "depth", "batch", "threads",
               "kv", "median", "min", "max", "of limit");
}

/* ---- Markdown -------------------------------------------------------------------------------- */

static void markdown_row(const struct bench_result *r, struct buf *out) {
    char name[24], share[32];
    name_of(r, name);
    share_text(r, share);
    buf_printf(out, "| %s | %u | %u | %u | %s | %.2f | %.2f | %.2f | %s |\n", name, r->depth,
               r->batch, r->threads, r->kv_type, r->median, r->min, r->max, share);
}

static void markdown_head(const struct bench *b, struct buf *out) {
    char weights[80];
    bench_weights(b, weights);
    buf_puts(out, "**");
    for (const char *p = b->name; *p; p++) {
        if (strchr("\\`*_{}[]<>|#", *p)) buf_putc(out, '\\');
        buf_putc(out, *p);
    }
    buf_printf(out, "** (%s, %s) on %s; tokens a second\n\n", b->family, weights, b->device);
    buf_puts(out,
             "| test | depth | batch | threads | kv | median | min | max | of limit |\n"
             "|---|--:|--:|--:|---|--:|--:|--:|--:|\n");
}

/* ---- CSV (RFC 4180, but for the line ends) --------------------------------------------------- */

static void csv_text(const char *text, struct buf *out) {
    buf_putc(out, '"');
    for (const char *p = text; *p; p++) {
        if (*p == '"') buf_putc(out, '"');
        buf_putc(out, *p);
    }
    buf_puts(out, "\",");
}

static void csv_row(const struct bench *b, const struct bench_result *r, struct buf *out) {
    csv_text(b->name, out);
    csv_text(b->family, out);
    csv_text(b->device, out);
    buf_printf(out, "%llu,%llu,%s,%u,%u,%u,%u,%s,%zu,", (unsigned long long)b->parameters,
               (unsigned long long)b->weight_bytes, r->kind, r->n, r->depth, r->batch, r->threads,
               r->kv_type, r->runs);
    buf_printf(out, "%.4f,%.4f,%.4f,%.4f,%.4f,%.0f,%.0f,%.0f,%.0f\n", r->median, r->mean,
               r->deviation, r->min, r->max, r->bytes_token, r->ops_token, r->read_limit,
               r->int8_limit);
}

static void csv_head(struct buf *out) {
    buf_puts(out,
             "model,family,device,weights,weight_bytes,test,tokens,depth,batch,threads,"
             "kv_type,runs,median,mean,stddev,min,max,bytes_token,ops_token,read_limit,"
             "int8_limit\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_result(const struct bench_result *r) {
    json_t *runs = json_array();
    double part = bench_share(r);
    for (size_t i = 0; i < r->runs; i++) json_array_append_new(runs, json_real(r->rate[i]));
    json_t *json = json_pack("{s:s, s:i, s:i, s:i, s:i, s:s}", "test", r->kind, "tokens", (int)r->n,
                             "depth", (int)r->depth, "batch", (int)r->batch, "threads",
                             (int)r->threads, "kv_type", r->kv_type);
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"mean", r->mean},
                   {"median", r->median},
                   {"stddev", r->deviation},
                   {"min", r->min},
                   {"max", r->max},
                   {"bytes_token", r->bytes_token},
                   {"ops_token", r->ops_token},
                   {"read_limit", r->read_limit},
                   {"int8_limit", r->int8_limit}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        json_object_set_new(json, numbers[i].name, json_real(numbers[i].value));
    json_object_set_new(json, "share", part < 0 ? json_null() : json_real(part));
    json_object_set_new(json, "runs", runs);
    return json;
}

json_t *bench_json(const struct bench *b) {
    json_t *results = json_array();
    for (size_t i = 0; i < b->results; i++)
        json_array_append_new(results, json_result(&b->result[i]));
    return json_pack("{s:o, s:s, s:s, s:I, s:I, s:I, s:o}", "model", cli_json_text(str_of(b->name)),
                     "family", b->family, "device", b->device, "weights", (json_int_t)b->parameters,
                     "active_weights", (json_int_t)b->active, "weight_bytes",
                     (json_int_t)b->weight_bytes, "results", results);
}

/* ---- which ----------------------------------------------------------------------------------- */

void bench_head(const struct bench *b, enum bench_form form, struct buf *out) {
    if (form == BENCH_TABLE) table_head(b, out);
    if (form == BENCH_CSV) csv_head(out);
    if (form == BENCH_MARKDOWN) markdown_head(b, out);
}

void bench_row(const struct bench *b, const struct bench_result *r, enum bench_form form,
               struct buf *out) {
    if (form == BENCH_TABLE) table_row(r, out);
    if (form == BENCH_CSV) csv_row(b, r, out);
    if (form == BENCH_MARKDOWN) markdown_row(r, out);
}
