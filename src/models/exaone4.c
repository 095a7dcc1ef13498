/* SPDX-License-Identifier: Apache-2.0
 * exaone4.c: Exaone4ForCausalLM: norms only after attention and MLP, norms of q and k, and in the
 * larger model windows, of whose layers alone q and k turn. */
#include "models/blocks/decoder.h"

static ob_status derive(struct build *b, ob_error *error) {
    static const char pattern[] = "sliding_window_pattern";
    struct str letters;
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK || b->hp->window_size == 0) return s;
    if (!build_has(b, NULL, "layer_types") && build_str(b, NULL, pattern, &letters))
        return build_refuse(b, OB_ERR_UNSUPPORTED, pattern, pattern, error,
                            "\"%.*s\" is not supported without layer_types", STR_ARG(letters));
    decoder_window_period(b, 4, false);
    decoder_rope_in_windows(b);
    return OB_OK;
}

const struct recipe model_exaone4 = {
    .family = "exaone4",
    .gguf = "exaone4",
    .model_type = "exaone4",
    .hf_class = "Exaone4ForCausalLM",
    KEYS(decoder_keys, decoder_window_keys),
    TENSORS(decoder_ends, decoder_after_norms, decoder_attention_tensors, decoder_qk_norms,
            decoder_mlp),
    .derive = derive,
    .layer = decoder_plain_layer,
};
