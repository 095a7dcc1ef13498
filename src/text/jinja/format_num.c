/* SPDX-License-Identifier: Apache-2.0
 *
 * format_num.c: numbers laid out by a format. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "text/jinja/char.h"
#include "text/jinja/format.h"

/* Digits with zeros in front up to `least` of them and a separator between every three of base 10,
 * every four of others; returns the length. */
static size_t group_whole(const char *digit, size_t n, bool capital, size_t least, size_t every,
                          char group, char *out) {
    size_t all = n < least ? least : n, w = 0;
    for (size_t i = 0; i < all; i++) {
        char c = i + n < all ? '0' : digit[i + n - all];
        if (group && i && (all - i) % every == 0) out[w++] = group;
        out[w++] = capital && c >= 'a' ? (char)(c - 'a' + 'A') : c;
    }
    return w;
}

/* Zeros in front that are grouped with the digits. */
static bool zeros(const struct layout *f) { return f->group && f->fill == '0' && f->align == '='; }

/* The fewest digits that with separators fill the width beside `other` bytes: no separator comes
 * first. */
static size_t zeros_for(const struct layout *f, size_t other, size_t every) {
    size_t width = f->width > (int64_t)other ? (size_t)f->width - other : 0, digits = 0;
    while (digits + (digits ? (digits - 1) / every : 0) < width) digits++;
    return digits;
}

bool format_whole(struct run *r, struct value v, const struct layout *f) {
    char type = f->type ? f->type : 'd';
    unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    const char *digit;
    size_t digits, n = 0, least = f->precision > 0 ? (size_t)f->precision : 0;
    if (!whole_digits(r, v, base, &digit, &digits)) return false;
    char *out = jinja_alloc(r, (digits + least + (size_t)f->width) * 2 + 8, 1);
    if (!out) return false;
    if (whole_negative(v)) out[n++] = '-';
    else if (f->sign) out[n++] = f->sign;
    if (f->alternate && base != 10) {
        out[n++] = '0';
        out[n++] = type;
    }
    size_t head = n, every = base == 10 ? 3 : 4;
    if (zeros(f)) least = zeros_for(f, head, every);
    n += group_whole(digit, digits, type == 'X', least, every, f->group, out + n);
    struct text body = text_of(out, n, !v.data);
    return format_padded(r, &body, head, f->align ? f->align : '>', f);
}

/* Separators every three digits before the point, and zeros if they fill the width. */
static size_t group_float(const struct layout *f, const char *text, size_t n, size_t head,
                          bool percent, char *out) {
    size_t end = head;
    while (end < n && text[end] >= '0' && text[end] <= '9') end++;
    size_t least = zeros(f) ? zeros_for(f, head + n - end + percent, 3) : 0;
    memcpy(out, text, head);
    size_t w = head + group_whole(text + head, end - head, false, least, 3, f->group, out + head);
    memcpy(out + w, text + end, n - end);
    return w + n - end;
}

/* A precision without a type: as %g, but with at least one digit behind the point. */
static size_t general(double v, int precision, char *out, size_t size) {
    if (!isfinite(v)) return (size_t)snprintf(out, size, "%g", v);
    if (precision < 1) precision = 1;
    size_t n;
    snprintf(out, size, "%.*e", precision - 1, v);
    char *e = strchr(out, 'e');
    int exponent = atoi(e + 1);
    bool plain = exponent >= -4 && exponent < precision - 1;
    char tail[8] = "";
    if (plain) n = (size_t)snprintf(out, size, "%.*f", precision - 1 - exponent, v);
    else snprintf(tail, sizeof tail, "%s", e), n = (size_t)(e - out);
    if (memchr(out, '.', n)) {
        while (out[n - 1] == '0') n--;
        if (out[n - 1] == '.') n -= !plain;
        if (out[n - 1] == '.') out[n++] = '0';
    }
    return n + (size_t)snprintf(out + n, size - n, "%s", tail);
}

bool format_float(struct run *r, struct value number, const struct layout *f) {
    double v;
    bool data = number.data;
    if (!whole_or_float(r, number, &v)) return false;
    char type = f->type ? f->type : 'g';
    bool percent = type == '%';
    int64_t precision = f->precision < 0 ? 6 : f->precision;
    if (precision > MOST_WIDTH) return jinja_fail(r, "precision too large");
    if (percent) v *= 100, type = 'f';
    size_t size = (size_t)precision + 900, n = 0;
    char *out = jinja_alloc(r, size, 1), format[16];
    if (!out) return false;
    if (!signbit(v) && f->sign) out[n++] = f->sign;
    bool upper = type == 'E' || type == 'F' || type == 'G';
    if (!f->type && f->precision < 0) {
        char text[FLOAT_TEXT];
        n += (size_t)snprintf(out + n, size - n, "%s", jinja_float_text(v, text));
    } else if (!f->type) {
        n += general(v, (int)precision, out + n, size - n);
    } else if (isnan(v)) {
        n += (size_t)snprintf(out + n, size - n, "%s", upper ? "NAN" : "nan");
    } else {
        snprintf(format, sizeof format, "%%%s.*%c", f->alternate ? "#" : "", type);
        n += (size_t)snprintf(out + n, size - n, format, (int)precision, v);
    }
    size_t head = n && (out[0] == '-' || out[0] == '+' || out[0] == ' ');
    if (f->group) {
        char *grouped = jinja_alloc(r, (n + (size_t)f->width) * 2 + 8, 1);
        if (!grouped) return false;
        n = group_float(f, out, n, head, percent, grouped);
        out = grouped;
    }
    if (percent) out[n++] = '%';
    struct text body = text_of(out, n, !data);
    return format_padded(r, &body, head, f->align ? f->align : '>', f);
}
