/* SPDX-License-Identifier: Apache-2.0
 * pretok.c: finding a pre-tokenizer by what a file calls it, and a rule by its expression. */
#include "text/pretok.h"

#define R1(a) {&rule_##a}
#define R2(a, b) {&rule_##a, &rule_##b}
#define R3(a, b, c) {&rule_##a, &rule_##b, &rule_##c}
#define R4(a, b, c, d) {&rule_##a, &rule_##b, &rule_##c, &rule_##d}
#define R5(a, b, c, d, e) {&rule_##a, &rule_##b, &rule_##c, &rule_##d, &rule_##e}
#define R6(a, b, c, d, e, f) {&rule_##a, &rule_##b, &rule_##c, &rule_##d, &rule_##e, &rule_##f}
#define PRETOK(name, flags, ...) {name, flags, __VA_ARGS__},
static const struct pretok pretoks[] = {
#include "text/pretok.def"
};
#undef PRETOK

#define RULE(name) &rule_##name,
static const struct rule *const rules[] = {
#include "text/rules.def"
};
#undef RULE

enum { PRETOKS = sizeof pretoks / sizeof pretoks[0], RULES = sizeof rules / sizeof rules[0] };

const struct pretok *pretok_find(struct str name) {
    for (size_t i = 0; i < PRETOKS; i++)
        if (str_is(name, pretoks[i].name)) return &pretoks[i];
    return NULL;
}

static bool same_rules(const struct pretok *pretok, const struct rule *const *rule, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (i == PRETOK_RULES || pretok->rule[i] != rule[i]) return false;
    return n <= PRETOK_RULES && pretok->rule[n] == NULL;
}

/* Names that say best what they are, for rules that many rows share. */
static const char *const preferred[] = {"gpt-2", "llama-bpe", "qwen2", "starcoder", "gpt-4o",
                                        "deepseek-v3"};

const struct pretok *pretok_like(const struct rule *const *rule, size_t n, unsigned flags) {
    const unsigned telling = PRETOK_NFC | PRETOK_WHOLE | PRETOK_CHARS;
    for (size_t i = 0; i < sizeof preferred / sizeof preferred[0] + PRETOKS; i++) {
        size_t k = sizeof preferred / sizeof preferred[0];
        const struct pretok *p = i < k ? pretok_find(str_of(preferred[i])) : &pretoks[i - k];
        if (p && (p->flags & telling) == (flags & telling) && same_rules(p, rule, n)) return p;
    }
    return NULL;
}

const struct rule *rule_find(struct str regex) {
    for (size_t i = 0; i < RULES; i++)
        if (str_is(regex, rules[i]->regex)) return rules[i];
    return NULL;
}
