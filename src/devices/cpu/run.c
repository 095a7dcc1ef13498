/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c: one step: the nodes of the graph in order, with a barrier after each that used the pool.
 * Simple ops are cut by elements or rows, about GRAIN elements a chunk. */
#include <assert.h>
#include <math.h>

#include "devices/cpu/cpu.h"

enum { GRAIN = 8192 };

/* One node over `items` items of `width` floats; fn does items [from, to). */
struct job {
    struct device_plan *plan;
    const struct node *node;
    uint32_t items, per_chunk, width;
    void (*fn)(const struct job *job, uint32_t from, uint32_t to);
};

static void run_chunk(void *arg, uint32_t chunk, uint32_t thread) {
    (void)thread;
    const struct job *job = arg;
    uint32_t from = chunk * job->per_chunk, left = job->items - from;
    job->fn(job, from, from + (left < job->per_chunk ? left : job->per_chunk));
}

static void run_items(struct device_plan *plan, const struct node *node, uint32_t items,
                      uint32_t width, void (*fn)(const struct job *, uint32_t, uint32_t)) {
    struct job job = {.plan = plan, .node = node, .items = items, .width = width, .fn = fn};
    job.per_chunk = width < GRAIN ? GRAIN / width : 1;
    uint32_t chunks = items / job.per_chunk + (items % job.per_chunk != 0);
    pool_run(plan->device->pool, chunks, run_chunk, &job);
}

/* By rows of the first output. */
static void run_rows(struct device_plan *plan, const struct node *node,
                     void (*fn)(const struct job *, uint32_t, uint32_t)) {
    value_id out = node->out[0];
    run_items(plan, node, cpu_value_rows(plan, out), plan->graph->value[out].cols, fn);
}

static const struct kernels *kernels_of(const struct job *job) {
    return job->plan->device->kernels;
}
static float *in(const struct job *job, uint32_t i, size_t row) {
    value_id v = job->node->in[i];
    return cpu_value(job->plan, v) + row * job->plan->graph->value[v].cols;
}
static float *out(const struct job *job, size_t row) {
    value_id v = job->node->out[0];
    return cpu_value(job->plan, v) + row * job->plan->graph->value[v].cols;
}
static size_t count(const struct job *job, uint32_t from, uint32_t to) {
    return (size_t)(to - from) * job->width;
}

/* ---- one function an op ---- */

static void add_rows(const struct job *j, uint32_t from, uint32_t to) {
    kernels_of(j)->add(in(j, 0, from), in(j, 1, from), out(j, from), count(j, from, to));
}
static void run_add(struct device_plan *p, const struct node *n) { run_rows(p, n, add_rows); }

static void scale_rows(const struct job *j, uint32_t from, uint32_t to) {
    kernels_of(j)->scale(in(j, 0, from), j->node->u.scale.value, out(j, from), count(j, from, to));
}
static void run_scale(struct device_plan *p, const struct node *n) { run_rows(p, n, scale_rows); }

static void softcap_rows(const struct job *j, uint32_t from, uint32_t to) {
    kernels_of(j)->softcap(in(j, 0, from), j->node->u.softcap.cap, out(j, from),
                           count(j, from, to));
}
static void run_softcap(struct device_plan *p, const struct node *n) {
    run_rows(p, n, softcap_rows);
}

static void sparsify_rows(const struct job *j, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++)
        kernels_of(j)->sparsify(in(j, 0, i), j->node->u.sparsify.by, out(j, i), j->width);
}
static void run_sparsify(struct device_plan *p, const struct node *n) {
    run_rows(p, n, sparsify_rows);
}

static void dot_runs(const struct job *j, uint32_t from, uint32_t to) {
    const float *a = in(j, 0, 0), *b = in(j, 1, 0);
    float *y = out(j, 0);
    for (size_t i = from; i < to; i++)
        y[i] = kernels_of(j)->dot(a + i * j->width, b + i * j->width, j->width);
}
static void run_dot(struct device_plan *p, const struct node *n) {
    uint32_t runs = p->graph->value[n->out[0]].cols;
    run_items(p, n, cpu_value_rows(p, n->out[0]) * runs, n->u.dot.width, dot_runs);
}

static void match_rms_rows(const struct job *j, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++)
        kernels_of(j)->match_rms(in(j, 0, i), in(j, 1, i), j->node->u.match_rms.floor, out(j, i),
                                 j->width);
}
static void run_match_rms(struct device_plan *p, const struct node *n) {
    run_rows(p, n, match_rms_rows);
}

static void round_act_rows(const struct job *j, uint32_t from, uint32_t to) {
    float *step = cpu_value(j->plan, j->node->out[1]);
    for (uint32_t i = from; i < to; i++)
        kernels_of(j)->round_act(in(j, 0, i), out(j, i), step + i, j->width);
}
static void run_round_act(struct device_plan *p, const struct node *n) {
    run_rows(p, n, round_act_rows);
}

static void act_rows(const struct job *j, uint32_t from, uint32_t to) {
    kernels_of(j)->act[j->node->u.act.kind](in(j, 0, from), out(j, from), count(j, from, to));
}
static void run_act(struct device_plan *p, const struct node *n) { run_rows(p, n, act_rows); }

/* Neighbours that share a value of the i-th, narrower input. */
static uint32_t run_of(const struct job *j, uint32_t i) {
    return j->width / j->plan->graph->value[j->node->in[i]].cols;
}

static void glu_rows(const struct job *j, uint32_t from, uint32_t to) {
    kernels_of(j)->glu[j->node->u.glu.act](in(j, 0, from), in(j, 1, from), out(j, from),
                                           count(j, from, to), run_of(j, 0));
}
static void run_glu(struct device_plan *p, const struct node *n) { run_rows(p, n, glu_rows); }

static void glu_clamped_rows(const struct job *j, uint32_t from, uint32_t to) {
    kernels_of(j)->glu_clamped(in(j, 0, from), in(j, 1, from), &j->node->u.glu_clamped,
                               out(j, from), count(j, from, to));
}
static void run_glu_clamped(struct device_plan *p, const struct node *n) {
    run_rows(p, n, glu_clamped_rows);
}

static void xielu_rows(const struct job *j, uint32_t from, uint32_t to) {
    kernels_of(j)->xielu(in(j, 0, from), &j->node->u.xielu, out(j, from), count(j, from, to));
}
static void run_xielu(struct device_plan *p, const struct node *n) { run_rows(p, n, xielu_rows); }

static void mul_rows(const struct job *j, uint32_t from, uint32_t to) {
    kernels_of(j)->mul(in(j, 0, from), in(j, 1, from), out(j, from), count(j, from, to),
                       run_of(j, 1));
}
static void run_mul(struct device_plan *p, const struct node *n) { run_rows(p, n, mul_rows); }

static void affine_rows(const struct job *j, uint32_t from, uint32_t to) {
    const struct cpu_node *v = cpu_info(j->plan, j->node);
    for (uint32_t i = from; i < to; i++)
        kernels_of(j)->affine(in(j, 0, i), v->weight, v->bias[0], out(j, i), j->width);
}
static void run_affine(struct device_plan *p, const struct node *n) { run_rows(p, n, affine_rows); }

static void clamp_rows(const struct job *j, uint32_t from, uint32_t to) {
    kernels_of(j)->clamp(in(j, 0, from), j->node->u.clamp.low, j->node->u.clamp.high, out(j, from),
                         count(j, from, to));
}
static void run_clamp(struct device_plan *p, const struct node *n) { run_rows(p, n, clamp_rows); }

static void scale_position_rows(const struct job *j, uint32_t from, uint32_t to) {
    const struct kernels *k = kernels_of(j);
    float beta = j->node->u.scale_position.beta, period = j->node->u.scale_position.period;
    uint32_t offset = j->node->u.scale_position.offset;
    enum position_factor kind = j->node->u.scale_position.kind;
    float (*of)(uint32_t, float, uint32_t, float) = kind == POSITION_STEPS ? k->position_factor
                                                    : kind == POSITION_LOG ? k->position_log
                                                                           : k->position_power;
    for (uint32_t i = from; i < to; i++) {
        uint32_t pos = j->plan->step->pos[i];
        k->scale(in(j, 0, i), of(pos, beta, offset, period), out(j, i), j->width);
    }
}
static void run_scale_position(struct device_plan *p, const struct node *n) {
    run_rows(p, n, scale_position_rows);
}

static void mix_rows(const struct job *j, uint32_t from, uint32_t to) {
    const struct node *n = j->node;
    for (uint32_t i = from; i < to; i++)
        kernels_of(j)->mix(in(j, 0, i), in(j, 1, i), n->u.mix.from, n->u.mix.to, n->u.mix.width,
                           out(j, i));
}
static void run_mix(struct device_plan *p, const struct node *n) { run_rows(p, n, mix_rows); }

static void sinkhorn_rows(const struct job *j, uint32_t from, uint32_t to) {
    const struct node *n = j->node;
    for (uint32_t i = from; i < to; i++)
        kernels_of(j)->sinkhorn(in(j, 0, i), n->u.sinkhorn.n, n->u.sinkhorn.rounds,
                                n->u.sinkhorn.eps, out(j, i));
}
static void run_sinkhorn(struct device_plan *p, const struct node *n) {
    run_items(p, n, cpu_value_rows(p, n->out[0]), n->u.sinkhorn.n * n->u.sinkhorn.n,
              sinkhorn_rows);
}

/* ---- columns moved ---- */

static void concat_rows(const struct job *j, uint32_t from, uint32_t to) {
    const struct value *value = j->plan->graph->value;
    uint32_t a_cols = j->node->u.concat.a_cols, b_cols = j->node->u.concat.b_cols;
    for (uint32_t i = from; i < to; i++)
        kernels_of(j)->concat(&(struct concat){.a = in(j, 0, i),
                                               .b = in(j, 1, i),
                                               .a_cols = a_cols,
                                               .b_cols = b_cols,
                                               .groups = j->node->u.concat.groups,
                                               .a_once = value[j->node->in[0]].cols == a_cols,
                                               .b_once = value[j->node->in[1]].cols == b_cols},
                              out(j, i));
}
static void run_concat(struct device_plan *p, const struct node *n) { run_rows(p, n, concat_rows); }

static void slice_rows(const struct job *j, uint32_t from, uint32_t to) {
    kernels_of(j)->slice(in(j, 0, from), (size_t)(to - from) * j->node->u.slice.groups,
                         j->node->u.slice.total, j->node->u.slice.start, j->node->u.slice.len,
                         out(j, from));
}
static void run_slice(struct device_plan *p, const struct node *n) { run_rows(p, n, slice_rows); }

static void tile_rows(const struct job *j, uint32_t from, uint32_t to) {
    kernels_of(j)->tile(in(j, 0, from), (size_t)(to - from) * j->node->u.tile.groups,
                        j->node->u.tile.width, j->node->u.tile.times, out(j, from));
}
static void run_tile(struct device_plan *p, const struct node *n) { run_rows(p, n, tile_rows); }

/* ---- norms, tables ---- */

/* The elements of a vector for the run at this column: all runs share one of `width`. */
static const float *vector_at(const float *vector, const struct weight *w, const struct job *j,
                              size_t column) {
    return vector && w->cols != j->width ? vector + column : vector;
}

static void norm_runs(const struct job *j, uint32_t from, uint32_t to) {
    const struct node *n = j->node;
    const struct cpu_node *v = cpu_info(j->plan, n);
    float *x = in(j, 0, 0), *y = out(j, 0);
    for (uint32_t i = from; i < to; i++) {
        size_t at = (size_t)i * j->width, run = at % j->plan->graph->value[n->out[0]].cols;
        kernels_of(j)->norm[n->u.norm.kind](x + at, vector_at(v->weight, n->weight[0], j, run),
                                            vector_at(v->bias[0], n->bias[0], j, run),
                                            n->u.norm.eps, y + at, j->width);
    }
}
static void run_norm(struct device_plan *p, const struct node *n) {
    uint32_t width = n->u.norm.width, runs = p->graph->value[n->out[0]].cols / width;
    run_items(p, n, cpu_value_rows(p, n->out[0]) * runs, width, norm_runs);
}

static void embed_rows(const struct job *j, uint32_t from, uint32_t to) {
    const struct weight *w = j->node->weight[0];
    for (uint32_t i = from; i < to; i++) {
        size_t id = (size_t)j->plan->step->id[i];
        if (id >= w->rows) id = 0; /* graph.h: a table smaller than the vocabulary */
        kernels_of(j)->embed(w->quant, (const char *)w->data + id * w->row_bytes, w->cols,
                             j->node->u.embed.scale, out(j, i));
    }
}
static void run_embed(struct device_plan *p, const struct node *n) { run_rows(p, n, embed_rows); }

static void embed_position_rows(const struct job *j, uint32_t from, uint32_t to) {
    const struct weight *w = j->node->weight[0];
    for (uint32_t i = from; i < to; i++) {
        uint32_t row = j->plan->step->pos[i] + (uint32_t)j->node->u.embed_position.offset;
        assert(row < w->rows);
        embed_position(w->quant, w->data, w->row_bytes, w->cols, row, out(j, i));
    }
}
static void run_embed_position(struct device_plan *p, const struct node *n) {
    run_rows(p, n, embed_position_rows);
}

static void gather_rows(const struct job *j, uint32_t from, uint32_t to) {
    kernels_of(j)->gather_rows(in(j, 0, 0), j->plan->step->row + from, to - from, j->width,
                               out(j, from));
}
static void run_gather_rows(struct device_plan *p, const struct node *n) {
    run_rows(p, n, gather_rows);
}

static void pool_rows(const struct job *j, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++) {
        const struct step_seq *seq = &j->plan->step->seq[i];
        kernels_of(j)->pool(j->node->u.pool.kind, in(j, 0, seq->first), seq->count, j->width,
                            out(j, i));
    }
}
static void run_pool(struct device_plan *p, const struct node *n) { run_rows(p, n, pool_rows); }

/* The frequencies of the sequence that a row belongs to; `own` is room for those of its length. */
static const float *rope_freq(const struct job *j, uint32_t row, float *own, float *magnitude) {
    const struct rope_table_args *a = &j->node->u.rope_table;
    const struct step_seq *seq = j->plan->step->seq;
    *magnitude = a->magnitude;
    while (row - seq->first >= seq->count) seq++;
    if (a->original == 0 || seq->length <= a->original) return a->freq;
    if (a->magnitude_long > 0) *magnitude = a->magnitude_long;
    if (a->freq_long) return a->freq_long;
    double grown = (double)a->dynamic * seq->length / a->original - ((double)a->dynamic - 1);
    double base = (double)a->base * pow(grown, (double)a->half / (a->half - 1));
    for (uint32_t i = 0; i < a->half; i++) own[i] = (float)(1 / pow(base, (double)i / a->half));
    return own;
}

static void rope_table_rows(const struct job *j, uint32_t from, uint32_t to) {
    const struct rope_table_args *a = &j->node->u.rope_table;
    for (uint32_t i = from; i < to; i++) {
        float *own = out(j, i); /* the kernel reads a frequency before it writes at its place */
        float magnitude;
        const float *freq = rope_freq(j, i, own, &magnitude);
        uint32_t at = j->plan->step->pos[i];
        at = at > a->back ? at - a->back : 0;
        if (a->every > 1) at -= at % a->every;
        kernels_of(j)->rope_table(at, freq, a->half, magnitude, own);
    }
}
static void run_rope_table(struct device_plan *p, const struct node *n) {
    run_rows(p, n, rope_table_rows);
}

static void rope_rows(const struct job *j, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++)
        kernels_of(j)->rope(in(j, 0, i), in(j, 1, i), out(j, i), j->node->u.rope.heads,
                            j->node->u.rope.head_dim, j->node->u.rope.half,
                            j->node->u.rope.interleaved);
}
static void run_rope(struct device_plan *p, const struct node *n) { run_rows(p, n, rope_rows); }

static void combine_rows(const struct job *j, uint32_t from, uint32_t to) {
    const struct cpu_groups *g = &j->plan->groups;
    assert(g->of == j->node->in[1]);
    for (uint32_t i = from; i < to; i++)
        kernels_of(j)->combine(in(j, 0, 0), g->pair + (size_t)i * g->used, in(j, 1, i), g->used,
                               j->width, out(j, i));
}
static void run_combine(struct device_plan *p, const struct node *n) {
    run_rows(p, n, combine_rows);
}

static void join_pairs_rows(const struct job *j, uint32_t from, uint32_t to) {
    const struct cpu_groups *g = &j->plan->groups;
    assert(g->of == j->node->in[1]);
    for (uint32_t i = from; i < to; i++)
        kernels_of(j)->join_pairs(in(j, 0, 0), g->pair + (size_t)i * g->used, g->used,
                                  j->width / g->used, out(j, i));
}
static void run_join_pairs(struct device_plan *p, const struct node *n) {
    run_rows(p, n, join_pairs_rows);
}

static void split_pairs_rows(const struct job *j, uint32_t from, uint32_t to) {
    const struct cpu_groups *g = &j->plan->groups;
    assert(g->of == j->node->in[1]);
    for (uint32_t i = from; i < to; i++)
        kernels_of(j)->split_pairs(in(j, 0, i), g->pair + (size_t)i * g->used, g->used,
                                   j->width / g->used, out(j, 0));
}
static void run_split_pairs(struct device_plan *p, const struct node *n) {
    value_id x = n->in[0];
    run_items(p, n, cpu_value_rows(p, x), p->graph->value[x].cols, split_pairs_rows);
}

static void route_rest_rows(const struct job *j, uint32_t from, uint32_t to) {
    uint32_t used = j->plan->graph->value[j->node->in[0]].cols / 2;
    for (uint32_t i = from; i < to; i++)
        kernels_of(j)->route_rest(in(j, 0, i), used, j->node->u.route_rest.first, out(j, i));
}
static void run_route_rest(struct device_plan *p, const struct node *n) {
    run_rows(p, n, route_rest_rows);
}

static void run_attention(struct device_plan *p, const struct node *n) { cpu_attention(p, n); }
static void run_index_select(struct device_plan *p, const struct node *n) {
    cpu_index_select(p, n);
}
static void run_linear(struct device_plan *p, const struct node *n) { cpu_linear(p, n); }
static void run_linear_experts(struct device_plan *p, const struct node *n) {
    cpu_linear_experts(p, n);
}
static void run_linear_heads(struct device_plan *p, const struct node *n) {
    cpu_linear_heads(p, n);
}
static void run_route(struct device_plan *p, const struct node *n) { cpu_route(p, n); }
static void run_compress(struct device_plan *p, const struct node *n) { cpu_compress(p, n); }
static void run_embed_ngrams(struct device_plan *p, const struct node *n) {
    cpu_embed_ngrams(p, n);
}
static void run_conv1d(struct device_plan *p, const struct node *n) { cpu_conv1d(p, n); }
static void run_token_shift(struct device_plan *p, const struct node *n) { cpu_token_shift(p, n); }
static void run_delta(struct device_plan *p, const struct node *n) { cpu_delta(p, n); }
static void run_mlstm(struct device_plan *p, const struct node *n) { cpu_mlstm(p, n); }
static void run_rglru(struct device_plan *p, const struct node *n) { cpu_rglru(p, n); }
static void run_scan(struct device_plan *p, const struct node *n) { cpu_scan(p, n); }
static void run_wkv4(struct device_plan *p, const struct node *n) { cpu_wkv4(p, n); }

/* ---- a step ---- */

static void (*const run_op[OP_COUNT])(struct device_plan *, const struct node *) = {
#define OP(name, text) [OP_##name] = run_##name,
#include "graph/ops.def"
#undef OP
};

static void make_spans(struct device_plan *p) {
    p->spans = 0;
    for (uint32_t s = 0; s < p->step->seqs; s++) {
        const struct step_seq *seq = &p->step->seq[s];
        for (uint32_t i = 0; i < seq->count;) {
            uint32_t pos = seq->past + i, rows = PAGE_TOKENS - pos % PAGE_TOKENS;
            if (rows > seq->count - i) rows = seq->count - i;
            p->span[p->spans++] =
                (struct cpu_span){.seq = seq, .row = seq->first + i, .rows = rows, .pos = pos};
            i += rows;
        }
    }
}

ob_status cpu_run(struct device *device, struct device_plan *p, const struct step *step,
                  const float **logits, ob_error *error) {
    (void)device, (void)error;
    assert(step->tokens <= p->tokens && step->logits <= p->logits);
    p->step = step;
    make_spans(p);
    for (uint32_t i = 0; i < p->graph->nodes; i++)
        run_op[p->graph->node[i].op](p, &p->graph->node[i]);
    *logits = p->graph->logits == NO_VALUE ? NULL : cpu_value(p, p->graph->logits);
    return OB_OK;
}

ob_status cpu_give(struct device *device, struct device_plan *p, value_id v, size_t rows,
                   const float *data, ob_error *error) {
    (void)device, (void)error;
    assert(rows <= p->tokens);
    memcpy(cpu_value(p, v), data, rows * p->graph->value[v].cols * sizeof *data);
    return OB_OK;
}

const float *cpu_output(const struct device *device, const struct device_plan *plan, value_id v) {
    (void)device;
    return cpu_value(plan, v);
}
