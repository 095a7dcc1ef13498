/* SPDX-License-Identifier: Apache-2.0
 *
 * builtin.h: filters, tests, methods and global functions: one row each in filters.def, tests.def,
 * methods.def and globals.def, one C function each. A row names the parameters; the caller binds
 * positional and keyword arguments to them, so that functions find them by position. */
#ifndef TEXT_JINJA_BUILTIN_H
#define TEXT_JINJA_BUILTIN_H

#include "text/jinja/value.h"

struct run;

struct keyword {
    const struct text *name;
    struct value value;
};

enum { CALL_ARGS = 6 };

struct call {
    struct value self; /* the filtered or tested value, or the method's object */
    struct value arg[CALL_ARGS]; /* bound to the row's parameters; VALUE_MISSING: not given */
    const struct value *positional;
    size_t n;
    const struct keyword *keyword;
    size_t keywords;
};

typedef bool builtin_fn(struct run *r, const struct call *call, struct value *out);

struct builtin {
    const char *name; /* of methods with the type: "str_upper" */
    builtin_fn *fn;
    const char *params; /* names with spaces between; NULL: any arguments, unbound */
    uint8_t required;   /* how many of them must be given */
};

const struct builtin *jinja_filter_find(struct str name);
const struct builtin *jinja_test_find(struct str name);
const struct builtin *jinja_method_find(enum value_kind of, struct str name);
const struct builtin *jinja_global_find(struct str name);

/* What is left of `call` when its first positional argument is taken away. */
static inline struct call call_rest(const struct call *call, size_t taken) {
    struct call rest = {.positional = call->positional + taken, .n = call->n - taken,
                        .keyword = call->keyword, .keywords = call->keywords};
    return rest;
}

#define FILTER(name, function, params, required) builtin_fn function;
#define TEST(name, function, params, required) builtin_fn function;
#define METHOD(name, function, params, required) builtin_fn function;
#define GLOBAL(name, function, params, required) builtin_fn function;
#include "text/jinja/filters.def"
#include "text/jinja/globals.def"
#include "text/jinja/methods.def"
#include "text/jinja/tests.def"
#undef FILTER
#undef TEST
#undef METHOD
#undef GLOBAL

#endif
