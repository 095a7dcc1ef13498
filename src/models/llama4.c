/* SPDX-License-Identifier: Apache-2.0
 * llama4.c: Llama4ForCausalLM: layers that see their chunk of positions alone and turn q and k,
 * which have norms without weights, and full ones that do not and scale q by its position; a
 * token's weight multiplies its expert's input, not its output. */
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"

static const struct key keys[] = {
    {"{arch}.feed_forward_length", "intermediate_size_mlp", KEY_LAYERS,
     offsetof(struct hparams, ffn), REQUIRED, 0, 1, 1 << 24, NULL},
    {"{arch}.expert_feed_forward_length", "intermediate_size", KEY_U32,
     offsetof(struct hparams, expert_ffn), REQUIRED, 0, 1, 1 << 24, NULL},
    WHOLE("chunk_size", "{arch}.attention.sliding_window", "attention_chunk_size", OPTIONAL, 8192,
          0, 0),
    WHOLE("qk_norm", NULL, "use_qk_norm", OPTIONAL, 1, 0, 1),
    WHOLE("tempered", NULL, "attn_temperature_tuning", OPTIONAL, 1, 0, 1),
    WHOLE("step", "{arch}.interleave_moe_layer_step", "interleave_moe_layer_step", OPTIONAL, 1, 1,
          4096),
    REAL("attn_scale", NULL, "attn_scale", OPTIONAL, 0.1, 0, 0),
    REAL("floor_scale", NULL, "floor_scale", OPTIONAL, 8192, 1, 0),
    {0},
};

#define MLP "{m}layers.{i}.feed_forward."

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.ffn_gate.weight", MLP "gate_proj.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", MLP "up_proj.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", MLP "down_proj.weight", "width", "ffn", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_inp.weight", MLP "router.weight", "experts", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_gate_exps.weight", MLP "experts.gate_up_proj", "expert_ffn", "width",
           REQUIRED, .from_hf = "experts T part(1,2*expert_ffn,0)"),
    MATRIX("blk.{i}.ffn_up_exps.weight", MLP "experts.gate_up_proj", "expert_ffn", "width",
           REQUIRED, .from_hf = "experts T part(1,2*expert_ffn,expert_ffn)"),
    MATRIX("blk.{i}.ffn_down_exps.weight", MLP "experts.down_proj", "width", "expert_ffn", REQUIRED,
           .from_hf = "experts T"),
    MATRIX("blk.{i}.ffn_gate_shexp.weight", MLP "shared_expert.gate_proj.weight",
           "sparse*shared_ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_up_shexp.weight", MLP "shared_expert.up_proj.weight", "sparse*shared_ffn",
           "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down_shexp.weight", MLP "shared_expert.down_proj.weight", "width",
           "sparse*shared_ffn", REQUIRED),
    {0},
};

/* Which layers turn, and which see a chunk: those that turn, unless the file names them. */
static void read_layers(struct build *b) {
    struct hparams *hp = b->hp;
    uint32_t interval = 4, chunk = build_whole(b, "chunk_size");
    build_u32(b, NULL, "no_rope_layer_interval", &interval);
    if (build_count(b, NULL, "no_rope_layers") > 0)
        build_wants(b, NULL, "no_rope_layers", hp->layers);
    bool named = build_has(b, NULL, "layer_types");
    bool no_chunks = source_kind(b->meta) == SOURCE_GGUF && chunk == 0;
    for (uint32_t i = 0; i < hp->layers; i++) {
        uint64_t turns = interval == 0 || (i + 1) % interval != 0 || no_chunks;
        build_u64_at(b, NULL, "no_rope_layers", i, &turns);
        hp->no_rope[i] = !turns;
        bool chunked = named ? decoder_type_is(b, i, "chunked_attention") : turns;
        hp->chunk[i] = chunked ? chunk : 0;
    }
}

static ob_status derive(struct build *b, ob_error *error) {
    ob_status s = decoder_derive(b, error);
    /* GGUF has no key for it: the model of 128 experts has no norms of q and k. */
    if (s == OB_OK && source_kind(b->meta) == SOURCE_GGUF && b->hp->expert_count == 128)
        s = build_set(b, "qk_norm", 0, error);
    if (s == OB_OK) s = build_set(b, "shared_ffn", b->hp->expert_ffn, error);
    if (s == OB_OK) s = moe_sizes(b, &(struct route_args){.score = ROUTE_SIGMOID}, error);
    if (s != OB_OK) return s;
    if (b->hp->route.used != 1)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "{arch}.expert_used_count",
                            "num_experts_per_tok", error,
                            "a token of this family has one expert, not %u", b->hp->route.used);
    read_layers(b);
    return OB_OK;
}

static value_id temper(struct build *b, value_id q) {
    if (!b->hp->no_rope[b->layer] || !build_whole(b, "tempered")) return q;
    return graph_scale_position(b->g, q, (float)build_number(b, "attn_scale"), 1,
                                (float)build_number(b, "floor_scale"));
}

/* The expert of the largest logit, its input times the sigmoid of that, its output as it is. */
static value_id mlp(struct build *b, value_id x, const struct decoder_args *args) {
    if (!b->hp->experts[b->layer]) return decoder_mlp_block(b, x, args);
    value_id logits = block_linear(b, x, "ffn_gate_inp");
    value_id weight = graph_route_rest(b->g, graph_route(b->g, logits, &b->hp->route), 0);
    const struct route_args whole = {.score = ROUTE_SOFTMAX_CHOSEN, .used = 1};
    value_id y = moe_experts(b, graph_mul(b->g, x, weight), logits, &whole);
    return graph_add(b->g, y, moe_shared(b, x));
}

static value_id layer(struct build *b, value_id x) {
    bool norms = !b->hp->no_rope[b->layer] && build_whole(b, "qk_norm");
    return decoder_layer(b, x,
                         &(struct decoder_args){.interleaved = true,
                                                .late_qk_norm = true,
                                                .bare_qk_norm = norms,
                                                .query = temper,
                                                .mlp = mlp});
}

const struct recipe model_llama4_text = {
    .family = "llama4",
    .gguf = "llama4",
    .model_type = "llama4_text",
    .hf_class = "Llama4ForCausalLM",
    .foreign = "norm_topk_prob|routed_scaling_factor",
    KEYS(decoder_keys, decoder_bias_keys, moe_keys, keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_attention_biases,
            tensors),
    .derive = derive,
    .layer = layer,
};
