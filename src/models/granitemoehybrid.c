/* SPDX-License-Identifier: Apache-2.0
 * granitemoehybrid.c: GraniteMoeHybridForCausalLM: Granite's multipliers around Mamba-2 layers and
 * some of attention, which mostly has no positions; a mixture beside a shared expert, or the latter
 * alone. */
#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"
#include "models/blocks/mamba2.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"
#include "models/granite.h"

#define ALONE "{m}layers.{i}.shared_mlp."

static const struct tensor dense[] = {
    MATRIX("blk.{i}.ffn_gate.weight", ALONE "input_linear.weight", "ffn", "width", REQUIRED,
           .from_hf = GATE_OF_TWO),
    MATRIX("blk.{i}.ffn_up.weight", ALONE "input_linear.weight", "ffn", "width", REQUIRED,
           .from_hf = UP_OF_TWO),
    MATRIX("blk.{i}.ffn_down.weight", ALONE "output_linear.weight", "width", "ffn", REQUIRED),
    {0},
};

/* llama.cpp has no other word for whether there are positions. */
static const struct key keys[] = {
    WHOLE("positions", "{arch}.rope.scaling.finetuned", NULL, OPTIONAL, 1, 0, 1),
    {0},
};

static ob_status read_positions(struct build *b, ob_error *error) {
    struct str type = {0};
    if (source_kind(b->meta) == SOURCE_GGUF) return OB_OK;
    bool rope = build_str(b, NULL, "position_embedding_type", &type) && str_is(type, "rope");
    return build_set(b, "positions", rope, error);
}

static ob_status derive(struct build *b, ob_error *error) {
    static const struct route_args router = {.score = ROUTE_SOFTMAX_CHOSEN};
    struct hparams *hp = b->hp;
    bool mixture = hp->expert_count > 0;
    uint32_t alone = build_whole(b, "shared_ffn");
    for (uint32_t i = 0; i < hp->layers && !mixture && alone; i++) hp->ffn[i] = alone;
    ob_status s = read_positions(b, error);
    if (s == OB_OK) s = hybrid_sizes(b, hybrid_is_recurrent, error);
    if (s == OB_OK) s = mamba2_sizes(b, error);
    if (s == OB_OK) s = rope_read_default(b, error);
    if (s == OB_OK && mixture) s = moe_sizes(b, &router, error);
    if (s != OB_OK) return s;
    granite_multipliers(b);
    hp->logit_scale = 1 / hp->logit_scale;
    for (uint32_t i = 0; i < hp->layers; i++) hp->no_rope[i] = build_whole(b, "positions") == 0;
    return OB_OK;
}

static value_id mixer(struct build *b, value_id x, const struct decoder_args *args) {
    const struct mamba2_args mamba = {.act = b->hp->act, .norm_eps = b->hp->eps};
    return b->hp->recurrent[b->layer] ? mamba2_mixer(b, x, &mamba) : decoder_attention(b, x, args);
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = mixer, .interleaved = true});
}

const struct recipe model_granitemoehybrid = {
    .family = "granitemoehybrid",
    .gguf = "granitehybrid",
    .model_type = "granitemoehybrid",
    .hf_class = "GraniteMoeHybridForCausalLM",
    .foreign = "routed_scaling_factor",
    KEYS(decoder_keys, decoder_bias_keys, granite_keys, moe_keys, mamba2_keys,
         keys),
    TENSORS(decoder_ends, decoder_norms, decoder_paired, decoder_paired_biases, dense,
            granitemoe_experts, granitemoe_shared, mamba2_tensors),
    .derive = derive,
    .layer = layer,
};
