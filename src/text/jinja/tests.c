/* SPDX-License-Identifier: Apache-2.0
 *
 * tests.c: what may follow "is". */
#include <math.h>

#include "text/jinja/run.h"

static bool give(const struct call *call, bool result, struct value *out) {
    *out = value_bool(result, value_is_data(call->self));
    return true;
}

#define KIND_TEST(name, condition)                                                      \
    bool name(struct run *r, const struct call *call, struct value *out) {              \
        (void)r;                                                                        \
        struct value v = call->self;                                                    \
        return give(call, condition, out);                                              \
    }
KIND_TEST(test_boolean, v.kind == VALUE_BOOL)
KIND_TEST(test_callable, v.kind == VALUE_MACRO || v.kind == VALUE_FUNCTION ||
                             v.kind == VALUE_METHOD || v.kind == VALUE_LOOP ||
                             v.kind == VALUE_UNDEFINED)
KIND_TEST(test_defined, v.kind != VALUE_UNDEFINED)
KIND_TEST(test_undefined, v.kind == VALUE_UNDEFINED)
KIND_TEST(test_escaped, v.kind == VALUE_STRING && v.markup)
KIND_TEST(test_true, v.kind == VALUE_BOOL && v.b)
KIND_TEST(test_false, v.kind == VALUE_BOOL && !v.b)
KIND_TEST(test_float, v.kind == VALUE_FLOAT)
KIND_TEST(test_integer, v.kind == VALUE_INT || v.kind == VALUE_BIG)
KIND_TEST(test_number, value_is_number(v))
KIND_TEST(test_iterable, jinja_iterable(v))
KIND_TEST(test_mapping, v.kind == VALUE_DICT)
KIND_TEST(test_none, v.kind == VALUE_NONE)
KIND_TEST(test_sequence, v.kind == VALUE_STRING || value_is_sequence(v) || v.kind == VALUE_DICT ||
                             v.kind == VALUE_RANGE || v.kind == VALUE_UNDEFINED)
KIND_TEST(test_string, v.kind == VALUE_STRING)
KIND_TEST(test_filter, v.kind == VALUE_STRING && jinja_filter_find(text_str(v.text)))
KIND_TEST(test_test, v.kind == VALUE_STRING && jinja_test_find(text_str(v.text)))

static bool compare(struct run *r, const struct call *call, enum node_op op, struct value *out) {
    bool result;
    return jinja_compare(r, op, call->self, call->arg[0], &result) && give(call, result, out);
}

bool test_eq(struct run *r, const struct call *call, struct value *out) {
    return compare(r, call, OP_EQ, out);
}
bool test_ne(struct run *r, const struct call *call, struct value *out) {
    return compare(r, call, OP_NE, out);
}
bool test_lt(struct run *r, const struct call *call, struct value *out) {
    return compare(r, call, OP_LT, out);
}
bool test_le(struct run *r, const struct call *call, struct value *out) {
    return compare(r, call, OP_LE, out);
}
bool test_gt(struct run *r, const struct call *call, struct value *out) {
    return compare(r, call, OP_GT, out);
}
bool test_ge(struct run *r, const struct call *call, struct value *out) {
    return compare(r, call, OP_GE, out);
}
bool test_in(struct run *r, const struct call *call, struct value *out) {
    return compare(r, call, OP_IN, out);
}

/* value % divisor == rest, whatever the value is. */
static bool modulo(struct run *r, const struct call *call, struct value divisor, int64_t rest,
                   struct value *out) {
    struct value left;
    bool result;
    return jinja_binary(r, OP_MOD, call->self, divisor, &left) &&
           jinja_equal(r, left, value_int(rest, false), &result) && give(call, result, out);
}

bool test_odd(struct run *r, const struct call *call, struct value *out) {
    return modulo(r, call, value_int(2, false), 1, out);
}
bool test_even(struct run *r, const struct call *call, struct value *out) {
    return modulo(r, call, value_int(2, false), 0, out);
}
bool test_divisibleby(struct run *r, const struct call *call, struct value *out) {
    return modulo(r, call, call->arg[0], 0, out);
}

/* Identity. Small integers and equal strings are not told apart from the same object. */
bool test_sameas(struct run *r, const struct call *call, struct value *out) {
    struct value a = call->self, b = call->arg[0];
    bool same = a.kind == b.kind;
    if (same && (a.kind == VALUE_STRING || value_is_number(a))) {
        if (!jinja_equal(r, a, b, &same)) return false;
    } else if (same && a.kind != VALUE_NONE) {
        same = a.list == b.list;
    }
    return give(call, same, out);
}
