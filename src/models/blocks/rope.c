/* SPDX-License-Identifier: Apache-2.0
 * rope.c: see rope.h. */
#include "models/blocks/rope.h"

#include <math.h>
#include <stdio.h>

#include "base/error.h"

static const double two_pi = 6.283185307179586;

const struct tensor rope_tensors[] = {
    KNOWN("rope_freqs.weight", NULL, "used through the rope frequencies"),
    KNOWN("rope_factors_long.weight", NULL, "used through the rope frequencies"),
    KNOWN("rope_factors_short.weight", NULL, "used through the rope frequencies"),
    {0},
};

/* Where a scaling's numbers are found, in either spelling. */
struct place {
    struct build *b;
    const char *hf; /* "rope_parameters" */
    uint32_t head;  /* dimensions of a head */
    float part;     /* of these, that turn */
    bool between_pairs;
};

static bool is_divisor(double v) { return v > 0 && isfinite((float)v); }

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

/* Of one of its numbers. */
static ob_status refuse_number(const struct place *p, const char *gguf, const char *hf, float v,
                               const char *why, ob_error *error) {
    char key[128], is[32];
    snprintf(key, sizeof key, "%s.%s", p->hf, hf);
    return build_refuse(p->b, OB_ERR_FORMAT, gguf, key, error, "%s %s", str_number((double)v, is),
                        why);
}

/* base^(2i / dim) */
static float power(float base, uint32_t i, uint32_t dim) {
    return (float)pow((double)base, (double)((float)(2 * i) / (float)dim));
}

static void plain(float *freq, uint32_t half, float base) {
    for (uint32_t i = 0; i < half; i++) freq[i] = 1.0f / power(base, i, 2 * half);
}

static ob_status scale_llama3(const struct place *p, float *freq, uint32_t half, float factor,
                              float original, ob_error *error) {
    float low = number_or(p, NULL, "low_freq_factor", 1);
    float high = number_or(p, NULL, "high_freq_factor", 4);
    if (source_kind(p->b->meta) == SOURCE_HF &&
        !(number(p, NULL, "low_freq_factor", &low) && number(p, NULL, "high_freq_factor", &high)))
        return refuse_number(p, NULL, "low_freq_factor", low, "is not in the file, or "
                             "high_freq_factor", error);
    if (!(low > 0)) return refuse_number(p, NULL, "low_freq_factor", low, "is not above 0", error);
    if (!(high > low))
        return refuse_number(p, NULL, "high_freq_factor", high, "is not above low_freq_factor",
                             error);
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
    return OB_OK;
}

/* The pair whose wavelength makes `turns` turns over the original context. */
static double yarn_pair(double turns, uint32_t half, float base, float original) {
    return 2.0 * half * log((double)original / (turns * two_pi)) / (2 * log((double)base));
}

static float yarn_magnitude(float factor, float scale) {
    return factor <= 1 ? 1.0f : 0.1f * scale * logf(factor) + 1.0f;
}

static ob_status scale_yarn(const struct place *p, struct rope *r, float *freq, float factor,
                            float original, ob_error *error) {
    static const char fast_gguf[] = "{arch}.rope.scaling.yarn_beta_fast",
                      slow_gguf[] = "{arch}.rope.scaling.yarn_beta_slow";
    float fast = number_or(p, fast_gguf, "beta_fast", 32);
    float slow = number_or(p, slow_gguf, "beta_slow", 1);
    if (!(fast > 0)) return refuse_number(p, fast_gguf, "beta_fast", fast, "is not above 0", error);
    if (!(slow > 0)) return refuse_number(p, slow_gguf, "beta_slow", slow, "is not above 0", error);
    if (!(r->base > 1))
        return refuse_number(p, "{arch}.rope.freq_base", "rope_theta", r->base,
                             "is no base that yarn can scale", error);
    r->beta_fast = fast;
    r->beta_slow = slow;
    double low = yarn_pair((double)fast, r->half, r->base, original);
    double high = yarn_pair((double)slow, r->half, r->base, original);
    char key[128];
    /* transformers looks for it beside the objects for kinds of layers, and where there is one for
     * all in that; without it its range begins and ends at pairs. */
    bool truncate = !p->between_pairs ||
                    (source_kind(p->b->meta) == SOURCE_HF && build_has(p->b, NULL, p->hf));
    snprintf(key, sizeof key, "%.*s.truncate", (int)strcspn(p->hf, "."), p->hf);
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
    if (number(p, "{arch}.rope.scaling.attn_factor", "attention_factor", &r->magnitude))
        return OB_OK;
    if (number(p, NULL, "mscale", &mscale) && number(p, NULL, "mscale_all_dim", &all) &&
        mscale != 0 && all != 0)
        r->magnitude = yarn_magnitude(factor, mscale) / yarn_magnitude(factor, all);
    else
        r->magnitude = yarn_magnitude(factor, 1);
    return OB_OK;
}

/* Only the first pairs turn, at the speed they would have if all did (Gemma 4). */
static ob_status scale_proportional(const struct place *p, struct rope *r, float *freq,
                                    ob_error *error) {
    uint32_t turning = (uint32_t)((double)p->part * p->head / 2);
    float by = number_or(p, NULL, "factor", 1);
    if (!(by > 0)) return refuse_number(p, NULL, "factor", by, "is not above 0", error);
    r->half = p->head / 2;
    for (uint32_t i = 0; i < r->half; i++)
        freq[i] = i < turning ? 1.0f / power(r->base, i, p->head) / by : 0;
    return OB_OK;
}

static float divisor_at(const char *data, uint32_t i) {
    float v;
    memcpy(&v, data + i * sizeof v, sizeof v);
    return v;
}

/* F32 divisors, one a pair, under this name in a GGUF file; NULL if it has none. */
static ob_status find_divisors(struct build *b, const char *name, uint32_t half, const char **out,
                               ob_error *error) {
    const struct source_tensor *t = source_tensor_find(b->source, str_of(name));
    *out = NULL;
    if (!t || source_kind(b->meta) != SOURCE_GGUF) return OB_OK;
    if (t->quant != quant_list[QUANT_f32] || t->dim[0] != half || t->bytes != half * sizeof(float))
        return build_refuse(b, OB_ERR_FORMAT, name, name, error, "must be %u F32 numbers", half);
    for (uint32_t i = 0; i < half; i++)
        if (!is_divisor((double)divisor_at(t->data, i)))
            return build_refuse(b, OB_ERR_FORMAT, name, name, error,
                                "entry %u is not above 0, or infinite", i);
    *out = t->data;
    return OB_OK;
}

/* One divisor a pair, of two sets; the longer is for sequences past the original context. */
static ob_status scale_longrope(const struct place *p, struct rope *r, float *freq,
                                ob_error *error) {
    static const struct {
        const char *hf, *gguf;
    } names[2] = {{"short_factor", "rope_factors_short.weight"},
                  {"long_factor", "rope_factors_long.weight"}};
    char key[128];
    float *set[2] = {freq, arena_array(p->b->arena, r->half, sizeof *freq)};
    if (!set[1]) return error_memory(error, "rope", r->half * sizeof *freq);
    for (int k = 0; k < 2; k++) {
        const char *tensor;
        ob_status s = find_divisors(p->b, names[k].gguf, r->half, &tensor, error);
        if (s != OB_OK) return s;
        snprintf(key, sizeof key, "%s.%s", p->hf, names[k].hf);
        bool whole = tensor || build_count(p->b, NULL, key) == r->half;
        for (uint32_t i = 0; whole && i < r->half; i++) {
            double divisor = 1;
            if (tensor) divisor = (double)divisor_at(tensor, i);
            else whole = build_f64_at(p->b, NULL, key, i, &divisor) && is_divisor(divisor);
            set[k][i] = 1.0f / ((float)divisor * power(r->base, i, 2 * r->half));
        }
        if (!whole)
            return build_refuse(p->b, OB_ERR_FORMAT, names[k].gguf, key, error,
                                "must be %u numbers above 0", r->half);
    }
    r->freq_long = set[1];
    return OB_OK;
}

/* Where the scaling begins: in rope_parameters or, beside one object for all layers, at the top,
 * which goes first, be it by default. */
static float original_context(const struct place *p) {
    static const char key[] = "original_max_position_embeddings";
    float v = (float)p->b->hp->context, beside;
    bool inside = number(p, "{arch}.rope.scaling.original_context_length", key, &v);
    if (strchr(p->hf, '.') || !build_f32(p->b, NULL, key, &beside)) return v;
    if (inside && build_says(p->b, key) && beside != v)
        build_wrong(p->b, key, "says another thing than %s.%s", p->hf, key);
    return beside;
}

static ob_status read_longrope(const struct place *p, struct rope *r, float *freq,
                               ob_error *error) {
    float original = original_context(p);
    if (!(original >= 1 && original < 0x1p32f))
        return refuse_number(p, "{arch}.rope.scaling.original_context_length",
                             "original_max_position_embeddings", original, "is less than 1, or "
                             "too large", error);
    float factor = number_or(p, NULL, "factor", (float)p->b->hp->context / original);
    r->original = (uint32_t)original;
    if (!number(p, "{arch}.rope.scaling.attn_factor", "attention_factor", &r->magnitude))
        r->magnitude = factor <= 1 ? 1
                                   : (float)sqrt(1 + log((double)factor) / log((double)original));
    number(p, NULL, "short_mscale", &r->magnitude);
    if (number(p, NULL, "long_mscale", &r->magnitude_long) && !(r->magnitude_long > 0))
        return refuse_number(p, NULL, "long_mscale", r->magnitude_long, "is not above 0", error);
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
    if (str_is(type, "proportional")) return scale_proportional(p, r, freq, error);
    float alpha;
    if (str_is(type, "dynamic") && number(p, NULL, "alpha", &alpha) && alpha > 0) {
        double d = 2.0 * r->half; /* another base, whatever the length (Hunyuan) */
        r->base = (float)((double)r->base * pow((double)alpha, d / (d - 2)));
        plain(freq, r->half, r->base);
        return OB_OK;
    }
    float factor = number_or(p, "{arch}.rope.scaling.factor", "factor", 0);
    float original = original_context(p);
    if (!(factor >= 1) || !(original >= 1))
        return refuse(p, "factor or original context is missing or below 1 for rope scaling", type,
                      error);
    snprintf(r->scaling, sizeof r->scaling, "%.*s", STR_ARG(type));
    r->factor = factor;
    r->trained = original;
    if (str_is(type, "linear"))
        for (uint32_t i = 0; i < r->half; i++) freq[i] /= factor;
    else if (str_is(type, "llama3"))
        return scale_llama3(p, freq, r->half, factor, original, error);
    else if (str_is(type, "yarn"))
        return scale_yarn(p, r, freq, factor, original, error);
    else if (str_is(type, "dynamic")) {
        r->dynamic = factor;
        r->original = p->b->hp->context;
    } else
        return refuse(p, "rope scaling is not supported:", type, error);
    return OB_OK;
}

/* GGUF files carry Llama 3's scaling as one divisor a pair. */
static ob_status divide_by_tensor(struct build *b, float *freq, uint32_t half, ob_error *error) {
    const char *tensor;
    ob_status s = find_divisors(b, "rope_freqs.weight", half, &tensor, error);
    for (uint32_t i = 0; tensor && i < half; i++) freq[i] /= divisor_at(tensor, i);
    return s;
}

/* The first of a number's names that a file has counts, as in transformers; files of some years
 * have several, and none of these is a key that nobody reads. */
static void ask_all(struct build *b, const char *names) {
    for (const char *p = names; *p; p += strcspn(p, "|"), p += *p == '|') build_has(b, NULL, p);
}

/* At the one of these names that the source has, or the first. */
static ob_status refuse_named(struct build *b, const char *gguf, const char *hf, ob_error *error,
                              double v, const char *why) {
    char scratch[128], is[32];
    const char *name = build_key(b, gguf, hf, scratch, sizeof scratch);
    return build_refuse(b, OB_ERR_FORMAT, name ? name : gguf, name ? name : hf, error, "%s %s",
                        str_number(v, is), why);
}

/* Names of one number that disagree. */
static ob_status check_part(struct build *b, const struct rope_source *from, const char *names,
                            float part, ob_error *error) {
    struct str type;
    char name[128], object[128];
    snprintf(object, sizeof object, "%s.rope_type|%s.type|rope_scaling.rope_type|rope_scaling.type",
             from->hf, from->hf);
    bool some = b->recipe->turns_parts || from->part > 0 ||
                (build_str(b, NULL, object, &type) && str_is(type, "proportional"));
    for (const char *p = names; *p; p += strcspn(p, "|"), p += *p == '|') {
        float v;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p, "|"), p);
        if (source_null(b->meta, name) && part != 1) return build_not_null(b, name, error);
        if (!build_says(b, name) || !build_f32(b, NULL, name, &v)) continue;
        if (!some && v != 1)
            return refuse_named(b, NULL, name, error, (double)v,
                                "of a head turns; in this family heads turn whole");
        if (v != part)
            return refuse_named(b, NULL, name, error, (double)v,
                                "of a head turns, and another key says something else");
    }
    return OB_OK;
}

ob_status rope_read(struct build *b, const struct rope_source *from, struct rope *out,
                    ob_error *error) {
    char key[128];
    float part = from->part > 0 ? from->part : 1;
    bool by_part = from->dim == 0 && b->hp->rope_dim == 0;
    snprintf(key, sizeof key, "%s.partial_rotary_factor|partial_rotary_factor|rotary_pct|rope_pct",
             from->hf);
    build_f32(b, NULL, key, &part);
    ask_all(b, key);
    if (by_part && !(part > 0 && part <= 1))
        return refuse_named(b, NULL, key, error, (double)part, "is no part of a head that turns");
    ob_status s = check_part(b, from, key, part, error);
    if (s != OB_OK) return s;
    uint32_t head = from->head_dim ? from->head_dim : b->hp->k_dim;
    uint32_t dim = from->dim            ? from->dim
                   : b->hp->rope_dim    ? b->hp->rope_dim
                                        : (uint32_t)((double)head * (double)part);
    if (from->dim && !from->head_dim && build_says(b, key) &&
        (uint32_t)((double)head * (double)part) != dim)
        return refuse_named(b, NULL, key, error, (double)part,
                            "of a head turns, and another key says something else");
    *out = (struct rope){.base = from->base, .half = dim / 2, .magnitude = 1};
    snprintf(key, sizeof key, "%s.rope_theta|%s", from->hf,
             from->base_key_hf ? from->base_key_hf : "");
    build_f32(b, from->base_key_gguf, key, &out->base);
    ask_all(b, key);
    if (from->fixed_base > 0) out->base = from->fixed_base;
    if (dim == 0 || dim % 2 || dim > head)
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.rope.dimension_count", "head_dim", error,
                            "%u rotary dimensions: not even, or not in a head of %u", dim, head);
    if (!(out->base > 0) || isinf(out->base))
        return refuse_named(b, from->base_key_gguf, key, error, (double)out->base,
                            "is no base of a rotation");
    float *freq = arena_array(b->arena, head / 2, sizeof *freq);
    if (!freq) return error_memory(error, "rope", head / 2 * sizeof *freq);
    plain(freq, out->half, out->base);
    out->freq = freq;
    if (!from->scaled) return OB_OK;
    bool newer = build_has(b, NULL, from->hf);
    struct place place = {
        .b = b, .hf = newer ? from->hf : "rope_scaling", .head = head, .part = part,
        .between_pairs = from->between_pairs};
    s = scale(&place, out, freq, error);
    if (s == OB_OK && !(is_divisor((double)out->magnitude) && out->magnitude_long >= 0 &&
                        isfinite(out->magnitude_long)))
        return build_refuse(b, OB_ERR_FORMAT, "{arch}.rope.scaling.attn_factor", place.hf, error,
                            "its factor of attention is not above 0, or infinite");
    return s == OB_OK ? divide_by_tensor(b, freq, out->half, error) : s;
}

static ob_status read_as(struct build *b, const char *hf, float part, float base,
                         struct rope *out, ob_error *error) {
    return rope_read(b,
                     &(struct rope_source){.hf = hf,
                                           .part = part,
                                           .base_key_hf = "rope_theta",
                                           .base_key_gguf = "{arch}.rope.freq_base",
                                           .base = base,
                                           .scaled = true},
                     out, error);
}

ob_status rope_read_default(struct build *b, ob_error *error) {
    return rope_read_part(b, 0, error);
}

ob_status rope_read_part(struct build *b, float part, ob_error *error) {
    return read_as(b, "rope_parameters", part, 10000, &b->hp->rope, error);
}

ob_status rope_read_base(struct build *b, float base, ob_error *error) {
    return read_as(b, "rope_parameters", 0, base, &b->hp->rope, error);
}

ob_status rope_read_by_type(struct build *b, ob_error *error) {
    return rope_read_parts_by_type(b, 0, error);
}

ob_status rope_read_parts_by_type(struct build *b, float part, ob_error *error) {
    static const char window_base[] = "{arch}.rope.freq_base_swa";
    ob_status s;
    if (build_has(b, window_base, NULL)) {
        struct rope_source window = {.hf = "", .base_key_hf = "", .base_key_gguf = window_base};
        build_u32(b, "{arch}.rope.dimension_count_swa", NULL, &window.dim);
        s = rope_read_part(b, part, error);
        return s == OB_OK ? rope_read(b, &window, &b->hp->rope_window, error) : s;
    }
    if (!build_has(b, NULL, "rope_parameters.full_attention"))
        return rope_read_part(b, part, error);
    s = read_as(b, "rope_parameters.full_attention", part, 10000, &b->hp->rope, error);
    if (s != OB_OK) return s;
    return read_as(b, "rope_parameters.sliding_attention", part, 10000, &b->hp->rope_window,
                   error);
}

ob_status rope_read_where_said(struct build *b, ob_error *error) {
    static const char *const kind[2] = {"rope_parameters.full_attention",
                                        "rope_parameters.sliding_attention"};
    struct hparams *hp = b->hp;
    bool turns[2] = {build_has(b, NULL, kind[0]), build_has(b, NULL, kind[1])};
    ob_status s = OB_OK;
    for (int k = 0; s == OB_OK && k < 2; k++) {
        struct rope_source from = {.hf = kind[k], .base_key_hf = "rope_theta", .scaled = true};
        if (turns[k]) s = rope_read(b, &from, k ? &hp->rope_window : &hp->rope, error);
    }
    if (!turns[0]) hp->rope = hp->rope_window;
    for (uint32_t i = 0; i < hp->layers; i++) hp->no_rope[i] = !turns[hp->window[i] > 0];
    return s;
}
