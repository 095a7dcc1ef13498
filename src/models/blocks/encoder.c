/* SPDX-License-Identifier: Apache-2.0
 * encoder.c: see encoder.h. */
#include "models/blocks/encoder.h"

#include "models/blocks/decoder.h"
#include "models/blocks/pooling.h"

#define TYPES \
    WHOLE("types", "tokenizer.ggml.token_type_count", "type_vocab_size", OPTIONAL, 2, 0, 65536)

const struct key encoder_keys[] = {
    TYPES,
    {0},
};
const struct key encoder_causal_keys[] = {
    TYPES,
    {0},
};

void encoder_own_keys(struct build *b) {
    struct hparams *hp = b->hp;
    for (uint32_t i = 0; i < hp->layers; i++) hp->kv_heads[i] = hp->heads[i];
}

ob_status encoder_sizes(struct build *b, const char *gguf, const char *classes, ob_error *error) {
    const char *name = source_kind(b->source) == SOURCE_GGUF ? gguf : classes;
    const struct source_tensor *t = source_tensor_find(b->source, str_of(name));
    b->hp->norm = NORM_LAYER;
    b->hp->bidirectional = true;
    ob_status s = build_set(b, "labels", t && t->dim[1] <= 1 << 20 ? (double)t->dim[1] : 0, error);
    return s == OB_OK ? decoder_sizes(b, error) : s;
}

void encoder_outputs(struct build *b, value_id x) {
    struct graph *g = b->g;
    if (b->hp->output_eps > 0) b->hp->eps = b->hp->output_eps;
    x = block_norm(b, x, build_global(b, "output_norm.weight"),
                   build_global(b, "output_norm.bias"));
    g->logits = graph_gather_rows(g, x);
    if (b->hp->embeds) g->embedding = pooling_vector(b, x);
    if (b->recipe->head) g->pooled = b->recipe->head(b, x);
    if (b->hp->scores) g->pooled = encoder_head(b, x, POOL_LAST, ACT_IDENTITY);
}

ob_status encoder_causal_sizes(struct build *b, ob_error *error) {
    static const struct plain plain[] = {
        {NULL, "add_cross_attention", 0, 0, "attention to an encoder"},
        {0},
    };
    b->hp->norm = NORM_LAYER;
    if (b->hp->embeds || b->hp->scores)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "{arch}.pooling_type", "modules.json", error,
                            "this family's states are not pooled");
    ob_status s = build_plain(b, plain, error);
    return s == OB_OK ? decoder_sizes(b, error) : s;
}

value_id encoder_causal_head(struct build *b, value_id x) {
    struct weight *dense = build_global(b, "head.weight");
    x = block_norm(b, x, build_global(b, "last_norm.weight"), build_global(b, "last_norm.bias"));
    if (!dense) return x;
    x = graph_linear1(b->g, x, dense, build_global(b, "head.bias"));
    return graph_act(b->g, x, b->hp->head_act);
}

value_id encoder_causal_layer(struct build *b, value_id x) {
    x = decoder_plain_layer(b, x);
    return b->layer + 1 < b->hp->layers ? x : encoder_causal_head(b, x);
}

value_id encoder_head(struct build *b, value_id x, enum pool_kind pool, enum act_kind act) {
    struct weight *dense = build_global(b, "cls.weight"),
                  *norm = build_global(b, "cls.norm.weight"),
                  *out = build_global(b, "cls.output.weight");
    if (!dense && !out) return NO_VALUE;
    x = graph_pool(b->g, x, pool);
    if (dense) {
        x = graph_linear1(b->g, x, dense, build_global(b, "cls.bias"));
        x = graph_act(b->g, x, act);
    }
    if (norm) x = block_norm(b, x, norm, build_global(b, "cls.norm.bias"));
    return out ? graph_linear1(b->g, x, out, build_global(b, "cls.output.bias")) : x;
}
