/* SPDX-License-Identifier: Apache-2.0
 *
 * regex_onig.c: an expression in Oniguruma's Ruby syntax written for PCRE2; see regex.h. What they
 * take differently is spelled out or refused:
 * - classes may hold classes and intersections ("[\p{L}&&[^\p{Han}]]"): one that does becomes
 *   alternatives and lookaheads of one character;
 * - \s \w \b \h are spelled out, since PCRE2's are of other characters;
 * - {n,m}+ repeats what {n,m} gave, {,m} is {0,m}, (?m: lets a dot match a newline, ^ and $ match
 *   at lines (the caller compiles so);
 * - properties get the code points that PCRE2 does not know. */
#include <stdlib.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/regex.h"
#include "text/unicode.h"

/* Unicode's white space; PCRE2's \s has U+180E too, which is none any more. */
#define SPACES "\\x{9}-\\x{d}\\x{85}\\p{Z}"
/* What is alphabetic without being a letter, circled and squared ones; and the Latin-1 numbers that
 * Oniguruma counts among word characters. */
#define ODD_LETTERS                                            \
    "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"                      \
    "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}" \
    "\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"

enum { DEPTH = 32 };

struct translation {
    const char *p, *end;
    struct buf *out;
    const struct regex_newer *newer;
    ob_error *error;
    int depth;
    bool failed;
};

/* A class under translation: what a PCRE2 class can hold, and what stands beside it. */
struct set {
    struct buf in;   /* between [ and ] */
    struct buf also; /* alternatives of one character, each with its | before it */
};

static bool refuse(struct translation *t, const char *what) {
    if (!t->failed)
        error_set(t->error, OB_ERR_UNSUPPORTED, "the expression has %s, which is not supported",
                  what);
    t->failed = true;
    return false;
}

static bool more(const struct translation *t) { return t->p < t->end; }
static bool at(const struct translation *t, const char *text) {
    size_t n = strlen(text);
    return (size_t)(t->end - t->p) >= n && memcmp(t->p, text, n) == 0;
}
static bool take(struct translation *t, const char *text) {
    if (!at(t, text)) return false;
    t->p += strlen(text);
    return true;
}

static void put_code(struct buf *out, uint32_t code) { buf_printf(out, "\\x{%x}", code); }

/* ---- characters and properties ---- */

static const char *const categories[] = {
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};

/* Does the property hold for a code point that PCRE2 does not know? Scripts: Chinese characters
 * are those of the planes that have nothing else. */
static bool holds(const char *name, const struct regex_run *run) {
    const char *category = categories[run->category];
    if (strcmp(name, "Han") == 0) return run->first >= 0x20000 && run->last < 0x40000;
    if (strcmp(name, "L&") == 0) return strcmp(category, "Lo") < 0 && category[0] == 'L';
    if (strcmp(name, "Any") == 0) return false; /* has them */
    return name[1] == 0 ? name[0] == category[0] : strcmp(name, category) == 0;
}

/* Longer names are scripts; by themselves PCRE2 would take them for script extensions. */
static void put_property(struct buf *out, const struct regex_newer *newer, const char *name) {
    bool script = strlen(name) > 2 && strcmp(name, "Any") != 0;
    buf_printf(out, script ? "\\p{sc:%s}" : "\\p{%s}", name);
    for (size_t i = 0; i < newer->n; i++) {
        const struct regex_run *run = &newer->run[i];
        if (!holds(name, run)) continue;
        put_code(out, run->first);
        buf_putc(out, '-');
        put_code(out, run->last);
    }
}

static void put_word(struct buf *out, const struct regex_newer *newer) {
    static const char *const names[] = {"L", "M", "Nd", "Nl", "Pc"};
    for (size_t i = 0; i < 5; i++) put_property(out, newer, names[i]);
    buf_puts(out, ODD_LETTERS);
}

/* "{Name}" or "{^Name}" after \p; true: it is put into `in` as a positive one, *not says if the
 * complement is meant. */
static bool property(struct translation *t, struct buf *in, bool *not) {
    char name[32];
    size_t n = 0;
    if (!take(t, "{")) return refuse(t, "a property without braces");
    if (take(t, "^")) *not = !*not;
    for (; more(t) && *t->p != '}'; t->p++)
        if (n + 1 < sizeof name && *t->p != ' ') name[n++] = *t->p;
    name[n] = 0;
    if (!take(t, "}") || n == 0) return refuse(t, "a property without an end");
    put_property(in, t->newer, name);
    return true;
}

static bool digits(struct translation *t, int base, size_t most, uint32_t *code) {
    static const char all[] = "0123456789abcdef";
    size_t n = 0;
    *code = 0;
    for (; more(t) && n < most; n++, t->p++) {
        char c = *t->p >= 'A' && *t->p <= 'F' ? (char)(*t->p + 32) : *t->p;
        const char *digit = c ? strchr(all, c) : NULL;
        if (!digit || digit - all >= base) break;
        *code = *code * (uint32_t)base + (uint32_t)(digit - all);
    }
    return n > 0 && (*code < 0xd800 || (*code > 0xdfff && *code < 0x110000));
}

/* What follows a backslash. 1: a character, 2: a class (in `in`, its complement if *not), 0: other,
 * nothing taken; -1 refused. */
static int escape(struct translation *t, uint32_t *code, struct buf *in, bool *not) {
    static const char from[] = "nrtfvae", to[] = "\n\r\t\f\v\a\x1b";
    if (!more(t)) return refuse(t, "a backslash at its end") - 1;
    char c = *t->p;
    const char *simple = strchr(from, c);
    *not = false;
    if (c && simple) {
        t->p++;
        *code = (uint32_t)to[simple - from];
        return 1;
    }
    if (c == 'x' || c == 'u') {
        t->p++;
        bool brace = take(t, "{"), ok = digits(t, 16, brace ? 8 : c == 'u' ? 4 : 2, code);
        return ok && (!brace || take(t, "}")) ? 1 : refuse(t, "a code that is none") - 1;
    }
    const char *classes = "sSwWdDhHpP";
    if (c && strchr(classes, c)) {
        t->p++;
        *not = c < 'a';
        switch (c | 32) {
            case 's': buf_puts(in, SPACES); return 2;
            case 'w': put_word(in, t->newer); return 2;
            case 'd': put_property(in, t->newer, "Nd"); return 2;
            case 'h': buf_puts(in, "0-9a-fA-F"); return 2;
            default: return property(t, in, not) ? 2 : -1;
        }
    }
    bool letter = (c | 32) >= 'a' && (c | 32) <= 'z', digit = c >= '0' && c <= '9';
    if ((unsigned char)c < 0x80 && !letter && !digit) {
        t->p++;
        *code = (uint32_t)c;
        return 1;
    }
    return 0;
}

/* ---- classes ---- */

static bool one_class(struct translation *t, struct buf *out);

static void set_free(struct set *s) {
    buf_free(&s->in);
    buf_free(&s->also);
}

/* The pattern of one character of the set. */
static void put_set(struct buf *out, const struct set *s) {
    bool in = s->in.n > 0, also = s->also.n > 0;
    if (!also) {
        buf_printf(out, in ? "[%s]" : "(?!)", s->in.p);
        return;
    }
    if (in) buf_printf(out, "(?:[%s]%s)", s->in.p, s->also.p);
    else buf_printf(out, "(?:%s)", s->also.p + 1);
}

/* A member of a class, or the start of a range. */
static bool member(struct translation *t, struct set *s) {
    uint32_t code = 0, last;
    bool not = false;
    struct buf in = BUF_INIT;
    if (take(t, "[:")) return refuse(t, "a POSIX class");
    if (take(t, "[")) {
        buf_putc(&s->also, '|');
        return one_class(t, &s->also);
    }
    int kind = 1;
    if (take(t, "\\")) {
        kind = escape(t, &code, &in, &not);
        if (kind == 0 && take(t, "b")) kind = 1, code = 8;
        if (kind == 0) refuse(t, "an escape in a class");
    } else {
        t->p += utf8_decode(t->p, (size_t)(t->end - t->p), &code);
        if (code == UTF8_BAD) kind = refuse(t, "malformed UTF-8") - 1;
    }
    if (kind == 2) {
        if (not) buf_printf(&s->also, "|[^%s]", in.p);
        else buf_add(&s->in, in.p, in.n);
    }
    buf_free(&in);
    if (kind != 1) return kind == 2;
    put_code(&s->in, code);
    if (t->end - t->p < 2 || t->p[0] != '-' || t->p[1] == ']') return true;
    t->p++;
    last = code;
    if (take(t, "[")) return refuse(t, "a range to a class");
    if (take(t, "\\")) {
        struct buf none = BUF_INIT;
        kind = escape(t, &last, &none, &not);
        buf_free(&none);
        if (kind != 1) return refuse(t, "a range to a class");
    } else {
        t->p += utf8_decode(t->p, (size_t)(t->end - t->p), &last);
    }
    if (last == UTF8_BAD || last < code) return refuse(t, "an empty range");
    buf_putc(&s->in, '-');
    put_code(&s->in, last);
    return true;
}

/* After "[": up to its "]". The parts of an intersection are lookaheads, the last one takes. */
static bool one_class(struct translation *t, struct buf *out) {
    struct buf all = BUF_INIT;
    struct set set = {BUF_INIT, BUF_INIT};
    if (++t->depth > DEPTH) return refuse(t, "too many brackets");
    bool not = take(t, "^"), ok = true, first = true;
    while (ok && more(t) && (first || *t->p != ']')) {
        if (take(t, "&&")) {
            struct buf one = BUF_INIT;
            put_set(&one, &set);
            buf_printf(&all, "(?=%s)", one.p);
            buf_free(&one);
            buf_clear(&set.in);
            buf_clear(&set.also);
        } else if (first && *t->p == ']') {
            t->p++;
            put_code(&set.in, ']');
        } else {
            ok = member(t, &set);
        }
        first = false;
    }
    if (ok && !take(t, "]")) ok = refuse(t, "a class without an end");
    if (ok && !all.n && !set.also.n && set.in.n) {
        buf_printf(out, not ? "[^%s]" : "[%s]", set.in.p);
    } else if (ok) {
        put_set(&all, &set);
        if (not) buf_printf(out, "(?:(?!%s)[\\x{0}-\\x{10ffff}])", all.p);
        else buf_printf(out, "(?:%s)", all.p);
    }
    if (all.failed || set.in.failed || set.also.failed) out->failed = true;
    buf_free(&all);
    set_free(&set);
    t->depth--;
    return ok;
}

/* ---- the rest ---- */

static bool anchor(struct translation *t) {
    char c = *t->p++;
    if (c == 'A' || c == 'z' || c == 'Z') {
        buf_printf(t->out, "\\%c", c);
        return true;
    }
    if (c != 'b' && c != 'B') return refuse(t, "an escape of a letter or digit");
    struct buf word = BUF_INIT;
    put_word(&word, t->newer);
    const char *w = word.p ? word.p : "";
    if (c == 'b')
        buf_printf(t->out, "(?:(?<=[%s])(?![%s])|(?<![%s])(?=[%s]))", w, w, w, w);
    else buf_printf(t->out, "(?:(?<=[%s])(?=[%s])|(?<![%s])(?![%s]))", w, w, w, w);
    if (word.failed) t->out->failed = true;
    buf_free(&word);
    return true;
}

static bool after_backslash(struct translation *t) {
    struct buf in = BUF_INIT;
    uint32_t code;
    bool not;
    int kind = escape(t, &code, &in, &not);
    if (kind == 2) buf_printf(t->out, not ? "[^%s]" : "[%s]", in.p);
    if (in.failed) t->out->failed = true;
    buf_free(&in);
    if (kind == 1) put_code(t->out, code);
    return kind > 0 || (kind == 0 && anchor(t));
}

/* After "(": what makes it special. */
static bool group(struct translation *t) {
    static const char *const same[] = {"?:", "?=", "?!", "?<=", "?<!", "?>"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if (take(t, same[i])) return buf_printf(t->out, "(%s", same[i]), true;
    if (!take(t, "?")) return buf_puts(t->out, "(?:"), true; /* nothing refers to it */
    if (take(t, "<") || take(t, "P<")) {
        while (more(t) && *t->p != '>') t->p++;
        if (!take(t, ">")) return refuse(t, "a name without an end");
        return buf_puts(t->out, "(?:"), true;
    }
    bool at_start = t->out->n == 0;
    buf_puts(t->out, "(?");
    for (; more(t) && *t->p != ':' && *t->p != ')'; t->p++) {
        if (!strchr("im-", *t->p) || !*t->p) return refuse(t, "an option other than i and m");
        buf_putc(t->out, *t->p == 'm' ? 's' : *t->p);
    }
    if (!more(t)) return refuse(t, "a group without an end");
    /* The two differ on where the options end. */
    if (*t->p == ')' && !at_start) return refuse(t, "options after its start");
    buf_putc(t->out, *t->p++);
    return true;
}

/* "{n,m}" at t->p, whose atom starts at `atom` of the output; *is: it is one. */
static bool interval(struct translation *t, size_t atom, bool *is) {
    const char *from = t->p;
    uint32_t low = 0, high = 0;
    t->p++;
    bool has_low = digits(t, 10, 5, &low), comma = take(t, ","), has_high = digits(t, 10, 5, &high);
    *is = take(t, "}") && (has_low || (comma && has_high));
    if (!*is) {
        t->p = from;
        return true;
    }
    if (has_high && high < low) return refuse(t, "an interval that is empty");
    if (comma && has_high) buf_printf(t->out, "{%u,%u}", low, high);
    else buf_printf(t->out, comma ? "{%u,}" : "{%u}", low);
    if (at(t, "?") && !comma) return refuse(t, "{n}?");
    if (take(t, "?")) buf_putc(t->out, '?');
    if (!at(t, "+")) return true;
    /* PCRE2 would take the plus for possessive. */
    struct buf repeated = BUF_INIT;
    buf_printf(&repeated, "(?:%.*s)", (int)(t->out->n - atom), t->out->p + atom);
    t->out->n = atom;
    buf_add(t->out, repeated.p, repeated.n);
    if (repeated.failed) t->out->failed = true;
    buf_free(&repeated);
    return true;
}

struct opened { /* groups, by where their output starts */
    size_t at[DEPTH * 4];
    size_t n;
};

/* One atom or operator; *atom: where the output of the last atom starts. */
static bool step(struct translation *t, struct opened *groups, size_t *atom) {
    bool is = false;
    char c = *t->p;
    if (c == '{' && !interval(t, *atom, &is)) return false;
    if (is) return true;
    if (c == '*' || c == '+' || c == '?' || c == '|') {
        t->p++;
        buf_putc(t->out, c);
        return true;
    }
    size_t start = t->out->n;
    if (c == ')') {
        t->p++;
        if (groups->n == 0) return refuse(t, "a parenthesis too many");
        start = groups->at[--groups->n];
        buf_putc(t->out, ')');
    } else if (c == '(') {
        t->p++;
        if (groups->n == sizeof groups->at / sizeof groups->at[0])
            return refuse(t, "too many groups");
        if (!group(t)) return false;
        if (t->out->n && t->out->p[t->out->n - 1] != ')') groups->at[groups->n++] = start;
    } else if (take(t, "[")) {
        if (!one_class(t, t->out)) return false;
    } else if (take(t, "\\")) {
        if (!after_backslash(t)) return false;
    } else if (c == '^' || c == '$' || c == '.') {
        t->p++;
        buf_putc(t->out, c);
    } else {
        uint32_t code;
        t->p += utf8_decode(t->p, (size_t)(t->end - t->p), &code);
        if (code == UTF8_BAD) return refuse(t, "malformed UTF-8");
        put_code(t->out, code);
    }
    *atom = start;
    return true;
}

ob_status regex_translate(struct str pattern, const struct regex_newer *newer, struct buf *out,
                          ob_error *error) {
    struct translation t = {
        .p = pattern.p, .end = pattern.p + pattern.n, .out = out, .newer = newer, .error = error};
    struct opened groups = {.n = 0};
    size_t atom = 0;
    while (more(&t))
        if (!step(&t, &groups, &atom)) return OB_ERR_UNSUPPORTED;
    if (groups.n) {
        refuse(&t, "a group without an end");
        return OB_ERR_UNSUPPORTED;
    }
    return out->failed ? error_memory(error, "expression", pattern.n) : OB_OK;
}
