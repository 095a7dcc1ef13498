/* SPDX-License-Identifier: Apache-2.0
 * deepseek_v2.c: DeepseekV2ForCausalLM, DeepseekV3ForCausalLM and what is V3's mathematics: latent
 * attention, and a mixture of experts after some dense layers. V2 routes by softmax within the
 * groups of the best experts, V3 by sigmoid and a bias within the groups of the best two. In GGUF
 * "deepseek2" is both, by the router that the file names, and Youtu, which has no experts. */
#include "models/deepseek_v2.h"

#include "models/blocks/moe.h"

static const struct route_args v2_router = {.score = ROUTE_SOFTMAX, .group_zero = true, .scale = 1};
const struct route_args deepseek_v3_router = {
    .score = ROUTE_SIGMOID, .group = ROUTE_GROUP_TOP2, .normalize = true, .normalize_eps = 1e-20f,
    .scale = 1};

static ob_status derive_v2(struct build *b, ob_error *error) {
    uint32_t gate = 1;
    struct str method = STR_LIT("group_limited_greedy");
    ob_status s = mla_derive(b, error);
    if (s != OB_OK) return s;
    if (source_kind(b->meta) == SOURCE_GGUF && b->hp->expert_count == 0) return OB_OK;
    build_u32(b, "{arch}.expert_gating_func", NULL, &gate);
    s = moe_sizes(b, gate == 2 ? &deepseek_v3_router : &v2_router, error);
    build_str(b, NULL, "topk_method", &method);
    if (str_is(method, "greedy")) b->hp->route.groups = 0;
    else if (s == OB_OK && !str_is(method, "group_limited_greedy"))
        return build_refuse(b, OB_ERR_UNSUPPORTED, "topk_method", "topk_method", error,
                            "\"%.*s\" is not known", STR_ARG(method));
    return s;
}

ob_status deepseek_v3_derive(struct build *b, ob_error *error) {
    ob_status s = mla_derive(b, error);
    return s == OB_OK ? moe_sizes(b, &deepseek_v3_router, error) : s;
}

/* Only of V3's router. */
static const struct tensor bias[] = {
    VECTOR("blk.{i}.exp_probs_b.bias", NULL, "experts", OPTIONAL),
    {0},
};

const struct recipe model_deepseek_v2 = {
    .family = "deepseek_v2",
    .gguf = "deepseek2",
    .model_type = "deepseek_v2",
    .hf_class = "DeepseekV2ForCausalLM",
    .foreign = "norm_topk_prob",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, mla_tensors, decoder_mlp, decoder_mlp_biases, moe_tensors,
            moe_shared_tensors, bias),
    .derive = derive_v2,
    .layer = mla_layer,
};

const struct recipe model_deepseek_v3 = {
    .family = "deepseek_v3",
    .written_as = "deepseek2",
    .model_type = "deepseek_v3",
    .also_type = "kimi_k2|sarvam_mla",
    .hf_class = "DeepseekV3ForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, mla_tensors, decoder_mlp, moe_tensors, moe_shared_tensors,
            moe_bias_tensors),
    .derive = deepseek_v3_derive,
    .layer = mla_layer,
};

const struct recipe model_glm4_moe_lite = {
    .family = "glm4_moe_lite",
    .written_as = "deepseek2",
    .model_type = "glm4_moe_lite",
    .hf_class = "Glm4MoeLiteForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, moe_keys),
    TENSORS(decoder_ends, decoder_norms, mla_tensors, decoder_mlp, moe_tensors, moe_shared_tensors,
            moe_bias_tensors),
    .derive = deepseek_v3_derive,
    .layer = mla_layer,
};

/* Of the experts that it has not, as llama.cpp asks of every "deepseek2". */
static const struct key no_experts[] = {
    WHOLE("as_expert", "{arch}.expert_feed_forward_length", "intermediate_size", REQUIRED, 0, 1,
          1 << 24),
    WHOLE("all_dense", "{arch}.leading_dense_block_count", "num_hidden_layers", REQUIRED, 0, 1,
          4096),
    WHOLE("none_shared", "{arch}.expert_shared_count", NULL, REQUIRED, 0, 0, 4096),
    {0},
};

const struct recipe model_youtu = {
    .family = "youtu",
    .written_as = "deepseek2",
    .model_type = "youtu",
    .hf_class = "YoutuForCausalLM",
    KEYS(decoder_keys, decoder_bias_keys, mla_keys, no_experts),
    TENSORS(decoder_ends, decoder_norms, mla_tensors, decoder_mlp),
    .derive = mla_derive,
    .layer = mla_layer,
};
