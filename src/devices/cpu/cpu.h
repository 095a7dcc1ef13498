/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.h: inside of the cpu device, which is also `ref` with another table of kernels.
 *
 *     cpu.c        open, memory, buffers, weights
 *     plan.c       supports, prepare: all memory a step needs
 *     run.c        one step: the nodes in order, the simple ones
 *     linear.c     one job list for all weights of a linear node
 *     experts.c    grouping tokens by expert, and the same for the experts' weights
 *     heads.c      a matrix for each head
 *     cache.c      where things lie in the paged cache, and storing in it
 *     attention.c  attending over it
 *     index.c      choosing what to attend to
 *     states.c     the recurrent ops
 *
 * Each node is cut into chunks for base/pool; a chunk's result does not depend on the cut. Work
 * too small for a barrier runs on the calling thread. */
#ifndef DEVICES_CPU_CPU_H
#define DEVICES_CPU_CPU_H

#include "base/arena.h"
#include "base/pool.h"
#include "devices/device.h"
#include "kernels/kernels.h"

struct cpu_device {
    struct device base; /* first */
    const struct kernels *kernels;
    struct pool *pool;
    uint32_t threads;
};

extern const struct device_type device_cpu, device_ref;

_Static_assert((int)PAGE_TOKENS == ATTENTION_PAGE, "graph and kernels agree");

struct device_buffer {
    void *p;
    size_t bytes;
};

/* Rows of one sequence that fall into one page. */
struct cpu_span {
    const struct step_seq *seq;
    uint32_t row, rows; /* in the batch */
    uint32_t pos;       /* of the first */
};

/* Rows [row0, row1) of the outputs of a linear_experts node one after the other, for one expert. */
struct cpu_piece {
    uint32_t expert, row0, row1;
};

/* The pairs of a route, made by its node for those that follow. */
struct cpu_groups {
    value_id of;           /* the route's value */
    uint32_t experts, used;
    uint32_t *first;       /* [experts + 1] the first pair of each expert */
    uint32_t *token;       /* [pairs] */
    uint32_t *pair;        /* [tokens * used] where each token's went */
    struct cpu_piece *piece;
    uint32_t experts_max;  /* room */
    size_t pairs_max;
};

enum { ACT_NONE = NODE_OUTPUTS };

struct device_plan {
    struct cpu_device *device;
    const struct graph *graph;
    struct arena arena;
    struct kv_types kv_type;
    struct device_buffer **kv; /* [groups] */
    size_t *page_bytes;        /* [groups] */
    uint32_t tokens, logits;
    struct graph_plan layout;
    /* What a step would look up for each node: vectors (a norm's, sinks, biases) as F32, NULL where
     * there is none; the kernels of a linear node, which of `acts` quantized or packed inputs each
     * takes, or ACT_NONE for floats, and the format that each input is made for. */
    struct cpu_node {
        const float *weight, *bias[NODE_OUTPUTS]; /* weight: of conv1d and scan transposed, of
                                                     compress all rows, of wkv4 -exp of it */
        linear_fn *linear[NODE_OUTPUTS];
        uint32_t act[NODE_OUTPUTS], acts;
        const struct quant *act_quant[NODE_OUTPUTS];
    } *info; /* [nodes] */

    char *memory; /* one block for what follows */
    size_t memory_bytes;
    char *values;          /* layout.bytes */
    char *act;             /* quantized inputs of the linear node that runs, by format */
    size_t act_bytes;      /* of one format */
    char *scratch;         /* of each thread */
    size_t scratch_bytes;  /* of one */
    float *parts;          /* attention: see attention.c */

    struct cpu_groups groups;
    struct cpu_span *span; /* [tokens] of the current step */
    uint32_t spans;
    struct cpu_span *tile; /* [tokens] of the current attention or index_select node */
    const struct step *step;
};

static inline uint32_t cpu_value_rows(const struct device_plan *p, value_id v) {
    return (uint32_t)value_rows(&p->graph->value[v], p->step->tokens, p->step->logits,
                                p->step->seqs);
}
static inline float *cpu_value(const struct device_plan *p, value_id v) {
    return (float *)(void *)(p->values + p->layout.offset[v]);
}
static inline void *cpu_scratch(const struct device_plan *p, uint32_t thread) {
    return p->scratch + p->scratch_bytes * thread;
}
static inline const struct cpu_node *cpu_info(const struct device_plan *p,
                                              const struct node *node) {
    return &p->info[node - p->graph->node];
}
static inline size_t cpu_round64(size_t n) { return (n + 63) & ~(size_t)63; }

/* plan.c */
void cpu_kernel(const struct device *device, const struct node *node, uint32_t i, char *text,
                size_t size);
bool cpu_supports(const struct device *device, const struct graph *graph, const struct node *node,
                  char *reason, size_t size);
ob_status cpu_prepare(struct device *device, const struct graph *graph, const struct device_kv *kv,
                      uint32_t tokens, uint32_t logits, struct device_plan **out, ob_error *error);
void cpu_release(struct device *device, struct device_plan **plan);

/* run.c */
ob_status cpu_give(struct device *device, struct device_plan *plan, value_id v, size_t rows,
                   const float *data, ob_error *error);
ob_status cpu_run(struct device *device, struct device_plan *plan, const struct step *step,
                  const float **logits, ob_error *error);
const float *cpu_output(const struct device *device, const struct device_plan *plan, value_id v);

/* linear.c */
void cpu_linear(struct device_plan *plan, const struct node *node);

/* experts.c: room for the pairs of a route; false when out of memory. */
bool cpu_groups_make(struct device_plan *plan, uint32_t experts, uint32_t used);
size_t cpu_experts_scratch(uint32_t cols);
void cpu_route(struct device_plan *plan, const struct node *node);
void cpu_linear_experts(struct device_plan *plan, const struct node *node);

/* heads.c */
size_t cpu_heads_scratch(uint32_t cols);
void cpu_linear_heads(struct device_plan *plan, const struct node *node);

/* cache.c: one node's part of the pages. */
struct cpu_cache {
    const struct cache_group *shape;
    char *layer;       /* page 0's block of KV head 0 */
    size_t page_bytes, block_bytes;
    uint32_t group;
};
struct cpu_cache cpu_cache_of(const struct device_plan *plan, uint32_t cache);
/* NULL: the page was given back. */
void *cpu_cache_block(const struct cpu_cache *cache, const struct step_seq *seq, uint32_t page,
                      uint32_t kv_head);
/* Stores the rows of all tokens of the step that have an entry. */
void cpu_cache_store(const struct device_plan *plan, const struct cpu_cache *cache, const float *k,
                     const float *v);

/* index.c */
size_t cpu_index_scratch(const struct node *node);
void cpu_index_select(struct device_plan *plan, const struct node *node);

/* attention.c: bytes a thread's scratch and the parts of a plan need for the widest node. */
size_t cpu_attention_scratch(uint32_t k_dim, uint32_t v_dim);
size_t cpu_attention_parts(const struct cpu_device *device, uint32_t v_dim);
void cpu_attention(struct device_plan *plan, const struct node *node);

/* states.c */
void cpu_compress(struct device_plan *plan, const struct node *node);
void cpu_embed_ngrams(struct device_plan *plan, const struct node *node);
void cpu_conv1d(struct device_plan *plan, const struct node *node);
void cpu_token_shift(struct device_plan *plan, const struct node *node);
void cpu_delta(struct device_plan *plan, const struct node *node);
void cpu_mlstm(struct device_plan *plan, const struct node *node);
void cpu_rglru(struct device_plan *plan, const struct node *node);
void cpu_scan(struct device_plan *plan, const struct node *node);
void cpu_wkv4(struct device_plan *plan, const struct node *node);

#endif
