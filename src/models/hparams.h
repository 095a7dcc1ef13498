/* SPDX-License-Identifier: Apache-2.0
 * hparams.h: what keys[] of a recipe fill in. Every size was checked to be in a sane range. */
#ifndef MODELS_HPARAMS_H
#define MODELS_HPARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/graph.h"

/* One kind of rotary embedding: the frequencies are ready to use (blocks/rope.h). */
struct rope {
    float base;
    uint32_t half;       /* pairs rotated */
    const float *freq;   /* [half] radians a position */
    float magnitude;     /* of cos and sin (yarn's attention factor) */
};

struct hparams {
    uint32_t layers, width, vocab, context;
    uint32_t *heads, *kv_heads, *ffn; /* a layer */
    uint32_t *window;                 /* a layer: 0 = full attention */
    uint32_t *experts;                /* a layer: 0 = a plain MLP; with experts its ffn is 0 */
    uint32_t expert_count, expert_used, expert_ffn;
    uint32_t dense_layers;            /* the first ones, without experts */
    enum route_kind route;
    uint32_t k_dim, v_dim;
    uint32_t rope_dim;                /* dimensions rotated; 0 = k_dim */
    uint32_t window_size;             /* as the file says; which layers use it is in `window` */
    float eps;
    float embed_scale;                /* 1 unless the family scales */
    float attention_scale;            /* multiplies q . k */
    float attention_scalar;           /* Gemma: scale = attention_scalar^-0.5; 0 = absent */
    float attention_softcap, logit_softcap; /* 0 = none */
    float rope_base, rope_base_window;
    struct rope rope, rope_window;    /* of full and of window layers */
};

#endif
