/* SPDX-License-Identifier: Apache-2.0
 *
 * hf_config.c: see hf_config.h. The tree is jansson's. JSON has no infinities, but Python's writer
 * does: transformers before 5 wrote the bare word Infinity, 5 writes {"__float__": "Infinity"}. The
 * words are turned into that object before parsing. */
#include "format/hf_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/error.h"
#include "format/hf_defaults.h"

struct hf_config {
    json_t *root;
    json_t *text;                      /* "text_config", NULL if there is none */
    json_t *root_defaults, *defaults;  /* of the whole, of the language model; NULL: none known */
    struct str text_type;
};

void hf_config_spell(const char *text, size_t n, struct buf *out) {
    static const char *const word[] = {"-Infinity", "Infinity", "NaN"};
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        if (quoted && text[i] == '\\' && i + 1 < n) buf_putc(out, text[i++]);
        else if (text[i] == '"') quoted = !quoted;
        size_t taken = 0;
        for (size_t k = 0; k < 3 && !quoted && !taken; k++) {
            size_t len = strlen(word[k]);
            if (len > n - i || memcmp(text + i, word[k], len) != 0) continue;
            buf_printf(out, "{\"__float__\":\"%s\"}", word[k]);
            taken = len;
        }
        if (taken) i += taken - 1;
        else buf_putc(out, text[i]);
    }
}

/* ---- defaults (hf_defaults.h) ---- */

static struct str string_at(const json_t *object, const char *key) {
    const json_t *v = json_object_get(object, key);
    return (struct str){json_string_value(v), json_string_length(v)};
}

/* A row as a tree; NULL if there is none. */
static ob_status read_row(struct str model_type, json_t **out, ob_error *error) {
    const char *row = model_type.p ? hf_defaults_of(model_type) : NULL;
    struct buf spelled = BUF_INIT;
    *out = NULL;
    if (!row) return OB_OK;
    hf_config_spell(row, strlen(row), &spelled);
    for (size_t i = 0; i < spelled.n; i++)
        if (spelled.p[i] == '\'') spelled.p[i] = '"';
    if (!spelled.failed) *out = json_loadb(spelled.p, spelled.n, JSON_REJECT_DUPLICATES, NULL);
    buf_free(&spelled);
    return *out ? OB_OK : error_memory(error, "a configuration's defaults", strlen(row));
}

/* What the language model is, and both rows. */
static ob_status find_defaults(struct hf_config *c, ob_error *error) {
    ob_status s = read_row(c->text_type = string_at(c->root, "model_type"), &c->root_defaults,
                           error);
    if (s != OB_OK) return s;
    struct str inside = string_at(c->root_defaults, "text"),
               named = string_at(c->text, "model_type");
    bool fixed = json_object_get(c->root_defaults, "text_is");
    if (inside.p || c->text) c->text_type = named.p && !fixed ? named : inside;
    return read_row(c->text_type, &c->defaults, error);
}

ob_status hf_config_open(const char *text, size_t n, const char *path, struct hf_config **out,
                         ob_error *error) {
    json_error_t e;
    struct buf spelled = BUF_INIT;
    struct hf_config *config = *out = calloc(1, sizeof *config);
    if (!config) return error_memory(error, "a configuration", sizeof *config);
    ob_status status = OB_OK;
    hf_config_spell(text, n, &spelled);
    if (spelled.failed) status = error_memory(error, "a configuration", n);
    if (status == OB_OK &&
        !(config->root = json_loadb(n ? spelled.p : "", spelled.n, JSON_REJECT_DUPLICATES, &e)))
        status = error_set(error, OB_ERR_FORMAT, "malformed JSON: line %d, column %d: %s", e.line,
                           e.column, e.text);
    else if (status == OB_OK && !json_is_object(config->root))
        status = error_set(error, OB_ERR_FORMAT, "must be a JSON object");
    buf_free(&spelled);
    if (status != OB_OK) {
        error_at(error, path, NULL, OB_NO_OFFSET);
        hf_config_close(out);
        return status;
    }
    config->text = json_object_get(config->root, "text_config");
    if (json_is_null(config->text)) config->text = NULL;
    if (config->text && !json_is_object(config->text)) {
        status = error_set(error, OB_ERR_FORMAT, "is not an object");
        error_at(error, path, "text_config", OB_NO_OFFSET);
    }
    if (status == OB_OK) status = find_defaults(config, error);
    if (status != OB_OK) hf_config_close(out);
    return status;
}

void hf_config_close(struct hf_config **config) {
    if (!*config) return;
    json_decref((*config)->root);
    json_decref((*config)->root_defaults);
    json_decref((*config)->defaults);
    free(*config);
    *config = NULL;
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* The value at a dotted path; NULL if absent. */
static const json_t *walk_to(const json_t *at, const char *path) {
    for (const char *p = path; at;) {
        size_t n = strcspn(p, ".");
        at = json_object_getn(at, p, n);
        if (p[n] == 0) break;
        p += n + 1;
    }
    return at;
}

/* The same; NULL if null, too. */
static const json_t *walk(const json_t *at, const char *path) {
    at = walk_to(at, path);
    return json_is_null(at) ? NULL : at;
}

/* Of a path its first part. */
static const json_t *first(const json_t *at, const char *path) {
    return json_object_getn(at, path, strcspn(path, "."));
}

/* By another of a key's names. */
static const json_t *by_other_name(const json_t *at, const json_t *defaults, const char *path) {
    json_t *names = json_object_get(defaults, "="), *name;
    const char *other;
    json_object_foreach(names, other, name) {
        const json_t *v = strcmp(json_string_value(name), path) == 0 ? walk(at, other) : NULL;
        if (v) return v;
    }
    return NULL;
}

/* What the file says itself. What is not under text_config has its default there, if it has one,
 * whatever the whole says. */
static const json_t *stated(const struct hf_config *c, const char *path) {
    if (*path == '/') return walk(c->root, path + 1);
    const json_t *at = c->text ? c->text : c->root, *v = walk(at, path);
    if (!v) v = by_other_name(at, c->defaults, path);
    return v || !c->text || first(c->defaults, path) ? v : walk(c->root, path);
}

static bool is_in(const json_t *list, const char *key) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), key) == 0) return true;
    return false;
}

/* What null means of a key with a default: that, or none; or it is not allowed. */
enum null { NULL_DEFAULT, NULL_NONE, NULL_WRONG };
static enum null null_means(const json_t *defaults, const char *key) {
    if (is_in(json_object_get(defaults, ":"), key) || strncmp(key, "rope_parameters", 15) == 0)
        return NULL_DEFAULT;
    return is_in(json_object_get(defaults, "?"), key) ? NULL_NONE : NULL_WRONG;
}

/* Of a path that the file does not state. */
static const json_t *by_default(const struct hf_config *c, const char *path) {
    const json_t *at = c->text ? c->text : c->root, *defaults = c->defaults;
    if (*path == '/') at = c->root, defaults = c->root_defaults, path++;
    const json_t *v = walk(defaults, path), *said = first(at, path);
    if (!v || !said) {
        bool older = v && strncmp(path, "rope_parameters", 15) == 0 && walk(at, "rope_scaling");
        return older ? NULL : v;
    }
    if (!json_is_null(said)) return NULL; /* an object, which has all that it has */
    enum null means = null_means(defaults, path);
    if (means == NULL_NONE && json_is_boolean(v)) return json_false();
    return means == NULL_DEFAULT ? v : NULL;
}

static const json_t *find(const struct hf_config *config, const char *path) {
    const json_t *v = stated(config, path);
    return v ? v : by_default(config, path);
}

static const json_t *element(const struct hf_config *config, const char *path, uint64_t i) {
    const json_t *v = find(config, path);
    if (json_is_array(v)) return i < json_array_size(v) ? json_array_get(v, (size_t)i) : NULL;
    return i == 0 ? v : NULL;
}

bool hf_config_has(const struct hf_config *config, const char *path) {
    return find(config, path) != NULL;
}

bool hf_config_says(const struct hf_config *config, const char *path) {
    return stated(config, path) != NULL;
}

/* Where the file says that no layer slides, no window is as good as one. */
static bool may_slide(const json_t *at) {
    json_t *types = json_object_get(at, "layer_types"), *type;
    size_t i;
    if (!json_is_array(types)) return true;
    json_array_foreach(types, i, type)
        if (json_is_string(type) && strstr(json_string_value(type), "sliding")) return true;
    return false;
}

/* The first key of an object that is null and may not be; NULL: none. */
static const char *wrong_null(json_t *at, json_t *defaults) {
    const char *key;
    json_t *v;
    json_object_foreach(at, key, v)
        if (json_is_null(v) && json_object_get(defaults, key) &&
            null_means(defaults, key) == NULL_WRONG &&
            (strcmp(key, "sliding_window") != 0 || may_slide(at)))
            return key;
    return NULL;
}

/* Likewise in rope_parameters and its objects for kinds of layers. */
static const char *wrong_null_of_rope(json_t *object) {
    static const char *const name[] = {"high_freq_factor", "low_freq_factor",
                                       "original_max_position_embeddings",
                                       "partial_rotary_factor", "rope_theta", "rope_type",
                                       "truncate"};
    const char *key, *found = NULL;
    json_t *v;
    for (size_t i = 0; i < sizeof name / sizeof name[0] && !found; i++)
        if (json_is_null(json_object_get(object, name[i]))) found = name[i];
    json_object_foreach(object, key, v)
        if (!found && json_is_object(v)) found = wrong_null_of_rope(v);
    return found;
}

const char *hf_config_wrong_null(const struct hf_config *c) {
    json_t *at = c->text ? c->text : c->root;
    const char *key = wrong_null(c->root, c->root_defaults);
    if (!key) key = wrong_null(at, c->defaults);
    return key ? key : wrong_null_of_rope(json_object_get(at, "rope_parameters"));
}

struct str hf_config_text_type(const struct hf_config *config) { return config->text_type; }

bool hf_config_null(const struct hf_config *config, const char *path) {
    return !find(config, path) &&
           (json_is_null(walk_to(config->text, path)) || json_is_null(walk_to(config->root, path)));
}

/* Of one tree. */
static size_t blocked(const json_t *at, const char *path) {
    for (size_t from = 0;;) {
        size_t n = from + strcspn(path + from, ".");
        if (path[n] == 0) return 0;
        at = json_object_getn(at, path + from, n - from);
        if (!at || json_is_null(at)) return 0;
        if (!json_is_object(at)) return n;
        from = n + 1;
    }
}

size_t hf_config_blocked(const struct hf_config *config, const char *path) {
    if (*path == '/') return 0;
    size_t n = blocked(config->text, path);
    return n ? n : blocked(config->root, path);
}

uint64_t hf_config_count(const struct hf_config *config, const char *path) {
    const json_t *v = find(config, path);
    return json_is_array(v) ? json_array_size(v) : v != NULL;
}

bool hf_config_u64(const struct hf_config *config, const char *path, uint64_t i, uint64_t *out) {
    const json_t *v = element(config, path, i);
    double real = json_real_value(v); /* 0 when it is none */
    if (json_is_integer(v) && json_integer_value(v) >= 0)
        *out = (uint64_t)json_integer_value(v);
    else if (json_is_real(v) && real >= 0 && real < 0x1p53 && real == floor(real))
        *out = (uint64_t)real;
    else
        return false;
    return true;
}

bool hf_config_f64(const struct hf_config *config, const char *path, uint64_t i, double *out) {
    const json_t *v = element(config, path, i);
    const char *word = json_string_value(json_object_get(v, "__float__"));
    if (json_is_number(v)) *out = json_number_value(v);
    else if (word && strcmp(word, "Infinity") == 0) *out = INFINITY;
    else if (word && strcmp(word, "-Infinity") == 0) *out = -INFINITY;
    else if (word && strcmp(word, "NaN") == 0) *out = NAN;
    else return false;
    return true;
}

bool hf_config_bool(const struct hf_config *config, const char *path, uint64_t i, bool *out) {
    const json_t *v = element(config, path, i);
    if (!json_is_boolean(v)) return false;
    *out = json_is_true(v);
    return true;
}

bool hf_config_str(const struct hf_config *config, const char *path, uint64_t i, struct str *out) {
    const json_t *v = element(config, path, i);
    if (!json_is_string(v)) return false;
    *out = (struct str){json_string_value(v), json_string_length(v)};
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool says_something(const json_t *v) {
    if (json_is_number(v)) return json_number_value(v) != 0 && json_number_value(v) != 1;
    if (json_is_array(v)) return json_array_size(v) > 0;
    if (json_is_object(v)) return json_object_size(v) > 0;
    return json_is_true(v) || (json_is_string(v) && json_string_length(v) > 0);
}

enum { PATH_BYTES = 256 };

static void each_of(json_t *object, const char *prefix, void (*fn)(void *user, struct str path),
                    void *user) {
    const char *key;
    json_t *v;
    json_object_foreach(object, key, v) {
        char path[PATH_BYTES];
        int n = snprintf(path, sizeof path, "%s%s%s", prefix, *prefix ? "." : "", key);
        if (n < 0 || n >= PATH_BYTES || !says_something(v)) continue;
        bool rope = strncmp(path, "rope_", 5) == 0 && json_is_object(v);
        if (rope) each_of(v, path, fn, user);
        else fn(user, (struct str){path, (size_t)n});
    }
}

void hf_config_each(const struct hf_config *config, void (*fn)(void *user, struct str path),
                    void *user) {
    each_of(config->root, "", fn, user);
    if (json_is_object(config->text)) each_of(config->text, "", fn, user);
}
