/* SPDX-License-Identifier: Apache-2.0
 * tok_normal.c: the normalizers that rewrite bytes; see tok_normal.h. */
#include "text/tok_normal.h"

static void add(struct normal_text *out, struct str text, const uint8_t *trust) {
    buf_add(&out->text, text.p, text.n);
    buf_add(&out->trust, trust, text.n);
}

static void add_same(struct normal_text *out, struct str text, uint8_t trust) {
    buf_add(&out->text, text.p, text.n);
    for (size_t i = 0; i < text.n; i++) buf_putc(&out->trust, (char)trust);
}

void normal_prepend(const struct normal_step *step, struct str in, const uint8_t *trust, bool start,
                    struct normal_text *out) {
    (void)start;
    if (in.n) add_same(out, step->to, trust[0]);
    add(out, in, trust);
}

void normal_replace(const struct normal_step *step, struct str in, const uint8_t *trust, bool start,
                    struct normal_text *out) {
    (void)start;
    size_t done = 0, at = 0;
    while (at + step->from.n <= in.n) {
        if (memcmp(in.p + at, step->from.p, step->from.n) != 0) {
            at++;
            continue;
        }
        uint8_t all = 1;
        for (size_t i = 0; i < step->from.n; i++) all &= trust[at + i] != 0;
        add(out, (struct str){in.p + done, at - done}, trust + done);
        add_same(out, step->to, all);
        done = at += step->from.n;
    }
    add(out, (struct str){in.p + done, in.n - done}, trust + done);
}

void normal_spaces(const struct normal_step *step, struct str in, const uint8_t *trust, bool start,
                   struct normal_text *out) {
    (void)step, (void)start;
    size_t from = out->text.n, held = SIZE_MAX; /* a space that waits for what follows */
    for (size_t at = 0; at < in.n; at++) {
        if (in.p[at] == ' ') {
            if (out->text.n > from) held = at;
            continue;
        }
        if (held != SIZE_MAX) {
            buf_putc(&out->text, ' ');
            buf_putc(&out->trust, (char)trust[held]);
            held = SIZE_MAX;
        }
        buf_putc(&out->text, in.p[at]);
        buf_putc(&out->trust, (char)trust[at]);
    }
}
