/* SPDX-License-Identifier: Apache-2.0
 *
 * build.c: the expressions of a grammar, as they are put together; see build.h and expr.h. What is
 * trivial is simplified on the way (a sequence of one part is that part), so that the compiler sees
 * no empty corner cases. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sample/grammar/array.h"
#include "sample/grammar/expr.h"

enum { HEADS = 1024, SURROGATE_LOW = 0xD800, SURROGATE_HIGH = 0xDFFF, CODE_MAX = 0x10FFFF };

static uint32_t fail(struct grammar_builder *b, ob_status status, const char *why) {
    if (!b->status) b->status = status, b->why = why;
    return 0;
}
static uint32_t no_memory(struct grammar_builder *b) {
    return fail(b, OB_ERR_MEMORY, "out of memory");
}

/* ---- builders -------------------------------------------------------------------------------- */

struct grammar_builder *grammar_builder_new(void) {
    struct grammar_builder *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->head = calloc(HEADS, sizeof *b->head);
    b->heads = HEADS;
    if (!b->head || !ARRAY_ROOM(b->expr, b->expr_cap, 1) ||
        !ARRAY_ROOM(b->rule, b->rule_cap, 1)) {
        grammar_builder_free(&b);
        return NULL;
    }
    b->expr[0] = (struct expr){.kind = EXPR_NONE};
    b->rule[0] = (struct expr_rule){.name = NULL};
    b->expr_n = b->rule_n = 1;
    return b;
}

void grammar_builder_free(struct grammar_builder **b) {
    if (!*b) return;
    for (uint32_t i = 0; i < (*b)->rule_n; i++) free((*b)->rule[i].name);
    free((*b)->expr);
    free((*b)->part);
    free((*b)->range);
    free((*b)->bytes);
    free((*b)->rule);
    free((*b)->head);
    free(*b);
    *b = NULL;
}

bool grammar_builder_failed(const struct grammar_builder *b) { return b->status != OB_OK; }

/* ---- rules ----------------------------------------------------------------------------------- */

static grammar_rule add_rule(struct grammar_builder *b, struct str name, bool found) {
    if (b->status) return 0;
    if (b->rule_n >= EXPR_MAX_RULES) return fail(b, OB_ERR_LIMIT, "more than 65535 rules");
    if (!ARRAY_ROOM(b->rule, b->rule_cap, (size_t)b->rule_n + 1)) return no_memory(b);
    char *copy = malloc(name.n + 1);
    if (!copy) return no_memory(b);
    if (name.n) memcpy(copy, name.p, name.n);
    copy[name.n] = 0;
    uint32_t *head = &b->head[str_hash(name) % HEADS];
    b->rule[b->rule_n] = (struct expr_rule){
        .name = copy, .name_n = name.n, .found = found, .next = found ? *head : 0};
    if (found) *head = b->rule_n;
    return b->rule_n++;
}

grammar_rule grammar_rule_named(struct grammar_builder *b, struct str name) {
    if (b->status) return 0;
    for (uint32_t i = b->head[str_hash(name) % HEADS]; i; i = b->rule[i].next)
        if (str_eq((struct str){b->rule[i].name, b->rule[i].name_n}, name)) return i;
    return add_rule(b, name, true);
}

grammar_rule grammar_rule_new(struct grammar_builder *b, const char *about) {
    return add_rule(b, str_of(about), false);
}

bool grammar_rule_defined(const struct grammar_builder *b, grammar_rule rule) {
    assert(rule < b->rule_n);
    return b->rule[rule].expr != 0;
}

void grammar_define(struct grammar_builder *b, grammar_rule rule, grammar_expr expr) {
    if (b->status) return;
    assert(rule && rule < b->rule_n && expr && expr < b->expr_n);
    b->rule[rule].expr = expr;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static grammar_expr add(struct grammar_builder *b, struct expr e) {
    if (b->status) return 0;
    if (b->expr_n >= EXPR_MAX) return fail(b, OB_ERR_LIMIT, "more than 262143 expressions");
    if (e.depth > EXPR_MAX_DEPTH)
        return fail(b, OB_ERR_LIMIT, "expressions nested more than 400 deep");
    if (!ARRAY_ROOM(b->expr, b->expr_cap, (size_t)b->expr_n + 1)) return no_memory(b);
    b->expr[b->expr_n] = e;
    return b->expr_n++;
}

grammar_expr grammar_use(struct grammar_builder *b, grammar_rule rule) {
    if (b->status) return 0;
    assert(rule && rule < b->rule_n);
    return add(b, (struct expr){.kind = EXPR_RULE, .first = rule});
}
grammar_expr grammar_empty(struct grammar_builder *b) {
    return add(b, (struct expr){.kind = EXPR_EMPTY});
}
grammar_expr grammar_nothing(struct grammar_builder *b) {
    return add(b, (struct expr){.kind = EXPR_NOTHING});
}
grammar_expr grammar_token(struct grammar_builder *b, int32_t id, bool negated) {
    return add(b, (struct expr){.kind = EXPR_TOKEN, .first = (uint32_t)id, .negated = negated});
}

grammar_expr grammar_text(struct grammar_builder *b, struct str bytes) {
    if (!bytes.n) return grammar_empty(b);
    if (b->status) return 0;
    if (bytes.n > EXPR_MAX_BYTES - b->bytes_n)
        return fail(b, OB_ERR_LIMIT, "more than 8 MiB of literal text");
    if (!ARRAY_ROOM(b->bytes, b->bytes_cap, b->bytes_n + bytes.n)) return no_memory(b);
    memcpy(b->bytes + b->bytes_n, bytes.p, bytes.n);
    b->bytes_n += (uint32_t)bytes.n;
    return add(b, (struct expr){.kind = EXPR_TEXT, .first = b->bytes_n - (uint32_t)bytes.n,
                                .n = (uint32_t)bytes.n});
}

static int by_low(const void *a, const void *b) {
    const struct grammar_range *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* Adds a range without what no text holds: surrogates, and numbers past the last code point. */
static void add_range(struct grammar_builder *b, uint32_t low, uint32_t high) {
    if (high > CODE_MAX) high = CODE_MAX;
    if (low < SURROGATE_LOW && high >= SURROGATE_LOW) {
        b->range[b->range_n++] = (struct grammar_range){low, SURROGATE_LOW - 1};
        low = SURROGATE_LOW;
    }
    if (low >= SURROGATE_LOW && low <= SURROGATE_HIGH) low = SURROGATE_HIGH + 1;
    if (low <= high) b->range[b->range_n++] = (struct grammar_range){low, high};
}

/* The union of ranges at b->range + first, sorted and apart, or what it leaves out, behind it. */
static void add_union(struct grammar_builder *b, const struct grammar_range *r, size_t n,
                      bool negated) {
    uint32_t low = 0; /* of what no range before covers */
    for (size_t i = 0; i < n;) {
        uint32_t first = r[i].low, last = r[i].high;
        for (i++; i < n && (r[i].low <= last || r[i].low - 1 == last); i++)
            if (r[i].high > last) last = r[i].high;
        if (!negated) add_range(b, first, last);
        else if (first > low) add_range(b, low, first - 1);
        low = last < CODE_MAX ? last + 1 : CODE_MAX + 1;
    }
    if (negated && low <= CODE_MAX) add_range(b, low, CODE_MAX);
}

grammar_expr grammar_class(struct grammar_builder *b, const struct grammar_range *range, size_t n,
                           bool negated) {
    if (b->status) return 0;
    if (n > EXPR_MAX_PARTS - b->range_n)
        return fail(b, OB_ERR_LIMIT, "more than 1048576 ranges in classes");
    /* Each range may be cut at the surrogates, and there is one more outside than inside. */
    if (!ARRAY_ROOM(b->range, b->range_cap, b->range_n + n + 2)) return no_memory(b);
    struct grammar_range *sorted = malloc((n + 1) * sizeof *sorted);
    if (!sorted) return no_memory(b);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (range[i].low <= range[i].high) sorted[kept++] = range[i];
    qsort(sorted, kept, sizeof *sorted, by_low);
    uint32_t first = b->range_n;
    add_union(b, sorted, kept, negated);
    free(sorted);
    if (b->range_n == first) return grammar_nothing(b);
    return add(b, (struct expr){.kind = EXPR_CLASS, .first = first, .n = b->range_n - first});
}

static grammar_expr add_parts(struct grammar_builder *b, enum expr_kind kind,
                              const grammar_expr *part, size_t n) {
    if (n > EXPR_MAX_PARTS - b->part_n)
        return fail(b, OB_ERR_LIMIT, "more than 1048576 parts of sequences and alternatives");
    if (!ARRAY_ROOM(b->part, b->part_cap, b->part_n + n)) return no_memory(b);
    struct expr e = {.kind = (uint8_t)kind, .first = b->part_n};
    enum expr_kind unit = kind == EXPR_SEQ ? EXPR_EMPTY : EXPR_NOTHING;
    for (size_t i = 0; i < n; i++) {
        assert(part[i] && part[i] < b->expr_n);
        const struct expr *p = &b->expr[part[i]];
        if (kind == EXPR_SEQ && p->kind == EXPR_NOTHING) return part[i];
        if (p->kind == unit) continue;
        b->part[e.first + e.n++] = part[i];
        if (p->depth >= e.depth) e.depth = (uint16_t)(p->depth + 1);
    }
    if (!e.n) return add(b, (struct expr){.kind = (uint8_t)unit});
    if (e.n == 1) return b->part[e.first];
    b->part_n += e.n;
    return add(b, e);
}

grammar_expr grammar_seq(struct grammar_builder *b, const grammar_expr *part, size_t n) {
    return b->status ? 0 : add_parts(b, EXPR_SEQ, part, n);
}
grammar_expr grammar_alt(struct grammar_builder *b, const grammar_expr *part, size_t n) {
    return b->status ? 0 : add_parts(b, EXPR_ALT, part, n);
}

grammar_expr grammar_repeat(struct grammar_builder *b, grammar_expr part, uint32_t min,
                            uint32_t max) {
    if (b->status) return 0;
    assert(part && part < b->expr_n);
    enum expr_kind kind = b->expr[part].kind;
    if (max > GRAMMAR_NO_LIMIT) max = GRAMMAR_NO_LIMIT;
    if (min > max || (kind == EXPR_NOTHING && min)) return grammar_nothing(b);
    if (!max || kind == EXPR_NOTHING || kind == EXPR_EMPTY) return grammar_empty(b);
    if (min == 1 && max == 1) return part;
    return add(b, (struct expr){.kind = EXPR_REPEAT, .first = part, .min = min, .max = max,
                                .depth = (uint16_t)(b->expr[part].depth + 1)});
}
