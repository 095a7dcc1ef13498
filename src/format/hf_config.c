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

struct hf_config {
    json_t *root;
    json_t *text; /* "text_config", NULL if there is none */
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
    if (!config->text || json_is_object(config->text) || json_is_null(config->text)) return OB_OK;
    hf_config_close(out);
    error_set(error, OB_ERR_FORMAT, "is not an object");
    error_at(error, path, "text_config", OB_NO_OFFSET);
    return OB_ERR_FORMAT;
}

void hf_config_close(struct hf_config **config) {
    if (!*config) return;
    json_decref((*config)->root);
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

static const json_t *find(const struct hf_config *config, const char *path) {
    if (*path == '/') return walk(config->root, path + 1);
    const json_t *v = walk(config->text, path);
    return v ? v : walk(config->root, path);
}

static const json_t *element(const struct hf_config *config, const char *path, uint64_t i) {
    const json_t *v = find(config, path);
    if (json_is_array(v)) return i < json_array_size(v) ? json_array_get(v, (size_t)i) : NULL;
    return i == 0 ? v : NULL;
}

bool hf_config_has(const struct hf_config *config, const char *path) {
    return find(config, path) != NULL;
}

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
