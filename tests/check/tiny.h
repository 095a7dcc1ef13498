/* SPDX-License-Identifier: Apache-2.0
 *
 * tiny.h: graphs of a few nodes on a device, for the devices tier: random inputs are embedding
 * matrices whose row i is token i's. */
#ifndef CHECK_TINY_H
#define CHECK_TINY_H

#include "base/arena.h"
#include "check.h"
#include "devices/device.h"

enum { TINY_POSITIONS = 1600, TINY_PAGES = TINY_POSITIONS / PAGE_TOKENS + 1, TINY_SEQS = 4,
       TINY_GROUPS = 16 };

struct tiny {
    struct check_row *row;
    struct arena arena;
    struct graph graph;
};

void tiny_init(struct tiny *t, struct check_row *row);
/* Random blocks before a guard page, the largest size of each in [low, high]. */
char *tiny_blocks(struct check_row *row, const struct quant *quant, size_t blocks, float low,
                  float high);
/* Random weights up to 1, or such blocks up to 4 where the format has no encoder. */
struct weight *tiny_weight(struct tiny *t, const struct quant *quant, uint32_t rows, uint32_t cols);
struct weight *tiny_experts(struct tiny *t, const struct quant *quant, uint32_t experts,
                            uint32_t rows, uint32_t cols);
/* A value of `cols` whose row for token id i is row i of a random matrix. */
value_id tiny_input(struct tiny *t, uint32_t ids, uint32_t cols);

/* A device with caches for TINY_SEQS sequences of TINY_POSITIONS, and a plan. */
struct tiny_run {
    struct tiny *tiny;
    struct device *device;
    struct device_plan *plan;
    struct device_kv kv;
    const uint32_t *page[TINY_SEQS][TINY_GROUPS]; /* [sequence][group] */
    struct step_seq seq[TINY_SEQS];
    uint32_t past[TINY_SEQS];
};
/* `on`: an instruction set of the cpu device, or another device; NULL: the ref device. The row is
 * skipped if the device declines a node. */
void tiny_open(struct tiny_run *run, struct tiny *t, const char *on, uint32_t threads,
               struct kv_types kv, uint32_t tokens);
/* The same of another device, with options of its own. */
void tiny_open_with(struct tiny_run *run, struct tiny *t, const char *device,
                    const struct device_options *options, struct kv_types kv, uint32_t tokens);
void tiny_close(struct tiny_run *run);
/* Adds count[s] tokens to each sequence s; ids are the positions + 17 * s. Copies the output rows
 * of all its tokens, sequence after sequence, or of its sequences; out NULL: dropped. */
void tiny_step(struct tiny_run *run, const uint32_t count[TINY_SEQS], float *out);

#endif
