/* SPDX-License-Identifier: Apache-2.0
 * hf_modules.c: see hf_modules.h. */
#include "format/hf_modules.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static ob_status parse(struct str text, json_t **out, ob_error *error) {
    json_error_t e;
    *out = json_loadb(text.n ? text.p : "", text.n, JSON_REJECT_DUPLICATES, &e);
    if (*out) return OB_OK;
    return error_set(error, OB_ERR_FORMAT, "malformed JSON: line %d, column %d: %s", e.line,
                     e.column, e.text);
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The class of a module without its package: "sentence_transformers.models.Pooling". */
static const char *class_of(const json_t *module) {
    const char *type = text_of(module, "type"), *dot = strrchr(type, '.');
    return dot ? dot + 1 : type;
}

/* A file of the pooling's folder, which must lie in the model's. */
static ob_status pooling_path(const char *folder, char **path, ob_error *error) {
    if (*path) return error_set(error, OB_ERR_UNSUPPORTED, "two poolings are not supported");
    if (folder[0] == '/' || strstr(folder, ".."))
        return error_set(error, OB_ERR_FORMAT, "\"%.64s\" is no folder of the model", folder);
    size_t size = strlen(folder) + sizeof "/config.json";
    *path = malloc(size);
    if (!*path) return error_memory(error, "a path", size);
    snprintf(*path, size, "%s%sconfig.json", folder, *folder ? "/" : "");
    return OB_OK;
}

ob_status hf_modules_parse(struct str text, struct hf_pooling *out, char **path, ob_error *error) {
    json_t *list;
    *out = (struct hf_pooling){0};
    *path = NULL;
    ob_status s = parse(text, &list, error);
    for (size_t i = 0; s == OB_OK && i < json_array_size(list); i++) {
        const json_t *module = json_array_get(list, i);
        const char *class = class_of(module);
        if (strcmp(class, "Pooling") == 0) {
            s = pooling_path(text_of(module, "path"), path, error);
            out->found = s == OB_OK;
        } else if (strcmp(class, "Normalize") == 0) {
            out->unit = true;
        } else if (strcmp(class, "Transformer") != 0) {
            s = error_set(error, OB_ERR_UNSUPPORTED, "a module \"%.64s\" is not supported", class);
        }
    }
    json_decref(list);
    return s;
}

/* Older files have a flag for each way, newer ones "pooling_mode". */
ob_status hf_pooling_parse(struct str text, struct hf_pooling *out, ob_error *error) {
    static const struct {
        const char *mode, *flag;
        enum pool_kind kind;
    } known[] = {{"mean", "pooling_mode_mean_tokens", POOL_MEAN},
                 {"cls", "pooling_mode_cls_token", POOL_FIRST},
                 {"lasttoken", "pooling_mode_lasttoken", POOL_LAST}};
    static const char *const other[] = {"pooling_mode_max_tokens",
                                        "pooling_mode_mean_sqrt_len_tokens",
                                        "pooling_mode_weightedmean_tokens"};
    json_t *config;
    ob_status s = parse(text, &config, error);
    if (s != OB_OK) return s;
    const char *mode = text_of(config, "pooling_mode"), *wrong = NULL;
    size_t found = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        bool flag = json_is_true(json_object_get(config, known[i].flag));
        if (!flag && strcmp(mode, known[i].mode) != 0) continue;
        out->kind = known[i].kind;
        found++;
    }
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        if (json_is_true(json_object_get(config, other[i]))) wrong = other[i];
    if (wrong || found != 1)
        s = error_set(error, OB_ERR_UNSUPPORTED, "pooling \"%.64s\" is not supported",
                      wrong ? wrong : mode);
    json_decref(config);
    return s;
}

ob_status hf_modules_read(const struct source *source, struct hf_pooling *out, ob_error *error) {
    char *text, *path = NULL;
    size_t n;
    *out = (struct hf_pooling){0};
    ob_status s = source_file(source, "modules.json", &text, &n, NULL);
    if (s == OB_ERR_NOT_FOUND) return OB_OK;
    if (s != OB_OK) return source_file(source, "modules.json", &text, &n, error);
    s = hf_modules_parse((struct str){text, n}, out, &path, error);
    free(text);
    if (s != OB_OK) error_at(error, source_path(source), "modules.json", OB_NO_OFFSET);
    if (s == OB_OK && path) {
        s = source_file(source, path, &text, &n, error);
        if (s == OB_OK) s = hf_pooling_parse((struct str){text, n}, out, error);
        free(text);
        if (s != OB_OK) error_at(error, source_path(source), path, OB_NO_OFFSET);
    }
    free(path);
    return s;
}
