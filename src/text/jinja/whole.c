/* SPDX-License-Identifier: Apache-2.0
 *
 * whole.c: see whole.h. Operations that fit into 64 bits are done there; the others on limbs, with
 * the schoolbook algorithms (division: Knuth, The Art of Computer Programming 2, 4.3.1 D): numbers
 * are short. Work is counted in steps by the product of the lengths. */
#include "text/jinja/whole.h"

#include <float.h>
#include <math.h>

#include "text/jinja/run.h"

enum { LIMBS = WHOLE_BITS / 32 };

/* A magnitude with its sign; of a small number the limbs are in `own`. */
struct number {
    bool negative;
    size_t n;
    const uint32_t *limb;
    uint32_t own[2];
};

/* number->limb may point into *number: it must not be copied. */
static void view(struct value v, struct number *number) {
    if (v.kind == VALUE_BIG) {
        *number = (struct number){v.big->negative, v.big->n, v.big->limb, {0}};
        return;
    }
    int64_t i = value_as_int(v);
    uint64_t magnitude = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    *number = (struct number){.negative = i < 0};
    number->own[0] = (uint32_t)magnitude;
    number->own[1] = (uint32_t)(magnitude >> 32);
    number->n = number->own[1] ? 2 : number->own[0] != 0;
    number->limb = number->own;
}

static size_t bits_of(const uint32_t *limb, size_t n) {
    return n ? n * 32 - (size_t)__builtin_clz(limb[n - 1]) : 0;
}

static bool too_large(struct run *r) {
    return jinja_fail_status(r, OB_ERR_LIMIT, "an integer of more than %d bits", WHOLE_BITS);
}

/* Room for a result of n limbs, zeroed. */
static struct big *room(struct run *r, size_t n) {
    if (n > LIMBS + 8 && !too_large(r)) return NULL; /* some room for scaled quotients */
    struct big *big = jinja_alloc(r, 1, sizeof *big + (n ? n : 1) * sizeof big->limb[0]);
    if (big) big->n = n;
    return big;
}

/* The result in its smaller form. */
static bool give(struct run *r, struct big *big, struct value *out) {
    while (big->n && !big->limb[big->n - 1]) big->n--;
    if (big->n > LIMBS) return too_large(r);
    uint64_t low = big->n ? big->limb[0] : 0;
    if (big->n > 1) low |= (uint64_t)big->limb[1] << 32;
    bool small = big->n <= 2 && low <= (uint64_t)INT64_MAX + big->negative;
    *out = small ? value_int((int64_t)(big->negative ? 0 - low : low), false)
                 : value_of(VALUE_BIG);
    if (!small) out->big = big;
    return true;
}

/* ---- order ---- */

static int order_limbs(const uint32_t *a, size_t na, const uint32_t *b, size_t nb) {
    if (na != nb) return na < nb ? -1 : 1;
    for (size_t i = na; i-- > 0;)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

bool whole_negative(struct value v) {
    return v.kind == VALUE_BIG ? v.big->negative : value_as_int(v) < 0;
}

bool whole_odd(struct value v) {
    return v.kind == VALUE_BIG ? v.big->limb[0] & 1 : value_as_int(v) & 1;
}

int whole_order(struct value a, struct value b) {
    struct number x, y;
    view(a, &x);
    view(b, &y);
    if (x.negative != y.negative) return x.negative ? -1 : 1;
    int order = order_limbs(x.limb, x.n, y.limb, y.n);
    return x.negative ? -order : order;
}

/* The limbs of |f| without its fraction; returns how many. A double has at most 1024 bits. */
enum { FLOAT_LIMBS = 33 };
static size_t limbs_of(double f, uint32_t limb[FLOAT_LIMBS]) {
    int exponent;
    double mantissa = frexp(fabs(trunc(f)), &exponent);
    memset(limb, 0, FLOAT_LIMBS * sizeof *limb);
    if (mantissa == 0) return 0;
    uint64_t digits = (uint64_t)ldexp(mantissa, 53);
    int shift = exponent - 53;
    if (shift < 0) digits >>= -shift, shift = 0;
    size_t at = (size_t)shift / 32;
    unsigned by = (unsigned)shift % 32;
    unsigned __int128 wide = (unsigned __int128)digits << by;
    for (size_t i = 0; i < 3 && at + i < FLOAT_LIMBS; i++)
        limb[at + i] = (uint32_t)(wide >> i * 32);
    size_t n = FLOAT_LIMBS;
    while (n && !limb[n - 1]) n--;
    return n;
}

int whole_order_float(struct value a, double f) {
    struct number x;
    uint32_t limb[FLOAT_LIMBS];
    view(a, &x);
    if (isinf(f)) return f > 0 ? -1 : 1;
    bool negative = f < 0;
    if (x.n && x.negative != negative) return x.negative ? -1 : 1;
    int order = order_limbs(x.limb, x.n, limb, limbs_of(f, limb));
    if (!order && f != trunc(f)) order = -1; /* |a| is below |f| by its fraction */
    return negative ? -order : order;
}

uint64_t whole_hash(const struct big *big) {
    uint64_t h = big->negative;
    for (size_t i = 0; i < big->n; i++) h = (h ^ big->limb[i]) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 31;
}

/* ---- sums and products ---- */

static bool add(struct run *r, const struct number *a, const struct number *b, struct value *out) {
    if (a->n < b->n) {
        const struct number *swap = a;
        a = b;
        b = swap;
    }
    struct big *sum = room(r, a->n + 1);
    if (!sum) return false;
    uint64_t carry = 0;
    for (size_t i = 0; i < a->n; i++) {
        carry += (uint64_t)a->limb[i] + (i < b->n ? b->limb[i] : 0);
        sum->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    sum->limb[a->n] = (uint32_t)carry;
    sum->negative = a->negative;
    return give(r, sum, out);
}

/* |a| - |b| with the sign of a; the larger one is put first. */
static bool subtract(struct run *r, const struct number *a, const struct number *b,
                     struct value *out) {
    bool swap = order_limbs(a->limb, a->n, b->limb, b->n) < 0;
    const struct number *large = swap ? b : a, *small = swap ? a : b;
    struct big *rest = room(r, large->n);
    if (!rest) return false;
    int64_t borrow = 0;
    for (size_t i = 0; i < large->n; i++) {
        borrow += (int64_t)large->limb[i] - (i < small->n ? small->limb[i] : 0);
        rest->limb[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    rest->negative = a->negative != swap;
    return give(r, rest, out);
}

static bool multiply(struct run *r, const struct number *a, const struct number *b,
                     struct value *out) {
    struct big *product = room(r, a->n + b->n);
    if (!product || !jinja_steps(r, a->n * b->n / 64)) return false;
    for (size_t i = 0; i < a->n; i++) {
        uint64_t carry = 0;
        for (size_t k = 0; k < b->n; k++) {
            carry += (uint64_t)a->limb[i] * b->limb[k] + product->limb[i + k];
            product->limb[i + k] = (uint32_t)carry;
            carry >>= 32;
        }
        product->limb[i + b->n] = (uint32_t)carry;
    }
    product->negative = a->negative != b->negative;
    return give(r, product, out);
}

/* ---- quotients ---- */

/* limb[0, n) times 2^by into out[0, n], by < 32. */
static void shift_left(const uint32_t *limb, size_t n, unsigned by, uint32_t *out) {
    uint64_t carry = 0;
    for (size_t i = 0; i < n; i++) {
        carry |= (uint64_t)limb[i] << by;
        out[i] = (uint32_t)carry;
        carry >>= 32;
    }
    out[n] = (uint32_t)carry;
}

static uint32_t divide_short(const uint32_t *limb, size_t n, uint32_t by, uint32_t *quotient) {
    uint64_t rest = 0;
    for (size_t i = n; i-- > 0;) {
        rest = rest << 32 | limb[i];
        quotient[i] = (uint32_t)(rest / by);
        rest %= by;
    }
    return (uint32_t)rest;
}

/* One digit of the quotient: u[0, n] -= q * v[0, n), where v's top bit is set. */
static uint32_t divide_digit(uint32_t *u, const uint32_t *v, size_t n) {
    uint64_t top = (uint64_t)u[n] << 32 | u[n - 1], q = top / v[n - 1], rest = top % v[n - 1];
    while (q >> 32 || q * v[n - 2] > (rest << 32 | u[n - 2])) {
        q--;
        rest += v[n - 1];
        if (rest >> 32) break;
    }
    int64_t borrow = 0;
    uint64_t carry = 0;
    for (size_t i = 0; i < n; i++) {
        carry += q * v[i];
        borrow += (int64_t)u[i] - (uint32_t)carry;
        u[i] = (uint32_t)borrow;
        borrow >>= 32;
        carry >>= 32;
    }
    borrow += (int64_t)u[n] - (int64_t)carry;
    u[n] = (uint32_t)borrow;
    if (borrow >= 0) return (uint32_t)q;
    carry = 0; /* one too many: add v back */
    for (size_t i = 0; i < n; i++) {
        carry += (uint64_t)u[i] + v[i];
        u[i] = (uint32_t)carry;
        carry >>= 32;
    }
    u[n] += (uint32_t)carry;
    return (uint32_t)q - 1;
}

/* |a| / |b| towards zero and what is left, b not 0. */
static bool divide(struct run *r, const struct number *a, const struct number *b,
                   struct big **quotient, struct big **rest) {
    *quotient = room(r, a->n >= b->n ? a->n - b->n + 1 : 0);
    *rest = room(r, a->n + 1);
    struct big *divisor = room(r, b->n + 1);
    if (!*quotient || !*rest || !divisor || !jinja_steps(r, a->n * b->n / 64)) return false;
    if (a->n < b->n || b->n == 1) {
        if (a->n) memcpy((*rest)->limb, a->limb, a->n * sizeof *a->limb);
        if (a->n < b->n) return true;
        uint32_t left = divide_short(a->limb, a->n, b->limb[0], (*quotient)->limb);
        (*rest)->n = 1;
        (*rest)->limb[0] = left;
        return true;
    }
    unsigned by = (unsigned)__builtin_clz(b->limb[b->n - 1]);
    uint32_t *u = (*rest)->limb;
    shift_left(b->limb, b->n, by, divisor->limb);
    shift_left(a->limb, a->n, by, u);
    for (size_t i = a->n - b->n + 1; i-- > 0;)
        (*quotient)->limb[i] = divide_digit(u + i, divisor->limb, b->n);
    for (size_t i = 0; i < b->n; i++)
        u[i] = u[i] >> by | (by && i + 1 < b->n ? u[i + 1] << (32 - by) : 0);
    (*rest)->n = b->n;
    return true;
}

/* Rounded down, and the remainder with the sign of b, as Python has them. */
static bool floor_divide(struct run *r, enum node_op op, struct value a, struct value b,
                         struct value *out) {
    struct number x, y;
    struct big *quotient, *left;
    struct value rest;
    view(a, &x);
    view(b, &y);
    if (!y.n) return jinja_fail(r, "integer division or modulo by zero");
    if (!divide(r, &x, &y, &quotient, &left)) return false;
    quotient->negative = x.negative != y.negative;
    left->negative = x.negative;
    if (!give(r, left, &rest)) return false;
    bool down = x.negative != y.negative && whole_order(rest, value_int(0, false)) != 0;
    if (op == OP_MOD) return down ? whole_binary(r, OP_ADD, rest, b, out) : (*out = rest, true);
    if (!give(r, quotient, out)) return false;
    return !down || whole_binary(r, OP_SUB, *out, value_int(1, false), out);
}

static bool power(struct run *r, struct value base, struct value exponent, struct value *out) {
    struct number x;
    view(base, &x);
    *out = value_int(1, false);
    if (x.n == 1 && x.limb[0] == 1) { /* 1, -1 to any power */
        if (x.negative && whole_odd(exponent)) out->i = -1;
        return true;
    }
    if (exponent.kind == VALUE_BIG) return x.n ? too_large(r) : (*out = value_int(0, false), true);
    uint64_t e = (uint64_t)value_as_int(exponent);
    if (x.n && e > WHOLE_BITS) return too_large(r);
    for (;; e >>= 1) {
        if (e & 1 && !whole_binary(r, OP_MUL, *out, base, out)) return false;
        if (e < 2) return true;
        if (!whole_binary(r, OP_MUL, base, base, &base)) return false;
    }
}

/* What fits into 64 bits; false: it does not. */
static bool small_binary(enum node_op op, int64_t a, int64_t b, int64_t *out) {
    switch (op) {
    case OP_ADD: return !__builtin_add_overflow(a, b, out);
    case OP_SUB: return !__builtin_sub_overflow(a, b, out);
    case OP_MUL: return !__builtin_mul_overflow(a, b, out);
    default: break;
    }
    if (op == OP_POW || b == 0 || b == -1) return false;
    int64_t quotient = a / b, rest = a % b;
    bool down = rest && (rest < 0) != (b < 0);
    *out = op == OP_MOD ? rest + (down ? b : 0) : quotient - down;
    return true;
}

bool whole_binary(struct run *r, enum node_op op, struct value a, struct value b,
                  struct value *out) {
    int64_t small;
    if (value_is_int(a) && value_is_int(b) &&
        small_binary(op, value_as_int(a), value_as_int(b), &small))
        return *out = value_int(small, false), true;
    struct number x, y;
    view(a, &x);
    view(b, &y);
    switch (op) {
    case OP_ADD: case OP_SUB:
        if (op == OP_SUB) y.negative = !y.negative;
        return x.negative == y.negative ? add(r, &x, &y, out) : subtract(r, &x, &y, out);
    case OP_MUL: return multiply(r, &x, &y, out);
    case OP_POW: return power(r, a, b, out);
    default: return floor_divide(r, op, a, b, out);
    }
}

/* ---- floats ---- */

/* The nearest double of the limbs times 2^scale; below the top 64 bits only whether there is
 * anything matters. */
static double nearest(const uint32_t *limb, size_t n, int scale) {
    size_t bits = bits_of(limb, n), drop = bits > 64 ? bits - 64 : 0;
    uint64_t top = 0;
    bool more = false;
    for (size_t i = 0; i < n; i++) {
        if ((i + 1) * 32 <= drop) more = more || limb[i];
        else if (i * 32 < drop) {
            unsigned by = (unsigned)(drop - i * 32);
            more = more || (limb[i] & (((uint32_t)1 << by) - 1));
            top |= limb[i] >> by;
        } else {
            top |= (uint64_t)limb[i] << (i * 32 - drop);
        }
    }
    return ldexp((double)(top | more), (int)drop + scale);
}

bool whole_float(struct run *r, struct value a, double *out) {
    struct number x;
    view(a, &x);
    double f = nearest(x.limb, x.n, 0);
    if (isinf(f)) return jinja_fail(r, "int too large to convert to float");
    *out = x.negative ? -f : f;
    return true;
}

bool whole_or_float(struct run *r, struct value number, double *out) {
    if (number.kind != VALUE_FLOAT) return whole_float(r, number, out);
    *out = number.f;
    return true;
}

/* The number shifted left. */
static bool scaled(struct run *r, struct number *number, size_t by) {
    struct big *big = room(r, number->n + by / 32 + 1);
    if (!big) return false;
    shift_left(number->limb, number->n, (unsigned)(by % 32), big->limb + by / 32);
    while (big->n && !big->limb[big->n - 1]) big->n--;
    number->n = big->n;
    number->limb = big->limb;
    return true;
}

bool whole_divide(struct run *r, struct value a, struct value b, double *out) {
    enum { BITS = 66 }; /* of the quotient at least, so that it rounds right */
    struct number x, y;
    view(a, &x);
    view(b, &y);
    if (!y.n) return jinja_fail(r, "division by zero");
    size_t nx = bits_of(x.limb, x.n), ny = bits_of(y.limb, y.n);
    bool negative = x.negative != y.negative;
    double f;
    if (nx <= DBL_MANT_DIG && ny <= DBL_MANT_DIG) {
        f = nearest(x.limb, x.n, 0) / nearest(y.limb, y.n, 0);
    } else {
        struct big *quotient, *rest;
        int scale = (int)nx - (int)ny - BITS;
        if (!scaled(r, scale < 0 ? &x : &y, (size_t)(scale < 0 ? -scale : scale)) ||
            !divide(r, &x, &y, &quotient, &rest))
            return false;
        for (size_t i = 0; i < rest->n; i++) quotient->limb[0] |= rest->limb[i] != 0;
        while (quotient->n && !quotient->limb[quotient->n - 1]) quotient->n--;
        f = nearest(quotient->limb, quotient->n, scale);
        if (isinf(f)) return jinja_fail(r, "integer division result too large for a float");
    }
    *out = negative ? -f : f;
    return true;
}

bool whole_of_float(struct run *r, double f, struct value *out) {
    uint32_t limb[FLOAT_LIMBS];
    size_t n = limbs_of(f, limb);
    struct big *big = room(r, n);
    if (!big) return false;
    memcpy(big->limb, limb, n * sizeof *limb);
    big->negative = f < 0;
    return give(r, big, out);
}

/* ---- text ---- */

bool whole_parse(struct run *r, const char *digit, size_t n, unsigned base, bool negative,
                 struct value *out) {
    while (n && *digit == '0') digit++, n--;
    bool power_of_two = (base & (base - 1)) == 0;
    if (n > WHOLE_DIGITS && !power_of_two)
        return jinja_fail(r, "Exceeds the limit (%d digits) for integer string conversion: value "
                             "has %zu digits; use sys.set_int_max_str_digits() to increase the "
                             "limit", WHOLE_DIGITS, n);
    if (n > WHOLE_BITS) return too_large(r);
    struct big *big = room(r, n * 6 / 32 + 1); /* 36 is below 2^6 */
    if (!big || !jinja_steps(r, n * big->n / 64)) return false;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        char c = digit[i];
        uint64_t carry = (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
        for (size_t k = 0; k < used; k++) {
            carry += (uint64_t)big->limb[k] * base;
            big->limb[k] = (uint32_t)carry;
            carry >>= 32;
        }
        if (carry) big->limb[used++] = (uint32_t)carry;
    }
    big->n = used;
    big->negative = negative;
    return give(r, big, out);
}

bool whole_digits(struct run *r, struct value a, unsigned base, const char **out, size_t *n) {
    struct number x;
    view(a, &x);
    size_t size = x.n * 32 + 1, left = x.n; /* base 2 has the most digits */
    char *text = jinja_alloc(r, size, 1), *p = text ? text + size : NULL;
    uint32_t *limb = jinja_alloc(r, x.n + 1, sizeof *limb);
    if (!text || !limb || !jinja_steps(r, x.n * x.n / 16)) return false;
    if (x.n) memcpy(limb, x.limb, x.n * sizeof *limb);
    do { /* several digits a division */
        uint32_t by = base;
        unsigned count = 1;
        for (; by <= UINT32_MAX / base; count++) by *= base;
        uint32_t some = divide_short(limb, left, by, limb);
        while (left && !limb[left - 1]) left--;
        for (; count && (left || some || p == text + size); count--, some /= base)
            *--p = "0123456789abcdef"[some % base];
    } while (left);
    *out = p;
    *n = (size_t)(text + size - p);
    if (base == 10 && *n > WHOLE_DIGITS)
        return jinja_fail(r, "Exceeds the limit (%d digits) for integer string conversion; use "
                             "sys.set_int_max_str_digits() to increase the limit", WHOLE_DIGITS);
    return true;
}
