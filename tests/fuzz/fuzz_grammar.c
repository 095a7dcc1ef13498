/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_grammar.c: the input puts a grammar together, expression by expression on a stack, and then
 * says which of the allowed tokens come. Whatever a mask allows must be accepted, whatever it does
 * not must be refused, and a limit is an answer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "sample/grammar/build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE = 64, RULES = 6, STACK = 16 };

static void piece(const void *user, int32_t id, bool special, struct buf *out) {
    static const char *const texts[] = {"a",    "b",    "ab", "\"", "\xC3", "\xA9", "\xC3\xA9",
                                        "aaaa", "ba\"", "{",  "}",  "",     "end",  "\xF0\x9F"};
    (void)user, (void)special;
    buf_puts(out, texts[id % 14]);
    if (id >= 14 && id < 56) buf_puts(out, texts[id / 14]);
}
static bool is_end(const void *user, int32_t id) {
    (void)user;
    return id == 12;
}

struct input { const uint8_t *p; size_t n; };
static uint8_t next(struct input *in) { return in->n ? in->n--, *in->p++ : 0; }

static grammar_expr leaf(struct grammar_builder *b, struct input *in, uint8_t kind,
                         const grammar_rule *rule) {
    static const char *const texts[] = {"a", "b", "ab", "\"", "{", "}", "\xC3\xA9", "aab"};
    uint8_t low = next(in), high = next(in);
    struct grammar_range range[] = {{low, high}, {low * 300u, high * 5000u}};
    switch (kind % 8) {
        case 0: return grammar_empty(b);
        case 1: return grammar_token(b, low % SIZE, high & 1);
        case 2: return grammar_class(b, range, 1 + (low & 1), high & 1);
        case 3:
        case 4: return grammar_use(b, rule[low % RULES]);
        case 5: return low == 255 ? grammar_nothing(b) : grammar_text(b, str_of(texts[high % 8]));
        default: return grammar_text(b, str_of(texts[low % 8]));
    }
}

static grammar_expr expression(struct grammar_builder *b, struct input *in,
                               const grammar_rule *rule) {
    grammar_expr stack[STACK];
    size_t n = 0;
    for (int steps = 0; steps < 60; steps++) {
        uint8_t op = next(in);
        if (n == 0 || (op < 128 && n < STACK)) {
            stack[n++] = leaf(b, in, op, rule);
        } else if (op < 160 || n == 1) {
            uint8_t min = next(in), max = next(in);
            if (op >= 200) break;
            stack[n - 1] = grammar_repeat(b, stack[n - 1], min > 200 ? min * 50u : min % 4,
                                          max & 1 ? GRAMMAR_NO_LIMIT : max * 20u);
        } else {
            size_t parts = 2 + (op & 1) > n ? n : 2 + (op & 1);
            n -= parts;
            stack[n] = op < 208 ? grammar_seq(b, stack + n, parts)
                                : grammar_alt(b, stack + n, parts);
            n++;
        }
    }
    return grammar_seq(b, stack, n);
}

/* One step; false: the end. */
static bool step(struct grammar_state *state, struct input *in) {
    uint32_t mask[SIZE / 32];
    ob_error error;
    ob_status status = grammar_mask(state, mask, &error);
    if (status && status != OB_ERR_LIMIT) abort();
    if (status) return false;
    bool end = mask[12 / 32] >> 12 & 1;
    if (end != grammar_is_whole(state)) abort();
    int32_t id = next(in) % SIZE;
    bool is = mask[id / 32] >> (id % 32) & 1;
    if (is == grammar_accept(state, id)) return !(is && id == 12);
    /* What is allowed may still meet a limit. */
    if (!is || grammar_mask(state, mask, &error) != OB_ERR_LIMIT) abort();
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct sample_vocab words = {.size = SIZE, .piece = piece, .is_end = is_end};
    struct grammar_builder *b = grammar_builder_new();
    struct grammar_vocab *vocab;
    struct grammar_state *state;
    struct grammar *g;
    struct input in = {data, size};
    grammar_rule rule[RULES];
    ob_error error = {0};
    for (int i = 0; i < RULES; i++) rule[i] = grammar_rule_new(b, "r");
    for (int i = 0; i < RULES; i++)
        if (!grammar_builder_failed(b)) grammar_define(b, rule[i], expression(b, &in, rule));
    if (grammar_finish(b, rule[0], &g, &error) == OB_OK) {
        if (grammar_vocab_open(&words, &vocab, &error) != OB_OK) abort();
        if (grammar_state_open(g, vocab, &state, &error) != OB_OK) abort();
        for (int i = 0; i < 40 && step(state, &in); i++) continue;
        grammar_state_close(&state);
        grammar_vocab_close(&vocab);
        grammar_drop(&g);
    } else if (!error.message[0]) {
        abort();
    }
    grammar_builder_free(&b);
    return 0;
}
