/* SPDX-License-Identifier: Apache-2.0
 * packing.c: what quantization_config says. Each setting that changes what is computed is read, or
 * refused by its name. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "models/packing.h"

#define Q "quantization_config."
#define CT Q "config_groups.group_0."

#define REFUSE(b, key, error, ...) \
    build_refuse(b, OB_ERR_UNSUPPORTED, key, key, error, __VA_ARGS__)

static bool is_one(struct build *b, const char *key) { return source_count(b->meta, key) == 1; }

/* Absent, or one of these words separated by '|', in lower or upper case. */
static ob_status check_word(struct build *b, const char *key, const char *words, ob_error *error) {
    struct str is = {0};
    char scratch[128];
    if (!source_has(b->meta, key)) return OB_OK;
    if (!is_one(b, key) || !source_str(b->meta, key, 0, &is))
        return build_refuse(b, OB_ERR_FORMAT, key, key, error, "is not a string");
    for (const char *p = words; *p; p += strcspn(p, "|") + (p[strcspn(p, "|")] == '|')) {
        size_t n = strcspn(p, "|");
        bool same = n == is.n;
        for (size_t i = 0; same && i < n; i++) same = (is.p[i] | 32) == (p[i] | 32);
        if (same) return OB_OK;
    }
    snprintf(scratch, sizeof scratch, "%.*s", STR_ARG(is));
    return REFUSE(b, key, error, "\"%s\" is not supported, %s is", scratch, words);
}

/* false or absent. */
static ob_status check_off(struct build *b, const char *key, const char *what, ob_error *error) {
    bool on = false;
    if (!source_has(b->meta, key)) return OB_OK;
    if (is_one(b, key) && source_bool(b->meta, key, 0, &on) && !on) return OB_OK;
    return REFUSE(b, key, error, "%s not supported", what);
}

static ob_status read_bits(struct build *b, struct packing *p, const char *key, bool eight,
                           ob_error *error) {
    uint64_t bits = 0;
    if (!source_has(b->meta, key))
        return build_refuse(b, OB_ERR_FORMAT, key, key, error, "required key is missing");
    if (!is_one(b, key) || !source_u64(b->meta, key, 0, &bits))
        return build_refuse(b, OB_ERR_FORMAT, key, key, error, "is not a whole number >= 0");
    if (bits != 4 && !(eight && bits == 8))
        return REFUSE(b, key, error, "%llu bits are not supported, 4%s are",
                      (unsigned long long)bits, eight ? " or 8" : "");
    p->bits = (uint32_t)bits;
    return OB_OK;
}

/* -1 and null: a scale for a whole row. */
static ob_status read_group(struct build *b, struct packing *p, const char *key, ob_error *error) {
    double size = -1;
    if (!source_has(b->meta, key)) return OB_OK;
    bool given = is_one(b, key) && source_f64(b->meta, key, 0, &size);
    if (given && size == -1) return OB_OK;
    if (!given || !(size >= 1) || size > 1 << 24 || size != floor(size))
        return REFUSE(b, key, error, "is no size of a group");
    p->group = (uint32_t)size;
    return OB_OK;
}

/* Rows and columns of a block that has one scale. */
static ob_status read_block(struct build *b, struct packing *p, const char *key, ob_error *error) {
    for (uint64_t i = 0; i < 2 && source_has(b->meta, key); i++) {
        uint64_t n = 0;
        if (source_count(b->meta, key) != 2 || !source_u64(b->meta, key, i, &n) || n < 1 ||
            n > 1 << 24)
            return REFUSE(b, key, error, "is no pair of sizes");
        p->block[i] = (uint32_t)n;
    }
    return OB_OK;
}

static ob_status read_fp8(struct build *b, struct packing *p, ob_error *error) {
    static const char key[] = Q "weight_block_size";
    ob_status s = check_word(b, Q "fmt", "e4m3|float8_e4m3fn", error);
    if (s == OB_OK) s = check_word(b, Q "activation_scheme", "dynamic", error);
    if (s == OB_OK) s = check_word(b, Q "expert_dtype", "fp8", error);
    p->method = METHOD_FP8;
    p->bits = 8;
    return s == OB_OK ? read_block(b, p, key, error) : s;
}

static ob_status read_gptq(struct build *b, struct packing *p, ob_error *error) {
    struct str form = STR_LIT("gptq");
    ob_status s = read_bits(b, p, Q "bits", true, error);
    if (s == OB_OK) s = read_group(b, p, Q "group_size", error);
    if (s == OB_OK) s = check_word(b, Q "checkpoint_format", "gptq|gptq_v2", error);
    if (s == OB_OK) s = check_word(b, Q "pack_dtype", "int32", error);
    if (s == OB_OK && source_has(b->meta, Q "dynamic"))
        s = REFUSE(b, Q "dynamic", error, "settings of single layers are not supported");
    source_str(b->meta, Q "checkpoint_format", 0, &form);
    p->zero_add = str_is(form, "gptq_v2") ? 0 : 1;
    p->method = METHOD_GPTQ;
    return s;
}

static ob_status read_awq(struct build *b, struct packing *p, ob_error *error) {
    ob_status s = read_bits(b, p, source_has(b->meta, Q "w_bit") ? Q "w_bit" : Q "bits", false,
                            error);
    bool old = source_has(b->meta, Q "q_group_size");
    if (s == OB_OK) s = read_group(b, p, old ? Q "q_group_size" : Q "group_size", error);
    if (s == OB_OK) s = check_word(b, Q "version", "gemm", error);
    if (s == OB_OK) s = check_word(b, Q "format", "gemm", error);
    if (s == OB_OK) s = check_word(b, Q "backend", "autoawq|auto|auto_trainable", error);
    p->method = METHOD_AWQ;
    return s;
}

/* Inputs rounded on the fly are computed as they are, which is nearer to the model that was
 * quantized; rounding by scales of the file would be part of the model. */
static ob_status check_inputs(struct build *b, ob_error *error) {
    static const char key[] = CT "input_activations.dynamic";
    bool dynamic = false;
    if (!source_has(b->meta, CT "input_activations")) return OB_OK;
    if (source_bool(b->meta, key, 0, &dynamic) && dynamic) return OB_OK;
    return REFUSE(b, key, error, "inputs rounded by scales of the file are not supported");
}

static ob_status read_compressed(struct build *b, struct packing *p, ob_error *error) {
    struct str form = {0}, strategy = {0};
    if (!source_has(b->meta, Q "format"))
        return build_refuse(b, OB_ERR_FORMAT, Q "format", Q "format", error,
                            "required key is missing");
    source_str(b->meta, Q "format", 0, &form); /* check_word refuses another kind */
    ob_status s = check_word(b, Q "format", "pack-quantized|float-quantized", error);
    if (s == OB_OK && source_has(b->meta, Q "config_groups.group_1"))
        s = REFUSE(b, Q "config_groups.group_1", error, "several groups are not supported");
    if (s == OB_OK) s = check_inputs(b, error);
    if (s == OB_OK && source_has(b->meta, CT "output_activations"))
        s = REFUSE(b, CT "output_activations", error, "rounded outputs are not supported");
    if (s == OB_OK && source_has(b->meta, Q "kv_cache_scheme"))
        s = REFUSE(b, Q "kv_cache_scheme", error, "scales of the cache are not supported");
    if (s == OB_OK && source_has(b->meta, Q "transform_config.config_groups"))
        s = REFUSE(b, Q "transform_config", error, "rotated inputs are not supported");
    if (s == OB_OK) s = check_word(b, Q "sparsity_config.format", "dense", error);
    if (s != OB_OK) return s;
    if (str_is(form, "float-quantized")) {
        static const char sizes[] = CT "weights.block_structure";
        s = check_word(b, CT "weights.type", "float", error);
        p->method = METHOD_FP8;
        p->bits = 8;
        return s == OB_OK ? read_block(b, p, sizes, error) : s;
    }
    p->method = METHOD_INTS;
    s = read_bits(b, p, CT "weights.num_bits", true, error);
    if (s == OB_OK) s = check_word(b, CT "weights.type", "int", error);
    if (s == OB_OK) s = check_word(b, CT "weights.strategy", "group|channel", error);
    source_str(b->meta, CT "weights.strategy", 0, &strategy);
    return s == OB_OK && !str_is(strategy, "channel")
               ? read_group(b, p, CT "weights.group_size", error) : s;
}

static ob_status read_bnb(struct build *b, struct packing *p, ob_error *error) {
    p->method = METHOD_BNB;
    p->bits = 4;
    ob_status s = check_off(b, Q "load_in_8bit", "8 bits are", error);
    return s == OB_OK ? check_word(b, Q "bnb_4bit_quant_type", "nf4|fp4", error) : s;
}

static const struct {
    const char *name;
    ob_status (*read)(struct build *b, struct packing *p, ob_error *error); /* NULL: of recipes */
} methods[] = {
    {"awq", read_awq},
    {"bitnet", NULL},
    {"bitsandbytes", read_bnb},
    {"compressed-tensors", read_compressed},
    {"fp8", read_fp8},
    {"gptq", read_gptq},
    {"mxfp4", NULL},
};

/* Sign, 4 bits of exponent, 3 of mantissa; no infinities. */
static float e4m3(uint8_t v) {
    int e = v >> 3 & 15, m = v & 7;
    float x = e ? ldexpf((float)(8 + m), e - 10) : ldexpf((float)m, -9);
    if ((v & 0x7f) == 0x7f) x = NAN;
    return v & 0x80 ? -x : x;
}

ob_status packing_open(struct build *b, const struct packing **out, ob_error *error) {
    static const char key[] = Q "quant_method";
    struct str name = {0};
    *out = NULL;
    if (source_kind(b->source) != SOURCE_HF || !source_has(b->meta, "quantization_config"))
        return OB_OK;
    if (!source_str(b->meta, key, 0, &name))
        return build_refuse(b, OB_ERR_FORMAT, key, key, error, "%s",
                            source_has(b->meta, key) ? "is not a string"
                                                     : "required key is missing");
    struct packing *p = arena_alloc(b->arena, sizeof *p);
    if (!p) return error_memory(error, "a configuration", sizeof *p);
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (!str_is(name, methods[i].name)) continue;
        if (!methods[i].read) return OB_OK;
        for (int v = 0; v < 256; v++) p->f8[v] = e4m3((uint8_t)v);
        ob_status s = methods[i].read(b, p, error);
        snprintf(p->text, sizeof p->text, "%s, %u bits", methods[i].name, p->bits);
        *out = p;
        return s;
    }
    char is[64];
    snprintf(is, sizeof is, "%.*s", STR_ARG(name));
    return REFUSE(b, key, error, "\"%s\" is not supported", is);
}

const char *packing_describe(const struct packing *packing) { return packing ? packing->text : ""; }
