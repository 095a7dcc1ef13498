/* SPDX-License-Identifier: Apache-2.0
 *
 * value.h: the values a template computes with. A value is 16 bytes and copied freely; what it
 * points to lives in the arena of the render (or of the template, for literals) and never changes
 * after it was made, except for namespaces and the position of iterators.
 *
 * Provenance: a text carries it per byte; every other kind has one `data` flag, set when the value
 * came from or was computed from the data context. What a container prints around its elements
 * takes the container's flag. */
#ifndef TEXT_JINJA_VALUE_H
#define TEXT_JINJA_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"

enum value_kind {
    VALUE_MISSING, /* no value at all: an argument not given, a name not found */
    VALUE_UNDEFINED,
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_BIG, /* an integer beyond 64 bits: whole.h */
    VALUE_FLOAT,
    VALUE_STRING,
    VALUE_LIST,
    VALUE_TUPLE,
    VALUE_ITERATOR, /* what Python's generators are: walked once, no length */
    VALUE_KEYS,     /* dict views; a snapshot, as dicts do not change */
    VALUE_VALUES,
    VALUE_ITEMS,
    VALUE_RANGE,
    VALUE_DICT,
    VALUE_NAMESPACE,
    VALUE_MACRO,
    VALUE_FUNCTION, /* a global function */
    VALUE_METHOD,   /* a method bound to its object */
    VALUE_LOOP,
};

/* UTF-8, not terminated. */
struct text {
    const char *p;
    const uint8_t *trust; /* one byte a byte, 1 = trusted; NULL: all as `all` says */
    size_t n;
    bool all;
    uint8_t whole; /* with a trust array, found when first asked: 1 all trusted, 2 not */
};

struct big;

struct value {
    uint8_t kind;
    bool data;
    bool markup; /* strings: went through |safe or |escape, so + escapes the other side */
    union {
        bool b;
        int64_t i;
        double f;
        const struct text *text;
        const struct big *big;
        struct list *list; /* list, tuple, iterator, views */
        const struct range *range;
        struct dict *dict; /* dict, namespace */
        const struct macro *macro;
        const struct builtin *builtin;
        const struct method *method;
        struct loop *loop;
        const struct undefined *undefined;
    };
};

struct list {
    struct value *item;
    size_t n, cap;
    size_t at;  /* iterators: the next element */
    bool group; /* a tuple of |groupby, whose elements also have names */
};

struct range {
    int64_t start, stop, step;
    size_t n;
};

struct pair {
    struct value key, value;
    uint64_t hash;
};

/* In insertion order; beyond a few pairs an open-addressing index of position + 1. */
struct dict {
    struct pair *pair;
    size_t n, cap;
    uint32_t *slot;
    size_t slots;
};

/* Why a value is undefined, for the message if it is used. */
struct undefined {
    const char *hint;        /* the whole message, or NULL */
    const struct text *name; /* of the variable or member; NULL: element `index` */
    int64_t index;
    uint8_t of; /* kind of the object without it; VALUE_MISSING: a variable */
};

struct method {
    struct value self;
    const struct builtin *builtin;
};

static inline struct value value_of(enum value_kind kind) {
    return (struct value){.kind = (uint8_t)kind};
}
static inline struct value value_none(bool data) {
    return (struct value){.kind = VALUE_NONE, .data = data};
}
static inline struct value value_bool(bool b, bool data) {
    return (struct value){.kind = VALUE_BOOL, .data = data, .b = b};
}
static inline struct value value_int(int64_t i, bool data) {
    return (struct value){.kind = VALUE_INT, .data = data, .i = i};
}
static inline struct value value_float(double f, bool data) {
    return (struct value){.kind = VALUE_FLOAT, .data = data, .f = f};
}
static inline struct value value_text(const struct text *text) {
    return (struct value){.kind = VALUE_STRING, .text = text};
}
static inline struct value value_list(enum value_kind kind, struct list *list, bool data) {
    return (struct value){.kind = (uint8_t)kind, .data = data, .list = list};
}
static inline struct value value_dict(struct dict *dict, bool data) {
    return (struct value){.kind = VALUE_DICT, .data = data, .dict = dict};
}

static inline bool value_is_int(struct value v) {
    return v.kind == VALUE_INT || v.kind == VALUE_BOOL;
}
static inline bool value_is_whole(struct value v) {
    return value_is_int(v) || v.kind == VALUE_BIG;
}
static inline bool value_is_number(struct value v) {
    return value_is_whole(v) || v.kind == VALUE_FLOAT;
}
/* Of a value for which value_is_int holds. */
static inline int64_t value_as_int(struct value v) { return v.kind == VALUE_BOOL ? v.b : v.i; }
static inline bool value_is_sequence(struct value v) {
    return v.kind == VALUE_LIST || v.kind == VALUE_TUPLE;
}
static inline bool value_is_view(struct value v) {
    return v.kind == VALUE_KEYS || v.kind == VALUE_VALUES || v.kind == VALUE_ITEMS;
}

#define TEXT_LITERAL(s) {(s), NULL, sizeof(s) - 1, true, 0}

static inline struct str text_str(const struct text *t) { return (struct str){t->p, t->n}; }
static inline bool text_is(const struct text *t, const char *s) {
    return str_is(text_str(t), s);
}
static inline bool text_trusted_at(const struct text *t, size_t i) {
    return t->trust ? t->trust[i] != 0 : t->all;
}
/* What was computed and came out empty may have been data. Only a render's own texts have a trust
 * array, so what is noted in them is not shared between threads. */
static inline bool text_all_trusted(const struct text *t) {
    if (!t->trust) return t->all;
    if (!t->whole)
        ((struct text *)(uintptr_t)t)->whole = t->n && !memchr(t->trust, 0, t->n) ? 1 : 2;
    return t->whole == 1;
}
/* A part of `t` with its provenance. */
static inline struct text text_slice(const struct text *t, size_t from, size_t n) {
    return (struct text){t->p + from, t->trust ? t->trust + from : NULL, n, t->all, 0};
}
/* n bytes of one provenance. */
static inline struct text text_of(const char *p, size_t n, bool trusted) {
    return (struct text){p, NULL, n, trusted, 0};
}
/* Whether what is computed from v counts as data. */
static inline bool value_is_data(struct value v) {
    return v.kind == VALUE_STRING ? !text_all_trusted(v.text) : v.data;
}

#endif
