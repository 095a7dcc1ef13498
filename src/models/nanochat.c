/* SPDX-License-Identifier: Apache-2.0
 * nanochat.c: NanoChatForCausalLM: norms without weights, one of them on the embeddings and two
 * on q and k behind the rope, which turns the other way, a plain MLP of squared ReLU, capped
 * logits. */
#include "base/error.h"
#include "models/blocks/decoder.h"

static const struct key keys[] = {
    {NULL, "final_logit_softcapping", KEY_F32, offsetof(struct hparams, logit_softcap), OPTIONAL, 0,
     0, 0, NULL},
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embed_tokens.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "width", OPTIONAL),
    MATRIX("blk.{i}.ffn_up.weight", "{m}layers.{i}.mlp.fc1.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", "{m}layers.{i}.mlp.fc2.weight", "width", "ffn", REQUIRED),
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct rope *r = &b->hp->rope;
    b->hp->bare_norms = true;
    ob_status s = decoder_derive(b, error);
    if (s != OB_OK) return s;
    if (r->freq_long || r->dynamic > 0)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "{arch}.rope.scaling.type",
                            "rope_scaling|rope_parameters",
                            error, "a rope by length is not supported in this family");
    float *back = arena_array(b->arena, r->half, sizeof *back);
    if (!back) return error_memory(error, "rope", r->half * sizeof *back);
    for (uint32_t i = 0; i < r->half; i++) back[i] = -r->freq[i];
    r->freq = back;
    return OB_OK;
}

static value_id layer(struct build *b, value_id x) {
    if (b->layer == 0) x = block_norm(b, x, NULL, NULL);
    return decoder_layer(b, x,
                         &(struct decoder_args){.late_qk_norm = true, .bare_qk_norm = true});
}

const struct recipe model_nanochat = {
    .family = "nanochat",
    .model_type = "nanochat",
    .hf_class = "NanoChatForCausalLM",
    .act = "relu2",
    KEYS(decoder_keys, decoder_bias_keys, keys),
    TENSORS(tensors, decoder_attention_tensors, decoder_attention_biases),
    .derive = derive,
    .layer = layer,
};
