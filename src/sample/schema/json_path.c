/* SPDX-License-Identifier: Apache-2.0
 * json_path.c: JSON pointers (RFC 6901): of what is refused, and those that $ref holds. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/error.h"
#include "sample/schema/json_schema.h"

/* ---- the pointer of a schema ----------------------------------------------------------------- */

static void add_token(struct buf *path, const char *token) {
    buf_putc(path, '/');
    for (; *token; token++) {
        if (*token == '~') buf_puts(path, "~0");
        else if (*token == '/') buf_puts(path, "~1");
        else buf_putc(path, *token);
    }
}

/* The path from `at` to `wanted` is added to `path`. Depth is that of the JSON text, which jansson
 * bounds. */
static bool find(const json_t *at, const json_t *wanted, struct buf *path) {
    size_t n = path->n, i;
    const char *key;
    json_t *item;
    char index[24];
    if (at == wanted) return true;
    json_object_foreach((json_t *)(uintptr_t)at, key, item) {
        if (!json_is_object(item) && !json_is_array(item) && item != wanted) continue;
        add_token(path, key);
        if (find(item, wanted, path)) return true;
        path->n = n;
    }
    json_array_foreach(at, i, item) {
        if (!json_is_object(item) && !json_is_array(item) && item != wanted) continue;
        snprintf(index, sizeof index, "%zu", i);
        add_token(path, index);
        if (find(item, wanted, path)) return true;
        path->n = n;
    }
    return false;
}

bool schema_refuse(struct json_schema *s, const json_t *schema, const char *keyword,
                   const char *format, ...) {
    struct buf path = BUF_INIT;
    char message[400];
    va_list args;
    if (s->status != OB_OK) return false;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    s->status = error_set(s->error, OB_ERR_ARGUMENT, "%s", message);
    buf_puts(&path, "");
    if (schema && !find(s->root, schema, &path)) path.n = 0;
    if (keyword) add_token(&path, keyword);
    buf_reserve(&path, 1);
    if (s->error && !path.failed) {
        path.p[path.n] = 0;
        size_t room = sizeof s->error->where - 4, cut = path.n > room ? path.n - room : 0;
        snprintf(s->error->where, sizeof s->error->where, "%s%s", cut ? "..." : "",
                 path.n ? path.p + cut : "/");
    }
    buf_free(&path);
    return false;
}

bool schema_out_of_memory(struct json_schema *s) {
    if (s->status == OB_OK) s->status = error_memory(s->error, "a JSON schema", 0);
    return false;
}

bool schema_works(struct json_schema *s, uint64_t steps) {
    s->work += steps;
    if (s->status == OB_OK && s->work > SCHEMA_WORK)
        s->status = error_set(s->error, OB_ERR_LIMIT,
                              "the JSON schema is too large: its references and branches multiply");
    return s->status == OB_OK;
}

/* ---- $ref ------------------------------------------------------------------------------------ */

static int hex(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One token of a pointer in a URI's fragment: %XX, then ~1 and ~0. */
static void read_token(struct str text, struct buf *out) {
    buf_clear(out);
    buf_puts(out, "");
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '%' && i + 2 < text.n && hex(text.p[i + 1]) >= 0 && hex(text.p[i + 2]) >= 0) {
            c = (char)(hex(text.p[i + 1]) << 4 | hex(text.p[i + 2]));
            i += 2;
        }
        buf_putc(out, c);
    }
    if (out->failed) return;
    size_t n = 0;
    for (size_t i = 0; i < out->n; i++) {
        char c = out->p[i];
        if (c == '~' && i + 1 < out->n && (out->p[i + 1] == '0' || out->p[i + 1] == '1'))
            c = out->p[++i] == '0' ? '~' : '/';
        out->p[n++] = c;
    }
    out->n = n;
    out->p[n] = 0;
}

static const json_t *follow(const json_t *at, struct str token) {
    if (json_is_object(at)) return json_object_getn(at, token.p, token.n);
    if (!json_is_array(at) || token.n == 0 || token.n > 9) return NULL;
    size_t index = 0;
    for (size_t i = 0; i < token.n; i++) {
        if (token.p[i] < '0' || token.p[i] > '9') return NULL;
        index = index * 10 + (size_t)(token.p[i] - '0');
    }
    return json_array_get(at, index);
}

const json_t *schema_resolve(struct json_schema *s, const json_t *schema) {
    const json_t *value = json_object_get(schema, "$ref"), *at = s->root;
    struct str ref = {json_string_value(value), json_string_length(value)};
    struct buf token = BUF_INIT;
    if (!json_is_string(value)) {
        schema_refuse(s, schema, "$ref", "must be a string");
        return NULL;
    }
    if (ref.n == 0 || ref.p[0] != '#' || (ref.n > 1 && ref.p[1] != '/')) {
        schema_refuse(s, schema, "$ref",
                      "only JSON pointers into this schema (#/$defs/...) are supported, not "
                      "\"%.*s\"", STR_ARG(ref));
        return NULL;
    }
    for (size_t from = 2; at && from <= ref.n && !token.failed;) {
        size_t to = from;
        while (to < ref.n && ref.p[to] != '/') to++;
        read_token((struct str){ref.p + from, to - from}, &token);
        if (!token.failed) at = follow(at, (struct str){token.p, token.n});
        from = to + 1;
    }
    if (token.failed) schema_out_of_memory(s);
    buf_free(&token);
    if (!at) schema_refuse(s, schema, "$ref", "there is no \"%.*s\"", STR_ARG(ref));
    return s->status == OB_OK ? at : NULL;
}
