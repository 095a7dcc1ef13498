/* SPDX-License-Identifier: Apache-2.0
 *
 * step.c: a step as the kernels read it: one block that goes up in one copy,
 *
 *     struct cuda_step · sequences · id · pos · row · sequence of each token · where each page
 *     table begins, [groups][seqs] · the page tables
 *
 * Its memory grows with the longest contexts seen, doubling. Given values are put in before. */
#include <string.h>

#include "devices/cuda/cuda.h"

/* Pages of a sequence in a group, after the step. */
static uint32_t pages(const struct cache_group *g, const struct step_seq *seq) {
    if (g->kind == CACHE_STATE) return 1;
    uint32_t entries = cache_entries(g, seq->past + seq->count);
    return (entries + PAGE_TOKENS - 1) / PAGE_TOKENS;
}

static size_t table_pages(const struct device_plan *p, const struct step *step) {
    size_t n = 0;
    for (uint32_t g = 0; g < p->graph->groups; g++)
        for (uint32_t s = 0; s < step->seqs; s++) n += pages(&p->graph->group[g], &step->seq[s]);
    return n;
}

static bool make_room(struct device_plan *p, size_t bytes) {
    if (bytes <= p->step_memory.bytes) return true;
    struct cuda_device *d = p->device;
    cuda_drop_graphs(p); /* they read where the step was */
    if (p->step_memory.host) d->driver->host_free(p->step_memory.host);
    if (p->step_memory.device) d->driver->memory_free(p->step_memory.device);
    p->step_memory.host = NULL;
    p->step_memory.bytes = 0;
    p->step_memory.device = cuda_memory_new(d, 2 * bytes);
    if (!p->step_memory.device ||
        !cuda_ok(d, d->driver->host_alloc(&p->step_memory.host, 2 * bytes), "pinned memory"))
        return false;
    p->step_memory.bytes = 2 * bytes;
    return true;
}

/* Where the next part lies, on the GPU and here. */
struct cursor { char *host; CUdeviceptr base; size_t at; };

static void *part(struct cursor *c, size_t bytes, CUdeviceptr *device) {
    void *host = c->host + c->at;
    *device = c->base + c->at;
    c->at += (bytes + 15) & ~(size_t)15;
    return host;
}

static CUdeviceptr copied(struct cursor *c, const void *data, size_t bytes) {
    CUdeviceptr device;
    memcpy(part(c, bytes, &device), data, bytes);
    return device;
}

static void write_sequences(const struct step *step, struct cursor *c, struct cuda_step *out) {
    struct cuda_seq *seq = part(c, step->seqs * sizeof *seq, &out->seq);
    uint32_t *of = part(c, step->tokens * sizeof *of, &out->seq_of);
    for (uint32_t s = 0; s < step->seqs; s++) {
        const struct step_seq *from = &step->seq[s];
        seq[s] = (struct cuda_seq){from->first, from->count, from->past, from->length};
        for (uint32_t i = 0; i < from->count; i++) of[from->first + i] = s;
    }
}

static void write_pages(const struct device_plan *p, const struct step *step, size_t total,
                        struct cursor *c, struct cuda_step *out) {
    uint32_t groups = p->graph->groups, n = 0;
    uint32_t *at = part(c, (size_t)groups * step->seqs * sizeof *at, &out->page_at);
    uint32_t *page = part(c, total * sizeof *page, &out->page);
    for (uint32_t g = 0; g < groups; g++)
        for (uint32_t s = 0; s < step->seqs; s++) {
            uint32_t count = pages(&p->graph->group[g], &step->seq[s]);
            at[g * step->seqs + s] = n;
            memcpy(page + n, step->seq[s].page[g], count * sizeof *page);
            n += count;
        }
}

static struct cuda_shape shape_of(const struct device_plan *p, const struct step *step) {
    struct cuda_shape shape = {.memory = p->step_memory.device,
                               .tokens = step->tokens,
                               .seqs = step->seqs,
                               .logits = step->logits,
                               .longest = 1};
    uint32_t end = 1;
    for (uint32_t s = 0; s < step->seqs; s++) {
        const struct step_seq *seq = &step->seq[s];
        if (seq->count > shape.longest) shape.longest = seq->count;
        if (seq->past + seq->count > end) end = seq->past + seq->count;
    }
    shape.end = (end + CUDA_SPLIT - 1) / CUDA_SPLIT * CUDA_SPLIT;
    return shape;
}

bool cuda_step_write(struct device_plan *p, const struct step *step) {
    enum { PARTS = 8, ALIGN = 16 };
    size_t total = table_pages(p, step);
    size_t words = 3 * (size_t)step->tokens + step->logits + total +
                   (size_t)p->graph->groups * step->seqs;
    size_t bytes = sizeof(struct cuda_step) + step->seqs * sizeof(struct cuda_seq) +
                   words * sizeof(uint32_t) + PARTS * ALIGN;
    if (!make_room(p, bytes)) return false;
    p->shape = shape_of(p, step);
    struct cursor c = {.host = p->step_memory.host, .base = p->step_memory.device};
    struct cuda_step *out = &p->step_memory.at;
    CUdeviceptr self;
    struct cuda_step *first = part(&c, sizeof *first, &self);
    *out = (struct cuda_step){.tokens = step->tokens, .seqs = step->seqs, .logits = step->logits};
    out->id = copied(&c, step->id, step->tokens * sizeof *step->id);
    out->pos = copied(&c, step->pos, step->tokens * sizeof *step->pos);
    out->row = copied(&c, step->row, step->logits * sizeof *step->row);
    write_sequences(step, &c, out);
    write_pages(p, step, total, &c, out);
    *first = *out;
    struct cuda_device *d = p->device;
    return cuda_ok(d, d->driver->upload(self, c.host, c.at, d->stream), "the step's upload");
}

ob_status cuda_give(struct device *device, struct device_plan *p, value_id v, size_t rows,
                    const float *data, ob_error *error) {
    struct cuda_device *d = (void *)device;
    size_t bytes = rows * p->graph->value[v].cols * sizeof *data;
    cuda_ok(d, d->driver->context_set(d->context), "the GPU");
    cuda_ok(d, d->driver->upload(cuda_value(p, v), data, bytes, d->stream), "a given value");
    return cuda_report(d, error);
}
