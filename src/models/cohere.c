/* SPDX-License-Identifier: Apache-2.0
 * cohere.c: CohereForCausalLM (Command R): attention and MLP side by side behind one layer norm
 * without bias, rotary pairs, logits multiplied by a constant, and, in the larger models, layer
 * norms of q and k with weights of each head's own. Cohere2ForCausalLM has windows, of whose layers
 * alone q and k turn, and no norms of these; CohereCompassForCausalLM windows and a rope of each
 * kind of layer. */
#include "models/blocks/decoder.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    REAL("logit_scale", "{arch}.logit_scale", "logit_scale", OPTIONAL, 1, 0, 0),
    WHOLE("qk_norm", NULL, "use_qk_norm", OPTIONAL, 0, 0, 1),
    {0},
};

static const struct tensor tensors[] = {
    VECTOR("blk.{i}.attn_norm.weight", "{m}layers.{i}.input_layernorm.weight", "width", REQUIRED),
    VECTOR("blk.{i}.attn_q_norm.weight", "{m}layers.{i}.self_attn.q_norm.weight",
           "qk_norm*heads*k_dim", REQUIRED, .gguf_row = "k_dim"),
    VECTOR("blk.{i}.attn_k_norm.weight", "{m}layers.{i}.self_attn.k_norm.weight",
           "qk_norm*kv_heads*k_dim", REQUIRED, .gguf_row = "k_dim"),
    {0},
};

static ob_status sizes(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    hp->norm = NORM_LAYER;
    if (source_tensor_find(b->source, STR_LIT("blk.0.attn_q_norm.weight"))) {
        ob_status s = build_set(b, "qk_norm", 1, error);
        if (s != OB_OK) return s;
    }
    ob_status s = decoder_sizes(b, error);
    hp->logit_scale = (float)build_number(b, "logit_scale");
    return s;
}

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = sizes(b, error);
    return s == OB_OK ? rope_read_default(b, error) : s;
}

static ob_status derive_compass(struct build *b, ob_error *error) {
    ob_status s = sizes(b, error);
    if (s != OB_OK) return s;
    decoder_layer_types(b);
    return build_has(b, NULL, "rope_parameters.full_attention|rope_parameters.sliding_attention")
               ? rope_read_where_said(b, error)
               : rope_read_default(b, error);
}

static ob_status derive_cohere2(struct build *b, ob_error *error) {
    ob_status s = derive(b, error);
    if (s != OB_OK) return s;
    decoder_window_period(b, 4, false);
    decoder_rope_in_windows(b);
    return OB_OK;
}

static value_id compass_layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.parallel = true});
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.interleaved = true, .parallel = true});
}

const struct recipe model_cohere = {
    .family = "cohere",
    .gguf = "command-r",
    .model_type = "cohere",
    .hf_class = "CohereForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, keys),
    TENSORS(decoder_ends, tensors, decoder_attention_tensors, decoder_attention_biases,
            decoder_mlp),
    .derive = derive,
    .layer = layer,
};

const struct recipe model_cohere2 = {
    .family = "cohere2",
    .gguf = "cohere2",
    .model_type = "cohere2",
    .hf_class = "Cohere2ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, keys),
    TENSORS(decoder_ends, tensors, decoder_attention_tensors, decoder_attention_biases,
            decoder_mlp),
    .derive = derive_cohere2,
    .layer = layer,
};

const struct recipe model_cohere_compass_text = {
    .family = "cohere_compass_text",
    .model_type = "cohere_compass_text",
    .hf_class = "CohereCompassForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, keys),
    TENSORS(decoder_ends, tensors, decoder_attention_tensors, decoder_attention_biases,
            decoder_mlp),
    .derive = derive_compass,
    .layer = compass_layer,
};
