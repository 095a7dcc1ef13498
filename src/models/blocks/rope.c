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
    uint32_t head;  /* dimensions of a head */
    float part;     /* of these, that turn */
    bool between_pairs;
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

/* base^(2i / dim) */
static float power(float base, uint32_t i, uint32_t dim) {
    return (float)pow((double)base, (double)((float)(2 * i) / (float)dim));
}

static void plain(float *freq, uint32_t half, float base) {
    for (uint32_t i = 0; i < half; i++) freq[i] = 1.0f / power(base, i, 2 * half);
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
    r->beta_fast = fast;
    r->beta_slow = slow;
    double low = yarn_pair((double)fast, r->half, r->base, original);
    double high = yarn_pair((double)slow, r->half, r->base, original);
    char key[128];
    bool truncate = !p->between_pairs;
    snprintf(key, sizeof key, "%s.truncate", p->hf);
    build_bool(p->b, NULL, key, &truncate);
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

/* Only the first pairs turn, at the speed they would have if all did (Gemma 4). */
static void scale_proportional(const struct place *p, struct rope *r, float *freq) {
    uint32_t turning = (uint32_t)((double)p->part * p->head / 2);
    float by = number_or(p, NULL, "factor", 1);
    r->half = p->head / 2;
    for (uint32_t i = 0; i < r->half; i++)
        freq[i] = i < turning ? 1.0f / power(r->base, i, p->head) / by : 0;
}

/* One divisor a pair, of two sets; the longer is for sequences past the original context. */
static ob_status scale_longrope(const struct place *p, struct rope *r, float *freq,
                                ob_error *error) {
    static const char *const names[2] = {"short_factor", "long_factor"};
    char key[128];
    float *set[2] = {freq, arena_array(p->b->arena, r->half, sizeof *freq)};
    if (!set[1]) return error_memory(error, "rope", r->half * sizeof *freq);
    for (int k = 0; k < 2; k++) {
        snprintf(key, sizeof key, "%s.%s", p->hf, names[k]);
        if (build_count(p->b, NULL, key) != r->half)
            return build_refuse(p->b, OB_ERR_FORMAT, key, key, error, "must be %u numbers",
                                r->half);
        for (uint32_t i = 0; i < r->half; i++) {
            double divisor;
            if (!build_f64_at(p->b, NULL, key, i, &divisor))
                return build_refuse(p->b, OB_ERR_FORMAT, key, key, error, "must be %u numbers",
                                    r->half);
            set[k][i] = 1.0f / ((float)divisor * power(r->base, i, 2 * r->half));
        }
    }
    r->freq_long = set[1];
    return OB_OK;
}

/* Where longrope and dynamic scaling begin. */
static float original_context(const struct place *p) {
    float v = (float)p->b->hp->context;
    if (!number(p, "{arch}.rope.scaling.original_context_length",
                "original_max_position_embeddings", &v))
        build_f32(p->b, NULL, "original_max_position_embeddings", &v);
    return v;
}

static ob_status read_longrope(const struct place *p, struct rope *r, float *freq,
                               ob_error *error) {
    float original = original_context(p);
    float factor = number_or(p, NULL, "factor", (float)p->b->hp->context / original);
    r->original = (uint32_t)original;
    if (!number(p, "{arch}.rope.scaling.attn_factor", "attention_factor", &r->magnitude))
        r->magnitude = factor <= 1 ? 1
                                   : (float)sqrt(1 + log((double)factor) / log((double)original));
    number(p, NULL, "short_mscale", &r->magnitude);
    number(p, NULL, "long_mscale", &r->magnitude_long);
    return scale_longrope(p, r, freq, error);
}

static ob_status scale(const struct place *p, struct rope *r, float *freq, ob_error *error) {
    char key[128];
    struct str type;
    snprintf(key, sizeof key, "%s.type", p->hf);
    build_has(p->b, NULL, key); /* files of a time of change have both */
    snprintf(key, sizeof key, "%s.rope_type|%s.type", p->hf, p->hf);
    if (!build_str(p->b, "{arch}.rope.scaling.type", key, &type) || str_is(type, "default") ||
        str_is(type, "none") || str_is(type, "mrope"))
        return OB_OK;
    if (str_is(type, "longrope") || str_is(type, "su")) return read_longrope(p, r, freq, error);
    if (str_is(type, "proportional")) {
        scale_proportional(p, r, freq);
        return OB_OK;
    }
    float factor = number_or(p, "{arch}.rope.scaling.factor", "factor", 0);
    float original = number_or(p, "{arch}.rope.scaling.original_context_length",
                               "original_max_position_embeddings", (float)p->b->hp->context);
    if (!(factor >= 1) || !(original >= 1))
        return refuse(p, "factor or original context is missing or below 1 for rope scaling", type,
                      error);
    snprintf(r->scaling, sizeof r->scaling, "%.*s", STR_ARG(type));
    r->factor = factor;
    r->trained = original;
    if (str_is(type, "linear"))
        for (uint32_t i = 0; i < r->half; i++) freq[i] /= factor;
    else if (str_is(type, "llama3"))
        scale_llama3(p, freq, r->half, factor, original);
    else if (str_is(type, "yarn"))
        scale_yarn(p, r, freq, factor, original);
    else if (str_is(type, "dynamic")) {
        r->dynamic = factor;
        r->original = p->b->hp->context;
    } else
        return refuse(p, "rope scaling is not supported:", type, error);
    return OB_OK;
}

/* GGUF files carry Llama 3's scaling as one divisor a pair. */
static ob_status divide_by_tensor(struct build *b, float *freq, uint32_t half, ob_error *error) {
    static const char name[] = "rope_freqs.weight";
    const struct source_tensor *t = source_tensor_find(b->source, str_of(name));
    if (!t || source_kind(b->meta) != SOURCE_GGUF) return OB_OK;
    if (t->quant != quant_list[QUANT_f32] || t->dim[0] != half || t->bytes != half * sizeof(float))
        return build_refuse(b, OB_ERR_FORMAT, name, name, error, "must be %u F32 numbers", half);
    for (uint32_t i = 0; i < half; i++) {
        float divisor;
        memcpy(&divisor, (const char *)t->data + i * sizeof divisor, sizeof divisor);
        freq[i] /= divisor;
    }
    return OB_OK;
}

/* The first of a number's names that a file has counts, as in transformers; files of some years
 * have several, and none of these is a key that nobody reads. */
static void ask_all(struct build *b, const char *names) {
    for (const char *p = names; *p; p += strcspn(p, "|"), p += *p == '|') build_has(b, NULL, p);
}

ob_status rope_read(struct build *b, const struct rope_source *from, struct rope *out,
                    ob_error *error) {
    char key[128];
    float part = from->part > 0 ? from->part : 1;
    snprintf(key, sizeof key, "%s.partial_rotary_factor|partial_rotary_factor|rotary_pct|rope_pct",
             from->hf);
    build_f32(b, NULL, key, &part);
    ask_all(b, key);
    uint32_t head = from->head_dim ? from->head_dim : b->hp->k_dim;
    uint32_t dim = from->dim            ? from->dim
                   : b->hp->rope_dim    ? b->hp->rope_dim
                                        : (uint32_t)((double)head * (double)part);
    *out = (struct rope){.base = from->base, .half = dim / 2, .magnitude = 1};
    snprintf(key, sizeof key, "%s.rope_theta|%s", from->hf, from->base_key_hf);
    build_f32(b, from->base_key_gguf, key, &out->base);
    ask_all(b, key);
    if (from->fixed_base > 0) out->base = from->fixed_base;
    if (dim == 0 || dim % 2 || dim > head)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.rope.dimension_count", "head_dim", error,
                            "%u rotary dimensions: not even, or not in a head of %u", dim, head);
    if (!(out->base > 0) || isinf(out->base)) {
        char base[32];
        return build_refuse(b, OB_ERR_FORMAT, from->base_key_gguf, from->base_key_hf, error,
                            "%s is no base of a rotation", str_number((double)out->base, base));
    }
    float *freq = arena_array(b->arena, head / 2, sizeof *freq);
    if (!freq) return error_memory(error, "rope", head / 2 * sizeof *freq);
    plain(freq, out->half, out->base);
    out->freq = freq;
    if (!from->scaled) return OB_OK;
    bool newer = build_has(b, NULL, from->hf);
    struct place place = {
        .b = b, .hf = newer ? from->hf : "rope_scaling", .head = head, .part = part,
        .between_pairs = from->between_pairs};
    ob_status s = scale(&place, out, freq, error);
    return s == OB_OK ? divide_by_tensor(b, freq, out->half, error) : s;
}

static ob_status read_as(struct build *b, const char *hf, float part, struct rope *out,
                         ob_error *error) {
    return rope_read(b,
                     &(struct rope_source){.hf = hf,
                                           .part = part,
                                           .base_key_hf = "rope_theta",
                                           .base_key_gguf = "{arch}.rope.freq_base",
                                           .base = 10000,
                                           .scaled = true},
                     out, error);
}

ob_status rope_read_default(struct build *b, ob_error *error) {
    return rope_read_part(b, 0, error);
}

ob_status rope_read_part(struct build *b, float part, ob_error *error) {
    return read_as(b, "rope_parameters", part, &b->hp->rope, error);
}

ob_status rope_read_by_type(struct build *b, ob_error *error) {
    static const char window_base[] = "{arch}.rope.freq_base_swa";
    ob_status s;
    if (build_has(b, window_base, NULL)) {
        struct rope_source window = {.hf = "", .base_key_hf = "", .base_key_gguf = window_base};
        build_u32(b, "{arch}.rope.dimension_count_swa", NULL, &window.dim);
        s = rope_read_default(b, error);
        return s == OB_OK ? rope_read(b, &window, &b->hp->rope_window, error) : s;
    }
    if (!build_has(b, NULL, "rope_parameters.full_attention")) return rope_read_default(b, error);
    s = read_as(b, "rope_parameters.full_attention", 0, &b->hp->rope, error);
    if (s != OB_OK) return s;
    return read_as(b, "rope_parameters.sliding_attention", 0, &b->hp->rope_window, error);
}
