/* SPDX-License-Identifier: Apache-2.0
 *
 * device.h: the one vtable a device implements. A device keeps all state in its handle: two engines
 * in one process work. Calls on one handle come from one thread at a time. */
#ifndef DEVICES_DEVICE_H
#define DEVICES_DEVICE_H

#include "graph/graph.h"
#include "onebit.h"
#include "quant/kv.h"

struct device;       /* an open device; each implementation embeds this as its first member */
struct device_plan;  /* a prepared bucket */
struct device_buffer;

struct device_options {
    uint32_t index;      /* which of the machine's */
    uint32_t threads;    /* 0 = one a processor */
    const uint32_t *cpu; /* [threads] where each runs (pool.h), copied; NULL = anywhere */
    const char *cpu_isa; /* NULL = best */
    bool plain;          /* cuda: no graphs, each kernel is launched by itself */
    bool unfused;        /* cuda: a node's kernels are its own */
};

/* KV memory of a model on a device: one buffer a cache group, pages numbered from 0. Bytes of a
 * page = layers * PAGE_TOKENS * kv_heads * kv_position_bytes(type, k_dim, v_dim), whose blocks
 * divide the dimensions, or layers * state_floats floats; inside it the device's own layout. */
struct device_kv {
    struct kv_types type;
    struct device_buffer *const *group; /* [graph.groups] */
    const size_t *page_bytes;           /* [graph.groups] */
};

struct device_type {
    const char *name;
    uint32_t step_tokens; /* of a step, at most, that it does well with; 0: as all */
    /* Fills count and, of number `index`: memory, text ("N cores, avx512", or why there is none)
     * and isa. */
    void (*enumerate)(uint32_t index, ob_device *out);
    ob_status (*open)(const struct device_options *options, struct device **out, ob_error *error);
    void (*close)(struct device **device);
    void (*describe)(const struct device *device, char *text, size_t size);
    void (*memory)(const struct device *device, uint64_t *available, uint64_t *total);

    /* Buffers are zeroed and committed when touched, where the device can. */
    ob_status (*alloc)(struct device *device, size_t bytes, struct device_buffer **out,
                       ob_error *error);
    void (*free)(struct device *device, struct device_buffer **buffer);
    ob_status (*write)(struct device *device, struct device_buffer *buffer, size_t offset,
                       const void *data, size_t bytes, ob_error *error);
    ob_status (*read)(struct device *device, struct device_buffer *buffer, size_t offset,
                      void *data, size_t bytes, ob_error *error);

    /* Inside one buffer; the ranges do not overlap. */
    ob_status (*copy)(struct device *device, struct device_buffer *buffer, size_t to, size_t from,
                      size_t bytes, ob_error *error);

    /* Bytes of the device's memory that a bound weight takes, and a plan beside the KV memory,
     * whose groups have so many bytes; buffers of kv are not read. NULL: weights stay where they
     * are, and a plan takes of the host's memory. */
    uint64_t (*weight_memory)(const struct device *device, const struct weight *weight);
    uint64_t (*plan_memory)(const struct device *device, const struct graph *graph,
                            const struct device_kv *kv, const uint64_t *group_bytes,
                            uint32_t tokens, uint32_t logits);
    /* May repack: sets weight->bound; nobody else knows the layout. */
    ob_status (*bind_weight)(struct device *device, struct weight *weight, ob_error *error);
    void (*unbind_weight)(struct device *device, struct weight *weight);
    /* The only way to decline a node; writes the reason. */
    bool (*supports)(const struct device *device, const struct graph *graph,
                     const struct node *node, char *reason, size_t size);
    /* What runs the i-th weight of a node that it supports: "avx512, int8 inputs". */
    void (*kernel)(const struct device *device, const struct node *node, uint32_t i, char *text,
                   size_t size);
    /* A plan for steps of at most `tokens` rows and `logits` logit rows. A bucket sets memory,
     * never arithmetic. */
    ob_status (*prepare)(struct device *device, const struct graph *graph,
                         const struct device_kv *kv, uint32_t tokens, uint32_t logits,
                         struct device_plan **out, ob_error *error);
    void (*release)(struct device *device, struct device_plan **plan);
    /* Puts in a given value's rows, before a run. */
    ob_status (*give)(struct device *device, struct device_plan *plan, value_id v, size_t rows,
                      const float *data, ob_error *error);
    /* Runs a step and waits; logits [step.logits, cols] of float, NULL if the graph has none, stay
     * valid until the next run of this plan. A step allocates nothing. */
    ob_status (*run)(struct device *device, struct device_plan *plan, const struct step *step,
                     const float **logits, ob_error *error);
    /* The rows of another output of the graph (embedding, pooled, what is kept), as valid as the
     * logits. */
    const float *(*output)(const struct device *device, const struct device_plan *plan,
                           value_id v);
};

struct device {
    const struct device_type *type;
};

extern const struct device_type *const device_list[];
extern const size_t device_count;
const struct device_type *device_find(const char *name); /* NULL if unknown */
/* The same of "name" or "name:number"; the number may be too large. */
const struct device_type *device_find_at(const char *text, uint32_t *index);

#endif
