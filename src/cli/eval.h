/* SPDX-License-Identifier: Apache-2.0
 * eval.h: what the kinds of `1bit eval` share. */
#ifndef CLI_EVAL_H
#define CLI_EVAL_H

#include "cli/cli.h"
#include "eval/eval.h"

/* One run: the model, the text, and what is known of both. */
struct eval_job {
    const struct options *options;
    ob_engine *engine;
    ob_engine_info info;
    struct buf text;
    struct eval_chunks chunks;
    struct eval_journal *journal;
    json_t *records; /* of the journal: one a chunk or question already done */
};

/* Opens the model for chunks of ctx tokens, or `parallel` sequences of at most ctx (0: its own). */
ob_status eval_open_engine(struct eval_job *job, uint32_t ctx, uint32_t parallel, ob_error *error);
/* Reads --file (without the newline at its end, as llama.cpp does). */
ob_status eval_read_text(struct eval_job *job, ob_error *error);
/* Both, for a text in chunks of --ctx, which it cuts. */
ob_status eval_open_text(struct eval_job *job, ob_error *error);
/* Opens --resume. `head` (taken over) says what is measured; model and device are added. */
ob_status eval_open_journal(struct eval_job *job, json_t *head, ob_error *error);
/* The device without its threads, which change no result. */
void eval_device(const struct eval_job *job, char out[64]);
/* A hash in hexadecimal, for heads. */
void eval_hex(uint64_t hash, char out[17]);
/* Reads `fields` lists of `rows` numbers out of a record of chunk `chunk`, one after another. */
ob_status eval_read_record(const struct eval_job *job, uint32_t chunk, size_t fields,
                           const char *const *field, size_t rows, double *out, ob_error *error);
json_t *eval_json_numbers(const double *x, size_t n);
/* {"value": x, "error": y}; a value that is not finite is null. */
json_t *eval_json_stat(struct eval_stat stat);
json_t *eval_json_real(double x);
void eval_close(struct eval_job *job);

int eval_perplexity(const struct options *options);
int eval_kld(const struct options *options);
int eval_choice(const struct options *options);

#endif
