/* SPDX-License-Identifier: Apache-2.0
 * minimax_m3.c: MiniMaxM3VLForCausalLM, its text: in some layers each KV head attends to a few
 * blocks of keys, which an index of its own chooses; the last ones are always among them. */
#include "base/error.h"
#include "models/blocks/decoder.h"
#include "models/blocks/moe.h"
#include "models/blocks/rope.h"

#define INDEXER "{arch}.attention.indexer."
#define OLD "sparse_attention_config.sparse_"

static const struct key keys[] = {
    WHOLE("index_heads", INDEXER "head_count", "index_n_heads|" OLD "num_index_heads", OPTIONAL, 4,
          1, 1024),
    WHOLE("index_dim", INDEXER "key_length", "index_head_dim|" OLD "index_dim", OPTIONAL, 128, 2,
          4096),
    WHOLE("index_block", INDEXER "block_size", "index_block_size|" OLD "block_size", OPTIONAL, 128,
          1, SELECT_BLOCKS),
    WHOLE("index_used", INDEXER "top_k", "index_topk_blocks|" OLD "topk_blocks", OPTIONAL, 16, 1,
          1 << 16),
    WHOLE("index_local", INDEXER "local_blocks", "index_local_blocks|" OLD "local_block", OPTIONAL,
          1, 0, 1 << 16),
    WHOLE("dense_ffn", NULL, "dense_intermediate_size", REQUIRED, 0, 1, 1 << 24),
    WHOLE("rotary_dim", NULL, "rotary_dim", OPTIONAL, 0, 0, 0), /* unused: the rope has a factor */
    REAL("swiglu_alpha", NULL, "swiglu_alpha", OPTIONAL, 1.702, 1e-6, 0),
    REAL("swiglu_limit", NULL, "swiglu_limit", OPTIONAL, 7, 1e-6, 0),
    {0},
};

#define SHARED "{m}layers.{i}.mlp.shared_experts."
#define INDEX "{m}layers.{i}.self_attn.indexer."

static const struct tensor tensors[] = {
    MATRIX("blk.{i}.ffn_gate.weight", "{m}layers.{i}.mlp.gate_up_proj.weight", "ffn", "width",
           REQUIRED, .from_hf = GATE_OF_TWO),
    MATRIX("blk.{i}.ffn_up.weight", "{m}layers.{i}.mlp.gate_up_proj.weight", "ffn", "width",
           REQUIRED, .from_hf = UP_OF_TWO),
    MATRIX("blk.{i}.ffn_down.weight", "{m}layers.{i}.mlp.down_proj.weight", "width", "ffn",
           REQUIRED),
    MATRIX("blk.{i}.ffn_gate_shexp.weight", SHARED "gate_up_proj.weight", "sparse*shared_ffn",
           "width", REQUIRED, .from_hf = "part(1,2*shared_ffn,0)"),
    MATRIX("blk.{i}.ffn_up_shexp.weight", SHARED "gate_up_proj.weight", "sparse*shared_ffn",
           "width", REQUIRED, .from_hf = "part(1,2*shared_ffn,shared_ffn)"),
    MATRIX("blk.{i}.ffn_down_shexp.weight", SHARED "down_proj.weight", "sparse*width",
           "shared_ffn", REQUIRED),
    MATRIX("blk.{i}.indexer.attn_q.weight", INDEX "q_proj.weight",
           "chooses*index_heads*index_dim", "width", REQUIRED,
           .gguf = "blk.{i}.indexer.q_proj.weight"),
    MATRIX("blk.{i}.indexer.attn_k.weight", INDEX "k_proj.weight", "chooses*index_dim", "width",
           REQUIRED, .gguf = "blk.{i}.indexer.k_proj.weight"),
    VECTOR("blk.{i}.indexer.q_norm.weight", INDEX "q_norm.weight", "chooses*index_dim", REQUIRED),
    VECTOR("blk.{i}.indexer.k_norm.weight", INDEX "k_norm.weight", "chooses*index_dim", REQUIRED),
    KNOWN("mtp.*", "{m}mtp.*", "predicts further tokens"),
    {0},
};

static const char old_layers[] = OLD "attention_freq";

static bool chooses(struct build *b, uint32_t layer) {
    uint64_t is = 0;
    if (build_has(b, NULL, "layer_types")) return decoder_type_is(b, layer, "minimax_m3_sparse");
    return build_u64_at(b, NULL, old_layers, layer, &is) && is;
}

/* What the index is, as far as it must fit the layer. */
static ob_status check_index(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    uint32_t heads = build_whole(b, "index_heads"), block = build_whole(b, "index_block");
    if (heads != hp->kv_heads[0])
        return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "index_n_heads", error,
                            "%u, the model has %u key heads", heads, hp->kv_heads[0]);
    if (SELECT_BLOCKS % block)
        return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "index_block_size", error,
                            "%u does not divide %d", block, SELECT_BLOCKS);
    if (build_whole(b, "index_local") > build_whole(b, "index_used"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "index_local_blocks", error,
                            "more than the blocks that are chosen");
    if (build_whole(b, "index_dim") < 2 * hp->rope.half)
        return build_refuse(b, OB_ERR_UNSUPPORTED, NULL, "index_head_dim", error,
                            "less than what the rotary embedding turns");
    return OB_OK;
}

static ob_status derive(struct build *b, ob_error *error) {
    static const struct route_args router = {.score = ROUTE_SIGMOID, .normalize = true, .scale = 1};
    struct hparams *hp = b->hp;
    uint32_t dense = build_whole(b, "dense_ffn");
    uint64_t sparse;
    hp->expert_ffn = hp->ffn[0];
    for (uint32_t i = 0; i < hp->layers; i++) hp->ffn[i] = dense;
    ob_status s = decoder_derive(b, error);
    if (s == OB_OK) s = moe_sizes(b, &router, error);
    if (s == OB_OK) s = check_index(b, error);
    if (s != OB_OK) return s;
    hp->chooses = arena_array(b->arena, hp->layers, sizeof *hp->chooses);
    if (!hp->chooses) return error_memory(error, "hyperparameters", hp->layers);
    if (!build_has(b, NULL, "layer_types")) build_wants(b, NULL, old_layers, hp->layers);
    if (build_count(b, NULL, "moe_layer_freq") > 1)
        build_wants(b, NULL, "moe_layer_freq", hp->layers);
    for (uint32_t i = 0; i < hp->layers; i++) {
        hp->chooses[i] = chooses(b, i);
        if (build_has(b, NULL, "mlp_layer_types") ||
            !build_u64_at(b, NULL, "moe_layer_freq", i, &sparse) || sparse)
            continue;
        hp->experts[i] = 0;
        hp->ffn[i] = dense;
    }
    const double shared = build_number(b, "shared_ffn") / hp->expert_ffn; /* as llama.cpp has it */
    if ((s = build_set(b, "shared_experts", shared, error)) != OB_OK) return s;
    float limit = (float)build_number(b, "swiglu_limit");
    hp->glu_clamp = (struct glu_clamp){.alpha = (float)build_number(b, "swiglu_alpha"),
                                       .limit = limit, .up_limit = limit, .up_add = 1};
    return OB_OK;
}

/* A norm and the rotary embedding of each head. */
static value_id turn(struct build *b, value_id x, const char *norm, uint32_t heads, uint32_t dim) {
    return graph_rope(b->g, block_norm_named(b, x, norm), block_rope_table(b, false), heads, dim,
                      false);
}

static value_id attend(struct build *b, value_id x, const struct decoder_args *unused) {
    (void)unused;
    const struct hparams *hp = b->hp;
    struct graph *g = b->g;
    uint32_t heads = hp->heads[b->layer], kv_heads = hp->kv_heads[b->layer];
    uint32_t index_heads = build_whole(b, "index_heads"), dim = build_whole(b, "index_dim");
    struct weight *w[5] = {build_weight(b, "attn_q.weight"), build_weight(b, "attn_k.weight"),
                           build_weight(b, "attn_v.weight"),
                           build_weight(b, "indexer.attn_q.weight"),
                           build_weight(b, "indexer.attn_k.weight")};
    value_id out[5];
    graph_linear(g, x, 3, w, NULL, out);
    struct attention_args args = {.heads = heads, .kv_heads = kv_heads, .k_dim = hp->k_dim,
                                  .v_dim = hp->v_dim, .scale = hp->attention_scale};
    if (hp->chooses[b->layer]) {
        graph_linear(g, x, 2, w + 3, NULL, out + 3);
        args.selects = true;
        args.selection = graph_block_select(
            g, turn(b, out[3], "indexer.q_norm", index_heads, dim),
            turn(b, out[4], "indexer.k_norm", 1, dim), build_whole(b, "index_block"),
            build_whole(b, "index_used"), build_whole(b, "index_local"));
    }
    value_id q = turn(b, out[0], "attn_q_norm", heads, hp->k_dim),
             k = turn(b, out[1], "attn_k_norm", kv_heads, hp->k_dim);
    return block_linear(b, graph_attention(g, q, k, out[2], &args), "attn_output");
}

static value_id mlp(struct build *b, value_id x, const struct decoder_args *unused) {
    (void)unused;
    if (b->hp->experts[b->layer]) return moe_mlp(b, x);
    value_id h = graph_glu_clamped(b->g, block_linear(b, x, "ffn_gate"),
                                   block_linear(b, x, "ffn_up"), &b->hp->glu_clamp);
    return block_linear(b, h, "ffn_down");
}

static value_id layer(struct build *b, value_id x) {
    return decoder_layer(b, x, &(struct decoder_args){.mixer = attend, .mlp = mlp});
}

const struct recipe model_minimax_m3_vl_text = {
    .family = "minimax-m3",
    .written_as = "minimax-m3",
    .model_type = "minimax_m3_vl_text",
    .hf_class = "MiniMaxM3VLForCausalLM",
    .foreign = "rotary_pct",
    .turns_parts = true,
    KEYS(decoder_keys, moe_keys, keys),
    TENSORS(decoder_ends, decoder_norms, decoder_attention_tensors, decoder_qk_norms,
            moe_fused_tensors, moe_bias_tensors, tensors),
    .norms_plus_one = true,
    .act_key = "", /* what a checkpoint names there is written out above */
    .derive = derive,
    .layer = layer,
};
