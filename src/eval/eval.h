/* SPDX-License-Identifier: Apache-2.0
 *
 * eval.h: face of eval/: how good a model is, measured through onebit.h alone: perplexity over the
 * chunks of a text, divergence from a reference's distributions, multiple choice. Nothing here
 * prints. Functions are called from one thread; those that say so call back from pool threads. */
#ifndef EVAL_EVAL_H
#define EVAL_EVAL_H

#include <jansson.h>

#include "onebit.h"

/* ---- statistics (stats.c) -------------------------------------------------------------------- */

/* A figure and its standard error; 0 where there are fewer than two values. */
struct eval_stat {
    double value, error;
};
struct eval_stat eval_mean(const double *x, size_t n);
/* Covariance of the means of x and y. */
double eval_covariance(const double *x, const double *y, size_t n);
/* Of a share `hits` / n. */
struct eval_stat eval_share(size_t hits, size_t n);
void eval_sort(double *x, size_t n);
/* Linear between the sorted values; q from 0 to 1, n > 0. */
double eval_quantile(const double *sorted, size_t n, double q);

/* ---- rows of logits (rows.c) ----------------------------------------------------------------- */

/* log(sum(exp(x))) and the index of the largest; false if a value is not finite. n > 0. */
bool eval_log_sum(const float *x, size_t n, double *out, uint32_t *top);

/* ---- a text in chunks (chunks.c) ------------------------------------------------------------- */

/* The method of llama.cpp's perplexity tool. Without stride, chunks of ctx tokens lie side by side
 * and the predictions made in the second half of each are scored, so that each has at least ctx / 2
 * tokens before it. With a stride, windows of ctx tokens overlap, and the last `stride` predictions
 * of each are scored. If the tokenizer adds BOS, it takes the place of each chunk's first token. */
struct eval_chunks {
    int32_t *id; /* malloc'd: the text's tokens */
    size_t n;
    int32_t bos; /* -1: the tokenizer adds none */
    uint32_t ctx, stride;
    uint32_t chunks;
    uint32_t rows; /* scored in a chunk */
};
enum { EVAL_CTX_MIN = 8, EVAL_CTX_MAX = 1 << 20 };

/* Tokenizes and cuts. chunks: at most so many; 0 = all there are. */
ob_status eval_chunks_make(const ob_engine *engine, const char *text, size_t n, uint32_t ctx,
                           uint32_t stride, uint32_t chunks, struct eval_chunks *out,
                           ob_error *error);
void eval_chunks_free(struct eval_chunks *chunks);
/* The token that a row predicts. */
int32_t eval_chunks_target(const struct eval_chunks *chunks, uint32_t chunk, uint32_t row);
/* What an engine needs that runs these: sequences and rows a step. */
uint32_t eval_chunks_parallel(uint32_t ctx);
enum { EVAL_STEP_LOGITS = 256 };

struct eval_run {
    void *user;
    /* Before a chunk is computed; may be NULL. */
    ob_status (*begin)(void *user, uint32_t chunk, ob_error *error);
    /* Gets each row once, several at once from threads of a pool; false: not finite. */
    bool (*row)(void *user, uint32_t chunk, uint32_t row, const float *logits);
    /* All rows of the chunk have been seen. Chunks end in order. */
    ob_status (*end)(void *user, uint32_t chunk, ob_error *error);
};
/* Runs the chunks from `first` on. */
ob_status eval_chunks_run(ob_engine *engine, const struct eval_chunks *chunks, uint32_t first,
                          const struct eval_run *run, ob_error *error);

/* ---- a reference's distributions on disk (table.c, table_write.c) ---------------------------- */

struct eval_table_head {
    char model[128]; /* name, device and weight bytes: for people, and for resuming */
    uint32_t vocab;
    uint64_t text; /* hash of the text's bytes */
    const struct eval_chunks *chunks;
};

/* Creates the file, or opens one with the same head and finds what it already holds: *done chunks.
 * A file with another head is refused. */
struct eval_table_writer;
ob_status eval_table_create(const char *path, const struct eval_table_head *head,
                            struct eval_table_writer **out, uint32_t *done, ob_error *error);
/* A row of the chunk being written; any thread. false: not finite, or out of memory. */
bool eval_table_put(struct eval_table_writer *writer, uint32_t chunk, uint32_t row,
                    const float *logits);
/* Appends the chunk, of which all rows have been put. */
ob_status eval_table_end(struct eval_table_writer *writer, uint32_t chunk, ob_error *error);
ob_status eval_table_finish(struct eval_table_writer **writer, ob_error *error);

struct eval_table;
ob_status eval_table_open(const char *path, struct eval_table **out, ob_error *error);
/* Borrows the bytes. */
ob_status eval_table_open_memory(const void *bytes, size_t size, const char *name,
                                 struct eval_table **out, ob_error *error);
void eval_table_close(struct eval_table **table);
/* chunks.id and all else live as long as the table. */
const struct eval_table_head *eval_table_head(const struct eval_table *table);
/* Chunks there are: fewer than the head says while the file is being made. */
uint32_t eval_table_chunks(const struct eval_table *table);
/* Bytes up to the end of the last of them. */
uint64_t eval_table_size(const struct eval_table *table);
/* Checks a chunk's bytes; before its rows are asked for. */
ob_status eval_table_check(struct eval_table *table, uint32_t chunk, ob_error *error);

struct eval_table_row {
    float target;          /* log probability of the text's next token */
    uint32_t top;          /* the most likely token */
    const uint8_t *listed; /* bit i % 8 of byte i / 8: token i has a code; lowest first */
    const uint8_t *code;   /* little-endian 16 bits each, in order of the tokens */
    uint32_t count;
};
void eval_table_row(const struct eval_table *table, uint32_t chunk, uint32_t row,
                    struct eval_table_row *out);
/* Log probabilities are kept from EVAL_TABLE_FLOOR up to 0, in 16 bits on a square-root scale:
 * finest where a probability is close to 1. */
#define EVAL_TABLE_FLOOR (-16.0)
double eval_table_log(uint32_t code);

/* A 64-bit checksum against accidents, not against people. */
uint64_t eval_hash(const void *bytes, size_t n);

/* ---- divergence (kld.c) ---------------------------------------------------------------------- */

struct eval_position {
    double kld;          /* sum of p_ref * (log p_ref - log p) over tokens above the floor */
    double nll, nll_ref; /* -log of the probability of the text's next token */
    bool same_top;
};
/* false if logits are not finite. `exps` holds exp(eval_table_log(code)) for each code. */
bool eval_compare(const struct eval_table_row *ref, uint32_t vocab, const float *logits,
                  int32_t target, const double exps[65536], struct eval_position *out);

/* Definitions are llama.cpp's (tools/perplexity, --kl-divergence). */
struct eval_divergence {
    size_t n;
    struct eval_stat ppl, ppl_ref, ppl_log_ratio, ppl_ratio, ppl_difference;
    double correlation; /* of the log perplexities */
    struct eval_stat kld, p_difference, p_rms, same_top;
    double kld_min, kld_max, kld_median;
    double kld_quantile[8], p_quantile[8]; /* at eval_quantiles */
    double p_min, p_max, p_median;
};
extern const double eval_quantiles[8]; /* .999 .99 .95 .9 .1 .05 .01 .001 */
ob_status eval_divergence(const struct eval_position *position, size_t n,
                          struct eval_divergence *out, ob_error *error);

/* ---- multiple choice (choice.c) -------------------------------------------------------------- */

enum { EVAL_CHOICES = 64 };

/* One line: {"context": "...", "choices": ["...", ...], "answer": 0}, perhaps with "ending": text
 * that follows each choice and is then all that is scored. */
struct eval_question {
    json_t *json;                 /* owns the strings */
    const char *context, *ending; /* ending NULL: none */
    const char *choice[EVAL_CHOICES];
    uint32_t choices, answer;
    uint32_t line; /* where it was read, for messages: the caller's */
};
/* The error says what is wrong, `where` is left to the caller. */
ob_status eval_question_read(const char *line, size_t n, struct eval_question *out,
                             ob_error *error);
void eval_question_free(struct eval_question *question);

struct eval_score {
    double log[EVAL_CHOICES];      /* log probability of each choice */
    uint32_t tokens[EVAL_CHOICES]; /* scored */
    uint32_t bytes[EVAL_CHOICES];
};
enum eval_norm { EVAL_SUM, EVAL_TOKENS, EVAL_BYTES, EVAL_NORMS };
/* The choice with the highest log probability: whole, a token, a byte. */
uint32_t eval_pick(const struct eval_question *question, const struct eval_score *score,
                   enum eval_norm norm);
/* Scores n questions together: question i in sequence i of the batch. */
ob_status eval_choose(ob_engine *engine, ob_batch *batch, const struct eval_question *question,
                      uint32_t n, struct eval_score *score, ob_error *error);

/* ---- what is already done (journal.c) -------------------------------------------------------- */

/* A file of JSON lines: a head that says what is being measured, then a record for each part done.
 * Opening one with the same head gives its records; a torn last line is cut off; another head is
 * refused. path NULL: *out is NULL, there are no records, and adding does nothing. */
struct eval_journal;
ob_status eval_journal_open(const char *path, const json_t *head, struct eval_journal **out,
                            json_t **records, ob_error *error);
ob_status eval_journal_add(struct eval_journal *journal, const json_t *record, ob_error *error);
void eval_journal_close(struct eval_journal **journal);

#endif
