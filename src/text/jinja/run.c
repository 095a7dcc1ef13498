/* SPDX-License-Identifier: Apache-2.0
 *
 * run.c: a render from beginning to end: globals, limits, errors, scopes. */
#include "text/jinja/run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"

/* ---- errors and limits ---- */

static bool vfail(struct run *r, ob_status status, const char *format, va_list args) {
    if (r->status) return false; /* the first reason counts */
    r->status = status;
    vsnprintf(r->message, sizeof r->message, format, args);
    return false;
}

bool jinja_fail(struct run *r, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfail(r, OB_ERR_ARGUMENT, format, args);
    va_end(args);
    return false;
}

bool jinja_fail_status(struct run *r, ob_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfail(r, status, format, args);
    va_end(args);
    return false;
}

bool jinja_steps(struct run *r, size_t n) {
    if (n > r->steps)
        return jinja_fail_status(r, OB_ERR_LIMIT, "the template runs too long (limit: %zu steps)",
                                 r->limits.steps);
    r->steps -= n;
    return true;
}

bool jinja_fail_memory(struct run *r) {
    return jinja_fail_status(r, OB_ERR_LIMIT,
                             "the template uses too much memory (limit: %zu bytes)",
                             r->limits.memory);
}

bool jinja_enter(struct run *r) {
    if (r->level < RUN_LEVELS) return r->level++, true;
    return jinja_fail_status(r, OB_ERR_LIMIT, "nested too deeply (limit: %d levels)", RUN_LEVELS);
}

void *jinja_alloc(struct run *r, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > r->memory ||
        r->memory - bytes < 64) {
        jinja_fail_memory(r);
        return NULL;
    }
    void *memory = arena_alloc(&r->arena, bytes);
    if (!memory) {
        jinja_fail_status(r, OB_ERR_MEMORY, "out of memory");
        return NULL;
    }
    r->memory -= (bytes + 15) & ~(size_t)15;
    return memory;
}

/* ---- scopes ---- */

struct scope *jinja_scope_push(struct run *r) {
    struct scope *scope = jinja_alloc(r, 1, sizeof *scope);
    if (!scope) return NULL;
    scope->parent = r->scope;
    return r->scope = scope;
}

bool jinja_bind(struct run *r, uint32_t symbol, struct value v) {
    struct scope *s = r->scope;
    for (size_t i = 0; i < s->n; i++) {
        if (s->binding[i].symbol != symbol) continue;
        s->binding[i].value = v;
        return true;
    }
    if (!jinja_steps(r, s->n / 16)) return false;
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 4;
        struct binding *grown = jinja_alloc(r, cap, sizeof *grown);
        if (!grown) return false;
        if (s->n) memcpy(grown, s->binding, s->n * sizeof *grown);
        s->binding = grown;
        s->cap = cap;
    }
    s->binding[s->n++] = (struct binding){symbol, v};
    return true;
}

bool jinja_lookup(struct run *r, uint32_t symbol, struct value *out) {
    for (const struct scope *s = r->scope; s; s = s->parent) {
        if (!jinja_steps(r, s->n / 16)) return false;
        for (size_t i = 0; i < s->n; i++)
            if (s->binding[i].symbol == symbol) return *out = s->binding[i].value, true;
    }
    *out = r->global[symbol];
    return true;
}

/* ---- the whole render ---- */

/* Only the members that the template names are converted. */
static bool load_globals(struct run *r, const json_t *data, const json_t *trusted) {
    r->global = jinja_alloc(r, r->jinja->symbols, sizeof *r->global);
    if (!r->global) return false;
    for (size_t i = 0; i < r->jinja->symbols; i++) {
        const struct text *name = r->jinja->symbol[i];
        const json_t *json = json_object_getn(data, name->p, name->n);
        bool is_trusted = !json;
        if (!json) json = json_object_getn(trusted, name->p, name->n);
        const struct builtin *builtin = json ? NULL : jinja_global_find(text_str(name));
        if (json && !jinja_from_json(r, json, is_trusted, &r->global[i])) return false;
        if (builtin) {
            r->global[i] = value_of(VALUE_FUNCTION);
            r->global[i].builtin = builtin;
        }
    }
    return true;
}

static bool render(struct run *r, const json_t *data, const json_t *trusted) {
    if (!load_globals(r, data, trusted) || !jinja_capture(r)) return false;
    r->root = jinja_scope_push(r);
    return r->root && jinja_exec(r, r->jinja->body) != FLOW_FAILED;
}

static void report(const struct run *r, ob_error *error) {
    char where[32];
    snprintf(where, sizeof where, "line %u", r->line);
    error_set(error, r->status, "%s", r->message);
    if (r->line) error_at(error, NULL, where, OB_NO_OFFSET);
}

ob_status jinja_render(const struct jinja *jinja, const json_t *data, const json_t *trusted,
                       double now, const struct jinja_limits *limits, struct buf *out,
                       struct buf *trust, ob_error *error) {
    struct run r = {.jinja = jinja, .now = now};
    if (limits) r.limits = *limits;
    if (!r.limits.memory) r.limits.memory = (size_t)256 << 20;
    if (!r.limits.steps) r.limits.steps = 5000000;
    if (!r.limits.output) r.limits.output = (size_t)64 << 20;
    if (!r.limits.depth) r.limits.depth = 200;
    r.memory = r.limits.memory;
    r.steps = r.limits.steps;
    r.depth = r.limits.depth;
    bool ok = render(&r, data, trusted);
    if (ok) {
        buf_add(out, r.sink[0].text.p, r.sink[0].text.n);
        if (trust) buf_add(trust, r.sink[0].trust.p, r.sink[0].trust.n);
        if (out->failed || (trust && trust->failed))
            ok = jinja_fail_status(&r, OB_ERR_MEMORY, "out of memory");
    }
    if (!ok) report(&r, error);
    for (size_t i = 0; i < r.sinks_made; i++) {
        buf_free(&r.sink[i].text);
        buf_free(&r.sink[i].trust);
    }
    free(r.sink);
    arena_free(&r.arena);
    return r.status;
}
