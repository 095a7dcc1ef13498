/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c: one step: the nodes in order, all on one stream; the outputs come back at the end. The
 * simple nodes are here. */
#include <assert.h>
#include <stddef.h>

#include "devices/cuda/cuda.h"

enum { EACH = 256 };

/* ---- launching ---- */

static CUresult launch_overlapping(const struct cuda_device *d, CUfunction f,
                                   const struct cuda_grid *grid, void **args) {
    struct cuda_launch_attribute overlaps = {.id = CUDA_LAUNCH_OVERLAPS, .value.allowed = 1};
    const struct cuda_launch how = {grid->x,      grid->y,   grid->z,   grid->threads, 1, 1,
                                    grid->shared, d->stream, &overlaps, 1};
    return d->driver->launch_with(&how, f, args, NULL);
}

void cuda_launch(struct device_plan *p, CUfunction f, struct cuda_grid grid, const void *args) {
    struct cuda_device *d = p->device;
    void *list[] = {(void *)args};
    if (d->failed || grid.x == 0 || grid.y == 0 || grid.z == 0) return;
    if (p->overlap == CUDA_OVERLAPS) {
        cuda_ok(d, launch_overlapping(d, f, &grid, list), "a kernel's launch");
        return;
    }
    if (p->overlap == CUDA_FIRST) p->overlap = CUDA_OVERLAPS;
    cuda_ok(d, d->driver->launch(f, grid.x, grid.y, grid.z, grid.threads, 1, 1, grid.shared,
                                 d->stream, list, NULL),
            "a kernel's launch");
}

void cuda_run_each(struct device_plan *p, enum cuda_kernel k, uint64_t n, const void *args) {
    cuda_run_kernel(p, k, (struct cuda_grid){(uint32_t)((n + EACH - 1) / EACH), 1, 1, EACH, 0},
                    args);
}

static uint64_t elements(const struct device_plan *p, value_id v) {
    return (uint64_t)cuda_rows(p, v) * cuda_cols(p, v);
}

/* ---- element by element ---- */

static struct cuda_map map_args(const struct device_plan *p, const struct node *n,
                                enum cuda_map_kind kind) {
    uint32_t cols = cuda_cols(p, n->out[0]);
    struct cuda_map args = {.a = cuda_value(p, n->in[0]),
                            .y = cuda_value(p, n->out[0]),
                            .n = elements(p, n->out[0]),
                            .kind = kind,
                            .a_run = cols / cuda_cols(p, n->in[0]),
                            .b_run = 1,
                            .cols = cols};
    if (n->inputs > 1) {
        args.b = cuda_value(p, n->in[1]);
        args.b_run = cols / cuda_cols(p, n->in[1]);
    }
    return args;
}

static void map(struct device_plan *p, const struct cuda_map *args) {
    cuda_run_each(p, CUDA_map, args->n, args);
}

static void run_act(struct device_plan *p, const struct node *n) {
    struct cuda_map args = map_args(p, n, MAP_ACT);
    args.act = n->u.act.kind;
    map(p, &args);
}
static void run_add(struct device_plan *p, const struct node *n) {
    struct cuda_map args = map_args(p, n, MAP_ADD);
    map(p, &args);
}
static void run_affine(struct device_plan *p, const struct node *n) {
    struct cuda_map args = map_args(p, n, MAP_AFFINE);
    args.b = cuda_info(p, n)->weight;
    args.c = cuda_info(p, n)->bias[0];
    map(p, &args);
}
static void run_clamp(struct device_plan *p, const struct node *n) {
    struct cuda_map args = map_args(p, n, MAP_CLAMP);
    args.f[0] = n->u.clamp.low;
    args.f[1] = n->u.clamp.high;
    map(p, &args);
}
/* The next linear takes the row from here. */
static void run_glu_row(struct device_plan *p, const struct node *n) {
    struct cuda_glu_row args = {.gate = cuda_value(p, n->in[0]),
                                .up = cuda_value(p, n->in[1]),
                                .y = cuda_value(p, n->out[0]),
                                .act = n->u.glu.act,
                                .halve = cuda_halve_args(p, n->out[0])};
    struct cuda_grid grid = {cuda_rows(p, n->out[0]), 1, 1, args.halve.cols > 2048 ? 1024 : 256,
                             0};
    cuda_run_kernel(p, CUDA_glu_row, grid, &args);
}
static void run_glu(struct device_plan *p, const struct node *n) {
    if (cuda_info(p, n)->halves) {
        run_glu_row(p, n);
        return;
    }
    struct cuda_map args = map_args(p, n, MAP_GLU);
    args.act = n->u.glu.act;
    map(p, &args);
}
static void run_glu_clamped(struct device_plan *p, const struct node *n) {
    struct cuda_map args = map_args(p, n, MAP_GLU_CLAMPED);
    args.f[0] = n->u.glu_clamped.alpha;
    args.f[1] = n->u.glu_clamped.limit;
    args.f[2] = n->u.glu_clamped.up_limit;
    args.f[3] = n->u.glu_clamped.up_add;
    map(p, &args);
}
static void run_mul(struct device_plan *p, const struct node *n) {
    struct cuda_map args = map_args(p, n, MAP_MUL);
    map(p, &args);
}
static void run_scale(struct device_plan *p, const struct node *n) {
    struct cuda_map args = map_args(p, n, MAP_SCALE);
    args.f[0] = n->u.scale.value;
    map(p, &args);
}
static void run_softcap(struct device_plan *p, const struct node *n) {
    struct cuda_map args = map_args(p, n, MAP_SOFTCAP);
    args.f[0] = n->u.softcap.cap;
    map(p, &args);
}
static void run_xielu(struct device_plan *p, const struct node *n) {
    struct cuda_map args = map_args(p, n, MAP_XIELU);
    args.f[0] = n->u.xielu.above;
    args.f[1] = n->u.xielu.below;
    args.f[2] = n->u.xielu.beta;
    args.f[3] = n->u.xielu.eps;
    map(p, &args);
}

static void run_scale_position(struct device_plan *p, const struct node *n) {
    struct cuda_scale_position args = {.x = cuda_value(p, n->in[0]),
                                       .pos = p->step_memory.at.pos,
                                       .y = cuda_value(p, n->out[0]),
                                       .n = elements(p, n->out[0]),
                                       .cols = cuda_cols(p, n->out[0]),
                                       .kind = n->u.scale_position.kind,
                                       .offset = n->u.scale_position.offset,
                                       .beta = n->u.scale_position.beta,
                                       .period = n->u.scale_position.period};
    cuda_run_each(p, CUDA_scale_position, args.n, &args);
}

/* ---- rows ---- */

static struct cuda_rows rows_args(const struct device_plan *p, const struct node *n,
                                  enum cuda_row_kind kind, uint32_t width, float f) {
    const struct cuda_node *info = cuda_info(p, n);
    uint32_t cols = cuda_cols(p, n->in[0]);
    struct cuda_rows args = {.x = cuda_value(p, n->in[0]),
                             .other = n->inputs > 1 ? cuda_value(p, n->in[1]) : 0,
                             .w = info->weight,
                             .b = info->bias[0],
                             .y = cuda_value(p, n->out[0]),
                             .step = kind == ROW_ROUND ? cuda_value(p, n->out[1]) : 0,
                             .kind = kind,
                             .runs = cuda_rows(p, n->in[0]) * (cols / width),
                             .width = width,
                             .cols = cols,
                             .w_cols = n->weight[0] ? n->weight[0]->cols : 0,
                             .b_cols = n->bias[0] ? n->bias[0]->cols : 0,
                             .f = f};
    return args;
}
struct cuda_rows cuda_rms_args(const struct device_plan *p, const struct node *n) {
    return rows_args(p, n, ROW_RMS, n->u.norm.width, n->u.norm.eps);
}

/* Runs of `width` of the first input; a block each. */
static void rows(struct device_plan *p, const struct node *n, enum cuda_row_kind kind,
                 uint32_t width, float f) {
    struct cuda_rows args = rows_args(p, n, kind, width, f);
    /* By the width alone: the order of a sum depends on it. */
    uint32_t threads = width > 2048 ? 1024 : width > 256 ? 256 : 64;
    cuda_run_kernel(p, CUDA_rows, (struct cuda_grid){args.runs, 1, 1, threads, 0}, &args);
}

/* A whole row, the sum before it, and the halves of it. */
static void run_norm_row(struct device_plan *p, const struct node *n) {
    enum { KEEP = 2, LEAST = 64, MOST = 1024 }; /* as in kernels/simple.cu */
    const struct cuda_node *info = cuda_info(p, n);
    uint32_t cols = cuda_cols(p, n->in[0]);
    struct cuda_norm_row args = {.x = cuda_value(p, n->in[0]),
                                 .w = info->weight,
                                 .b = info->bias[0],
                                 .y = cuda_value(p, n->out[0]),
                                 .cols = cols,
                                 .layer = n->u.norm.kind == NORM_LAYER,
                                 .eps = n->u.norm.eps};
    if (info->halves) args.halve = cuda_halve_args(p, n->out[0]);
    if (info->add) cuda_add_args(p, info, &args);
    /* By the columns alone: the order of a sum depends on it. */
    uint32_t quads = cols / 4 / (cols > 4 * MOST ? KEEP : 1);
    uint32_t threads = quads < LEAST ? LEAST : quads > MOST ? MOST : (quads + 31) / 32 * 32;
    cuda_run_kernel(p, CUDA_norm_row, (struct cuda_grid){cuda_rows(p, n->out[0]), 1, 1, threads, 0},
                    &args);
}

static void run_norm(struct device_plan *p, const struct node *n) {
    if (cuda_is_norm_row(p, n)) {
        run_norm_row(p, n);
        return;
    }
    static const enum cuda_row_kind kind[NORM_KINDS] = {[NORM_RMS] = ROW_RMS,
                                                        [NORM_LAYER] = ROW_LAYER,
                                                        [NORM_L2] = ROW_L2,
                                                        [NORM_L2_SUM] = ROW_L2_SUM};
    rows(p, n, kind[n->u.norm.kind], n->u.norm.width, n->u.norm.eps);
    if (cuda_info(p, n)->halves) cuda_halve(p, n->out[0]);
}
static void run_dot(struct device_plan *p, const struct node *n) {
    rows(p, n, ROW_DOT, n->u.dot.width, 0);
}
static void run_match_rms(struct device_plan *p, const struct node *n) {
    rows(p, n, ROW_MATCH_RMS, cuda_cols(p, n->in[0]), n->u.match_rms.floor);
}
static void run_round_act(struct device_plan *p, const struct node *n) {
    rows(p, n, ROW_ROUND, cuda_cols(p, n->in[0]), 0);
}
static void run_sparsify(struct device_plan *p, const struct node *n) {
    rows(p, n, ROW_SPARSIFY, cuda_cols(p, n->in[0]), n->u.sparsify.by);
}

static void run_mix(struct device_plan *p, const struct node *n) {
    struct cuda_mix args = {.x = cuda_value(p, n->in[0]),
                            .w = cuda_value(p, n->in[1]),
                            .y = cuda_value(p, n->out[0]),
                            .n = elements(p, n->out[0]),
                            .from = n->u.mix.from,
                            .to = n->u.mix.to,
                            .width = n->u.mix.width};
    cuda_run_each(p, CUDA_mix, args.n, &args);
}

static void run_sinkhorn(struct device_plan *p, const struct node *n) {
    struct cuda_sinkhorn args = {.x = cuda_value(p, n->in[0]),
                                 .y = cuda_value(p, n->out[0]),
                                 .rows = cuda_rows(p, n->out[0]),
                                 .n = n->u.sinkhorn.n,
                                 .rounds = n->u.sinkhorn.rounds,
                                 .eps = n->u.sinkhorn.eps};
    cuda_run_each(p, CUDA_sinkhorn, args.rows, &args);
}

static void run_pool(struct device_plan *p, const struct node *n) {
    struct cuda_pool args = {.x = cuda_value(p, n->in[0]),
                             .y = cuda_value(p, n->out[0]),
                             .seq = p->step_memory.at.seq,
                             .kind = n->u.pool.kind,
                             .cols = cuda_cols(p, n->out[0])};
    struct cuda_grid grid = {(args.cols + EACH - 1) / EACH, p->shape.seqs, 1, EACH, 0};
    cuda_run_kernel(p, CUDA_pool, grid, &args);
}

/* ---- columns moved ---- */

static void run_concat(struct device_plan *p, const struct node *n) {
    uint32_t a_cols = n->u.concat.a_cols, b_cols = n->u.concat.b_cols;
    struct cuda_move args = {.a = cuda_value(p, n->in[0]),
                             .b = cuda_value(p, n->in[1]),
                             .y = cuda_value(p, n->out[0]),
                             .n = elements(p, n->out[0]),
                             .kind = MOVE_CONCAT,
                             .cols = a_cols + b_cols,
                             .a_cols = a_cols,
                             .b_cols = b_cols,
                             .a_once = cuda_cols(p, n->in[0]) == a_cols,
                             .b_once = cuda_cols(p, n->in[1]) == b_cols,
                             .groups = n->u.concat.groups};
    cuda_run_each(p, CUDA_move, args.n, &args);
}
static void run_slice(struct device_plan *p, const struct node *n) {
    struct cuda_move args = {.a = cuda_value(p, n->in[0]),
                             .y = cuda_value(p, n->out[0]),
                             .n = elements(p, n->out[0]),
                             .kind = MOVE_SLICE,
                             .cols = n->u.slice.len,
                             .total = n->u.slice.total,
                             .start = n->u.slice.start,
                             .len = n->u.slice.len};
    cuda_run_each(p, CUDA_move, args.n, &args);
}
static void run_tile(struct device_plan *p, const struct node *n) {
    struct cuda_move args = {.a = cuda_value(p, n->in[0]),
                             .y = cuda_value(p, n->out[0]),
                             .n = elements(p, n->out[0]),
                             .kind = MOVE_TILE,
                             .cols = n->u.tile.width,
                             .times = n->u.tile.times};
    cuda_run_each(p, CUDA_move, args.n, &args);
}
static void run_gather_rows(struct device_plan *p, const struct node *n) {
    struct cuda_move args = {.a = cuda_value(p, n->in[0]),
                             .index = p->step_memory.at.row,
                             .y = cuda_value(p, n->out[0]),
                             .n = elements(p, n->out[0]),
                             .kind = MOVE_GATHER,
                             .cols = cuda_cols(p, n->out[0])};
    cuda_run_each(p, CUDA_move, args.n, &args);
}

/* ---- pairs ---- */

static void move_pairs(struct device_plan *p, const struct node *n, enum cuda_move_kind kind) {
    uint32_t used = cuda_cols(p, n->in[1]) / 2;
    value_id wide = kind == MOVE_JOIN ? n->out[0] : n->in[0];
    struct cuda_move args = {.a = cuda_value(p, n->in[0]),
                             .index = p->groups.pair,
                             .y = cuda_value(p, n->out[0]),
                             .n = (uint64_t)p->shape.tokens * cuda_cols(p, wide),
                             .kind = kind,
                             .cols = cuda_cols(p, wide) / used};
    cuda_run_each(p, CUDA_move, args.n, &args);
}
static void run_join_pairs(struct device_plan *p, const struct node *n) {
    move_pairs(p, n, MOVE_JOIN);
}
static void run_split_pairs(struct device_plan *p, const struct node *n) {
    move_pairs(p, n, MOVE_SPLIT);
}

static void run_combine(struct device_plan *p, const struct node *n) {
    struct cuda_combine args = {.x = cuda_value(p, n->in[0]),
                                .route = cuda_value(p, n->in[1]),
                                .pair = p->groups.pair,
                                .y = cuda_value(p, n->out[0]),
                                .n = elements(p, n->out[0]),
                                .cols = cuda_cols(p, n->out[0]),
                                .used = cuda_cols(p, n->in[1]) / 2};
    cuda_run_each(p, CUDA_combine, args.n, &args);
}
static void run_route_rest(struct device_plan *p, const struct node *n) {
    struct cuda_combine args = {.route = cuda_value(p, n->in[0]),
                                .y = cuda_value(p, n->out[0]),
                                .n = cuda_rows(p, n->out[0]),
                                .used = cuda_cols(p, n->in[0]) / 2,
                                .first = n->u.route_rest.first};
    cuda_run_each(p, CUDA_route_rest, args.n, &args);
}

/* ---- tables ---- */

static void embed(struct device_plan *p, const struct node *n, bool ids, int32_t offset,
                  float scale) {
    const struct cuda_weight *w = n->weight[0]->bound;
    struct cuda_embed args = {.w = w->matrix,
                              .id = ids ? p->step_memory.at.id : 0,
                              .pos = p->step_memory.at.pos,
                              .y = cuda_value(p, n->out[0]),
                              .tokens = p->shape.tokens,
                              .offset = offset,
                              .scale = scale};
    cuda_run_kernel(p, CUDA_embed, (struct cuda_grid){args.tokens, 1, 1, EACH, 0}, &args);
}
static void run_embed(struct device_plan *p, const struct node *n) {
    embed(p, n, true, 0, n->u.embed.scale);
}
static void run_embed_position(struct device_plan *p, const struct node *n) {
    embed(p, n, false, n->u.embed_position.offset, 1);
}

static void run_rope_table(struct device_plan *p, const struct node *n) {
    const struct rope_table_args *a = &n->u.rope_table;
    struct cuda_rope_table args = {.step = p->step_memory.device,
                                   .freq = cuda_info(p, n)->extra[0],
                                   .freq_long = cuda_info(p, n)->extra[1],
                                   .y = cuda_value(p, n->out[0]),
                                   .half = a->half,
                                   .original = a->original,
                                   .every = a->every,
                                   .back = a->back,
                                   .magnitude = a->magnitude,
                                   .magnitude_long = a->magnitude_long,
                                   .dynamic = a->dynamic,
                                   .base = a->base};
    struct cuda_grid grid = {(a->half + EACH - 1) / EACH, p->shape.tokens, 1, EACH, 0};
    cuda_run_kernel(p, CUDA_rope_table, grid, &args);
}
struct cuda_rope cuda_rope_args(const struct device_plan *p, const struct node *n) {
    uint32_t heads = n->u.rope.heads, dim = n->u.rope.head_dim, half = n->u.rope.half;
    return (struct cuda_rope){.x = cuda_value(p, n->in[0]),
                              .table = cuda_value(p, n->in[1]),
                              .y = cuda_value(p, n->out[0]),
                              .n = (uint64_t)p->shape.tokens * heads * (dim - half),
                              .heads = heads,
                              .head_dim = dim,
                              .half = half,
                              .interleaved = n->u.rope.interleaved};
}
static void run_rope(struct device_plan *p, const struct node *n) {
    struct cuda_rope args = cuda_rope_args(p, n);
    cuda_run_each(p, CUDA_rope, args.n, &args);
}

/* ---- a step ---- */

static void (*const run_op[OP_COUNT])(struct device_plan *, const struct node *) = {
    [OP_act] = run_act,
    [OP_add] = run_add,
    [OP_affine] = run_affine,
    [OP_attention] = cuda_attention,
    [OP_clamp] = run_clamp,
    [OP_combine] = run_combine,
    [OP_compress] = cuda_compress,
    [OP_concat] = run_concat,
    [OP_conv1d] = cuda_conv1d,
    [OP_delta] = cuda_delta,
    [OP_dot] = run_dot,
    [OP_embed] = run_embed,
    [OP_embed_ngrams] = cuda_embed_ngrams,
    [OP_embed_position] = run_embed_position,
    [OP_gather_rows] = run_gather_rows,
    [OP_glu] = run_glu,
    [OP_glu_clamped] = run_glu_clamped,
    [OP_index_select] = cuda_index_select,
    [OP_join_pairs] = run_join_pairs,
    [OP_linear] = cuda_linear,
    [OP_linear_experts] = cuda_linear_experts,
    [OP_linear_heads] = cuda_linear_heads,
    [OP_match_rms] = run_match_rms,
    [OP_mix] = run_mix,
    [OP_mlstm] = cuda_mlstm,
    [OP_mul] = run_mul,
    [OP_norm] = run_norm,
    [OP_pool] = run_pool,
    [OP_rglru] = cuda_rglru,
    [OP_rope] = run_rope,
    [OP_rope_table] = run_rope_table,
    [OP_round_act] = run_round_act,
    [OP_route] = cuda_route,
    [OP_route_rest] = run_route_rest,
    [OP_scale] = run_scale,
    [OP_scale_position] = run_scale_position,
    [OP_scan] = cuda_scan,
    [OP_sinkhorn] = run_sinkhorn,
    [OP_slice] = run_slice,
    [OP_softcap] = run_softcap,
    [OP_sparsify] = run_sparsify,
    [OP_split_pairs] = run_split_pairs,
    [OP_tile] = run_tile,
    [OP_token_shift] = cuda_token_shift,
    [OP_wkv4] = cuda_wkv4,
    [OP_xielu] = run_xielu,
};

static void download(struct device_plan *p, value_id v, void *to) {
    struct cuda_device *d = p->device;
    if (v == NO_VALUE || d->failed) return;
    size_t bytes = (size_t)elements(p, v) * sizeof(float);
    if (bytes) cuda_ok(d, d->driver->download(to, cuda_value(p, v), bytes, d->stream), "download");
}

static void launch_nodes(struct device_plan *p) {
    for (uint32_t i = 0; i < p->graph->nodes && !p->device->failed; i++)
        if (!p->info[i].elsewhere) run_op[p->graph->node[i].op](p, &p->graph->node[i]);
}

ob_status cuda_run(struct device *device, struct device_plan *p, const struct step *step,
                   const float **logits, ob_error *error) {
    struct cuda_device *d = (void *)device;
    assert(step->tokens <= p->tokens && step->logits <= p->logits);
    cuda_ok(d, d->driver->context_set(d->context), "the GPU");
    if (cuda_step_write(p, step) && !d->failed) cuda_replay(p, launch_nodes);
    download(p, p->graph->logits, p->output[0]);
    download(p, p->graph->embedding, p->output[1]);
    download(p, p->graph->pooled, p->output[2]);
    cuda_ok(d, d->driver->stream_wait(d->stream), "a step");
    *logits = p->output[0];
    return cuda_report(d, error);
}

const float *cuda_output(const struct device *device, const struct device_plan *p, value_id v) {
    (void)device;
    return v == p->graph->logits      ? p->output[0]
           : v == p->graph->embedding ? p->output[1]
                                      : p->output[2];
}
