/* SPDX-License-Identifier: Apache-2.0
 * tok_decode.c: ids to text, whole and as a stream; the byte-level alphabet. */
#include "base/error.h"
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

/* ---- the steps of decoders ---- */

static bool starts(struct str text, struct str mark) {
    return text.n >= mark.n && (mark.n == 0 || memcmp(text.p, mark.p, mark.n) == 0);
}

void decode_bytes(const struct tok *tok, const struct decode_step *step, struct str text,
                  bool first, struct buf *out) {
    (void)tok, (void)step, (void)first;
    size_t start = out->n;
    uint32_t code;
    for (size_t at = 0; at < text.n;) {
        at += utf8_decode(text.p + at, text.n - at, &code);
        int byte = tok_char_byte(code);
        if (byte < 0) { /* not in the alphabet: the token stands for its own text */
            out->n = start;
            buf_add(out, text.p, text.n);
            return;
        }
        buf_putc(out, (char)byte);
    }
}

void decode_replace(const struct tok *tok, const struct decode_step *step, struct str text,
                    bool first, struct buf *out) {
    (void)tok, (void)first;
    for (size_t at = 0; at < text.n;) {
        if (starts((struct str){text.p + at, text.n - at}, step->from)) {
            buf_add(out, step->to.p, step->to.n);
            at += step->from.n;
        } else {
            buf_putc(out, text.p[at++]);
        }
    }
}

void decode_strip(const struct tok *tok, const struct decode_step *step, struct str text,
                  bool first, struct buf *out) {
    (void)tok, (void)first;
    size_t n = step->from.n;
    for (uint32_t i = 0; i < step->left && starts(text, step->from); i++) {
        text.p += n;
        text.n -= n;
    }
    for (uint32_t i = 0; i < step->right && text.n >= n; i++) {
        if (memcmp(text.p + text.n - n, step->from.p, n) != 0) break;
        text.n -= n;
    }
    buf_add(out, text.p, text.n);
}

/* What the reference takes for English that a space has been put into. */
static void clean_up(struct buf *text) {
    static const char *const pairs[][2] = {
        {" .", "."},     {" ?", "?"},          {" !", "!"},     {" ,", ","},
        {" ' ", "'"},    {" n't", "n't"},      {" 'm", "'m"},   {" do not", " don't"},
        {" 's", "'s"},   {" 've", "'ve"},      {" 're", "'re"}};
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct decode_step step = {.from = str_of(pairs[i][0]), .to = str_of(pairs[i][1])};
        buf_clear(&out);
        decode_replace(NULL, &step, (struct str){text->p ? text->p : "", text->n}, false, &out);
        struct buf swap = *text;
        *text = out;
        out = swap;
    }
    buf_free(&out);
}

/* A word gets a space before it. A GGUF marks words, a tokenizer.json (`from`) what goes on. */
void decode_words(const struct tok *tok, const struct decode_step *step, struct str text,
                  bool first, struct buf *out) {
    struct str mark = step->from.n ? step->from : tok->word_begins;
    bool marked = mark.n && starts(text, mark), begins = step->from.n ? !marked : marked;
    struct buf word = BUF_INIT;
    if (begins && !first) buf_putc(&word, ' ');
    if (marked && !(first && step->from.n)) {
        text.p += mark.n;
        text.n -= mark.n;
    }
    buf_add(&word, text.p, text.n);
    if (step->left) clean_up(&word);
    if (word.failed) out->failed = true;
    buf_add(out, word.p ? word.p : "", word.n);
    buf_free(&word);
}

void decode_suffix(const struct tok *tok, const struct decode_step *step, struct str text,
                   bool first, struct buf *out) {
    struct decode_step to_space = {.from = step->from, .to = STR_LIT(" ")};
    decode_replace(tok, &to_space, text, first, out);
}

void decode_join(const struct tok *tok, const struct decode_step *step, struct str text,
                 bool first, struct buf *out) {
    (void)tok, (void)step;
    if (!first) buf_putc(out, ' ');
    buf_add(out, text.p, text.n);
}

void decode_metaspace(const struct tok *tok, const struct decode_step *step, struct str text,
                      bool first, struct buf *out) {
    struct decode_step to = {.from = step->from, .to = first ? STR_LIT("") : STR_LIT(" ")};
    decode_replace(tok, &to, text, first, out);
}

ob_status tok_add_decoder(struct tok *tok, struct decode_step step, ob_error *error) {
    if (tok->decoders == TOK_DECODERS)
        return error_set(error, OB_ERR_LIMIT, "too many decoders");
    tok->decodes_bytes = tok->decodes_bytes || step.apply == decode_bytes;
    tok->decode[tok->decoders++] = step;
    return OB_OK;
}

/* A normal token through all steps. */
static void decode_text(const struct tok *tok, struct str text, bool first, struct buf *out) {
    struct buf part[2] = {BUF_INIT, BUF_INIT};
    for (size_t i = 0; i + 1 < tok->decoders; i++) {
        struct buf *to = &part[i & 1];
        buf_clear(to);
        tok->decode[i].apply(tok, &tok->decode[i], text, first, to);
        if (to->failed) out->failed = true;
        text = (struct str){to->p ? to->p : "", to->n};
    }
    const struct decode_step *last = tok->decoders ? &tok->decode[tok->decoders - 1] : NULL;
    if (last) last->apply(tok, last, text, first, out);
    else buf_add(out, text.p, text.n);
    buf_free(&part[0]);
    buf_free(&part[1]);
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
            if (tok->decodes_bytes) buf_add(out, text.p, text.n);
            else decode_text(tok, text, first, out);
            break;
        case TOK_NORMAL: decode_text(tok, text, first, out); break;
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
