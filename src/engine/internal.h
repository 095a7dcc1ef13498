/* SPDX-License-Identifier: Apache-2.0
 * internal.h: what the files of engine/ share. */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include "devices/device.h"
#include "engine/engine.h"
#include "engine/pages.h"

struct group {
    struct device_buffer *buffer;
    size_t page_bytes;
    struct pages pages;
};

struct engine {
    const struct device_type *type;
    uint32_t device_index;
    struct device *device;
    struct model *model;
    struct arena arena;
    char describe[128], kv_text[16];
    const struct quant *weights; /* what matrices of floats become; NULL: they stay */
    struct kv_types kv_type;
    uint32_t threads, context, parallel, step_tokens, step_logits;
    uint64_t capacity;

    struct group *group;                  /* [graph.groups] */
    uint32_t groups;
    uint32_t snapshots;                   /* of states, that a sequence may keep */
    struct device_buffer **group_buffer;  /* the same buffers and sizes, as device_kv wants them */
    size_t *group_page_bytes;
    bool length_matters;                  /* graph_depends_on_length */
    uint32_t bound;                       /* weights bound so far */
    struct device_plan *plan;

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

/* memory.c: of a device that has memory of its own; else 0, and all fits. */
uint64_t engine_device_weights(const struct engine *e);
uint64_t engine_device_plan(const struct engine *e, const uint64_t *group_bytes);
ob_status engine_check_memory(const struct engine *e, const uint64_t *group_bytes,
                              ob_error *error);

/* seq.c: takes the pages for n more tokens; false if the memory does not hold them (then nothing
 * has changed). */
bool seq_grow(struct seq *seq, uint32_t n);
/* Pages n more tokens need in a group beyond those it has. */
uint32_t seq_needs(const struct seq *seq, uint32_t group, uint32_t n);
/* Gives back pages that no position from `length` on can see. */
void seq_leave_window(struct seq *seq);
/* Keeps a copy of the states as they are now, where there is memory for it. */
void seq_snapshot(struct seq *seq);

#endif
