/* SPDX-License-Identifier: Apache-2.0
 * keys.c: reads a recipe's keys[] into hparams. A value out of range, of the wrong kind or of the
 * wrong count is refused by its name; nothing is clamped. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "models/load.h"

const char *build_key(struct build *b, const char *gguf, const char *hf, char *scratch,
                      size_t size) {
    if (source_kind(b->source) == SOURCE_GGUF)
        return gguf && source_has(b->source, gguf) ? gguf : NULL;
    while (hf && *hf) {
        size_t n = strcspn(hf, "|");
        if (n < size) {
            memcpy(scratch, hf, n);
            scratch[n] = 0;
            if (source_has(b->source, scratch)) return scratch;
        }
        hf += n + (hf[n] == '|');
    }
    return NULL;
}

enum { NAME_MAX_BYTES = 256 };

bool build_f32(struct build *b, const char *gguf, const char *hf, float *out) {
    char scratch[NAME_MAX_BYTES];
    const char *key = build_key(b, gguf, hf, scratch, sizeof scratch);
    double v;
    if (!key || !source_f64(b->source, key, 0, &v)) return false;
    *out = (float)v;
    return true;
}

bool build_u32(struct build *b, const char *gguf, const char *hf, uint32_t *out) {
    char scratch[NAME_MAX_BYTES];
    const char *key = build_key(b, gguf, hf, scratch, sizeof scratch);
    uint64_t v;
    if (!key || !source_u64(b->source, key, 0, &v) || v > UINT32_MAX) return false;
    *out = (uint32_t)v;
    return true;
}

bool build_str(struct build *b, const char *gguf, const char *hf, struct str *out) {
    char scratch[NAME_MAX_BYTES];
    const char *key = build_key(b, gguf, hf, scratch, sizeof scratch);
    return key && source_str(b->source, key, 0, out);
}

ob_status build_refuse(const struct build *b, ob_status status, const char *gguf, const char *hf,
                       ob_error *error, const char *format, ...) {
    char what[256], name[NAME_MAX_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    error_set(error, status, "%s", what);
    const char *spelled = source_kind(b->source) == SOURCE_GGUF ? gguf : hf;
    const char *mark = strstr(spelled, "{arch}");
    struct str arch = source_architecture(b->source);
    if (mark)
        snprintf(name, sizeof name, "%.*s%.*s%s", (int)(mark - spelled), spelled, STR_ARG(arch),
                 mark + strlen("{arch}"));
    else
        snprintf(name, sizeof name, "%.*s", (int)strcspn(spelled, "|"), spelled);
    error_at(error, source_path(b->source), name, OB_NO_OFFSET);
    return status;
}

/* At a key whose spelling is known. */
#define REFUSE(b, name, error, ...) build_refuse(b, OB_ERR_FORMAT, name, name, error, __VA_ARGS__)

ob_status build_flag(struct build *b, const char *gguf, const char *hf, bool *io, ob_error *error) {
    char scratch[NAME_MAX_BYTES];
    const char *key = build_key(b, gguf, hf, scratch, sizeof scratch);
    if (!key || source_bool(b->source, key, 0, io)) return OB_OK;
    return REFUSE(b, key, error, "is not true or false");
}

ob_status build_plain(struct build *b, const struct plain *list, ob_error *error) {
    for (const struct plain *p = list; p->gguf || p->hf; p++) {
        char scratch[NAME_MAX_BYTES], is[32];
        double v;
        const char *key = build_key(b, p->gguf, p->hf, scratch, sizeof scratch);
        if (!key) continue;
        if (!source_f64(b->source, key, 0, &v)) return REFUSE(b, key, error, "is not a number");
        if (v != p->value && v != p->also)
            return build_refuse(b, OB_ERR_UNSUPPORTED, key, key, error,
                                "%s, which is %s, is not supported in this family",
                                str_number(v, is), p->what);
    }
    return OB_OK;
}

static bool in_range(const struct key *k, double v) {
    return isfinite(v) && v >= k->min && (k->max == 0 || v <= k->max);
}

/* One number of a key, checked. */
static ob_status read_number(struct build *b, const struct key *k, const char *name, uint64_t i,
                             double *out, ob_error *error) {
    uint64_t whole;
    bool ok = k->type == KEY_F32 ? source_f64(b->source, name, i, out)
                                 : source_u64(b->source, name, i, &whole);
    if (!ok)
        return REFUSE(b, name, error, "is not a %s",
                      k->type == KEY_F32 ? "number" : "whole number >= 0");
    if (k->type != KEY_F32) {
        if (whole > UINT32_MAX) return REFUSE(b, name, error, "is too large");
        *out = (double)whole;
    }
    if (in_range(k, *out)) return OB_OK;
    char is[32], min[32], max[32];
    str_number(*out, is);
    str_number(k->min, min);
    if (k->max == 0) return REFUSE(b, name, error, "%s is less than %s", is, min);
    return REFUSE(b, name, error, "%s is not in %s to %s", is, min, str_number(k->max, max));
}

static ob_status read_layers(struct build *b, const struct key *k, const char *name, uint32_t *out,
                             ob_error *error) {
    uint64_t n = name ? source_count(b->source, name) : 0;
    if (name && n != 1 && n != b->hp->layers)
        return REFUSE(b, name, error, "has %llu entries, the model %u layers",
                      (unsigned long long)n, b->hp->layers);
    for (uint32_t i = 0; i < b->hp->layers; i++) {
        double v = k->otherwise;
        if (name) {
            ob_status s = read_number(b, k, name, n == 1 ? 0 : i, &v, error);
            if (s != OB_OK) return s;
        }
        out[i] = (uint32_t)v;
    }
    return OB_OK;
}

static ob_status read_key(struct build *b, const struct key *k, ob_error *error) {
    char scratch[NAME_MAX_BYTES];
    bool gguf = source_kind(b->source) == SOURCE_GGUF;
    const char *name = build_key(b, k->gguf, k->hf, scratch, sizeof scratch);
    const char *spelled = gguf ? k->gguf : k->hf;
    if (!name && k->need == REQUIRED && spelled)
        return REFUSE(b, spelled, error, "required key is missing");
    char *field = (char *)b->hp + k->field;
    double v = k->otherwise;
    if (k->type == KEY_LAYERS) {
        uint32_t *list = arena_array(b->arena, b->hp->layers, sizeof *list);
        if (!list) return error_memory(error, "hyperparameters", b->hp->layers * sizeof *list);
        memcpy(field, &list, sizeof list);
        return read_layers(b, k, name, list, error);
    }
    if (name) {
        uint64_t n = source_count(b->source, name);
        if (n != 1)
            return REFUSE(b, name, error, "has %llu entries, one number is wanted",
                          (unsigned long long)n);
        ob_status s = read_number(b, k, name, 0, &v, error);
        if (s != OB_OK) return s;
    }
    if (k->type == KEY_F32)
        memcpy(field, &(float){(float)v}, sizeof(float));
    else
        memcpy(field, &(uint32_t){(uint32_t)v}, sizeof(uint32_t));
    return OB_OK;
}

/* The activation a config.json names must be the one the recipe computes. */
static ob_status check_act(struct build *b, ob_error *error) {
    struct str act;
    if (source_kind(b->source) != SOURCE_HF || !b->recipe->act ||
        !build_str(b, NULL, "hidden_act|hidden_activation", &act))
        return OB_OK;
    for (const char *p = b->recipe->act; *p;) {
        size_t n = strcspn(p, "|");
        if (n == act.n && memcmp(p, act.p, n) == 0) return OB_OK;
        p += n + (p[n] == '|');
    }
    return REFUSE(b, "hidden_act", error, "activation \"%.*s\" is not one of this family's (%s)",
                  STR_ARG(act), b->recipe->act);
}

ob_status load_keys(struct build *b, ob_error *error) {
    for (const struct key *const *table = b->recipe->keys; *table; table++)
        for (const struct key *k = *table; k->gguf || k->hf; k++) {
            ob_status s = read_key(b, k, error);
            if (s != OB_OK) return s;
        }
    return check_act(b, error);
}
