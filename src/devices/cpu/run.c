/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c: one step: the nodes of the graph in order, with a barrier after each that used the pool.
 * Simple ops are cut by elements or rows, about GRAIN elements a chunk. */
#include <assert.h>

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

static void glu_rows(const struct job *j, uint32_t from, uint32_t to) {
    const struct kernels *k = kernels_of(j);
    void (*const glu[])(const float *, const float *, float *, size_t) = {
        [ACT_SILU] = k->glu_silu,
        [ACT_GELU_TANH] = k->glu_gelu_tanh,
        [ACT_GELU_ERF] = k->glu_gelu_erf,
        [ACT_RELU] = k->glu_relu,
    };
    glu[j->node->u.glu.act](in(j, 0, from), in(j, 1, from), out(j, from), count(j, from, to));
}
static void run_glu(struct device_plan *p, const struct node *n) { run_rows(p, n, glu_rows); }

static void norm_runs(const struct job *j, uint32_t from, uint32_t to) {
    const struct kernels *k = kernels_of(j);
    const struct cpu_node *v = cpu_info(j->plan, j->node);
    float eps = j->node->u.norm.eps, *x = in(j, 0, 0), *y = out(j, 0);
    for (uint32_t i = from; i < to; i++) {
        size_t at = (size_t)i * j->width;
        (j->node->u.norm.kind == NORM_RMS ? k->norm_rms : k->norm_layer)(
            x + at, v->weight, v->bias[0], eps, y + at, j->width);
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
        assert(id < w->rows);
        kernels_of(j)->embed(w->quant, (const char *)w->data + id * w->row_bytes, w->cols,
                             j->node->u.embed.scale, out(j, i));
    }
}
static void run_embed(struct device_plan *p, const struct node *n) { run_rows(p, n, embed_rows); }

static void gather_rows(const struct job *j, uint32_t from, uint32_t to) {
    kernels_of(j)->gather_rows(in(j, 0, 0), j->plan->step->row + from, to - from, j->width,
                               out(j, from));
}
static void run_gather_rows(struct device_plan *p, const struct node *n) {
    run_rows(p, n, gather_rows);
}

static void rope_table_rows(const struct job *j, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++)
        kernels_of(j)->rope_table(j->plan->step->pos[i], j->node->u.rope_table.freq,
                                  j->node->u.rope_table.half, j->node->u.rope_table.magnitude,
                                  out(j, i));
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

static void run_attention(struct device_plan *p, const struct node *n) { cpu_attention(p, n); }
static void run_linear(struct device_plan *p, const struct node *n) { cpu_linear(p, n); }
static void run_linear_experts(struct device_plan *p, const struct node *n) {
    cpu_linear_experts(p, n);
}
static void run_route(struct device_plan *p, const struct node *n) { cpu_route(p, n); }

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
    *logits = cpu_value(p, p->graph->logits);
    return OB_OK;
}
