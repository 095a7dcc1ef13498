/* SPDX-License-Identifier: Apache-2.0
 * mamba.c: see mamba.h. */
#include "models/blocks/mamba.h"

#include <math.h>
#include <stdio.h>

#include "models/blocks/decoder.h"
#include "models/blocks/hybrid.h"

const struct key mamba_keys[] = {
    WHOLE("conv", "{arch}.ssm.conv_kernel", "conv_kernel|mamba_d_conv", OPTIONAL, 4, 1, 64),
    WHOLE("state", "{arch}.ssm.state_size", "state_size|mamba_d_state", OPTIONAL, 16, 1, 4096),
    WHOLE("expand", NULL, "expand|mamba_expand", OPTIONAL, 2, 1, 64),
    WHOLE("inner", "{arch}.ssm.inner_size", NULL, OPTIONAL, 0, 1, 1 << 20),
    WHOLE("dt_rank", "{arch}.ssm.time_step_rank", "time_step_rank|mamba_dt_rank", OPTIONAL, 0, 1,
          1 << 16),
    WHOLE("conv_bias", NULL, "use_conv_bias|mamba_conv_bias", OPTIONAL, 1, 0, 1),
    WHOLE("proj_bias", NULL, "use_bias|mamba_proj_bias", OPTIONAL, 0, 0, 1),
    /* Of weights before training. */
    WHOLE("rescale_prenorm", NULL, "rescale_prenorm_residual", OPTIONAL, 0, 0, 1),
    REAL("time_step_scale", NULL, "time_step_scale", OPTIONAL, 1, 0, 0),
    {0},
};

#define AT(name) "{m}layers.{i}.mixer." name "|{m}layers.{i}.mamba." name

const struct tensor mamba_tensors[] = {
    MATRIX("blk.{i}.ssm_in.weight", AT("in_proj.weight"), "recurrent*2*inner", "width", REQUIRED),
    VECTOR("blk.{i}.ssm_in.bias", AT("in_proj.bias"), "proj_bias*recurrent*2*inner", REQUIRED),
    MATRIX("blk.{i}.ssm_conv1d.weight", AT("conv1d.weight"), "recurrent*inner", "conv", REQUIRED),
    VECTOR("blk.{i}.ssm_conv1d.bias", AT("conv1d.bias"), "conv_bias*recurrent*inner", REQUIRED),
    MATRIX("blk.{i}.ssm_x.weight", AT("x_proj.weight"), "recurrent*dt_rank+recurrent*2*state",
           "inner", REQUIRED),
    MATRIX("blk.{i}.ssm_dt.weight", AT("dt_proj.weight"), "recurrent*inner", "dt_rank", REQUIRED),
    VECTOR("blk.{i}.ssm_dt.bias", AT("dt_proj.bias"), "recurrent*inner", REQUIRED),
    MATRIX("blk.{i}.ssm_a", AT("A_log"), "recurrent*inner", "state", REQUIRED, .from_hf = "-exp"),
    VECTOR("blk.{i}.ssm_d", AT("D"), "recurrent*inner", REQUIRED),
    MATRIX("blk.{i}.ssm_out.weight", AT("out_proj.weight"), "recurrent*width", "inner", REQUIRED),
    VECTOR("blk.{i}.ssm_out.bias", AT("out_proj.bias"), "proj_bias*recurrent*width", REQUIRED),
    {0},
};

const struct tensor mamba_inner_norms[] = {
    VECTOR("blk.{i}.ssm_dt_norm.weight", AT("dt_layernorm.weight"), "recurrent*dt_rank", REQUIRED),
    VECTOR("blk.{i}.ssm_b_norm.weight", AT("b_layernorm.weight"), "recurrent*state", REQUIRED),
    VECTOR("blk.{i}.ssm_c_norm.weight", AT("c_layernorm.weight"), "recurrent*state", REQUIRED),
    {0},
};

ob_status mamba_sizes(struct build *b, ob_error *error) {
    ob_status s = recurrent_check_act(b, error);
    if (s == OB_OK && build_whole(b, "inner") == 0)
        s = build_set(b, "inner", build_number(b, "expand") * b->hp->width, error);
    if (s == OB_OK && build_whole(b, "dt_rank") == 0)
        s = build_set(b, "dt_rank", ceil(b->hp->width / 16.0), error);
    return s;
}

/* Columns of what x became, normed by the weight of this name or bare. */
static value_id part(struct build *b, value_id x, uint32_t start, uint32_t len, const char *norm,
                     float bare_eps) {
    uint32_t total = build_whole(b, "dt_rank") + 2 * build_whole(b, "state");
    char name[32];
    snprintf(name, sizeof name, "%s.weight", norm);
    struct weight *w = build_weight(b, name);
    x = graph_slice(b->g, x, 1, total, start, len);
    if (!w && bare_eps <= 0) return x;
    return graph_norm(b->g, x, w, NULL, NORM_RMS, w ? b->hp->eps : bare_eps, len);
}

value_id mamba_mixer(struct build *b, value_id x, float norm_eps) {
    struct graph *g = b->g;
    uint32_t inner = build_whole(b, "inner"), n = build_whole(b, "state"),
             rank = build_whole(b, "dt_rank");
    value_id in = block_linear(b, x, "ssm_in");
    value_id h = graph_slice(g, in, 1, 2 * inner, 0, inner);
    value_id gate = graph_slice(g, in, 1, 2 * inner, inner, inner);
    h = graph_conv1d(g, h, build_weight(b, "ssm_conv1d.weight"),
                     build_weight(b, "ssm_conv1d.bias"), build_whole(b, "conv"));
    h = graph_act(g, h, b->hp->act);
    value_id parts = block_linear(b, h, "ssm_x");
    value_id dt = part(b, parts, 0, rank, "ssm_dt_norm", norm_eps);
    struct scan_args args = {.x = h,
                             .dt = graph_act(g, block_linear(b, dt, "ssm_dt"), ACT_SOFTPLUS),
                             .b = part(b, parts, rank, n, "ssm_b_norm", norm_eps),
                             .c = part(b, parts, rank + n, n, "ssm_c_norm", norm_eps),
                             .a = build_weight(b, "ssm_a"),
                             .d = build_weight(b, "ssm_d"),
                             .heads = 1};
    return block_linear(b, graph_glu(g, gate, graph_scan(g, &args), ACT_SILU), "ssm_out");
}
