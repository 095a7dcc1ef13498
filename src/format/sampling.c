/* SPDX-License-Identifier: Apache-2.0
 * sampling.c: see sampling.h. */
#include "format/sampling.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "format/gguf_write.h"
#include "format/json_pull.h"

static const struct setting {
    const char *gguf, *hf; /* "": none */
    bool real;
    double min, max;
    const char *must;
    size_t offset;
} settings[SOURCE_SAMPLINGS] = {
#define KIND_real true
#define KIND_integer false
#define OB_SETTING(member, kind, otherwise, min, max, must, gguf, hf) \
    {(gguf), (hf), KIND_##kind, (min), (max), (must), offsetof(ob_sampling, member)},
#include "onebit_sampling.def"
#undef OB_SETTING
#undef KIND_integer
#undef KIND_real
};

static const char hf_file[] = "generation_config.json";

static ob_status refuse(ob_error *error, const char *file, const char *key,
                        const struct setting *of) {
    error_set(error, OB_ERR_FORMAT, "must be %s %s", of->real ? "a number" : "an integer,",
              of->must);
    error_at(error, file, key, OB_NO_OFFSET);
    return OB_ERR_FORMAT;
}

/* false: out of range. */
static bool take(struct source_sampling *out, size_t i, double x) {
    const struct setting *s = &settings[i];
    char *to = (char *)&out->settings + s->offset;
    if (!(x >= s->min && x <= s->max)) return false;
    if (!s->real && x != (double)(int32_t)x) return false;
    out->given[i] = true;
    if (s->real) *(float *)(void *)to = (float)x;
    else *(int32_t *)(void *)to = (int32_t)x;
    return true;
}

static ob_status read_order(const struct source *source, struct source_sampling *out,
                            ob_error *error) {
    struct str order;
    if (!source_has(source, SOURCE_SAMPLING_ORDER)) return OB_OK;
    if (!source_str(source, SOURCE_SAMPLING_ORDER, 0, &order) || order.n >= sizeof out->order ||
        memchr(order.p, 0, order.n)) {
        error_set(error, OB_ERR_FORMAT, "must be names of samplers, separated by \";\"");
        error_at(error, source_path(source), SOURCE_SAMPLING_ORDER, OB_NO_OFFSET);
        return OB_ERR_FORMAT;
    }
    memcpy(out->order, order.p, order.n);
    out->order[order.n] = 0;
    return OB_OK;
}

static void gguf_key(const struct setting *of, char key[64]) {
    snprintf(key, 64, "general.sampling.%s", of->gguf);
}

static ob_status read_gguf(const struct source *source, struct source_sampling *out,
                           ob_error *error) {
    for (size_t i = 0; i < SOURCE_SAMPLINGS; i++) {
        char key[64];
        double x;
        if (!settings[i].gguf[0]) continue;
        gguf_key(&settings[i], key);
        if (!source_has(source, key)) continue;
        if (!source_f64(source, key, 0, &x) || !take(out, i, x))
            return refuse(error, source_path(source), key, &settings[i]);
    }
    return read_order(source, out, error);
}

static size_t find_hf(struct str key) {
    size_t i = 0;
    while (i < SOURCE_SAMPLINGS && !(settings[i].hf[0] && str_is(key, settings[i].hf))) i++;
    return i;
}

/* The document is an object; one that is none says nothing of sampling. */
static ob_status read_fields(struct json_pull *j, const char *file, struct source_sampling *out,
                             ob_error *error) {
    while (pull_next(j) == PULL_KEY) {
        size_t i = find_hf(j->text);
        if (i == SOURCE_SAMPLINGS) {
            if (!pull_skip(j)) break;
            continue;
        }
        enum pull_kind kind = pull_next(j);
        if (kind == PULL_BAD) break;
        if (kind == PULL_NULL) continue;
        if (kind != PULL_NUMBER || !take(out, i, pull_number(j)))
            return refuse(error, file, settings[i].hf, &settings[i]);
    }
    if (j->kind != PULL_BAD) return OB_OK;
    pull_error(j, error);
    error_at(error, file, NULL, pull_offset(j));
    return OB_ERR_FORMAT;
}

static ob_status read_hf(const struct source *source, struct source_sampling *out,
                         ob_error *error) {
    char *text, file[256];
    size_t n;
    struct json_pull j;
    ob_status s = source_file(source, hf_file, &text, &n, error);
    if (s == OB_ERR_NOT_FOUND) return OB_OK;
    if (s != OB_OK) return s;
    snprintf(file, sizeof file, "%s/%s", source_path(source), hf_file);
    pull_open(&j, text, n);
    if (pull_next(&j) == PULL_OBJECT) s = read_fields(&j, file, out, error);
    pull_close(&j);
    free(text);
    return s;
}

ob_status source_sampling_read(const struct source *source, struct source_sampling *out,
                               ob_error *error) {
    memset(out->given, 0, sizeof out->given);
    out->order[0] = 0;
    return source_kind(source) == SOURCE_HF && !source_gguf(source)
               ? read_hf(source, out, error)
               : read_gguf(source, out, error);
}

ob_status source_sampling_put(const struct source *source, struct gguf_writer *writer,
                              ob_error *error) {
    struct source_sampling own = {.settings = {0}};
    ob_status s = source_sampling_read(source, &own, error);
    if (s != OB_OK) return s;
    for (size_t i = 0; i < SOURCE_SAMPLINGS; i++) {
        const struct setting *of = &settings[i];
        const char *from = (const char *)&own.settings + of->offset;
        char key[64];
        if (!own.given[i] || !of->gguf[0]) continue;
        gguf_key(of, key);
        if (of->real) gguf_put_f32(writer, key, *(const float *)(const void *)from);
        else gguf_put_whole(writer, key, GGUF_I32, (uint32_t)*(const int32_t *)(const void *)from);
    }
    if (own.order[0]) gguf_put_str(writer, SOURCE_SAMPLING_ORDER, str_of(own.order));
    return OB_OK;
}
