/* SPDX-License-Identifier: Apache-2.0
 * shared_kv.c: see shared_kv.h. */
#include "models/blocks/shared_kv.h"

#include <assert.h>

#include "base/error.h"

static const char gguf[] = "{arch}.attention.shared_kv_layers", hf[] = "num_kv_shared_layers";

const struct key shared_kv_keys[] = {
    WHOLE("shared_kv", gguf, hf, OPTIONAL, 0, 0, 4096),
    {0},
};

const struct tensor shared_kv_unused[] = {
    KNOWN("blk.{i}.attn_k*", "{m}layers.{i}.self_attn.k_*", "the layer reads another's keys"),
    KNOWN("blk.{i}.attn_v*", "{m}layers.{i}.self_attn.v_*", "the layer reads another's values"),
    {0},
};

ob_status shared_kv_sizes(struct build *b, ob_error *error) {
    struct hparams *hp = b->hp;
    uint32_t count = build_whole(b, "shared_kv"), own = hp->layers;
    hp->shared_from = arena_array(b->arena, hp->layers, sizeof *hp->shared_from);
    hp->shared_use = arena_array(b->arena, hp->layers, sizeof *hp->shared_use);
    if (!hp->shared_from || !hp->shared_use)
        return error_memory(error, "hyperparameters", hp->layers);
    if (count < own) own -= count;
    else if (count > 0)
        return build_refuse(b, OB_ERR_FORMAT, gguf, hf, error, "%u of %u layers", count, own);
    for (uint32_t i = own; i < hp->layers; i++) {
        uint32_t from = own;
        while (from > 0 && (hp->window[from - 1] == 0) != (hp->window[i] == 0)) from--;
        if (from == 0)
            return build_refuse(b, OB_ERR_FORMAT, gguf, hf, error,
                                "no layer before has keys for layer %u", i);
        hp->shared_from[i] = from - 1;
        hp->shared_use[i] = i - own + 1;
        hp->kv_heads[i] = 0;
    }
    return OB_OK;
}

/* The cache of the layer's attention, which is in the graph. */
static uint32_t cache_of(const struct graph *g, uint32_t layer) {
    for (uint32_t i = 0; i < g->nodes; i++)
        if (g->node[i].op == OP_attention && g->node[i].layer == (int32_t)layer)
            return graph_attention_cache(g, g->node[i].out[0]);
    assert(g->failed);
    return 0;
}

value_id shared_kv_attention(struct build *b, value_id q, value_id k, value_id v) {
    const struct hparams *hp = b->hp;
    uint32_t i = b->layer, dim = hp->head_dim ? hp->head_dim[i] : hp->k_dim;
    struct attention_args args = {.heads = hp->heads[i],
                                  .kv_heads = hp->kv_heads[i],
                                  .k_dim = dim,
                                  .v_dim = dim,
                                  .window = hp->window[i],
                                  .scale = hp->attention_scale};
    if (hp->shared_use[i]) {
        args.shares = true;
        args.kv_heads = hp->kv_heads[hp->shared_from[i]];
        args.shared_cache = cache_of(b->g, hp->shared_from[i]);
    }
    return graph_attention(b->g, q, k, v, &args);
}
