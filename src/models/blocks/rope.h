/* SPDX-License-Identifier: Apache-2.0
 *
 * rope.h: from a file's description of its rotary embedding to the angle per position of each pair.
 * freq[i] = base^(-2i/d), changed by the scaling: linear (divided by the factor), llama3 (by
 * wavelength, Llama 3.1), yarn (Peng et al. 2023, arXiv:2309.00071), or a file's own factor for
 * each pair (`rope_freqs.weight`). Computed in FP32 steps as transformers does. */
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
};
ob_status rope_read(struct build *b, const struct rope_source *from, struct rope *out,
                    ob_error *error);

#endif
