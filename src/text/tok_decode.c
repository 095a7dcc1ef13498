/* SPDX-License-Identifier: Apache-2.0
 * tok_decode.c: ids to text, whole and as a stream; the byte-level alphabet. */
#include "base/utf8.h"
#include "text/tok_impl.h"

/* Printable Latin-1 stands for itself; the other 68 bytes, in order, are U+0100 and on. */
static bool itself(uint32_t c) {
    return (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xac) || (c >= 0xae && c <= 0xff);
}

uint32_t tok_byte_char(uint8_t byte) {
    if (itself(byte)) return byte;
    if (byte <= 0x20) return 0x100u + byte;
    if (byte <= 0xa0) return 0x121u + byte - 0x7f;
    return 0x143;
}

int tok_char_byte(uint32_t code) {
    if (code < 0x100) return itself(code) ? (int)code : -1;
    if (code <= 0x120) return (int)code - 0x100;
    if (code <= 0x142) return (int)code - 0x121 + 0x7f;
    return code == 0x143 ? 0xad : -1;
}

/* "<0x0A>" to its byte, -1 if it is none. */
static int fallback_byte(struct str text) {
    static const char digits[] = "0123456789ABCDEF";
    if (text.n != 6 || !str_starts(text, "<0x") || text.p[5] != '>') return -1;
    const char *high = memchr(digits, text.p[3], 16), *low = memchr(digits, text.p[4], 16);
    return high && low ? (int)((high - digits) << 4 | (low - digits)) : -1;
}

void tok_find_bytes(struct tok *tok) {
    for (uint32_t b = 0; b < 256; b++) {
        char text[8];
        size_t n;
        if (tok->byte_level) {
            n = utf8_encode(tok_byte_char((uint8_t)b), text);
        } else {
            static const char digits[] = "0123456789ABCDEF";
            memcpy(text, "<0x00>", n = 6);
            text[3] = digits[b >> 4];
            text[4] = digits[b & 15];
        }
        tok->byte_id[b] = vocab_find_data(&tok->vocab, (struct str){text, n});
    }
}

void tok_piece(const struct tok *tok, int32_t id, bool special, bool first, struct buf *out) {
    if (id < 0 || (uint32_t)id >= tok->vocab.n) return;
    struct str text = tok->vocab.text[id];
    size_t start = out->n;
    switch ((enum tok_kind)tok->vocab.kind[id]) {
        case TOK_UNKNOWN:
        case TOK_CONTROL:
            if (special) buf_add(out, text.p, text.n);
            return;
        case TOK_BYTE: {
            int byte = fallback_byte(text);
            if (byte >= 0) buf_putc(out, (char)byte);
            break;
        }
        case TOK_ADDED:
            if (tok->byte_level)
                buf_add(out, text.p, text.n);
            else
                tok->model->decode(tok, text, out);
            break;
        case TOK_NORMAL: tok->model->decode(tok, text, out); break;
        case TOK_NONE:
        case TOK_UNUSED:
        case TOK_KINDS: break;
    }
    if (first && tok->strip_space && out->n > start && out->p[start] == ' ') {
        memmove(out->p + start, out->p + start + 1, out->n - start); /* the NUL too */
        out->n--;
    }
}

void tok_stream_init(struct tok_stream *s, const struct tok *tok, bool special) {
    *s = (struct tok_stream){.tok = tok, .special = special};
}

void tok_stream_add(struct tok_stream *s, int32_t id, struct buf *out) {
    size_t had = s->held.n;
    tok_piece(s->tok, id, s->special, !s->started, &s->held);
    if (s->held.n > had || (!s->started && !tok_is_control(s->tok, id))) s->started = true;
    size_t whole = utf8_whole(s->held.p ? s->held.p : "", s->held.n);
    if (whole == 0) return;
    buf_add(out, s->held.p, whole);
    memmove(s->held.p, s->held.p + whole, s->held.n - whole);
    s->held.n -= whole;
}

void tok_stream_end(struct tok_stream *s, struct buf *out) {
    buf_add(out, s->held.p, s->held.n);
    buf_clear(&s->held);
}

void tok_stream_free(struct tok_stream *s) { buf_free(&s->held); }
