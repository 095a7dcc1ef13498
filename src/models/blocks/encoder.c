/* SPDX-License-Identifier: Apache-2.0
 * encoder.c: see encoder.h. */
#include "models/blocks/encoder.h"

#include "base/error.h"
#include "format/hf_modules.h"
#include "models/blocks/decoder.h"

enum { NONE, MEAN, FIRST, LAST, RANK };

const struct key encoder_keys[] = {
    WHOLE("types", "tokenizer.ggml.token_type_count", "type_vocab_size", OPTIONAL, 2, 0, 65536),
    /* llama.cpp's numbers of the ways: none, mean, first, last, for ranking. The other key is ours:
     * its vectors all have length 1. */
    WHOLE("pooling", "{arch}.pooling_type", NULL, OPTIONAL, MEAN, 0, RANK),
    WHOLE("pooling_unit", "1bit.pooling_unit", NULL, OPTIONAL, 1, 0, 1),
    {0},
};

static ob_status read_pooling(struct build *b, ob_error *error) {
    static const enum pool_kind kinds[] = {[MEAN] = POOL_MEAN, [FIRST] = POOL_FIRST,
                                           [LAST] = POOL_LAST};
    struct hf_pooling pooling;
    if (source_kind(b->source) == SOURCE_HF) {
        ob_status s = hf_modules_read(b->source, &pooling, error);
        if (s != OB_OK) return s;
        uint32_t type = MEAN;
        while (pooling.found && kinds[type] != pooling.kind) type++;
        s = build_set(b, "pooling", type, error);
        if (s == OB_OK) s = build_set(b, "pooling_unit", pooling.unit, error);
        if (s != OB_OK) return s;
    }
    uint32_t type = build_whole(b, "pooling");
    b->hp->embeds = type >= MEAN && type <= LAST;
    if (b->hp->embeds) b->hp->pool = kinds[type];
    b->hp->pool_unit = build_whole(b, "pooling_unit") > 0;
    return OB_OK;
}

ob_status encoder_sizes(struct build *b, const char *gguf, const char *classes, ob_error *error) {
    const char *name = source_kind(b->source) == SOURCE_GGUF ? gguf : classes;
    const struct source_tensor *t = source_tensor_find(b->source, str_of(name));
    b->hp->norm = NORM_LAYER;
    b->hp->bidirectional = true;
    ob_status s = build_set(b, "labels", t && t->dim[1] <= 1 << 20 ? (double)t->dim[1] : 0, error);
    if (s == OB_OK) s = decoder_sizes(b, error);
    return s == OB_OK ? read_pooling(b, error) : s;
}

void encoder_outputs(struct build *b, value_id x) {
    struct graph *g = b->g;
    x = block_norm(b, x, build_global(b, "output_norm.weight"),
                   build_global(b, "output_norm.bias"));
    g->logits = graph_gather_rows(g, x);
    if (b->hp->embeds) g->embedding = graph_pool(g, x, b->hp->pool);
    if (b->hp->embeds && b->hp->pool_unit)
        g->embedding =
            graph_norm(g, g->embedding, NULL, NULL, NORM_L2, 1e-12f, b->hp->width);
    if (b->recipe->head) g->pooled = b->recipe->head(b, x);
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
