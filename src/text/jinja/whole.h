/* SPDX-License-Identifier: Apache-2.0
 *
 * whole.h: Python's integers. What fits is a VALUE_INT (or a bool, which counts as one); beyond 64
 * bits a value is a VALUE_BIG, whose magnitude is an array of 32-bit limbs. Results are always in
 * the smaller form, so the kinds never overlap. Integers are bounded (WHOLE_BITS), and so is their
 * decimal text, as in Python. Failing functions return false with the run failed. */
#ifndef TEXT_JINJA_WHOLE_H
#define TEXT_JINJA_WHOLE_H

#include "text/jinja/ast.h"
#include "text/jinja/value.h"

struct run;

enum { WHOLE_BITS = 1 << 16, WHOLE_DIGITS = 4300 /* CPython's limit for decimal text */ };

/* Least significant limb first, none of them leading zeros. */
struct big {
    bool negative;
    size_t n;
    uint32_t limb[];
};

/* value_is_whole() holds for the arguments of all of these. */
bool whole_negative(struct value v);
bool whole_odd(struct value v);
int whole_order(struct value a, struct value b);              /* < 0, 0, > 0 */
int whole_order_float(struct value a, double f);              /* f is no NaN */
uint64_t whole_hash(const struct big *big);

/* +, -, *, //, % and **, the last for exponents from 0 on; the data flag is the caller's. */
bool whole_binary(struct run *r, enum node_op op, struct value a, struct value b,
                  struct value *out);
/* The nearest double of a and of a / b; fails where it is too large, and for b = 0. */
bool whole_float(struct run *r, struct value a, double *out);
bool whole_divide(struct run *r, struct value a, struct value b, double *out);
/* The nearest double of any number. */
bool whole_or_float(struct run *r, struct value number, double *out);
/* f without what is behind the point; f is finite. */
bool whole_of_float(struct run *r, double f, struct value *out);
/* n digits of a base from 2 to 36, already checked. */
bool whole_parse(struct run *r, const char *digit, size_t n, unsigned base, bool negative,
                 struct value *out);
/* The digits of |a|, in memory of the run. */
bool whole_digits(struct run *r, struct value a, unsigned base, const char **out, size_t *n);

#endif
