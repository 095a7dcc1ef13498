/* SPDX-License-Identifier: Apache-2.0
 *
 * count_linear.c: one matrix product of 64 rows by 1024 columns, some times over, for emulators
 * that count what a processor would do: the instructions of a run less those of a shorter one are
 * the product's. bench/count-linear prints them. Arguments: ISA FORMAT TOKENS TIMES. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"

enum { ROWS = 64, COLS = 1024 };

static const struct quant *find(const char *name) {
    for (int i = 0; i < QUANT_COUNT; i++)
        if (strcmp(quant_list[i]->name, name) == 0) return quant_list[i];
    return NULL;
}

/* The rows of activations as the table takes them, all zero: no kernel looks at their values. */
static void *rows_of(const struct kernels *k, const struct quant *quant, uint32_t tokens) {
    float *x = calloc((size_t)tokens * COLS, sizeof *x);
    if (!x || !kernels_linear_takes_act(quant)) return x;
    char *act = aligned_alloc(64, act_row_bytes(COLS) * tokens);
    char *packed = aligned_alloc(64, act_packed_bytes(COLS, tokens));
    for (uint32_t t = 0; act && packed && t < tokens; t++)
        k->act_quantize(x + (size_t)t * COLS, COLS, act + t * act_row_bytes(COLS));
    if (!k->act_pack) return act;
    for (uint32_t t = 0; act && packed && t < tokens; t++) {
        struct act row = act_row(act, COLS, t);
        k->act_pack(quant, &row, COLS, t, tokens, packed);
    }
    return packed;
}

int main(int argc, char **argv) {
    enum cpu_isa isa;
    const struct quant *quant = argc == 5 ? find(argv[2]) : NULL;
    int tokens = quant ? atoi(argv[3]) : 0;
    if (tokens < 1 || tokens > 1024 || !cpu_isa_find(argv[1], &isa) || !cpu_has(isa)) {
        fprintf(stderr, "usage: count_linear ISA FORMAT TOKENS TIMES; an ISA of this processor\n");
        return 2;
    }
    const struct kernels *k = kernels_table(isa);
    struct linear_job job = {.quant = quant,
                             .row_bytes = quant_row_bytes(quant, COLS),
                             .cols = COLS,
                             .tokens = (uint32_t)tokens,
                             .x = rows_of(k, quant, (uint32_t)tokens),
                             .y = calloc((size_t)tokens * ROWS, sizeof(float)),
                             .y_stride = ROWS,
                             .scratch = aligned_alloc(64, kernels_linear_scratch())};
    job.w = calloc(ROWS, job.row_bytes);
    if (!job.x || !job.y || !job.w || !job.scratch) return 1;
    for (int i = atoi(argv[4]); i > 0; i--) k->linear[quant_index_of(quant)](&job, 0, ROWS);
    return 0;
}
