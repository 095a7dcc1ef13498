/* SPDX-License-Identifier: Apache-2.0
 *
 * rope.h: from a file's description of its rotary embedding to the angle per position of each pair.
 * freq[i] = base^(-2i/d), changed by the scaling: linear (divided by the factor), llama3 (by
 * wavelength, Llama 3.1), yarn (Peng et al. 2023, arXiv:2309.00071), dynamic (NTK-aware, by the
 * sequence's length), longrope (two sets of divisors by the sequence's length, arXiv:2402.13753),
 * proportional (the first pairs turn), or a file's own factor for each pair (`rope_freqs.weight`).
 * Computed in FP32 steps as transformers does. */
#ifndef MODELS_BLOCKS_ROPE_H
#define MODELS_BLOCKS_ROPE_H

#include "models/recipe.h"

/* `hf`: the object in config.json for newer files ("rope_parameters" or
 * "rope_parameters.full_attention"); older files have rope_scaling, which is used when `scaled`.
 * `base` is the base when the file names none. An unknown scaling is refused by its name. */
struct rope_source {
    const char *hf;
    const char *base_key_hf;   /* of older files: "rope_theta" */
    const char *base_key_gguf; /* "{arch}.rope.freq_base" */
    float base;
    bool scaled;
    float part;        /* of each head's dimensions that turn, where no key says it; 0: all */
    uint32_t head_dim; /* 0: hp.k_dim */
    bool between_pairs; /* yarn's range does not begin and end at whole pairs, unless a key says */
    uint32_t dim;      /* dimensions that turn, whatever keys say; 0: by the keys */
    float fixed_base;  /* the base, whatever keys say; 0: by the keys */
};
extern const struct tensor rope_tensors[]; /* factors in GGUF files: of any model with a rope */
ob_status rope_read(struct build *b, const struct rope_source *from, struct rope *out,
                    ob_error *error);
/* hp.rope for all layers: rope_parameters, or rope_theta and rope_scaling. */
ob_status rope_read_default(struct build *b, ob_error *error);
/* The same, by another base where no key says one. */
ob_status rope_read_base(struct build *b, float base, ob_error *error);
/* The same, where only `part` of each head's dimensions turns unless a key says otherwise. */
ob_status rope_read_part(struct build *b, float part, ob_error *error);
/* hp.rope and hp.rope_window: rope_parameters has an object for each kind of layer
 * (full_attention, sliding_attention), or one for both. */
ob_status rope_read_by_type(struct build *b, ob_error *error);
/* The same, where only `part` of each head's dimensions turns unless a key says otherwise. */
ob_status rope_read_parts_by_type(struct build *b, float part, ob_error *error);
/* Of rope_parameters with an object for each kind of layer: layers of a kind without one do not
 * turn (hp.no_rope). After windows are known. */
ob_status rope_read_where_said(struct build *b, ob_error *error);

#endif
