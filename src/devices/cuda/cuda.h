/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda.h: inside of the cuda device.
 *
 *     driver.c   the driver, opened at run time
 *     images.c   the kernels, which nvcc compiled into the program, and finding them in a GPU
 *     cuda.c     open, memory, buffers
 *     weights.c  weights on the GPU
 *     plan.c     supports, prepare: all memory a step needs
 *     fuse.c     which nodes share a kernel; fuse_sums.c: sums and norms
 *     step.c     what a step is, for the kernels
 *     replay.c   a step that was launched before as one CUDA graph
 *     run.c      one step: the nodes in order; linear.c, experts.c, attention.c, attention_mma.c,
 *                index.c, states.c: theirs
 *     kernels/   CUDA C
 *
 * Everything goes to one stream, in order; a step waits at its end. The first error of a step stays
 * in the device: later calls are skipped, and the step reports it. */
#ifndef DEVICES_CUDA_CUDA_H
#define DEVICES_CUDA_CUDA_H

#include "base/arena.h"
#include "devices/cuda/driver.h"
#include "devices/cuda/kernels/args.h"
#include "devices/device.h"

enum cuda_kernel {
#define KERNEL(name) CUDA_##name,
#include "devices/cuda/kernels/kernels.def"
#undef KERNEL
    CUDA_KERNELS
};

struct cuda_device {
    struct device base; /* first */
    const struct cuda_driver *driver;
    CUdevice device;
    CUcontext context;
    CUstream stream;
    CUmodule *module;
    uint32_t modules;
    CUfunction kernel[CUDA_KERNELS];
    CUfunction linear[QUANT_COUNT], linear_experts[QUANT_COUNT], linear_heads[QUANT_COUNT];
    struct { CUfunction one, few, many; } thin[QUANT_COUNT]; /* of float formats */
    struct {
        CUfunction few, some, more, many, experts_few, experts_many;
    } mma[QUANT_COUNT]; /* NULL: not of this format */
    void *staging;      /* pinned */
    bool plain;         /* every kernel is launched by itself (replay.c) */
    bool unfused;       /* a node's kernels are its own */
    bool overlaps;      /* kernels of a graph may begin while the one before runs */
    uint32_t split_shared[3]; /* bytes that attention's kernels were allowed */
    uint32_t shared_most;     /* bytes of shared memory that a block may be allowed */
    uint32_t processors;
    CUresult failed;    /* 0: nothing */
    const char *at;     /* what failed */
    char name[128];
};

extern const struct device_type device_cuda;

struct device_buffer {
    CUdeviceptr p;
    size_t bytes;
};

/* A weight on the GPU; weight.bound. */
struct cuda_weight {
    CUdeviceptr data;
    struct cuda_matrix matrix;
    float by;         /* of mma.cu: the power of two that it is multiplied by; 0: not for it */
    CUdeviceptr each; /* of mma_experts.cu: those of the matrices; 0: not for it */
};

enum { CUDA_STAGING = 16 << 20 };

/* Memory on the GPU that a plan or node owns. */
struct cuda_node {
    CUdeviceptr weight, bias[NODE_OUTPUTS]; /* vectors as F32, or what weights.c makes of a matrix
                                               for the op; 0: none */
    CUdeviceptr extra[3];                   /* tables of a rope_table, of an attention, ... */
    bool halves;                            /* its output is halved by its own kernel */
    bool halved;                            /* of a linear: its input is halved already */
    bool elsewhere;                         /* another node's kernel does it: */
    const struct node *rope[2], *norm[2];   /* of an attention, those of q and k; NULL: none */
    const struct node *add;                 /* of a linear, what adds its output; of a norm, what it
                                               norms the sum of; NULL: none */
    const struct node *combine;             /* of a norm with an add, what makes an input of that */
};

enum { CUDA_SPLIT = 128 /* positions that attention sums apart, as in kernels/cache.cuh */ };

/* All of a step that launches depend on; the rest is data on the GPU. Nodes see nothing else of
 * it, so that equal shapes are equal launches. */
struct cuda_shape {
    CUdeviceptr memory; /* where the step lies */
    uint32_t tokens, seqs, logits;
    uint32_t longest;   /* tokens of the sequence that has most in the step */
    uint32_t end;       /* positions of the longest context, up to a multiple of CUDA_SPLIT */
};

/* A shape that was run lately: once, then there is no graph yet, or more often. */
struct cuda_graph {
    struct cuda_shape shape;
    CUgraphExec exec;
    size_t bytes;  /* of the GPU, about */
    uint64_t used; /* the run that used it last; 0: free */
};
enum { CUDA_GRAPHS = 16, CUDA_GRAPH_TOKENS = 64 };

struct device_plan {
    struct cuda_device *device;
    const struct graph *graph;
    struct arena arena;
    struct kv_types kv_type;
    struct device_buffer **kv; /* [groups] */
    size_t *page_bytes;        /* [groups] */
    uint32_t tokens, logits;
    struct graph_plan layout;
    struct cuda_node *info;    /* [nodes] */
    CUdeviceptr *owned;        /* all allocations, to be freed */
    uint32_t owned_count, owned_cap;
    struct weight **bound;     /* [bound_count] that the recipe made, so that no file has them */
    uint32_t bound_count;

    CUdeviceptr values, parts, scratch;
    CUdeviceptr act, act_scale; /* halved inputs of the next linear node */
    size_t parts_bytes, scratch_bytes;
    struct {
        CUdeviceptr token, expert, pair, tile, tiles;
        uint32_t experts, height; /* of the last route; pairs of a tile */
    } groups;
    struct { void *host; CUdeviceptr device; size_t bytes; struct cuda_step at; } step_memory;
    void *output[3];           /* pinned: logits, embedding, pooled */
    struct cuda_shape shape;   /* of the step that runs */
    struct cuda_graph graphs[CUDA_GRAPHS];
    enum cuda_overlap { CUDA_ALONE, CUDA_FIRST, CUDA_OVERLAPS } overlap; /* of the next launch */
    uint64_t runs;
};

/* ---- cuda.c ---- */
bool cuda_ok(struct cuda_device *d, CUresult result, const char *at); /* notes the first failure */
/* OB_OK, or the failure since the last report, which is forgotten. */
ob_status cuda_report(struct cuda_device *d, ob_error *error);
CUdeviceptr cuda_memory_new(struct cuda_device *d, size_t bytes); /* 0 on failure */
/* From pageable memory, by way of the staging memory; done when it returns. */
bool cuda_upload(struct cuda_device *d, CUdeviceptr to, const void *from, size_t bytes);

/* ---- images.c ---- */
bool cuda_images_exist(void);
ob_status cuda_images_load(struct cuda_device *d, ob_error *error);

/* ---- weights.c ---- */
uint64_t cuda_weight_memory(const struct device *device, const struct weight *weight);
ob_status cuda_bind_weight(struct device *device, struct weight *weight, ob_error *error);
void cuda_unbind_weight(struct device *device, struct weight *weight);
/* Copies on the GPU that the plan owns; 0 where w is NULL, or out of memory (noted). */
CUdeviceptr cuda_plan_vector(struct device_plan *p, const struct weight *w);
enum cuda_form { CUDA_PLAIN, CUDA_TRANSPOSED, CUDA_MINUS_EXP };
CUdeviceptr cuda_plan_matrix(struct device_plan *p, const struct weight *w, enum cuda_form form);

/* ---- plan.c ---- */
bool cuda_supports(const struct device *device, const struct graph *graph, const struct node *node,
                   char *reason, size_t size);
void cuda_kernel_text(const struct device *device, const struct node *node, uint32_t i, char *text,
                      size_t size);
ob_status cuda_prepare(struct device *device, const struct graph *graph, const struct device_kv *kv,
                       uint32_t tokens, uint32_t logits, struct device_plan **out, ob_error *error);
void cuda_release(struct device *device, struct device_plan **plan);
uint64_t cuda_plan_bytes(const struct device *device, const struct graph *graph,
                         const struct device_kv *kv, const uint64_t *group_bytes, uint32_t tokens,
                         uint32_t logits);
CUdeviceptr cuda_plan_memory(struct device_plan *p, size_t bytes); /* owned; 0 on failure */
CUdeviceptr cuda_plan_copy(struct device_plan *p, const void *data, size_t bytes);

/* ---- fuse.c ---- */
/* Marks in the nodes what runs together; false: out of memory. */
bool cuda_fuse(struct device_plan *p);

/* ---- fuse_sums.c ---- */
bool cuda_fuse_sums(struct device_plan *p); /* the same, behind it */
size_t cuda_sums_bytes(const struct device_plan *p); /* memory behind the values, at most */

/* ---- step.c ---- */
/* Puts the step on the GPU, and its shape into the plan; false: noted. */
bool cuda_step_write(struct device_plan *p, const struct step *step);

/* ---- replay.c ---- */
bool cuda_has_graphs(const struct cuda_driver *driver);
/* Do the kernels, once loaded, wait for those before them (kernels/common.cuh)? */
bool cuda_can_overlap(const struct cuda_device *d);
/* What `launch` launches, as a graph where this shape came before. */
void cuda_replay(struct device_plan *p, void (*launch)(struct device_plan *p));
void cuda_drop_graphs(struct device_plan *p);

/* ---- run.c ---- */
ob_status cuda_give(struct device *device, struct device_plan *plan, value_id v, size_t rows,
                    const float *data, ob_error *error);
ob_status cuda_run(struct device *device, struct device_plan *plan, const struct step *step,
                   const float **logits, ob_error *error);
const float *cuda_output(const struct device *device, const struct device_plan *plan, value_id v);

struct cuda_grid { uint32_t x, y, z, threads, shared; };
void cuda_launch(struct device_plan *p, CUfunction f, struct cuda_grid grid, const void *args);
static inline void cuda_run_kernel(struct device_plan *p, enum cuda_kernel k, struct cuda_grid grid,
                                   const void *args) {
    cuda_launch(p, p->device->kernel[k], grid, args);
}
/* A thread for each of n. */
void cuda_run_each(struct device_plan *p, enum cuda_kernel k, uint64_t n, const void *args);

static inline uint32_t cuda_rows(const struct device_plan *p, value_id v) {
    return (uint32_t)value_rows(&p->graph->value[v], p->shape.tokens, p->shape.logits,
                                p->shape.seqs);
}
static inline uint32_t cuda_cols(const struct device_plan *p, value_id v) {
    return p->graph->value[v].cols;
}
/* 0: NO_VALUE. */
static inline CUdeviceptr cuda_value(const struct device_plan *p, value_id v) {
    return v == NO_VALUE ? 0 : p->values + p->layout.offset[v];
}
static inline const struct cuda_node *cuda_info(const struct device_plan *p, const struct node *n) {
    return &p->info[n - p->graph->node];
}

/* ---- the nodes ---- */
struct cuda_rows cuda_rms_args(const struct device_plan *p, const struct node *n);
/* By norm_row, which may do what is before it: fuse_sums.c. */
bool cuda_is_norm_row(const struct device_plan *p, const struct node *n);
void cuda_add_args(const struct device_plan *p, const struct cuda_node *info,
                   struct cuda_norm_row *args);
struct cuda_rope cuda_rope_args(const struct device_plan *p, const struct node *n);
/* A linear, or one of experts, with weights of mma.cu. */
bool cuda_is_halving(const struct node *n);
/* Rows of v, to p->act. */
struct cuda_halve cuda_halve_args(const struct device_plan *p, value_id v);
size_t cuda_act_bytes(uint32_t cols, uint32_t rows); /* halved inputs */
void cuda_linear(struct device_plan *p, const struct node *n);
void cuda_linear_experts(struct device_plan *p, const struct node *n);
uint32_t cuda_tiles_most(uint32_t pairs, uint32_t experts);
void cuda_linear_heads(struct device_plan *p, const struct node *n);
void cuda_route(struct device_plan *p, const struct node *n);
/* Rows of v, to p->act, by a kernel of their own. */
void cuda_halve(struct device_plan *p, value_id v);
void cuda_attention(struct device_plan *p, const struct node *n);
void cuda_attention_tiles(const struct device_plan *p, struct cuda_attention *a, uint32_t rows);
/* On tensor cores? By the model and its caches alone. */
bool cuda_attention_is_mma(const struct device_plan *p, const struct node *n);
void cuda_attention_mma(struct device_plan *p, const struct node *n, struct cuda_attention *a);
bool cuda_attention_mma_allow(struct cuda_device *d);
/* Sets what a block may have of shared memory, for all its launches. */
bool cuda_attention_allow(struct device_plan *p, const struct node *n);
size_t cuda_attention_parts(const struct device_plan *p, const struct node *n); /* bytes, least */
struct cuda_cache cuda_cache_of(const struct device_plan *p, uint32_t cache);
void cuda_cache_store(struct device_plan *p, const struct cuda_cache *cache, CUdeviceptr k,
                      CUdeviceptr v);
void cuda_index_select(struct device_plan *p, const struct node *n);
size_t cuda_index_parts(const struct device_plan *p, const struct node *n); /* bytes, least */
void cuda_compress(struct device_plan *p, const struct node *n);
void cuda_embed_ngrams(struct device_plan *p, const struct node *n);
void cuda_mlstm(struct device_plan *p, const struct node *n);
void cuda_conv1d(struct device_plan *p, const struct node *n);
void cuda_delta(struct device_plan *p, const struct node *n);
void cuda_scan(struct device_plan *p, const struct node *n);
void cuda_rglru(struct device_plan *p, const struct node *n);
void cuda_token_shift(struct device_plan *p, const struct node *n);
void cuda_wkv4(struct device_plan *p, const struct node *n);

/* Rows of `bytes` each that the plan's memory for parts holds, and a launch takes. */
static inline uint32_t cuda_rows_at_once(const struct device_plan *p, size_t bytes) {
    enum { MOST = 16384 };
    return p->parts_bytes / bytes > MOST ? MOST : (uint32_t)(p->parts_bytes / bytes);
}

#endif
