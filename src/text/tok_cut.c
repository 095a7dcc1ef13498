/* SPDX-License-Identifier: Apache-2.0
 * tok_cut.c: splits; see tok_cut.h. */
#include "text/tok_cut.h"

#include "base/error.h"
#include "base/utf8.h"
#include "text/bert.h"
#include "text/pretok_scan.h"
#include "text/tok_impl.h"

bool tok_cut_rest(const struct tok *tok, struct tok_work *work, size_t stage, struct str text,
                  bool start) {
    if (text.n == 0) return true;
    if (stage == tok->cuts) return tok->model->encode(tok, work, text);
    return tok->cut[stage].apply(tok, work, stage, text, start);
}

bool cut_by_rule(const struct tok *tok, struct tok_work *work, size_t stage, struct str text,
                 bool start) {
    size_t (*next)(const char *, size_t) = tok->cut[stage].rule->next;
    bool last = stage + 1 == tok->cuts;
    while (text.n) {
        struct str piece = {text.p, next(text.p, text.n)};
        bool ok = last ? tok->model->encode(tok, work, piece)
                       : tok_cut_rest(tok, work, stage + 1, piece, start);
        if (!ok) return false;
        text.p += piece.n;
        text.n -= piece.n;
        start = false;
    }
    return true;
}

/* ---- behaviors ---- */

struct pieces { /* of one split: what was found and is not handed on yet */
    const struct tok *tok;
    struct tok_work *work;
    const struct cut *cut;
    size_t stage;
    struct str text;
    bool start;
    size_t from, to;   /* the held piece */
    bool held, match;  /* is there one; is what came last a match? */
};

static bool emit(struct pieces *p, size_t from, size_t to) {
    struct str piece = {p->text.p + from, to - from};
    return tok_cut_rest(p->tok, p->work, p->stage + 1, piece, p->start && from == 0);
}

static bool flush(struct pieces *p) {
    bool ok = !p->held || emit(p, p->from, p->to);
    p->held = false;
    return ok;
}

/* The next stretch of the text. */
static bool put(struct pieces *p, size_t from, size_t to, bool match) {
    match = match != p->cut->invert;
    bool joined = false, first = !p->held;
    switch (p->cut->behavior) {
        case CUT_ISOLATED: return emit(p, from, to);
        case CUT_REMOVED: return match || emit(p, from, to);
        case CUT_CONTIGUOUS: joined = !first && match == p->match; break;
        case CUT_WITH_PREVIOUS: joined = !first && match && !p->match; break;
        case CUT_WITH_NEXT: joined = !first && !match && p->match; break;
    }
    if (!joined) {
        if (!flush(p)) return false;
        p->from = from;
    }
    p->to = to;
    p->held = true;
    p->match = match;
    return true;
}

/* As the reference searches: a match of no length right behind another does not count. */
bool cut_split(const struct tok *tok, struct tok_work *work, size_t stage, struct str text,
               bool start) {
    const struct cut *cut = &tok->cut[stage];
    struct pieces p = {.tok = tok, .work = work, .cut = cut, .stage = stage, .text = text,
                       .start = start};
    size_t at = 0, done = 0, from, to, last = SIZE_MAX;
    while (at <= text.n) {
        enum regex_result found = cut->find(cut, work, text, at, &from, &to);
        if (found == REGEX_NONE) break;
        if (found != REGEX_FOUND) {
            work->limit = found == REGEX_LIMIT;
            return false;
        }
        if (from == to && to == last) {
            uint32_t code;
            at += at < text.n ? utf8_decode(text.p + at, text.n - at, &code) : 1;
            continue;
        }
        at = last = to;
        if (done < from && !put(&p, done, from, false)) return false;
        if (!put(&p, from, to, true)) return false;
        done = to;
    }
    if (done < text.n && !put(&p, done, text.n, false)) return false;
    return flush(&p);
}

/* ---- what is looked for ---- */

enum regex_result cut_find_rule(const struct cut *cut, struct tok_work *work, struct str text,
                                size_t from, size_t *start, size_t *end) {
    (void)work;
    return cut->rule->find(text.p, text.n, from, start, end) ? REGEX_FOUND : REGEX_NONE;
}

bool cut_repair(struct str text, struct buf *out) {
    buf_clear(out);
    buf_add(out, text.p, text.n);
    if (out->failed) return false;
    uint32_t code;
    for (size_t at = 0; at < out->n;) {
        size_t n = utf8_decode(out->p + at, out->n - at, &code);
        if (code == UTF8_BAD) out->p[at] = 0x7f;
        at += n;
    }
    return true;
}

enum regex_result cut_find_regex(const struct cut *cut, struct tok_work *work, struct str text,
                                 size_t from, size_t *start, size_t *end) {
    if (!work->malformed) return regex_find(cut->regex, &work->regex, text, from, start, end);
    struct buf *copy = &work->repaired[cut->length];
    if (from == 0 && !cut_repair(text, copy)) return REGEX_MEMORY;
    return regex_find(cut->regex, &work->regex, (struct str){copy->p, copy->n}, from, start, end);
}

enum regex_result cut_find_string(const struct cut *cut, struct tok_work *work, struct str text,
                                  size_t from, size_t *start, size_t *end) {
    (void)work;
    size_t n = cut->string.n;
    for (size_t at = from; at + n <= text.n; at++) {
        const char *p = memchr(text.p + at, cut->string.p[0], text.n - n - at + 1);
        if (!p) return REGEX_NONE;
        at = (size_t)(p - text.p);
        if (memcmp(p, cut->string.p, n) != 0) continue;
        *start = at;
        *end = at + n;
        return REGEX_FOUND;
    }
    return REGEX_NONE;
}

enum regex_result cut_find_class(const struct cut *cut, struct tok_work *work, struct str text,
                                 size_t from, size_t *start, size_t *end) {
    (void)work;
    uint32_t code;
    for (size_t at = from, n; at < text.n; at += n) {
        n = utf8_decode(text.p + at, text.n - at, &code);
        if (!cut->in(code)) continue;
        *start = at;
        *end = at + n;
        return REGEX_FOUND;
    }
    return REGEX_NONE;
}

static int word_class(struct str text, size_t at, size_t *n) { /* 0 word, 1 other, 2 space */
    uint32_t code;
    *n = utf8_decode(text.p + at, text.n - at, &code);
    if (unicode_is_word(code) || code == 0x200c || code == 0x200d) return 0;
    return unicode_is_space(unicode_of(code)) ? 2 : 1;
}

enum regex_result cut_find_words(const struct cut *cut, struct tok_work *work, struct str text,
                                 size_t from, size_t *start, size_t *end) {
    (void)cut, (void)work;
    size_t n, at = from;
    while (at < text.n && word_class(text, at, &n) == 2) at += n;
    if (at == text.n) return REGEX_NONE;
    *start = at;
    int class = word_class(text, at, &n);
    do at += n;
    while (at < text.n && word_class(text, at, &n) == class);
    *end = at;
    return REGEX_FOUND;
}

/* The reference asks its compiler here, which is newer than its expressions. */
bool cut_is_number(uint32_t code) {
    return unicode_is_number(unicode_of(code)) || (code >= 0x11de0 && code <= 0x11de9) ||
           (code >= 0x16ff4 && code <= 0x16ff6);
}
bool cut_is_space(uint32_t code) { return unicode_is_space(unicode_of(code)); }
bool cut_is_punctuation(uint32_t code) { return bert_is_punctuation(code); }

ob_status cut_open_regex(struct str regex, struct cut *cut, ob_error *error) {
    const struct rule *rule = rule_find(regex);
    if (rule && rule->next) {
        *cut = (struct cut){.apply = cut_by_rule, .rule = rule};
        return OB_OK;
    }
    *cut = (struct cut){.apply = cut_split, .find = cut_find_rule, .rule = rule};
    if (rule && rule->find) return OB_OK;
    cut->find = cut_find_regex;
    return regex_open(regex, &cut->regex, error);
}

ob_status tok_add_bert_cuts(struct tok *tok, ob_error *error) {
    ob_status status = tok_add_cut(tok, (struct cut){.apply = cut_split, .find = cut_find_class,
                                                     .in = cut_is_space, .behavior = CUT_REMOVED},
                                   error);
    if (status != OB_OK) return status;
    return tok_add_cut(tok, (struct cut){.apply = cut_split, .find = cut_find_class,
                                         .in = cut_is_punctuation, .behavior = CUT_ISOLATED},
                       error);
}
