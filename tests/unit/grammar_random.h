/* SPDX-License-Identifier: Apache-2.0
 * grammar_random.h: small random grammars, and vocabularies that fit them. */
#ifndef TESTS_GRAMMAR_RANDOM_H
#define TESTS_GRAMMAR_RANDOM_H

#include "grammar_reference.h"
#include "sample/grammar/automaton.h"

/* Texts of one to four bytes; the last two share all but their last byte with others. */
static const char *const random_letters[] = {
    "a", "b", "c", "\"", "ab", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xE2\x82\xAD"};
enum { RANDOM_LETTERS = sizeof random_letters / sizeof *random_letters };

struct dice { uint64_t seed, n; };
static uint32_t roll(struct dice *d, uint32_t sides) {
    return (uint32_t)(rng_u64(d->seed, d->n++) % sides);
}

static uint32_t random_class(struct ref *r, struct dice *d) {
    static const struct grammar_range ranges[] = {
        {'a', 'a'}, {'a', 'c'}, {'b', 'z'}, {0x20, 0x7E}, {0xE0, 0xFF}, {0x20A0, 0x20AC},
        {0x7F, 0x1F600}, {0xD7FF, 0xE000}, {0x1F600, 0x10FFFF}, {0, 0x10FFFF}, {'"', '"'}};
    struct ref_expr e = {.kind = REF_CLASS, .n = 1 + roll(d, 2), .negated = roll(d, 3) == 0};
    for (uint32_t k = 0; k < e.n; k++)
        e.range[k] = ranges[roll(d, sizeof ranges / sizeof *ranges)];
    return ref_add(r, e);
}

static uint32_t random_expr(struct ref *r, struct dice *d, int depth) {
    static const struct { uint32_t min, max; } counts[] = {
        {0, 1}, {0, GRAMMAR_NO_LIMIT}, {1, GRAMMAR_NO_LIMIT}, {2, 3}, {0, 30}, {3, 60},
        {2, GRAMMAR_NO_LIMIT}, {28, GRAMMAR_NO_LIMIT}, {5, 5}, {0, 100000}, {26, 27}};
    struct ref_expr e = {0};
    uint32_t kind = roll(d, depth > 0 ? 12 : 5);
    if (r->expr_n > REF_EXPRS - 40) kind = 0;
    switch (kind) {
        case 0:
        case 1:
            e.kind = REF_BYTES;
            strcpy(e.bytes, random_letters[roll(d, RANDOM_LETTERS)]);
            e.n = (uint32_t)strlen(e.bytes);
            break;
        case 2: return random_class(r, d);
        case 3:
            e.kind = REF_RULE;
            e.min = roll(d, r->rule_n);
            break;
        case 4:
            e.kind = roll(d, 4) ? REF_EMPTY : roll(d, 3) ? REF_ONE_TOKEN : REF_NOTHING;
            e.min = roll(d, 30);
            e.negated = e.kind == REF_ONE_TOKEN && roll(d, 4) == 0;
            break;
        case 5:
        case 6: {
            uint32_t which = roll(d, sizeof counts / sizeof *counts);
            e = (struct ref_expr){.kind = REF_REPEAT, .n = 1, .min = counts[which].min,
                                  .max = counts[which].max};
            break;
        }
        case 7:
        case 8:
        case 9: e.kind = REF_SEQ; e.n = 2 + roll(d, REF_PARTS - 1); break;
        default: e.kind = REF_ALT; e.n = 2 + roll(d, REF_PARTS - 1); break;
    }
    if (e.kind == REF_SEQ || e.kind == REF_ALT || e.kind == REF_REPEAT)
        for (uint32_t k = 0; k < e.n; k++) e.part[k] = random_expr(r, d, depth - 1);
    return ref_add(r, e);
}

static bool random_has_tokens(const struct ref *r) {
    for (uint32_t i = 0; i < r->expr_n; i++)
        if (r->expr[i].kind == REF_ONE_TOKEN) return true;
    return false;
}

/* NULL: the rules drawn are no grammar (left recursive, or they match nothing). */
static struct grammar *random_grammar(struct ref *r, uint64_t seed) {
    struct dice d = {.seed = seed};
    struct grammar *g = NULL;
    memset(r, 0, sizeof *r);
    r->b = grammar_builder_new();
    r->rule_n = 2 + roll(&d, REF_RULES - 2);
    for (uint32_t i = 0; i < r->rule_n; i++) {
        char name[2] = {(char)('A' + i), 0};
        r->made[i] = grammar_rule_named(r->b, str_of(name));
    }
    for (uint32_t i = 0; i < r->rule_n; i++) {
        r->rule[i] = random_expr(r, &d, 3);
        grammar_define(r->b, r->made[i], r->expr[r->rule[i]].made);
    }
    ref_find_fruitful(r);
    ob_error error;
    ob_status status = grammar_finish(r->b, r->made[0], &g, &error);
    if (status && !strstr(error.message, "left recursive") && !strstr(error.message, "no text"))
        g = NULL, fprintf(stderr, "seed %d: %s\n", (int)seed, error.message), abort();
    grammar_builder_free(&r->b);
    return g;
}

/* One of the bytes of a set, letters more often than others; any if the set is empty. */
static inline uint8_t random_byte(const struct grammar_bytes *may, uint64_t seed) {
    struct dice d = {.seed = seed};
    for (int i = 0; i < 40; i++) {
        uint8_t byte = (uint8_t)random_letters[roll(&d, RANDOM_LETTERS)][0];
        if (bytes_has(may, byte)) return byte;
    }
    for (unsigned i = 0, start = roll(&d, 256); i < 256; i++)
        if (bytes_has(may, (uint8_t)(start + i))) return (uint8_t)(start + i);
    return 0;
}

#endif
