/* SPDX-License-Identifier: Apache-2.0
 * hparams.h: what keys[] of a recipe fill in. Every size was checked to be in a sane range. */
#ifndef MODELS_HPARAMS_H
#define MODELS_HPARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/hf_modules.h"
#include "graph/graph.h"

/* One kind of rotary embedding: the frequencies are ready to use (blocks/rope.h). */
struct rope {
    float base;
    uint32_t half;       /* pairs rotated */
    const float *freq;   /* [half] radians a position */
    float magnitude;     /* of cos and sin (yarn's attention factor) */
    uint32_t every;      /* as rope_table_args */
    char scaling[16];    /* "yarn": as files name it, "" = none */
    float factor;        /* of the scaling, from a context of `trained` positions */
    float trained;
    float beta_fast, beta_slow; /* yarn's */
    uint32_t original;   /* sequences that grow longer take, instead of freq: */
    const float *freq_long; /* longrope's second set, with its magnitude (0: the same), or */
    float magnitude_long;
    float dynamic;       /* those of base * (dynamic * n / original - (dynamic - 1))^(d / (d - 2))
                          */
};

/* What only some families have, by the name that their keys give it. */
struct number {
    const char *name;
    double value;
};
enum { NUMBERS_MAX = 64 };

struct hparams {
    uint32_t layers, width, vocab, context;
    uint32_t longest;                 /* positions beyond which the family is another; 0 = none */
    uint32_t *heads, *kv_heads, *ffn; /* a layer */
    uint32_t *window;                 /* a layer: 0 = full attention */
    uint32_t *chunk;                  /* a layer: 0 = no; else chunked attention (Llama 4) */
    uint32_t *recurrent;              /* a layer: 1 = a state in attention's place; NULL = none */
    uint32_t *shared_from, *shared_use; /* a layer that uses another's block: which one's, and its
                                         number among such layers, from 1; 0 = does not */
    bool *chooses;                    /* a layer: an index chooses keys; NULL = none */
    uint32_t *every;                  /* a layer: positions that become one key more; NULL, 0: no */
    bool *hashes;                     /* a layer: a table has each token id's experts; NULL: none */
    bool *loops;                      /* a layer: is run more than once; NULL = none */
    uint32_t *ngram_rows;             /* a layer: of each part of its table of n-grams; 0 = it has
                                         none; NULL: none has */
    struct ngram_args *ngrams;        /* a layer that has */
    bool *no_rope;                    /* a layer: without rotary embedding */
    uint32_t *experts;                /* a layer: 0 = a plain MLP; with experts its ffn is 0 */
    uint32_t expert_count, expert_ffn;
    uint32_t dense_layers;            /* the first ones, without experts */
    uint32_t predictors;              /* layers after the last one, which guess further tokens:
                                         their tensors are known and not used */
    struct route_args route;          /* without the layer's bias */
    struct glu_clamp glu_clamp;       /* of gated MLPs whose alpha is not 0 */
    uint32_t k_dim, v_dim;
    uint32_t rope_dim;                /* dimensions rotated; 0 = k_dim */
    uint32_t *head_dim;               /* a layer: of k and v, where layers differ; NULL: k_dim */
    uint32_t window_size;             /* as the file says; which layers use it is in `window` */
    enum norm_kind norm;              /* RMS unless the family says layer */
    enum act_kind act, head_act;      /* of MLPs; before the logits of an encoder_causal_head */
    bool bidirectional;               /* an encoder: a token sees later ones, outputs are states */
    bool embeds;                      /* a sequence is embedded, outputs are states: */
    bool pooling_said, ranks;         /* the file says how; it says that a head ranks texts */
    bool scores;                      /* a decoder's last state is scored, outputs are states */
    struct hf_modules modules;        /* what follows the last states (blocks/pooling.h) */
    bool bare_norms;                  /* norms without weights are computed all the same */
    float eps;
    float output_eps;                 /* of the last norm; 0 = eps */
    int32_t position_offset;          /* of learned positions: the row of position 0 */
    float embed_scale;                /* 1 unless the family scales */
    float attention_scale;            /* multiplies q . k */
    float attention_scalar;           /* Gemma: scale = attention_scalar^-0.5; 0 = absent */
    const float *alibi;               /* [heads] slopes; NULL = none */
    const float *offsets;             /* by distance, and its reach: attention_args; NULL = none */
    const uint32_t *places;           /* likewise, of vectors of relative positions, */
    float *positions;                 /* which are these, a column each */
    uint32_t reach;
    float attention_softcap, logit_softcap; /* 0 = none */
    float query_beta;                 /* not 0: q *= 1 + beta * log(1 + floor(pos / period)) */
    float query_period;
    float attention_clamp;            /* q, k, v are cut to +-this; 0 = no */
    float value_scale;                /* multiplies v; 1 unless the family scales */
    float residual_scale;             /* of what a sub-layer adds; 1 unless the family scales */
    float logit_scale;                /* multiplies the logits; 1 likewise */
    float rope_base, rope_base_window;
    struct rope rope, rope_window;    /* of full and of window layers */
    const struct rope **layer_rope;   /* a layer: instead of these two; NULL: none has its own */
    struct number number[NUMBERS_MAX];
    uint32_t numbers;
};

#endif
