/* SPDX-License-Identifier: Apache-2.0
 * bench.h: what the files of `1bit bench` share: results, the machine's limits, reports. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "cli/cli.h"

/* One test: its runs, and the limits measured just before them. */
struct bench_result {
    const char *kind; /* "pp": reading a prompt, "tg": writing an answer */
    uint32_t n;       /* tokens of each sequence */
    uint32_t depth;   /* tokens already in the cache of each */
    uint32_t batch;   /* sequences */
    uint32_t threads;
    const char *kv_type;
    size_t runs;
    double *rate; /* [runs] tokens a second of all sequences, in the order measured */
    double mean, median, deviation, min, max;
    double bytes_token; /* of weights and cache, read for each token written */
    double ops_token;   /* int8 operations of the matrix products, for each token */
    double read_limit;  /* bytes a second; 0: not measured */
    double int8_limit;  /* operations a second; 0: not measured */
};
/* Of the limit: bytes read in "tg", operations in "pp"; negative if there is none. */
double bench_share(const struct bench_result *result);

struct bench {
    char name[128], family[32], device[64];
    uint64_t parameters, active, weight_bytes; /* active: those a token uses */
    struct bench_result *result;
    size_t results;
};

/* ---- statistics ---- */
void bench_summarize(struct bench_result *result);

/* ---- the machine (bench_machine.c) ---- */

/* Read bandwidth over the model's file, and int8 multiply-adds in registers. */
struct bench_machine;
ob_status bench_machine_open(const char *model, const char *cpu_isa, struct bench_machine **out,
                             ob_error *error);
/* About a quarter of a second. Neither is measured for the reference device. */
ob_status bench_machine_measure(struct bench_machine *machine, uint32_t threads,
                                struct bench_result *out, ob_error *error);
void bench_machine_close(struct bench_machine **machine);

/* ---- reports (bench_report.c, bench_html.c) ---- */
enum bench_form { BENCH_TABLE, BENCH_CSV, BENCH_MARKDOWN, BENCH_JSON };
void bench_head(const struct bench *bench, enum bench_form form, struct buf *out);
void bench_row(const struct bench *bench, const struct bench_result *result, enum bench_form form,
               struct buf *out);
/* "5.6 G weights (0.9 G a token), 3.5 GB" */
void bench_weights(const struct bench *bench, char out[80]);
/* NULL when out of memory. */
json_t *bench_json(const struct bench *bench);
/* One page that needs nothing else: charts and the table. */
void bench_html(const struct bench *bench, struct buf *out);

#endif
