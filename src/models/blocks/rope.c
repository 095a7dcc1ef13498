/* SPDX-License-Identifier: Apache-2.0
 * rope.c: see rope.h. */
#include "models/blocks/rope.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"

static const double two_pi = 6.283185307179586;

/* Where a scaling's numbers are found, in either spelling. */
struct place {
    struct build *b;
    const char *hf; /* "rope_parameters" */
};

static bool number(const struct place *p, const char *gguf, const char *hf, float *out) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", p->hf, hf);
    return build_f32(p->b, gguf, key, out);
}

static float number_or(const struct place *p, const char *gguf, const char *hf, float otherwise) {
    float v;
    return number(p, gguf, hf, &v) ? v : otherwise;
}

static ob_status refuse(const struct place *p, const char *what, struct str type, ob_error *error) {
    return build_refuse(p->b, OB_ERR_UNSUPPORTED, "{arch}.rope.scaling.type", p->hf, error,
                        "%s \"%.*s\"", what, STR_ARG(type));
}

static void plain(float *freq, uint32_t half, float base) {
    for (uint32_t i = 0; i < half; i++) {
        float exponent = (float)(2 * i) / (float)(2 * half);
        freq[i] = 1.0f / (float)pow((double)base, (double)exponent);
    }
}

static void scale_llama3(const struct place *p, float *freq, uint32_t half, float factor,
                         float original) {
    float low = number_or(p, NULL, "low_freq_factor", 1);
    float high = number_or(p, NULL, "high_freq_factor", 4);
    for (uint32_t i = 0; i < half; i++) {
        double wave = two_pi / (double)freq[i];
        if (wave < (double)(original / high)) continue;
        if (wave > (double)(original / low)) {
            freq[i] /= factor;
            continue;
        }
        double smooth = ((double)original / wave - (double)low) / (double)(high - low);
        freq[i] = (float)((1 - smooth) * (double)(freq[i] / factor) + smooth * (double)freq[i]);
    }
}

/* The pair whose wavelength makes `turns` turns over the original context. */
static double yarn_pair(double turns, uint32_t half, float base, float original) {
    return 2.0 * half * log((double)original / (turns * two_pi)) / (2 * log((double)base));
}

static float yarn_magnitude(float factor, float scale) {
    return factor <= 1 ? 1.0f : 0.1f * scale * logf(factor) + 1.0f;
}

static void scale_yarn(const struct place *p, struct rope *r, float *freq, float factor,
                       float original) {
    float fast = number_or(p, "{arch}.rope.scaling.yarn_beta_fast", "beta_fast", 32);
    float slow = number_or(p, "{arch}.rope.scaling.yarn_beta_slow", "beta_slow", 1);
    double low = yarn_pair((double)fast, r->half, r->base, original);
    double high = yarn_pair((double)slow, r->half, r->base, original);
    char key[128];
    bool truncate = true;
    snprintf(key, sizeof key, "%s.truncate", p->hf);
    source_bool(p->b->source, key, 0, &truncate);
    if (truncate) low = floor(low), high = ceil(high);
    if (low < 0) low = 0;
    if (high > 2.0 * r->half - 1) high = 2.0 * r->half - 1;
    if (low == high) high += 0.001;
    for (uint32_t i = 0; i < r->half; i++) {
        double ramp = ((double)i - low) / (high - low);
        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        freq[i] = (float)((double)(freq[i] / factor) * ramp + (double)freq[i] * (1 - ramp));
    }
    float mscale, all;
    if (number(p, "{arch}.rope.scaling.attn_factor", "attention_factor", &r->magnitude)) return;
    if (number(p, NULL, "mscale", &mscale) && number(p, NULL, "mscale_all_dim", &all) &&
        mscale != 0 && all != 0)
        r->magnitude = yarn_magnitude(factor, mscale) / yarn_magnitude(factor, all);
    else
        r->magnitude = yarn_magnitude(factor, 1);
}

static ob_status scale(const struct place *p, struct rope *r, float *freq, ob_error *error) {
    char key[128];
    struct str type;
    snprintf(key, sizeof key, "%s.rope_type|%s.type", p->hf, p->hf);
    if (!build_str(p->b, "{arch}.rope.scaling.type", key, &type) || str_is(type, "default") ||
        str_is(type, "none"))
        return OB_OK;
    float factor = number_or(p, "{arch}.rope.scaling.factor", "factor", 0);
    float original = number_or(p, "{arch}.rope.scaling.original_context_length",
                               "original_max_position_embeddings", (float)p->b->hp->context);
    if (!(factor >= 1) || !(original >= 1))
        return refuse(p, "factor or original context is missing or below 1 for rope scaling", type,
                      error);
    if (str_is(type, "linear"))
        for (uint32_t i = 0; i < r->half; i++) freq[i] /= factor;
    else if (str_is(type, "llama3"))
        scale_llama3(p, freq, r->half, factor, original);
    else if (str_is(type, "yarn"))
        scale_yarn(p, r, freq, factor, original);
    else
        return refuse(p, "rope scaling is not supported:", type, error);
    return OB_OK;
}

/* GGUF files carry Llama 3's scaling as one divisor a pair. */
static ob_status divide_by_tensor(struct build *b, float *freq, uint32_t half, ob_error *error) {
    static const char name[] = "rope_freqs.weight";
    const struct source_tensor *t = source_tensor_find(b->source, str_of(name));
    if (!t) return OB_OK;
    if (t->quant != quant_list[QUANT_f32] || t->dim[0] != half || t->bytes != half * sizeof(float))
        return build_refuse(b, OB_ERR_FORMAT, name, name, error, "must be %u F32 numbers", half);
    for (uint32_t i = 0; i < half; i++) {
        float divisor;
        memcpy(&divisor, (const char *)t->data + i * sizeof divisor, sizeof divisor);
        freq[i] /= divisor;
    }
    return OB_OK;
}

ob_status rope_read(struct build *b, const struct rope_source *from, struct rope *out,
                    ob_error *error) {
    char key[128];
    uint32_t dim = b->hp->rope_dim ? b->hp->rope_dim : b->hp->k_dim;
    *out = (struct rope){.base = from->base, .half = dim / 2, .magnitude = 1};
    snprintf(key, sizeof key, "%s.rope_theta|%s", from->hf, from->base_key_hf);
    build_f32(b, from->base_key_gguf, key, &out->base);
    if (dim == 0 || dim % 2 || dim > b->hp->k_dim)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.rope.dimension_count", "head_dim", error,
                            "%u rotary dimensions: not even, or not in a head of %u", dim,
                            b->hp->k_dim);
    if (!(out->base > 0) || isinf(out->base)) {
        char base[32];
        return build_refuse(b, OB_ERR_FORMAT, from->base_key_gguf, from->base_key_hf, error,
                            "%s is no base of a rotation", str_number((double)out->base, base));
    }
    float *freq = arena_array(b->arena, out->half, sizeof *freq);
    if (!freq) return error_memory(error, "rope", out->half * sizeof *freq);
    plain(freq, out->half, out->base);
    out->freq = freq;
    if (!from->scaled) return OB_OK;
    bool newer = source_has(b->source, from->hf);
    struct place place = {.b = b, .hf = newer ? from->hf : "rope_scaling"};
    ob_status s = scale(&place, out, freq, error);
    return s == OB_OK ? divide_by_tensor(b, freq, out->half, error) : s;
}
