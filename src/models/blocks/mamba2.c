/* SPDX-License-Identifier: Apache-2.0
 * mamba2.c: see mamba2.h. */
#include "models/blocks/mamba2.h"

#include <math.h>

#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"

static const char *const heads_hf = "mamba_n_heads|mamba_num_heads|n_mamba_heads|num_heads";

const struct key mamba2_keys[] = {
    WHOLE("conv", "{arch}.ssm.conv_kernel", "conv_kernel|mamba_d_conv", OPTIONAL, 4, 1, 64),
    WHOLE("state", "{arch}.ssm.state_size", "state_size|ssm_state_size|mamba_d_state", OPTIONAL,
          128, 1, 4096),
    WHOLE("groups", "{arch}.ssm.group_count", "n_groups|mamba_n_groups|mamba_ngroups", OPTIONAL, 1,
          1, 4096),
    WHOLE("mamba_heads", "{arch}.ssm.time_step_rank",
          "mamba_n_heads|mamba_num_heads|n_mamba_heads|num_heads", REQUIRED, 0, 1, 4096),
    WHOLE("mamba_dim", NULL, "mamba_d_head|mamba_head_dim|mamba_headdim", OPTIONAL, 0, 1, 4096),
    WHOLE("expand", NULL, "expand|mamba_expand", OPTIONAL, 2, 1, 64),
    WHOLE("inner", "{arch}.ssm.inner_size", NULL, OPTIONAL, 0, 1, 1 << 20),
    WHOLE("conv_bias", NULL, "use_conv_bias|mamba_conv_bias", OPTIONAL, 1, 0, 1),
    WHOLE("mamba_norm", NULL, "mamba_rms_norm", OPTIONAL, 1, 0, 1),
    WHOLE("proj_bias", NULL, "use_bias|mamba_proj_bias|add_bias_linear", OPTIONAL, 0, 0, 1),
    /* Of weights before training. */
    WHOLE("rescale_prenorm", NULL, "rescale_prenorm_residual", OPTIONAL, 0, 0, 1),
    {0},
};

#define AT(name) \
    "{m}layers.{i}.mixer." name "|{m}layers.{i}.mamba." name \
    "|{m}layers.{i}.mamba_decoder.mamba." name
#define MIXED "recurrent*inner+recurrent*2*groups*state" /* what the convolution sees */
#define ALL "recurrent*2*inner+recurrent*2*groups*state+recurrent*mamba_heads"

const struct tensor mamba2_tensors[] = {
    MATRIX("blk.{i}.ssm_in.weight", AT("in_proj.weight"), ALL, "width", REQUIRED),
    VECTOR("blk.{i}.ssm_in.bias", AT("in_proj.bias"),
           "proj_bias*recurrent*2*inner+proj_bias*recurrent*2*groups*state+"
           "proj_bias*recurrent*mamba_heads",
           REQUIRED),
    MATRIX("blk.{i}.ssm_conv1d.weight", AT("conv1d.weight"), MIXED, "conv", REQUIRED),
    VECTOR("blk.{i}.ssm_conv1d.bias", AT("conv1d.bias"),
           "conv_bias*recurrent*inner+conv_bias*recurrent*2*groups*state", REQUIRED),
    VECTOR("blk.{i}.ssm_dt.bias", AT("dt_bias"), "recurrent*mamba_heads", REQUIRED),
    VECTOR("blk.{i}.ssm_a", AT("A_log"), "recurrent*mamba_heads", REQUIRED, .from_hf = "-exp",
           .gguf_row = "1"),
    VECTOR("blk.{i}.ssm_d", AT("D"), "recurrent*mamba_heads", REQUIRED, .gguf_row = "1"),
    VECTOR("blk.{i}.ssm_norm.weight", AT("norm.weight"), "mamba_norm*recurrent*inner", REQUIRED,
           .gguf_row = "inner/groups"),
    MATRIX("blk.{i}.ssm_out.weight", AT("out_proj.weight"), "recurrent*width", "inner", REQUIRED),
    VECTOR("blk.{i}.ssm_out.bias", AT("out_proj.bias"), "out_bias*recurrent*width", REQUIRED),
    {0},
};

ob_status mamba2_sizes(struct build *b, ob_error *error) {
    ob_status act = recurrent_check_act(b, error);
    if (act != OB_OK) return act;
    uint32_t heads = build_whole(b, "mamba_heads"), inner = build_whole(b, "inner");
    if (heads % build_whole(b, "groups") || inner % heads)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.ssm.time_step_rank", heads_hf, error,
                            "%u heads, of %u groups and %u features", heads,
                            build_whole(b, "groups"), inner);
    bool out_bias = build_whole(b, "proj_bias");
    static const char limit[] = "time_step_limit";
    double low = 0, high = INFINITY;
    build_wants(b, NULL, limit, 2);
    build_real_at(b, NULL, limit, 0, &low);
    build_real_at(b, NULL, limit, 1, &high); /* may be infinite */
    if (!(low >= 0 && low < high))
        return build_refuse(b, OB_ERR_FORMAT, NULL, limit, error,
                            "is no range of two numbers from 0 on");
    uint32_t each = inner / heads;
    if (each == 0) each = build_whole(b, "mamba_dim");
    if (each == 0) each = build_whole(b, "expand") * b->hp->width / heads;
    ob_status s = build_set(b, "mamba_dim", each, error);
    if (s == OB_OK) s = build_set(b, "inner", (double)heads * each, error);
    if (s == OB_OK) s = build_flag(b, NULL, "projectors_bias", &out_bias, error);
    if (s == OB_OK) s = build_set(b, "out_bias", out_bias, error);
    if (s == OB_OK) s = build_set(b, "dt_min", low, error);
    return s == OB_OK ? build_set(b, "dt_max", high, error) : s;
}

static value_id step_size(struct build *b, value_id dt) {
    float low = (float)build_number(b, "dt_min"), high = (float)build_number(b, "dt_max");
    dt = graph_affine(b->g, dt, NULL, build_weight(b, "ssm_dt.bias"));
    dt = graph_act(b->g, dt, ACT_SOFTPLUS);
    return low > 0 || isfinite(high) ? graph_clamp(b->g, dt, low, high) : dt;
}

value_id mamba2_mixer(struct build *b, value_id x, const struct mamba2_args *args) {
    struct graph *g = b->g;
    uint32_t inner = build_whole(b, "inner"), heads = build_whole(b, "mamba_heads"),
             groups = build_whole(b, "groups"), n = build_whole(b, "state"), bc = groups * n,
             mixed = inner + 2 * bc, total = inner + mixed + heads;
    value_id in = block_linear(b, x, "ssm_in");
    if (args->factors) in = graph_affine(g, in, args->factors, NULL);
    value_id gate = graph_slice(g, in, 1, total, 0, inner);
    value_id h = graph_slice(g, in, 1, total, inner, mixed);
    value_id dt = step_size(b, graph_slice(g, in, 1, total, inner + mixed, heads));
    h = graph_conv1d(g, h, build_weight(b, "ssm_conv1d.weight"),
                     build_weight(b, "ssm_conv1d.bias"), build_whole(b, "conv"));
    h = graph_act(g, h, args->act);
    value_id decay = graph_affine(g, dt, build_weight(b, "ssm_a"), NULL);
    value_id y = graph_delta(
        g, &(struct delta_args){.q = graph_slice(g, h, 1, mixed, inner + bc, bc),
                                .k = graph_slice(g, h, 1, mixed, inner, bc),
                                .v = graph_slice(g, h, 1, mixed, 0, inner),
                                .decay = graph_act(g, decay, ACT_EXP),
                                .beta = dt,
                                .heads = heads,
                                .k_heads = groups,
                                .k_dim = n,
                                .v_dim = build_whole(b, "mamba_dim"),
                                .scale = 1,
                                .skip = build_weight(b, "ssm_d")});
    struct weight *norm = build_weight(b, "ssm_norm.weight");
    if (!norm || !args->norm_first) y = graph_glu(g, gate, y, ACT_SILU);
    if (norm) y = graph_norm(g, y, norm, NULL, NORM_RMS, args->norm_eps, inner / groups);
    if (norm && args->norm_first) y = graph_glu(g, gate, y, ACT_SILU);
    return block_linear(b, y, "ssm_out");
}
