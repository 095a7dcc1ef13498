/* SPDX-License-Identifier: Apache-2.0
 * tok_cut_write.c: stages that write a piece anew, and those that cut by counting; see tok_cut.h.
 * A stage owns the buffer of its number: the stages after it never use it. */
#include "base/utf8.h"
#include "text/script.h"
#include "text/tok_impl.h"

static bool starts_with(struct str text, struct str with) {
    return text.n >= with.n && memcmp(text.p, with.p, with.n) == 0;
}

bool cut_prefix(const struct tok *tok, struct tok_work *work, size_t stage, struct str text,
                bool start) {
    struct str prefix = tok->cut[stage].string;
    if (starts_with(text, prefix)) return tok_cut_rest(tok, work, stage + 1, text, start);
    struct buf *out = &work->stage_text[stage];
    buf_clear(out);
    buf_add(out, prefix.p, prefix.n);
    buf_add(out, text.p, text.n);
    return !out->failed &&
           tok_cut_rest(tok, work, stage + 1, (struct str){out->p, out->n}, start);
}

/* Cuts before each `mark`, so that it begins a piece, one of a run each. */
static bool before_marks(const struct tok *tok, struct tok_work *work, size_t stage,
                         struct str text, struct str mark, bool start) {
    size_t from = 0, at = 0;
    while (at < text.n) {
        if (!starts_with((struct str){text.p + at, text.n - at}, mark)) {
            at++;
            continue;
        }
        struct str piece = {text.p + from, at - from};
        if (!tok_cut_rest(tok, work, stage, piece, start && from == 0)) return false;
        from = at;
        at += mark.n;
    }
    return tok_cut_rest(tok, work, stage, (struct str){text.p + from, text.n - from},
                        start && from == 0);
}

bool cut_metaspace(const struct tok *tok, struct tok_work *work, size_t stage, struct str text,
                   bool start) {
    const struct cut *cut = &tok->cut[stage];
    struct buf *out = &work->stage_text[stage];
    bool marked = text.p[0] == ' ' || starts_with(text, cut->string);
    buf_clear(out);
    if (!marked && (cut->prefix == CUT_ALWAYS || (cut->prefix == CUT_FIRST && start)))
        buf_add(out, cut->string.p, cut->string.n);
    for (size_t at = 0; at < text.n;) {
        const char *space = memchr(text.p + at, ' ', text.n - at);
        size_t n = space ? (size_t)(space - text.p) - at : text.n - at;
        buf_add(out, text.p + at, n);
        if (space) buf_add(out, cut->string.p, cut->string.n);
        at += n + 1;
    }
    if (out->failed) return false;
    struct str all = {out->p, out->n};
    if (cut->behavior != CUT_WITH_NEXT) return tok_cut_rest(tok, work, stage + 1, all, start);
    return before_marks(tok, work, stage + 1, all, cut->string, start);
}

bool cut_lines(const struct tok *tok, struct tok_work *work, size_t stage, struct str text,
               bool start) {
    if (text.p[0] == '\n') return tok_cut_rest(tok, work, stage + 1, text, start);
    return cut_metaspace(tok, work, stage, text, start);
}

bool cut_bytes(const struct tok *tok, struct tok_work *work, size_t stage, struct str text,
               bool start) {
    struct buf *out = &work->stage_text[stage];
    buf_clear(out);
    for (size_t i = 0; i < text.n; i++) {
        char bytes[4];
        buf_add(out, bytes, utf8_encode(tok_byte_char((uint8_t)text.p[i]), bytes));
    }
    return !out->failed &&
           tok_cut_rest(tok, work, stage + 1, (struct str){out->p, out->n}, start);
}

/* Spaces go with any script, Japanese with Chinese; spaces before the first script are lost, as in
 * the reference. */
bool cut_scripts(const struct tok *tok, struct tok_work *work, size_t stage, struct str text,
                 bool start) {
    size_t from = SIZE_MAX;
    int last = -1;
    uint32_t code;
    for (size_t at = 0, n; at < text.n; at += n) {
        n = utf8_decode(text.p + at, text.n - at, &code);
        int script = script_of(code);
        if (script == SCRIPT_ANY) continue;
        if (script != last) {
            if (from != SIZE_MAX && !tok_cut_rest(tok, work, stage + 1,
                                                  (struct str){text.p + from, at - from},
                                                  start && from == 0))
                return false;
            from = at;
        }
        last = script;
    }
    if (from == SIZE_MAX) return true;
    return tok_cut_rest(tok, work, stage + 1, (struct str){text.p + from, text.n - from},
                        start && from == 0);
}

bool cut_length(const struct tok *tok, struct tok_work *work, size_t stage, struct str text,
                bool start) {
    uint32_t code;
    size_t from = 0, at = 0;
    while (at < text.n) {
        for (size_t i = 0; i < tok->cut[stage].length && at < text.n; i++)
            at += utf8_decode(text.p + at, text.n - at, &code);
        struct str piece = {text.p + from, at - from};
        if (!tok_cut_rest(tok, work, stage + 1, piece, start && from == 0)) return false;
        from = at;
    }
    return true;
}
