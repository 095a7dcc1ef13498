/* SPDX-License-Identifier: Apache-2.0
 * inspect.c: metadata as JSON. GGUF has typed keys and values; a Hugging Face directory has
 * config.json. */
#include "cli/inspect.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/os.h"
#include "cli/cli.h"
#include "format/hf_config.h"

enum { WHOLE = 64, FIRST = 8, CONFIG_MAX = 64 << 20 };

static json_t *element(const struct gguf_value *v, uint64_t i) {
    uint64_t u;
    int64_t s;
    double f;
    bool b;
    struct str text;
    if (gguf_str(v, i, &text)) return cli_json_text(text);
    if (gguf_bool(v, i, &b)) return json_boolean(b);
    if (gguf_i64(v, i, &s)) return json_integer((json_int_t)s);
    if (gguf_u64(v, i, &u)) return json_real((double)u); /* above 2^63 */
    if (gguf_f64(v, i, &f)) {
        json_t *real = json_real(f);
        return real ? real : json_string(f != f ? "nan" : f > 0 ? "inf" : "-inf");
    }
    return json_null();
}

static json_t *value(const struct gguf_value *v) {
    if (v->type != GGUF_ARRAY) return element(v, 0);
    json_t *list = json_array();
    uint64_t shown = v->n <= WHOLE ? v->n : FIRST;
    for (uint64_t i = 0; i < shown; i++) json_array_append_new(list, element(v, i));
    if (shown == v->n) return list;
    return json_pack("{s:s, s:I, s:o}", "array", gguf_type_name(v->element), "count",
                     (json_int_t)v->n, "first", list);
}

static ob_status of_gguf(const struct gguf *gguf, json_t **out, ob_error *error) {
    json_t *all = json_object();
    for (size_t i = 0; i < gguf_value_count(gguf); i++) {
        const struct gguf_value *v = gguf_value_at(gguf, i);
        json_t *key = cli_json_text(v->key);
        if (json_object_set_new(all, json_string_value(key), value(v)) != 0) {
            json_decref(key);
            json_decref(all);
            return error_memory(error, "metadata", v->key.n);
        }
        json_decref(key);
    }
    *out = all;
    return OB_OK;
}

static ob_status of_directory(const char *path, json_t **out, ob_error *error) {
    struct arena arena = ARENA_INIT;
    const char *file = arena_printf(&arena, "%s/config.json", path);
    char *text = NULL;
    size_t n = 0;
    json_error_t at;
    struct buf spelled = BUF_INIT;
    ob_status status = file ? os_read_file(file, CONFIG_MAX, &text, &n, error)
                            : error_memory(error, "a path", strlen(path));
    if (status == OB_OK) hf_config_spell(text, n, &spelled);
    if (spelled.failed) status = error_memory(error, "a configuration", n);
    if (status == OB_OK && !(*out = json_loadb(n ? spelled.p : "", spelled.n, 0, &at))) {
        status = error_set(error, OB_ERR_FORMAT, "%s", at.text);
        error_at(error, file, NULL, (uint64_t)at.position);
    }
    free(text);
    buf_free(&spelled);
    arena_free(&arena);
    return status;
}

ob_status inspect_metadata(const struct source *source, json_t **out, ob_error *error) {
    const struct gguf *gguf = source_gguf(source);
    *out = NULL;
    return gguf ? of_gguf(gguf, out, error) : of_directory(source_path(source), out, error);
}

void inspect_line(const json_t *value, struct buf *out) {
    enum { SHOWN = 70 };
    json_t *count = json_object_get(value, "count"), *first = json_object_get(value, "first");
    if (count && first) {
        buf_printf(out, "%lld of %s: ", (long long)json_integer_value(count),
                   json_string_value(json_object_get(value, "array")));
        value = first;
    }
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(7));
    if (!text) return;
    size_t n = strlen(text);
    if (n > SHOWN) {
        size_t cut = SHOWN;
        while (cut && ((unsigned char)text[cut] & 0xc0) == 0x80) cut--; /* not inside a character */
        buf_add(out, text, cut);
        buf_puts(out, "...");
        if (json_is_string(value)) buf_printf(out, " (%zu bytes)", json_string_length(value));
    } else {
        buf_add(out, text, n);
    }
    free(text);
}
