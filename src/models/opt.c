/* SPDX-License-Identifier: Apache-2.0
 * opt.c: fairseq's decoders: OPTForCausalLM, XGLMForCausalLM and BioGptForCausalLM: layer norms,
 * biases, a plain MLP, and positions that begin with the table's third row: learned ones, or
 * XGLM's of sines. OPT may have embeddings of another width than the model's, and in the 350M the
 * norms behind attention and MLP. */
#include <math.h>

#include "models/blocks/decoder.h"
#include "models/blocks/sinusoids.h"

enum { FIRST_POSITION = 2 };

static const struct key keys[] = {
    WHOLE("bias", NULL, "enable_bias", OPTIONAL, 1, 0, 1),
    WHOLE("before", NULL, "do_layer_norm_before", OPTIONAL, 1, 0, 1),
    WHOLE("no_last_norm", NULL, "_remove_final_layer_norm", OPTIONAL, 0, 0, 1),
    WHOLE("embed_width", NULL, "word_embed_proj_dim", OPTIONAL, 0, 1, 1 << 20),
    WHOLE("scale_embedding", NULL, "scale_embedding", OPTIONAL, 0, 0, 1),
    {0},
};

#define L "{m}layers.{i}."
static const struct tensor block[] = {
    MATRIX("blk.{i}.attn_q.weight", L "self_attn.q_proj.weight", "heads*k_dim", "width", REQUIRED),
    MATRIX("blk.{i}.attn_k.weight", L "self_attn.k_proj.weight", "kv_heads*k_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_v.weight", L "self_attn.v_proj.weight", "kv_heads*v_dim", "width",
           REQUIRED),
    MATRIX("blk.{i}.attn_output.weight", L "self_attn.out_proj.weight", "width", "heads*v_dim",
           REQUIRED),
    MATRIX("blk.{i}.ffn_up.weight", L "fc1.weight", "ffn", "width", REQUIRED),
    MATRIX("blk.{i}.ffn_down.weight", L "fc2.weight", "width", "ffn", REQUIRED),
    VECTOR("blk.{i}.attn_q.bias", L "self_attn.q_proj.bias", "bias*heads*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_k.bias", L "self_attn.k_proj.bias", "bias*kv_heads*k_dim", REQUIRED),
    VECTOR("blk.{i}.attn_v.bias", L "self_attn.v_proj.bias", "bias*kv_heads*v_dim", REQUIRED),
    VECTOR("blk.{i}.attn_output.bias", L "self_attn.out_proj.bias", "bias*width", REQUIRED),
    VECTOR("blk.{i}.ffn_up.bias", L "fc1.bias", "bias*ffn", REQUIRED),
    VECTOR("blk.{i}.ffn_down.bias", L "fc2.bias", "bias*width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.weight", L "self_attn_layer_norm.weight", "before*width", REQUIRED),
    VECTOR("blk.{i}.attn_norm.bias", L "self_attn_layer_norm.bias", "before*width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.weight", L "final_layer_norm.weight", "before*width", REQUIRED),
    VECTOR("blk.{i}.ffn_norm.bias", L "final_layer_norm.bias", "before*width", REQUIRED),
    {0},
};

static const struct tensor opt_tensors[] = {
    MATRIX("token_embd.weight", "{m}embed_tokens.weight", "vocab", "embed_width", REQUIRED),
    MATRIX("positions.weight", "{m}embed_positions.weight", "context+2", "width", REQUIRED),
    MATRIX("project_in.weight", "{m}project_in.weight", "width", "projects*embed_width", REQUIRED),
    MATRIX("project_out.weight", "{m}project_out.weight", "projects*embed_width", "width",
           REQUIRED),
    MATRIX("output.weight", "lm_head.weight", "vocab", "embed_width", OPTIONAL),
    VECTOR("last_norm.weight", "{m}final_layer_norm.weight", "last_norm*width", REQUIRED),
    VECTOR("last_norm.bias", "{m}final_layer_norm.bias", "last_norm*width", REQUIRED),
    VECTOR("blk.{i}.attn_output_norm.weight", L "self_attn_layer_norm.weight", "after*width",
           REQUIRED),
    VECTOR("blk.{i}.attn_output_norm.bias", L "self_attn_layer_norm.bias", "after*width", REQUIRED),
    VECTOR("blk.{i}.layer_output_norm.weight", L "final_layer_norm.weight", "after*width",
           REQUIRED),
    VECTOR("blk.{i}.layer_output_norm.bias", L "final_layer_norm.bias", "after*width", REQUIRED),
    {0},
};

static const struct tensor ends[] = {
    MATRIX("token_embd.weight", "{m}embed_tokens.weight", "vocab", "width", REQUIRED),
    MATRIX("output.weight", "lm_head.weight|output_projection.weight", "vocab", "width", OPTIONAL),
    VECTOR("output_norm.weight", "{m}layer_norm.weight", "width", REQUIRED),
    VECTOR("output_norm.bias", "{m}layer_norm.bias", "width", REQUIRED),
    KNOWN("positions", "{m}embed_positions.weights", "positions of sines are computed"),
    {0},
};

static const struct tensor learned_positions[] = {
    MATRIX("position_embd.weight", "{m}embed_positions.weight", "context+2", "width", REQUIRED),
    {0},
};

static const struct plain plain[] = {
    {NULL, "layer_norm_elementwise_affine", 1, 1, "layer norms without weights"},
    {NULL, "add_cross_attention", 0, 0, "attention to an encoder"},
    {0},
};

static ob_status derive(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    hp->norm = NORM_LAYER;
    hp->eps = 1e-5f; /* BioGPT's key for it is not used */
    hp->position_offset = FIRST_POSITION;
    ob_status s = build_plain(b, plain, error);
    if (s == OB_OK) s = decoder_sizes(b, error);
    if (s == OB_OK && build_whole(b, "scale_embedding")) hp->embed_scale = sqrtf((float)hp->width);
    return s;
}

static ob_status derive_opt(struct build *b, ob_error *error) {
    uint32_t before = build_whole(b, "before"), width = build_whole(b, "embed_width");
    ob_status s = build_set(b, "embed_width", width ? width : b->hp->width, error);
    if (s == OB_OK) s = build_set(b, "projects", width && width != b->hp->width, error);
    if (s == OB_OK) s = build_set(b, "after", !before, error);
    if (s == OB_OK) s = build_set(b, "last_norm", before && !build_whole(b, "no_last_norm"), error);
    return s == OB_OK ? derive(b, error) : s;
}

/* Embeddings become as wide as the model before positions are added, and the stream as wide as the
 * embeddings after the last norm. */
static value_id opt_layer(struct build *b, value_id x) {
    struct weight *in = build_global(b, "project_in.weight"),
                  *out = build_global(b, "project_out.weight"),
                  *norm = build_global(b, "last_norm.weight");
    if (b->layer == 0) {
        if (in) x = graph_linear1(b->g, x, in, NULL);
        x = graph_add(b->g, x,
                      graph_embed_position(b->g, build_global(b, "positions.weight"),
                                           b->hp->position_offset));
    }
    x = decoder_plain_layer(b, x);
    if (b->layer + 1 < b->hp->layers) return x;
    if (norm) x = block_norm(b, x, norm, build_global(b, "last_norm.bias"));
    return out ? graph_linear1(b->g, x, out, NULL) : x;
}

static ob_status derive_xglm(struct build *b, ob_error *error) {
    ob_status s = derive(b, error);
    return s == OB_OK ? sinusoids_check(b, error) : s;
}

static value_id xglm_layer(struct build *b, value_id x) {
    if (b->layer == 0)
        x = sinusoids_add(b, x, FIRST_POSITION, (double)b->hp->width / 2 - 1);
    return decoder_plain_layer(b, x);
}

const struct recipe model_opt = {
    .family = "opt",
    .model_type = "opt",
    .hf_class = "OPTForCausalLM",
    .roots = "model.decoder.|decoder.",
    .act = "relu",
    KEYS(decoder_keys, keys),
    TENSORS(opt_tensors, block),
    .derive = derive_opt,
    .layer = opt_layer,
};

const struct recipe model_xglm = {
    .family = "xglm",
    .model_type = "xglm",
    .hf_class = "XGLMForCausalLM",
    .act = "gelu",
    KEYS(decoder_keys, keys),
    TENSORS(ends, block),
    .derive = derive_xglm,
    .layer = xglm_layer,
};

const struct recipe model_biogpt = {
    .family = "biogpt",
    .model_type = "biogpt",
    .hf_class = "BioGptForCausalLM",
    .roots = "biogpt.",
    .act = "gelu",
    KEYS(decoder_keys, keys),
    TENSORS(ends, learned_positions, block),
    .derive = derive,
    .layer = decoder_plain_layer,
};
