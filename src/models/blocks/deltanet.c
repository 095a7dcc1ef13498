/* SPDX-License-Identifier: Apache-2.0
 * deltanet.c: see deltanet.h. */
#include "models/blocks/deltanet.h"

#include <math.h>

#include "models/blocks/decoder.h"

const struct key deltanet_keys[] = {
    WHOLE("conv", "{arch}.ssm.conv_kernel", "linear_conv_kernel_dim|short_conv_kernel_size",
          OPTIONAL, 4, 1, 64),
    WHOLE("lin_k", "{arch}.ssm.state_size", "linear_key_head_dim|linear_head_dim", REQUIRED, 0, 1,
          4096),
    WHOLE("lin_v", NULL, "linear_value_head_dim|linear_head_dim", OPTIONAL, 0, 1, 4096),
    WHOLE("lin_k_heads", "{arch}.ssm.group_count", "linear_num_key_heads|linear_num_heads",
          REQUIRED, 0, 1, 4096),
    WHOLE("lin_v_heads", "{arch}.ssm.time_step_rank", "linear_num_value_heads|linear_num_heads",
          REQUIRED, 0, 1, 4096),
    WHOLE("inner", "{arch}.ssm.inner_size", NULL, OPTIONAL, 0, 1, 1 << 20),
    {0},
};

#define AT(name) "{m}layers.{i}.linear_attn." name
#define QKV_ROWS "2*key+value"
#define Q_ROWS "part(1," QKV_ROWS ",0)"
#define K_ROWS "part(1," QKV_ROWS ",key)"
#define V_ROWS "part(1," QKV_ROWS ",2*key)"
#define IN_GGUF(name, rows, cols, file, part)                                                   \
    MATRIX("blk.{i}." name ".weight", NULL, "recurrent*" rows, cols, REQUIRED,                  \
           .gguf = "blk.{i}." file ".weight", .from_gguf = (part))

const struct tensor deltanet_tensors[] = {
    IN_GGUF("ssm_q", "key", "width", "attn_qkv", Q_ROWS),
    IN_GGUF("ssm_k", "key", "width", "attn_qkv", K_ROWS),
    IN_GGUF("ssm_v", "value", "width", "attn_qkv", V_ROWS),
    IN_GGUF("ssm_conv1d_q", "key", "conv", "ssm_conv1d", Q_ROWS),
    IN_GGUF("ssm_conv1d_k", "key", "conv", "ssm_conv1d", K_ROWS),
    IN_GGUF("ssm_conv1d_v", "value", "conv", "ssm_conv1d", V_ROWS),
    VECTOR("blk.{i}.ssm_a", AT("A_log"), "recurrent*lin_v_heads", REQUIRED, .from_hf = "-exp"),
    VECTOR("blk.{i}.ssm_dt.bias", AT("dt_bias"), "recurrent*lin_v_heads", REQUIRED),
    /* Never 1 + w. */
    VECTOR("blk.{i}.ssm_norm.weight", AT("norm.weight|") AT("o_norm.weight|") AT("out_norm.weight"),
           "recurrent*lin_v", REQUIRED, .from_hf = "f32"),
    MATRIX("blk.{i}.ssm_out.weight", AT("out_proj.weight|") AT("o_proj.weight"), "recurrent*width",
           "value", REQUIRED),
    {0},
};

#define CONV(name, rows, hf_, part) \
    MATRIX("blk.{i}.ssm_conv1d_" name ".weight", hf_, "recurrent*" rows, "conv", REQUIRED, \
           .from_hf = (part), .gguf = "")

const struct tensor deltanet_one_conv[] = {
    CONV("q", "key", AT("conv1d.weight"), Q_ROWS),
    CONV("k", "key", AT("conv1d.weight"), K_ROWS),
    CONV("v", "value", AT("conv1d.weight"), V_ROWS),
    {0},
};

const struct tensor deltanet_three_convs[] = {
    CONV("q", "key", AT("q_conv1d.weight"), NULL),
    CONV("k", "key", AT("k_conv1d.weight"), NULL),
    CONV("v", "value", AT("v_conv1d.weight"), NULL),
    {0},
};

ob_status deltanet_sizes(struct build *b, ob_error *error) {
    uint32_t k_heads = build_whole(b, "lin_k_heads"), heads = build_whole(b, "lin_v_heads"),
             inner = build_whole(b, "inner");
    if (heads % k_heads || inner % heads)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.ssm.time_step_rank",
                            "linear_num_value_heads|linear_num_heads", error,
                            "%u heads, %u key heads and %u features", heads, k_heads, inner);
    ob_status s = OB_OK;
    const uint32_t each = heads ? inner / heads : 0;
    if (inner) s = build_set(b, "lin_v", each, error);
    if (s == OB_OK && build_whole(b, "lin_v") == 0)
        s = build_set(b, "lin_v", build_number(b, "lin_k"), error);
    if (s == OB_OK) s = build_set(b, "key", k_heads * build_number(b, "lin_k"), error);
    if (s == OB_OK) s = build_set(b, "value", heads * build_number(b, "lin_v"), error);
    return s == OB_OK ? build_set(b, "inner", build_number(b, "value"), error) : s;
}

value_id deltanet_decay(struct build *b, value_id a) {
    a = graph_affine(b->g, a, NULL, build_weight(b, "ssm_dt.bias"));
    a = graph_affine(b->g, graph_act(b->g, a, ACT_SOFTPLUS), build_weight(b, "ssm_a"), NULL);
    return graph_act(b->g, a, ACT_EXP);
}

static value_id convolve(struct build *b, value_id x, const char *weight) {
    x = graph_conv1d(b->g, x, build_weight(b, weight), NULL, build_whole(b, "conv"));
    return graph_act(b->g, x, b->hp->act);
}

value_id deltanet_mixer(struct build *b, value_id x, const struct deltanet_args *args) {
    struct graph *g = b->g;
    uint32_t k_dim = build_whole(b, "lin_k"), v_dim = build_whole(b, "lin_v");
    struct weight *w[4] = {build_weight(b, "ssm_q.weight"), build_weight(b, "ssm_k.weight"),
                           build_weight(b, "ssm_v.weight"), build_weight(b, "ssm_beta.weight")};
    value_id out[4];
    graph_linear(g, x, 4, w, NULL, out);
    value_id q = convolve(b, out[0], "ssm_conv1d_q.weight"),
             k = convolve(b, out[1], "ssm_conv1d_k.weight"),
             v = convolve(b, out[2], "ssm_conv1d_v.weight");
    value_id beta = graph_act(g, out[3], ACT_SIGMOID);
    if (args->beta_scale > 0) beta = graph_scale(g, beta, args->beta_scale);
    value_id y = graph_delta(
        g, &(struct delta_args){.q = graph_norm(g, q, NULL, NULL, NORM_L2_SUM, 1e-6f, k_dim),
                                .k = graph_norm(g, k, NULL, NULL, NORM_L2_SUM, 1e-6f, k_dim),
                                .v = v,
                                .decay = args->decay,
                                .beta = beta,
                                .heads = build_whole(b, "lin_v_heads"),
                                .k_heads = build_whole(b, "lin_k_heads"),
                                .k_dim = k_dim,
                                .v_dim = v_dim,
                                .delta = true,
                                .k_tiled = args->k_tiled,
                                .scale = 1.0f / sqrtf((float)k_dim)});
    y = graph_norm(g, y, build_weight(b, "ssm_norm.weight"), NULL, NORM_RMS, args->norm_eps, v_dim);
    return block_linear(b, graph_glu(g, args->gate, y, args->act), "ssm_out");
}

value_id deltanet_plain(struct build *b, value_id x, const struct deltanet_args *args) {
    struct deltanet_args all = *args;
    struct weight *w[2] = {build_weight(b, "attn_gate.weight"),
                           build_weight(b, "ssm_alpha.weight")};
    value_id out[2];
    graph_linear(b->g, x, 2, w, NULL, out);
    all.gate = out[0];
    all.decay = deltanet_decay(b, out[1]);
    return deltanet_mixer(b, x, &all);
}
