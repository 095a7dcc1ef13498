/* SPDX-License-Identifier: Apache-2.0
 * mpnet.c: MPNetModel (arXiv 2004.09297) and its classifier: RoBERTa whose scores also get an
 * offset of each head by the distance of the tokens. Near distances have one of their own, farther
 * ones share one with the more neighbours the farther they are (T5's buckets, arXiv 1910.10683). */
#include <math.h>

#include "base/error.h"
#include "models/roberta.h"

enum { FAR = 128 }; /* from here on all distances share one */

#define LAYER "{m}encoder.layer.{i}."

static const struct key keys[] = {
    WHOLE("buckets", NULL, "relative_attention_num_buckets", OPTIONAL, 32, 32, 32),
    {0},
};

static const struct tensor tensors[] = {
    MATRIX("token_embd.weight", "{m}embeddings.word_embeddings.weight", "vocab", "width",
           REQUIRED),
    MATRIX("position_embd.weight", "{m}embeddings.position_embeddings.weight", "positions",
           "width", REQUIRED, .from_hf = "part(1,before+positions,before)"),
    ENCODER_NORM("token_embd_norm", "{m}embeddings.LayerNorm", "width"),
    KNOWN("position_ids", "{m}embeddings.position_ids", "positions are counted"),
    MATRIX("attn_rel_b.weight", "{m}encoder.relative_attention_bias.weight", "buckets", "heads",
           REQUIRED, .from_hf = "f32"),
    ENCODER_LAYER(LAYER "attention.attn.q", LAYER "attention.attn.k", LAYER "attention.attn.v",
                  LAYER "attention.attn.o", LAYER "intermediate.dense", LAYER "output.dense"),
    ENCODER_NORMS_AFTER(LAYER "attention.LayerNorm", LAYER "output.LayerNorm"),
    {0},
};

/* Of pos_q - pos_k. Half of the buckets are for keys behind the query. */
static uint32_t bucket_of(int32_t distance, uint32_t buckets) {
    uint32_t half = buckets / 2, exact = half / 2, first = distance < 0 ? half : 0;
    uint32_t n = (uint32_t)(distance < 0 ? -distance : distance);
    if (n < exact) return first + n;
    double part = log((double)n / (double)exact) / log((double)FAR / (double)exact);
    uint32_t far = exact + (uint32_t)(part * (double)(half - exact));
    return first + (far < half ? far : half - 1);
}

/* Once, for all layers. */
static bool make_offsets(struct build *b) {
    struct hparams *hp = b->hp;
    const struct weight *w = build_global(b, "attn_rel_b.weight");
    uint32_t heads = hp->heads[0], reach = hp->context, wide = 2 * reach + 1;
    float *out = arena_array(b->arena, (size_t)heads * wide, sizeof *out);
    if (!out) return false;
    for (uint32_t i = 0; w->data && i < wide; i++) {
        uint32_t bucket = bucket_of((int32_t)i - (int32_t)reach, w->rows);
        const float *row = (const float *)((const char *)w->data + bucket * w->row_bytes);
        for (uint32_t h = 0; h < heads; h++) out[(size_t)h * wide + i] = row[h];
    }
    hp->offsets = out;
    hp->reach = reach;
    b->model->copied++;
    b->model->copied_bytes += (size_t)heads * wide * sizeof *out;
    return true;
}

static value_id layer(struct build *b, value_id x) {
    if (!b->hp->offsets && !make_offsets(b)) b->g->failed = true;
    return decoder_plain_layer(b, x);
}

/* The padding token is 1 whatever a key says. */
static ob_status derive(struct build *b, ob_error *error) {
    if (b->hp->context > 1 << 16)
        return build_refuse(b, OB_ERR_UNSUPPORTED, "", "max_position_embeddings", error,
                            "more than 65536 positions are not supported in this family");
    return roberta_derive_padded(b, 1, error);
}

const struct recipe model_mpnet = {
    .family = "mpnet",
    .model_type = "mpnet",
    .hf_class = "MPNetModel",
    .roots = "mpnet.|",
    KEYS(decoder_keys, encoder_keys, roberta_keys, keys),
    TENSORS(tensors, roberta_head_tensors),
    .act = "gelu",
    .derive = derive,
    .layer = layer,
    .head = bert_head,
};
