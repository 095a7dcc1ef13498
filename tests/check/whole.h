/* SPDX-License-Identifier: Apache-2.0
 *
 * whole.h: whole models in a row of 1bit-check: opened, run, closed. What goes wrong ends the row.
 */
#ifndef CHECK_WHOLE_H
#define CHECK_WHOLE_H

#include "check.h"
#include "engine/engine.h"

/* Goldens of quantized formats, NAME.gguf: of a dense model and of a mixture of experts. */
enum { WHOLE_TINIES = 2 };
extern const char *const whole_tiny[WHOLE_TINIES];

struct whole {
    struct check_row *row;
    struct source *source;
    struct engine *engine;
    uint32_t vocab, cols; /* of a row of logits */
};

void whole_open(struct whole *whole, struct check_row *row, const char *path,
                const ob_engine_options *options);
void whole_close(struct whole *whole);
/* Writes the model as a GGUF file. */
void whole_export(const struct whole *whole, const char *path);
/* Appends n tokens to the sequence in chunks; all rows of logits, malloc'd. */
float *whole_run(const struct whole *whole, struct seq *seq, const int32_t *id, uint32_t n,
                 uint32_t chunk);
/* The same for a sequence of its own, in one piece. */
float *whole_run_once(const struct whole *whole, const int32_t *id, uint32_t n);
void whole_ids(const struct whole *whole, uint64_t seed, int32_t *id, uint32_t n); /* random */
uint32_t whole_argmax(const float *row, uint32_t n);

#endif
