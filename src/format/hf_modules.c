/* SPDX-License-Identifier: Apache-2.0
 * hf_modules.c: see hf_modules.h. */
#include "format/hf_modules.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { FEATURES_MAX = 1 << 20 };

static ob_status parse(struct str text, json_t **out, ob_error *error) {
    json_error_t e;
    *out = json_loadb(text.n ? text.p : "", text.n, JSON_REJECT_DUPLICATES, &e);
    if (*out) return OB_OK;
    return error_set(error, OB_ERR_FORMAT, "malformed JSON: line %d, column %d: %s", e.line,
                     e.column, e.text);
}

/* A string, or "" where there is none or null. */
static ob_status read_text(const json_t *object, const char *key, const char **out,
                           ob_error *error) {
    const json_t *v = json_object_get(object, key);
    *out = json_is_string(v) ? json_string_value(v) : "";
    if (!v || json_is_null(v) || json_is_string(v)) return OB_OK;
    return error_set(error, OB_ERR_FORMAT, "\"%s\" is not a string", key);
}

/* true or false; *io stays where there is none or null. */
static ob_status read_flag(const json_t *object, const char *key, bool *io, ob_error *error) {
    const json_t *v = json_object_get(object, key);
    if (!v || json_is_null(v)) return OB_OK;
    if (!json_is_boolean(v))
        return error_set(error, OB_ERR_FORMAT, "\"%s\" is not true or false", key);
    *io = json_is_true(v);
    return OB_OK;
}

/* A class without its package: "sentence_transformers.models.Pooling". */
static const char *class_of(const char *type) {
    const char *dot = strrchr(type, '.');
    return dot ? dot + 1 : type;
}

/* ---- names ----------------------------------------------------------------------------------- */

static const struct {
    const char *mode, *flag; /* of newer files, and of older ones */
} pooling[POOL_KINDS] = {
    [POOL_FIRST] = {"cls", "pooling_mode_cls_token"},
    [POOL_MAX] = {"max", "pooling_mode_max_tokens"},
    [POOL_MEAN] = {"mean", "pooling_mode_mean_tokens"},
    [POOL_MEAN_SQRT] = {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens"},
    [POOL_WEIGHTED] = {"weightedmean", "pooling_mode_weightedmean_tokens"},
    [POOL_LAST] = {"lasttoken", "pooling_mode_lasttoken"},
};

static bool add_pooling(struct hf_modules *out, struct str mode) {
    for (enum pool_kind k = 0; k < POOL_KINDS && out->pools < POOL_KINDS; k++)
        if (str_is(mode, pooling[k].mode)) return out->pool[out->pools++] = k, true;
    return false;
}

void hf_poolings_text(const struct hf_modules *modules, char out[HF_POOLINGS]) {
    int n = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < modules->pools; i++)
        n += snprintf(out + n, HF_POOLINGS - (size_t)n, "%s%s", i ? "+" : "",
                      pooling[modules->pool[i]].mode);
}

bool hf_poolings_of(struct str text, struct hf_modules *out) {
    out->pools = 0;
    for (;;) {
        size_t n = 0;
        while (n < text.n && text.p[n] != '+') n++;
        if (!add_pooling(out, (struct str){text.p, n})) return false;
        if (n == text.n) return true;
        text = (struct str){text.p + n + 1, text.n - n - 1};
    }
}

static const struct {
    const char *name;
    enum act_kind act;
} acts[] = {
    {"GELU", ACT_GELU_ERF}, {"Identity", ACT_IDENTITY}, {"ReLU", ACT_RELU},
    {"SiLU", ACT_SILU},     {"Sigmoid", ACT_SIGMOID},   {"Tanh", ACT_TANH},
};
enum { ACTS = sizeof acts / sizeof acts[0] };

const char *hf_act_text(enum act_kind act) {
    for (size_t i = 0; i < ACTS; i++)
        if (acts[i].act == act) return acts[i].name;
    return "";
}

bool hf_act_of(struct str text, enum act_kind *out) {
    for (size_t i = 0; i < ACTS; i++)
        if (str_is(text, acts[i].name)) return *out = acts[i].act, true;
    return false;
}

/* ---- the files ------------------------------------------------------------------------------- */

/* Of a module, in the directory. */
static ob_status set_folder(const json_t *module, char out[HF_FOLDER], ob_error *error) {
    const char *folder;
    ob_status s = read_text(module, "path", &folder, error);
    if (s != OB_OK) return s;
    if (folder[0] == '/' || strstr(folder, "..") || strlen(folder) >= HF_FOLDER)
        return error_set(error, OB_ERR_FORMAT, "\"%.64s\" is no folder of the model", folder);
    memcpy(out, folder, strlen(folder) + 1);
    return OB_OK;
}

static ob_status add_module(const json_t *module, struct hf_modules *out, bool *pooled,
                            ob_error *error) {
    const char *type;
    ob_status s = read_text(module, "type", &type, error);
    if (s != OB_OK) return s;
    if (!*type) return error_set(error, OB_ERR_FORMAT, "a module has no \"type\"");
    const char *class = class_of(type);
    bool pools = strcmp(class, "Pooling") == 0, dense = strcmp(class, "Dense") == 0;
    bool unit = strcmp(class, "Normalize") == 0;
    if (strcmp(class, "Transformer") == 0) return OB_OK;
    if (!pools && !dense && !unit)
        return error_set(error, OB_ERR_UNSUPPORTED, "a module \"%.64s\" is not supported", class);
    if (pools && *pooled)
        return error_set(error, OB_ERR_UNSUPPORTED, "two poolings are not supported");
    if (!pools && !*pooled)
        return error_set(error, OB_ERR_UNSUPPORTED, "a %s before the pooling is not supported",
                         class);
    if (dense && (out->unit || out->denses == HF_DENSE_MAX))
        return error_set(error, OB_ERR_UNSUPPORTED, "a Dense %s is not supported",
                         out->unit ? "after the norm" : "after two others");
    if (unit) return out->unit = true, OB_OK;
    *pooled = true;
    return set_folder(module, pools ? out->pooling : out->dense[out->denses++].folder, error);
}

ob_status hf_modules_parse(struct str text, struct hf_modules *out, ob_error *error) {
    json_t *list;
    bool pooled = false;
    *out = (struct hf_modules){0};
    ob_status s = parse(text, &list, error);
    if (s == OB_OK && json_array_size(list) == 0)
        s = error_set(error, OB_ERR_FORMAT, "is no list of modules");
    for (size_t i = 0; s == OB_OK && i < json_array_size(list); i++)
        s = add_module(json_array_get(list, i), out, &pooled, error);
    json_decref(list);
    /* Which ones, its own file says. */
    if (pooled) out->pools = 1, out->pool[0] = POOL_MEAN;
    return s;
}

/* "pooling_mode" is one or a list; files without it have a flag for each, in our order. */
static ob_status read_modes(const json_t *config, struct hf_modules *out, ob_error *error) {
    const json_t *mode = json_object_get(config, "pooling_mode");
    size_t n = json_is_array(mode) ? json_array_size(mode) : 1;
    if (json_is_null(mode)) mode = NULL;
    for (size_t i = 0; mode && i < n; i++) {
        const json_t *one = json_is_array(mode) ? json_array_get(mode, i) : mode;
        const char *name = json_string_value(one);
        if (!name)
            return error_set(error, OB_ERR_FORMAT,
                             "\"pooling_mode\" is not a string, or a list of strings");
        if (!add_pooling(out, str_of(name)))
            return error_set(error, OB_ERR_UNSUPPORTED, "pooling \"%.64s\" is not supported", name);
    }
    for (enum pool_kind k = 0; k < POOL_KINDS && !mode; k++) {
        bool on = false;
        ob_status s = read_flag(config, pooling[k].flag, &on, error);
        if (s != OB_OK) return s;
        if (on) out->pool[out->pools++] = k;
    }
    return out->pools ? OB_OK
                      : error_set(error, OB_ERR_UNSUPPORTED, "names no pooling that is supported");
}

static ob_status features(const json_t *config, const char *key, uint32_t *out, ob_error *error) {
    json_int_t n = json_integer_value(json_object_get(config, key));
    if (n < 1 || n > FEATURES_MAX)
        return error_set(error, OB_ERR_FORMAT, "\"%s\" is not in 1 to %d", key, FEATURES_MAX);
    *out = (uint32_t)n;
    return OB_OK;
}

ob_status hf_pooling_parse(struct str text, struct hf_modules *out, ob_error *error) {
    json_t *config;
    static const char *const width[] = {"embedding_dimension", "word_embedding_dimension"};
    ob_status s = parse(text, &config, error);
    if (s != OB_OK) return s;
    out->pools = 0;
    s = read_modes(config, out, error);
    for (size_t i = 0; s == OB_OK && i < 2; i++) {
        const json_t *v = json_object_get(config, width[i]);
        if (v && !json_is_null(v)) s = features(config, width[i], &out->pooled, error);
    }
    json_decref(config);
    return s;
}

/* What newer files can ask for. */
static ob_status check_wishes(const json_t *config, ob_error *error) {
    static const char *const names[] = {"module_input_name", "module_output_name"};
    const char *other = NULL;
    bool residual = false;
    ob_status s = read_flag(config, "use_residual", &residual, error);
    for (size_t i = 0; s == OB_OK && i < 2; i++) {
        const char *name;
        s = read_text(config, names[i], &name, error);
        if (*name && strcmp(name, "sentence_embedding") != 0) other = names[i];
    }
    if (residual) other = "use_residual";
    return s == OB_OK && other
               ? error_set(error, OB_ERR_UNSUPPORTED, "\"%s\" is not supported", other) : s;
}

ob_status hf_dense_parse(struct str text, struct hf_dense *out, ob_error *error) {
    json_t *config;
    const char *act = "";
    ob_status s = parse(text, &config, error);
    if (s == OB_OK) s = features(config, "in_features", &out->in, error);
    if (s == OB_OK) s = features(config, "out_features", &out->out, error);
    if (s == OB_OK) s = check_wishes(config, error);
    out->bias = true;
    if (s == OB_OK) s = read_flag(config, "bias", &out->bias, error);
    if (s == OB_OK) s = read_text(config, "activation_function", &act, error);
    if (s == OB_OK) {
        act = class_of(act);
        if (!hf_act_of(str_of(*act ? act : "Tanh"), &out->act))
            s = error_set(error, OB_ERR_UNSUPPORTED, "activation \"%.64s\" is not supported", act);
    }
    json_decref(config);
    return s;
}

/* Of a module; the caller frees *text. */
static ob_status read_config(const struct source *source, const char *folder, char *path,
                             size_t size, char **text, size_t *n, ob_error *error) {
    snprintf(path, size, "%s%sconfig.json", folder, *folder ? "/" : "");
    return source_file(source, path, text, n, error);
}

ob_status hf_modules_read(const struct source *source, struct hf_modules *out, ob_error *error) {
    char *text, path[HF_FOLDER + sizeof "/config.json"] = "modules.json";
    size_t n;
    *out = (struct hf_modules){0};
    ob_status s = source_file(source, path, &text, &n, NULL);
    if (s == OB_ERR_NOT_FOUND) return OB_OK;
    if (s != OB_OK) return source_file(source, path, &text, &n, error);
    s = hf_modules_parse((struct str){text, n}, out, error);
    free(text);
    if (s == OB_OK && out->pools) {
        s = read_config(source, out->pooling, path, sizeof path, &text, &n, error);
        if (s != OB_OK) return s; /* which names the file */
        s = hf_pooling_parse((struct str){text, n}, out, error);
        free(text);
    }
    for (uint32_t i = 0; s == OB_OK && i < out->denses; i++) {
        s = read_config(source, out->dense[i].folder, path, sizeof path, &text, &n, error);
        if (s != OB_OK) return s;
        s = hf_dense_parse((struct str){text, n}, &out->dense[i], error);
        free(text);
    }
    if (s != OB_OK) error_at(error, source_path(source), path, OB_NO_OFFSET);
    return s;
}
