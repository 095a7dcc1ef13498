/* SPDX-License-Identifier: Apache-2.0
 * laguna.c: LagunaForCausalLM: as many query heads as each layer says, attention behind a softplus
 * gate of each head or element, a rope of each kind of layer, and a sigmoid router whose logits may
 * have a soft cap. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"

static const struct key keys[] = {
    {"{arch}.attention.head_count", "num_attention_heads_per_layer|num_attention_heads", KEY_LAYERS,
     offsetof(struct hparams, heads), REQUIRED, 0, 1, 1024, NULL},
    REAL("router_cap", NULL, "moe_router_logit_softcapping", OPTIONAL, 0, 0, 0),
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.attn_gate.weight", "{m}layers.{i}.self_attn.g_proj.weight", "heads*gate_dim",
           "width", REQUIRED),
    {0},
};

/* A gate for each head, or for each of its elements. */
static ob_status read_gate(struct build *b, ob_error *error) {
    struct str word;
    bool each = build_str(b, NULL, "gating", &word) && str_is(word, "per-element"), any = true;
    build_bool(b, NULL, "gating", &any); /* of older files: for each head */
    const struct source_tensor *gate =
        source_tensor_find(b->source, STR_LIT("blk.0.attn_gate.weight"));
    if (gate) each = gate->dim[1] > b->hp->heads[0];
    return build_set(b, "gate_dim", each ? b->hp->k_dim : 1, error);
}

static ob_status derive(struct build *b, ob_error *error) {
    const struct route_args router = {.score = ROUTE_SIGMOID, .normalize = true};
    bool on_input = false;
    ob_status s = decoder_sizes(b, error);
    if (s == OB_OK) s = read_gate(b, error);
    if (s == OB_OK) s = rope_read_by_type(b, error);
    if (s == OB_OK)
        s = build_flag(b, NULL, "moe_apply_router_weight_on_input", &on_input, error);
    if (s != OB_OK) return s;
    if (on_input)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", "moe_apply_router_weight_on_input", error,
                            "weights of experts on their input are not supported in this family");
    decoder_window_period(b, 4, true);
    return moe_sizes(b, &router, error);
}

static value_id mlp(struct build *b, value_id x, const struct decoder_args *args) {
    float cap = (float)build_number(b, "router_cap");
    if (cap == 0 || !b->hp->experts[b->layer]) return decoder_mlp_block(b, x, args);
    value_id logits = graph_softcap(b->g, block_linear(b, x, "ffn_gate_inp"), cap);
    return graph_add(b->g, moe_experts(b, x, logits, &b->hp->route), moe_shared(b, x));
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.softplus_gate = true, .mlp = mlp});
}

const struct recipe model_laguna = {
    .family = "laguna",
    .gguf = "laguna",
    .model_type = "laguna",
    .hf_class = "LagunaForCausalLM",
    .foreign = "routed_scaling_factor",
    .turns_parts = true,
    KEYS(decoder_keys, decoder_bias_keys, decoder_window_keys, moe_keys, keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            decoder_qk_norms, tensors, decoder_mlp, moe_tensors, moe_shared_tensors,
            moe_bias_tensors),
    .derive = derive,
    .layer = layer,
};
