/* SPDX-License-Identifier: Apache-2.0
 *
 * replay.c: a step in one submission. The launches of a step depend on its shape alone
 * (cuda_shape), so a step of a shape that came before is recorded while it is launched (stream
 * capture), and from then on the graph is launched: the same kernels, arguments and order, hence
 * the same bits. The first step of a shape is launched plainly, since most that are not of one
 * token a sequence never come again; steps of many tokens always are, since their kernels run
 * longer than a launch takes.
 *
 * In a graph a kernel may begin while the one before it runs: its blocks are there, and have asked
 * for their weights, when their turn comes. Only where the code was compiled for GPUs that can, or
 * kernels would not wait.
 *
 * Graphs are few, the least recently used goes, and what they take of the GPU is bounded. Where
 * recording fails, steps stay plain, which is said once. */
#include "base/log.h"
#include "devices/cuda/cuda.h"

enum { OUT_OF_MEMORY = 2 };
enum { BYTES_MOST = 256 << 20 /* of a plan's graphs */, BYTES_FREE = 64 << 20 };

bool cuda_has_graphs(const struct cuda_driver *driver) {
#define HAS(result, name, symbol, parameters) driver->name &&
    return CUDA_GRAPH_CALLS(HAS) true;
#undef HAS
}

bool cuda_can_overlap(const struct cuda_device *d) {
    const struct cuda_driver *call = d->driver;
    enum { HOPPER = 90 };
    int version = 0, ptx = 0;
    if (!call->launch_with || !call->function_get || call->version(&version) != 0) return false;
    if (call->function_get(&ptx, CUDA_FUNCTION_PTX, d->kernel[CUDA_rows]) != 0) return false;
    return version >= CUDA_OVERLAP_DRIVER && ptx >= HOPPER;
}

static void drop(struct device_plan *p, struct cuda_graph *g) {
    if (g->exec) p->device->driver->graph_unmake(g->exec);
    *g = (struct cuda_graph){.used = 0};
}

void cuda_drop_graphs(struct device_plan *p) {
    for (int i = 0; i < CUDA_GRAPHS; i++) drop(p, &p->graphs[i]);
}

static bool same(const struct cuda_shape *a, const struct cuda_shape *b) {
    return a->memory == b->memory && a->tokens == b->tokens && a->seqs == b->seqs &&
           a->logits == b->logits && a->longest == b->longest && a->end == b->end;
}

/* The least recently used but `but`; NULL: there is none. */
static struct cuda_graph *oldest(struct device_plan *p, const struct cuda_graph *but) {
    struct cuda_graph *old = NULL;
    for (int i = 0; i < CUDA_GRAPHS; i++) {
        struct cuda_graph *g = &p->graphs[i];
        if (g != but && g->exec && (!old || g->used < old->used)) old = g;
    }
    return old;
}

/* That of the shape; *again: it was there before. */
static struct cuda_graph *find(struct device_plan *p, bool *again) {
    struct cuda_graph *found = &p->graphs[0];
    for (int i = 0; i < CUDA_GRAPHS; i++) {
        struct cuda_graph *g = &p->graphs[i];
        *again = g->used > 0 && same(&g->shape, &p->shape);
        if (*again) return g;
        if (g->used < found->used) found = g;
    }
    drop(p, found);
    found->shape = p->shape;
    return found;
}

static size_t free_bytes(const struct cuda_device *d) {
    size_t available = 0, total = 0;
    d->driver->memory_info(&available, &total);
    return available;
}

/* Leaves the device as if nothing had been launched. */
static CUresult record(struct device_plan *p, void (*launch)(struct device_plan *p),
                       CUgraphExec *out) {
    struct cuda_device *d = p->device;
    const struct cuda_driver *call = d->driver;
    CUgraph graph = NULL;
    CUresult result = call->capture_begin(d->stream, CUDA_CAPTURE_THREAD);
    if (result != 0) return result;
    p->overlap = d->overlaps ? CUDA_FIRST : CUDA_ALONE;
    launch(p);
    p->overlap = CUDA_ALONE;
    CUresult end = call->capture_end(d->stream, &graph);
    result = d->failed ? d->failed : end;
    d->failed = 0;
    if (result == 0) result = call->graph_make(out, graph, 0);
    if (graph) call->graph_free(graph);
    return result;
}

static void make(struct device_plan *p, struct cuda_graph *g,
                 void (*launch)(struct device_plan *p)) {
    struct cuda_device *d = p->device;
    size_t before = free_bytes(d), all = 0;
    CUresult result = before < BYTES_FREE ? OUT_OF_MEMORY : record(p, launch, &g->exec);
    if (result != 0) {
        g->exec = NULL;
        d->plain = true;
        log_warn("cuda: kernels are launched one by one, since recording a step failed: %s",
                 cuda_error(d->driver, result));
        return;
    }
    size_t after = free_bytes(d);
    g->bytes = before > after ? before - after : 0;
    for (int i = 0; i < CUDA_GRAPHS; i++) all += p->graphs[i].bytes;
    for (struct cuda_graph *old; all > BYTES_MOST && (old = oldest(p, g)) != NULL;) {
        all -= old->bytes;
        drop(p, old);
    }
}

void cuda_replay(struct device_plan *p, void (*launch)(struct device_plan *p)) {
    struct cuda_device *d = p->device;
    if (d->plain || p->shape.tokens > CUDA_GRAPH_TOKENS) {
        launch(p);
        return;
    }
    bool again;
    struct cuda_graph *g = find(p, &again);
    g->used = ++p->runs;
    if (again && !g->exec) make(p, g, launch);
    if (g->exec) cuda_ok(d, d->driver->graph_launch(g->exec, d->stream), "a step");
    else launch(p);
}
