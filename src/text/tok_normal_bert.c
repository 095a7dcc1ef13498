/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_normal_bert.c: the four parts of BERT's normalizer, each character by character; see
 * tok_normal.h. Malformed bytes are what the reference's text has in their place, U+FFFD. */
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/bert.h"
#include "text/tok_normal.h"
#include "text/unicode.h"

enum { REPLACEMENT = 0xfffd };

static void put(struct normal_text *out, uint32_t code, uint8_t trust) {
    char bytes[4];
    size_t n = utf8_encode(code, bytes);
    buf_add(&out->text, bytes, n);
    for (size_t i = 0; i < n; i++) buf_putc(&out->trust, (char)trust);
}

/* Calls `each` for the characters of a text. */
static void by_character(struct str in, const uint8_t *trust, struct normal_text *out,
                         void (*each)(struct normal_text *out, uint32_t code, uint8_t trust)) {
    uint32_t code;
    for (size_t at = 0, n; at < in.n; at += n) {
        uint8_t all = 1;
        n = utf8_decode(in.p + at, in.n - at, &code);
        for (size_t i = 0; i < n; i++) all &= trust[at + i] != 0;
        each(out, code == UTF8_BAD ? REPLACEMENT : code, all);
    }
}

static void clean(struct normal_text *out, uint32_t code, uint8_t trust) {
    if (bert_is_removed(code)) return;
    put(out, unicode_is_space(unicode_of(code)) ? ' ' : code, trust);
}

static void chinese(struct normal_text *out, uint32_t code, uint8_t trust) {
    bool apart = bert_is_chinese(code);
    if (apart) put(out, ' ', trust);
    put(out, code, trust);
    if (apart) put(out, ' ', trust);
}

/* Marks that stay are not reordered: the reference's order differs for none that text has. */
static void strip(struct normal_text *out, uint32_t code, uint8_t trust) {
    utf8proc_int32_t part[8];
    int boundary = 0;
    utf8proc_ssize_t n = 0;
    if (!bert_is_whole(code))
        n = utf8proc_decompose_char((utf8proc_int32_t)code, part, 8, UTF8PROC_DECOMPOSE, &boundary);
    if (n < 1 || n > 8) part[0] = (utf8proc_int32_t)code, n = 1;
    for (utf8proc_ssize_t i = 0; i < n; i++)
        if (!bert_is_mark((uint32_t)part[i])) put(out, (uint32_t)part[i], trust);
}

static void lower(struct normal_text *out, uint32_t code, uint8_t trust) {
    put(out, code == 0x130 ? 'i' : bert_lower(code), trust);
    if (code == 0x130) put(out, 0x307, trust);
}

#define NORMAL(name, each)                                                                 \
    void name(const struct normal_step *step, struct str in, const uint8_t *trust,         \
              bool start, struct normal_text *out) {                                       \
        (void)step, (void)start;                                                           \
        by_character(in, trust, out, each);                                                \
    }
NORMAL(normal_bert_clean, clean)
NORMAL(normal_bert_chinese, chinese)
NORMAL(normal_bert_strip, strip)
NORMAL(normal_bert_lower, lower)
