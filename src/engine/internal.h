/* SPDX-License-Identifier: Apache-2.0
 * internal.h: what the files of engine/ share. */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include "devices/device.h"
#include "engine/engine.h"
#include "engine/pages.h"

struct group {
    struct pages pages;
};

enum { PARTS_MAX = 2 };

/* Nodes that run on one device: all, or the first layers or the others. */
struct part {
    const struct device_type *type;
    struct device *device;
    uint32_t from, to;             /* nodes of the model's graph */
    struct graph own;
    const struct graph *graph;     /* the model's, or own */
    struct device_plan *plan;
    struct device_buffer **buffer; /* [groups] NULL: none of its layers is in the group */
    size_t *page_bytes;            /* [groups] */
};

struct engine {
    const struct device_type *type; /* that was asked for; parts may be on the CPU */
    uint32_t device_index;          /* which of its kind */
    struct part part[PARTS_MAX];
    uint32_t parts;
    struct model *model;
    struct arena arena;
    char describe[200], kv_text[16];
    const struct quant *weights; /* what matrices of floats become; NULL: they stay */
    struct kv_types kv_type;
    uint32_t threads, context, parallel, step_tokens, step_logits;
    uint64_t capacity;

    struct group *group;                  /* [graph.groups] */
    uint32_t groups;
    uint32_t snapshots;                   /* of states, that a sequence may keep */
    bool length_matters;                  /* graph_depends_on_length */
    uint8_t *bound;                       /* [model.weights]: bit i: by part i */

    /* One step's arrays, [step_tokens] or [parallel]. */
    int32_t *id;
    uint32_t *pos, *row;
    struct step_seq *step_seq;
};

struct seq {
    struct engine *engine;
    uint32_t length;
    uint32_t admitted;    /* positions it may grow to (seq_admit) */
    uint32_t **page;      /* [groups][for the whole context]: NO_PAGE where there is none */
    uint32_t *first;      /* [groups]: pages before are given back (windows, chunks) */
    uint32_t *end;        /* [groups]: one past the last page taken */
    uint32_t snapshot[STATE_SNAPSHOTS]; /* lengths, ascending; the state at snapshot[i] is in page
                                           1 + i of each state group */
    uint32_t snapshots;
};

/* ---- parts.c ---- */

/* Opens the devices, and says which nodes each runs. */
ob_status engine_parts_open(struct engine *e, const ob_engine_options *o, ob_error *error);
ob_status engine_parts_bind(struct engine *e, const ob_engine_options *o, ob_error *error);
/* The buffers of a group. */
ob_status engine_parts_open_kv(struct engine *e, uint32_t group, uint64_t pages, ob_error *error);
ob_status engine_parts_prepare(struct engine *e, ob_error *error);
void engine_parts_close(struct engine *e);
/* A step through all of them. */
ob_status engine_parts_run(struct engine *e, const struct step *step, const float **logits,
                    ob_error *error);
/* NULL of NO_VALUE. */
const float *engine_parts_output(const struct engine *e, value_id v);
bool engine_parts_copy_page(const struct engine *e, uint32_t group, uint32_t to, uint32_t from);

/* ---- fits.c: parts whose device has memory of its own ---- */

/* What nodes [from, to) need there of the part's device. */
uint64_t fits_weights(const struct engine *e, const struct part *p, uint32_t from, uint32_t to);
/* Of a plan, whose groups have so many bytes. */
uint64_t fits_steps(const struct engine *e, const struct part *p, const uint64_t *group_bytes);
/* After memory_plan: OB_ERR_MEMORY says what is wanted and what there is. */
ob_status fits_check(const struct engine *e, ob_error *error);

/* ---- memory.c ---- */

/* Chooses context, snapshots and how many tokens the KV memory holds; takes none yet. */
ob_status memory_plan(struct engine *e, const ob_engine_options *o, ob_error *error);
/* Pages of a group when the full groups hold `tokens`. */
uint64_t memory_pages(const struct engine *e, uint32_t group, uint64_t tokens);
size_t memory_page_bytes(const struct engine *e, const struct cache_group *group);
/* Makes the part's arrays of buffers and page sizes. */
ob_status memory_pages_open(struct engine *e, struct part *p, ob_error *error);
/* Of all groups of the model's graph, or a part's. */
uint64_t memory_kv(const struct engine *e, const struct graph *g, uint64_t tokens);
/* Weights that nodes [from, to) use, in bytes, each once. */
uint64_t memory_weights(const struct engine *e, uint32_t from, uint32_t to);
bool memory_uses(const struct engine *e, uint32_t from, uint32_t to, const struct weight *w);
/* The first node of the last n layers, the output counted as one. */
uint32_t memory_cut(const struct engine *e, uint32_t n);
/* How many of the last layers, the output counted as one, the part's device has room for. */
uint32_t memory_layers(struct engine *e, const ob_engine_options *o, const struct part *part);

/* ---- seq.c ---- */

/* Takes the pages for n more tokens, and copies the one they begin in if others hold it, too. False
 * if the memory does not hold them (then nothing has changed), or the device failed to copy. */
bool seq_grow(struct seq *seq, uint32_t n);
/* Pages n more tokens need in a group beyond those it has for itself. */
uint32_t seq_needs(const struct seq *seq, uint32_t group, uint32_t n);
/* Gives back pages that no position from `length` on can see. */
void seq_leave_window(struct seq *seq);
/* Keeps a copy of the states as they are now, where there is memory for it. */
void seq_snapshot(struct seq *seq);

#endif
