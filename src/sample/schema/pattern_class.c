/* SPDX-License-Identifier: Apache-2.0
 * pattern_class.c: sets of code points; see pattern.h. What Unicode says comes from utf8proc. */
#include <stdlib.h>
#include <utf8proc.h>

#include "sample/schema/list.h"
#include "sample/schema/pattern.h"

enum { LAST = 0x10ffff };

static void add(struct list *ranges, uint32_t low, uint32_t high) {
    *(struct grammar_range *)list_add(ranges) = (struct grammar_range){low, high};
}

static int by_low(const void *a, const void *b) {
    const struct grammar_range *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* Sorted, apart: the code points outside. */
static bool complement(struct list *ranges) {
    struct list out = LIST_INIT(sizeof(struct grammar_range));
    const struct grammar_range *r = ranges->p;
    uint32_t next = 0;
    for (size_t i = 0; i < ranges->n; i++) {
        if (r[i].low > next) add(&out, next, r[i].low - 1);
        next = r[i].high + 1;
    }
    if (next <= LAST) add(&out, next, LAST);
    list_free(ranges);
    *ranges = out;
    return !out.failed;
}

bool pattern_ranges_tidy(struct list *ranges, bool negated) {
    struct grammar_range *r = ranges->p;
    size_t n = 0;
    if (ranges->failed) return false;
    if (ranges->n) qsort(r, ranges->n, sizeof *r, by_low);
    for (size_t i = 0; i < ranges->n; i++) {
        if (n && r[i].low <= r[n - 1].high + 1) {
            if (r[i].high > r[n - 1].high) r[n - 1].high = r[i].high;
        } else {
            r[n++] = r[i];
        }
    }
    ranges->n = n;
    return !negated || complement(ranges);
}

/* ---- Unicode's general categories ------------------------------------------------------------ */

static void add_categories(struct list *ranges, uint32_t set, bool negated) {
    uint32_t from = 0;
    bool inside = false;
    for (uint32_t code = 0; code <= LAST + 1; code++) {
        bool in = code <= LAST &&
                  ((set >> utf8proc_category((utf8proc_int32_t)code)) & 1) != negated;
        if (in && !inside) from = code;
        if (!in && inside) add(ranges, from, code - 1);
        inside = in;
    }
}

#define SET1(a) (1u << UTF8PROC_CATEGORY_##a)
#define LETTERS (SET1(LU) | SET1(LL) | SET1(LT) | SET1(LM) | SET1(LO))
#define MARKS (SET1(MN) | SET1(MC) | SET1(ME))
#define NUMBERS (SET1(ND) | SET1(NL) | SET1(NO))
#define PUNCTUATION \
    (SET1(PC) | SET1(PD) | SET1(PS) | SET1(PE) | SET1(PI) | SET1(PF) | SET1(PO))
#define SYMBOLS (SET1(SM) | SET1(SC) | SET1(SK) | SET1(SO))
#define SEPARATORS (SET1(ZS) | SET1(ZL) | SET1(ZP))
#define OTHERS (SET1(CC) | SET1(CF) | SET1(CS) | SET1(CO) | SET1(CN))

bool pattern_add_property(struct list *ranges, struct str name, bool negated) {
    static const struct {
        const char *name, *also;
        uint32_t set;
    } known[] = {
        {"C", "Other", OTHERS}, {"Cc", "Control", SET1(CC)}, {"Cf", "Format", SET1(CF)},
        {"Co", "Private_Use", SET1(CO)}, {"L", "Letter", LETTERS},
        {"LC", "Cased_Letter", SET1(LU) | SET1(LL) | SET1(LT)},
        {"Ll", "Lowercase_Letter", SET1(LL)}, {"Lm", "Modifier_Letter", SET1(LM)},
        {"Lo", "Other_Letter", SET1(LO)}, {"Lt", "Titlecase_Letter", SET1(LT)},
        {"Lu", "Uppercase_Letter", SET1(LU)}, {"M", "Mark", MARKS},
        {"Mc", "Spacing_Mark", SET1(MC)}, {"Me", "Enclosing_Mark", SET1(ME)},
        {"Mn", "Nonspacing_Mark", SET1(MN)}, {"N", "Number", NUMBERS},
        {"Nd", "Decimal_Number", SET1(ND)}, {"Nl", "Letter_Number", SET1(NL)},
        {"No", "Other_Number", SET1(NO)}, {"P", "Punctuation", PUNCTUATION},
        {"Pc", "Connector_Punctuation", SET1(PC)}, {"Pd", "Dash_Punctuation", SET1(PD)},
        {"Pe", "Close_Punctuation", SET1(PE)}, {"Pf", "Final_Punctuation", SET1(PF)},
        {"Pi", "Initial_Punctuation", SET1(PI)}, {"Po", "Other_Punctuation", SET1(PO)},
        {"Ps", "Open_Punctuation", SET1(PS)}, {"S", "Symbol", SYMBOLS},
        {"Sc", "Currency_Symbol", SET1(SC)}, {"Sk", "Modifier_Symbol", SET1(SK)},
        {"Sm", "Math_Symbol", SET1(SM)}, {"So", "Other_Symbol", SET1(SO)},
        {"Z", "Separator", SEPARATORS}, {"Zl", "Line_Separator", SET1(ZL)},
        {"Zp", "Paragraph_Separator", SET1(ZP)}, {"Zs", "Space_Separator", SET1(ZS)},
    };
    static const char *const prefix[] = {"General_Category=", "gc="};
    for (size_t i = 0; i < 2; i++)
        if (str_starts(name, prefix[i]))
            name.p += strlen(prefix[i]), name.n -= strlen(prefix[i]);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (str_is(name, known[i].name) || str_is(name, known[i].also)) {
            add_categories(ranges, known[i].set, negated);
            return true;
        }
    return false;
}

/* ---- \d \w \s -------------------------------------------------------------------------------- */

static void add_digits(struct list *r, bool wide) {
    if (wide) add_categories(r, SET1(ND), false);
    else add(r, '0', '9');
}

static void add_words(struct list *r, bool wide) {
    static const uint32_t joiners[] = {0x200c, 0x200d};
    add(r, '0', '9');
    add(r, 'A', 'Z');
    add(r, '_', '_');
    add(r, 'a', 'z');
    if (!wide) return;
    add_categories(r, LETTERS | MARKS | NUMBERS | SET1(PC), false);
    add(r, 0x24b6, 0x24e9); /* letters in circles and squares, which count as alphabetic */
    add(r, 0x1f130, 0x1f189);
    for (size_t i = 0; i < 2; i++) add(r, joiners[i], joiners[i]);
}

static void add_spaces(struct list *r, bool wide) {
    add(r, '\t', '\r');
    add(r, ' ', ' ');
    add(r, 0xa0, 0xa0);
    add(r, 0x1680, 0x1680);
    add(r, 0x2000, 0x200a);
    add(r, 0x2028, 0x2029);
    add(r, 0x202f, 0x202f);
    add(r, 0x205f, 0x205f);
    add(r, 0x3000, 0x3000);
    if (!wide) return;
    add(r, 0x1c, 0x1f);
    add(r, 0x85, 0x85);
    add(r, 0x180e, 0x180e);
    add(r, 0xfeff, 0xfeff);
}

bool pattern_add_class(struct list *ranges, char letter, bool wide) {
    bool negated = letter >= 'A' && letter <= 'Z';
    struct list own = LIST_INIT(sizeof(struct grammar_range));
    char kind = negated ? (char)(letter - 'A' + 'a') : letter;
    /* What all say is outside is what none says is inside. */
    if (kind == 'd') add_digits(&own, wide != negated);
    else if (kind == 'w') add_words(&own, wide != negated);
    else add_spaces(&own, wide != negated);
    bool ok = pattern_ranges_tidy(&own, negated);
    const struct grammar_range *r = own.p;
    for (size_t i = 0; i < own.n; i++) add(ranges, r[i].low, r[i].high);
    list_free(&own);
    return ok && !ranges->failed;
}
