/* SPDX-License-Identifier: Apache-2.0
 *
 * facts.c: facts about expressions; see facts.h. All walks are linear in the size of the grammar
 * and keep their own stacks, for chains of rules may be long. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sample/grammar/facts.h"

enum {
    INLINE_STEPS = 8,       /* rules that small are never called */
    INLINE_REPEATED = 64,   /* nor are those, of bounded length, where they are repeated */
    INLINE_HEIGHT = 16,
    EXPAND_STEPS = 24,
    CLASS_STEPS = 8, /* a class of characters beyond ASCII, roughly */
};

/* The parts of an expression: of a rule's use, the rule's expression. */
static uint32_t parts_of(const struct grammar_builder *b, grammar_expr id,
                         const grammar_expr **part) {
    const struct expr *e = &b->expr[id];
    switch (e->kind) {
        case EXPR_SEQ:
        case EXPR_ALT: *part = b->part + e->first; return e->n;
        case EXPR_REPEAT: *part = &e->first; return 1;
        case EXPR_RULE: *part = &b->rule[e->first].expr; return 1;
        default: *part = NULL; return 0;
    }
}

/* ---- which are reached, in which order, and which are recursive ------------------------------ */

/* Tarjan's strongly connected components (1972), without recursion. */
struct walk {
    struct visit { grammar_expr id; uint32_t next; } *stack;
    uint32_t *index, *low; /* 0: not visited */
    grammar_expr *open;    /* visited, their component not complete */
    uint32_t stack_n, open_n, count;
};

static ob_status undefined(const struct grammar_builder *b, uint32_t rule, ob_error *error) {
    struct str name = {b->rule[rule].name, b->rule[rule].name_n};
    return error_set(error, OB_ERR_ARGUMENT, "rule \"%.*s\" is not defined", STR_ARG(name));
}

static ob_status enter(const struct grammar_builder *b, struct facts *f, struct walk *w,
                       grammar_expr id, ob_error *error) {
    const struct expr *e = &b->expr[id];
    if (e->kind == EXPR_RULE && !b->rule[e->first].expr) return undefined(b, e->first, error);
    f->fact[id] |= FACT_REACHED;
    w->index[id] = w->low[id] = ++w->count;
    w->open[w->open_n++] = id;
    w->stack[w->stack_n++] = (struct visit){id, 0};
    return OB_OK;
}

/* The component of `id` is complete: everything opened since. */
static void leave(struct facts *f, struct walk *w, grammar_expr id) {
    bool recursive = w->open[w->open_n - 1] != id;
    grammar_expr top;
    do {
        top = w->open[--w->open_n];
        w->low[top] = UINT32_MAX; /* closed */
        if (recursive) f->fact[top] |= FACT_RECURSIVE;
    } while (top != id);
}

static ob_status walk_all(const struct grammar_builder *b, struct facts *f, struct walk *w,
                          grammar_expr root, ob_error *error) {
    ob_status status = enter(b, f, w, root, error);
    while (!status && w->stack_n) {
        struct visit *v = &w->stack[w->stack_n - 1];
        const grammar_expr *part;
        uint32_t n = parts_of(b, v->id, &part);
        if (v->next < n) {
            grammar_expr to = part[v->next++];
            if (!w->index[to]) status = enter(b, f, w, to, error);
            else if (w->low[to] != UINT32_MAX && w->index[to] < w->low[v->id])
                w->low[v->id] = w->index[to];
            continue;
        }
        grammar_expr id = v->id;
        uint32_t low = w->low[id];
        w->stack_n--;
        f->order[f->order_n++] = id;
        if (low == w->index[id]) leave(f, w, id);
        if (w->stack_n) {
            uint32_t *above = &w->low[w->stack[w->stack_n - 1].id];
            if (low < *above) *above = low;
        }
    }
    return status;
}

static ob_status find_order(const struct grammar_builder *b, struct facts *f, grammar_expr root,
                            ob_error *error) {
    struct walk w = {
        .stack = calloc(b->expr_n, sizeof *w.stack), .index = calloc(b->expr_n, sizeof *w.index),
        .low = calloc(b->expr_n, sizeof *w.low), .open = calloc(b->expr_n, sizeof *w.open)};
    ob_status status = w.stack && w.index && w.low && w.open
                           ? walk_all(b, f, &w, root, error)
                           : error_memory(error, "a grammar", b->expr_n * sizeof *w.stack);
    free(w.stack);
    free(w.index);
    free(w.low);
    free(w.open);
    return status;
}

/* ---- what follows from parts ----------------------------------------------------------------- */

/* Whether an expression has a fact, given its parts. `ready`: how many parts of a sequence were
 * found to have it, so that asking again does not begin anew. */
static bool follows(const struct grammar_builder *b, const struct facts *f, grammar_expr id,
                    uint8_t fact, uint32_t *ready) {
    const struct expr *e = &b->expr[id];
    const grammar_expr *part;
    uint32_t n = parts_of(b, id, &part);
    switch (e->kind) {
        case EXPR_EMPTY: return fact != FACT_SOLID;
        case EXPR_TEXT:
        case EXPR_CLASS:
        case EXPR_TOKEN: return fact != FACT_NULLABLE;
        case EXPR_NOTHING: return false;
        default: break;
    }
    if (e->kind == EXPR_REPEAT && !e->min && fact != FACT_SOLID) return true;
    if (e->kind == EXPR_SEQ && fact != FACT_SOLID) {
        while (ready[id] < n && f->fact[part[ready[id]]] & fact) ready[id]++;
        return ready[id] == n;
    }
    if (e->kind == EXPR_SEQ && !(f->fact[id] & FACT_FRUITFUL)) return false;
    for (uint32_t i = 0; i < n; i++)
        if (f->fact[part[i]] & fact) return true;
    return false;
}

/* Spreads a fact from parts to what holds them until nothing changes: once in order, then again
 * from each that got it late (along recursion) through those that hold it. */
static void spread(const struct grammar_builder *b, struct facts *f, uint8_t fact,
                   const uint32_t *holder_at, const grammar_expr *holder, grammar_expr *stack,
                   uint32_t *ready) {
    memset(ready, 0, b->expr_n * sizeof *ready);
    for (uint32_t i = 0; i < f->order_n; i++) {
        grammar_expr id = f->order[i];
        if (f->fact[id] & fact || !follows(b, f, id, fact, ready)) continue;
        f->fact[id] |= fact;
        uint32_t n = 0;
        stack[n++] = id;
        while (n) {
            grammar_expr had = stack[--n];
            for (uint32_t k = holder_at[had]; k < holder_at[had + 1]; k++) {
                grammar_expr up = holder[k];
                if (f->fact[up] & fact || !follows(b, f, up, fact, ready)) continue;
                f->fact[up] |= fact;
                stack[n++] = up;
            }
        }
    }
}

static ob_status find_facts(const struct grammar_builder *b, struct facts *f, ob_error *error) {
    size_t total = 0;
    const grammar_expr *part;
    for (uint32_t i = 0; i < f->order_n; i++) total += parts_of(b, f->order[i], &part);
    uint32_t *at = calloc((size_t)b->expr_n + 2, sizeof *at);
    grammar_expr *holder = calloc(total + 1, sizeof *holder);
    grammar_expr *stack = calloc(b->expr_n, sizeof *stack);
    uint32_t *ready = calloc(b->expr_n, sizeof *ready);
    bool room = at && holder && stack && ready;
    if (room) {
        for (uint32_t i = 0; i < f->order_n; i++) {
            uint32_t n = parts_of(b, f->order[i], &part);
            for (uint32_t k = 0; k < n; k++) at[part[k] + 2]++;
        }
        for (uint32_t i = 2; i < b->expr_n + 2; i++) at[i] += at[i - 1];
        for (uint32_t i = 0; i < f->order_n; i++) {
            uint32_t n = parts_of(b, f->order[i], &part);
            for (uint32_t k = 0; k < n; k++) holder[at[part[k] + 1]++] = f->order[i];
        }
        spread(b, f, FACT_NULLABLE, at, holder, stack, ready);
        spread(b, f, FACT_FRUITFUL, at, holder, stack, ready);
        spread(b, f, FACT_SOLID, at, holder, stack, ready);
    }
    ob_status status = room ? OB_OK : error_memory(error, "a grammar", total * sizeof *holder);
    free(at);
    free(ready);
    free(holder);
    free(stack);
    return status;
}

/* ---- left recursion -------------------------------------------------------------------------- */

/* How many of an expression's parts may stand where it begins. */
static uint32_t left_parts(const struct grammar_builder *b, const struct facts *f,
                           grammar_expr id, const grammar_expr **part) {
    uint32_t n = parts_of(b, id, part), i = 0;
    if (b->expr[id].kind != EXPR_SEQ) return n;
    while (i < n && f->fact[(*part)[i]] & FACT_NULLABLE) i++;
    return i < n ? i + 1 : n;
}

static ob_status left_recursive(const struct grammar_builder *b, const struct visit *stack,
                                uint32_t n, grammar_expr to, ob_error *error) {
    /* The loop is what the stack holds from `to` on; one of it is the use of a rule. */
    struct str name = {"?", 1};
    for (uint32_t i = n; i-- > 0;) {
        const struct expr *e = &b->expr[stack[i].id];
        if (e->kind == EXPR_RULE)
            name = (struct str){b->rule[e->first].name, b->rule[e->first].name_n};
        if (stack[i].id == to) break;
    }
    return error_set(error, OB_ERR_ARGUMENT,
                     "rule \"%.*s\" is left recursive: it may begin with itself", STR_ARG(name));
}

static ob_status refuse_left_recursion(const struct grammar_builder *b, const struct facts *f,
                                       ob_error *error) {
    enum { NEW, OPEN, DONE };
    uint8_t *seen = calloc(b->expr_n, 1);
    struct visit *stack = calloc(b->expr_n, sizeof *stack);
    ob_status status = seen && stack ? OB_OK : error_memory(error, "a grammar", b->expr_n);
    /* From every rule in turn: a loop need not lie at the root's left edge. */
    for (uint32_t i = 0; !status && i < f->order_n; i++) {
        uint32_t n = 0;
        if (seen[f->order[i]] != NEW) continue;
        seen[f->order[i]] = OPEN;
        stack[n++] = (struct visit){f->order[i], 0};
        while (!status && n) {
            struct visit *v = &stack[n - 1];
            const grammar_expr *part;
            if (v->next == left_parts(b, f, v->id, &part)) {
                seen[v->id] = DONE;
                n--;
                continue;
            }
            grammar_expr to = part[v->next++];
            if (seen[to] == OPEN) status = left_recursive(b, stack, n, to, error);
            if (seen[to] != NEW) continue;
            seen[to] = OPEN;
            stack[n++] = (struct visit){to, 0};
        }
    }
    free(seen);
    free(stack);
    return status;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static bool inlined(const struct facts *f, grammar_expr content, bool repeated) {
    const struct fact_size *s = &f->size[content][repeated];
    if (f->fact[content] & FACT_RECURSIVE || s->counts || s->height >= INLINE_HEIGHT) return false;
    return s->steps <= INLINE_STEPS ||
           (repeated && !s->calls && !s->endless && s->steps <= INLINE_REPEATED);
}

bool facts_inline(const struct grammar_builder *b, const struct facts *f, grammar_expr use,
                  bool repeated) {
    assert(b->expr[use].kind == EXPR_RULE);
    return inlined(f, b->rule[b->expr[use].first].expr, repeated);
}

uint32_t facts_min(const struct grammar_builder *b, const struct facts *f, grammar_expr repeat) {
    const struct expr *e = &b->expr[repeat];
    return f->fact[e->first] & FACT_NULLABLE ? 0 : e->min;
}

static bool expanded(const struct grammar_builder *b, const struct facts *f, grammar_expr repeat,
                     uint32_t steps) {
    const struct expr *e = &b->expr[repeat];
    uint32_t min = facts_min(b, f, repeat);
    uint32_t copies = e->max == GRAMMAR_NO_LIMIT ? (min ? min : 1) : e->max;
    return copies == 1 || (copies <= EXPAND_STEPS && (uint64_t)copies * steps <= EXPAND_STEPS);
}

bool facts_expand(const struct grammar_builder *b, const struct facts *f, grammar_expr repeat) {
    return expanded(b, f, repeat, f->size[b->expr[repeat].first][1].steps);
}

static struct fact_size size_repeat(const struct grammar_builder *b, const struct facts *f,
                                    grammar_expr id) {
    const struct expr *e = &b->expr[id];
    struct fact_size s = f->size[e->first][1];
    uint32_t min = facts_min(b, f, id);
    if (!expanded(b, f, id, s.steps))
        return (struct fact_size){.steps = 1, .counts = true, .height = s.height};
    if (e->max == GRAMMAR_NO_LIMIT) s.endless = true;
    s.steps *= e->max == GRAMMAR_NO_LIMIT ? (min ? min : 1) : e->max;
    return s;
}

static struct fact_size size_of(const struct grammar_builder *b, const struct facts *f,
                                grammar_expr id, bool repeated) {
    enum { MANY = 1 << 24 };
    const struct expr *e = &b->expr[id];
    const grammar_expr *part;
    uint32_t n = parts_of(b, id, &part);
    struct fact_size s = {0};
    if (!(f->fact[id] & FACT_FRUITFUL)) return s;
    switch (e->kind) {
        case EXPR_TEXT: s.steps = e->n; break;
        case EXPR_CLASS:
            s.steps = b->range[e->first + e->n - 1].high < 0x80 ? 1 : CLASS_STEPS;
            break;
        case EXPR_TOKEN: s.steps = 1; break;
        case EXPR_REPEAT: s = size_repeat(b, f, id); break;
        case EXPR_RULE:
            if (inlined(f, part[0], repeated)) {
                s = f->size[part[0]][repeated];
                s.height++;
            } else {
                s = (struct fact_size){.steps = 1, .calls = true};
            }
            break;
        default:
            for (uint32_t i = 0; i < n; i++) {
                const struct fact_size *p = &f->size[part[i]][repeated];
                s.steps += p->steps;
                s.calls |= p->calls;
                s.counts |= p->counts;
                s.endless |= p->endless;
                if (p->height > s.height) s.height = p->height;
                if (s.steps > MANY) s.steps = MANY;
            }
    }
    return s;
}

/* ---- the whole ------------------------------------------------------------------------------- */

void facts_close(struct facts *f) {
    free(f->fact);
    free(f->size);
    free(f->order);
    *f = (struct facts){0};
}

ob_status facts_open(const struct grammar_builder *b, grammar_rule root, struct facts *out,
                     ob_error *error) {
    *out = (struct facts){.fact = calloc(b->expr_n, 1),
                          .size = calloc(b->expr_n, sizeof *out->size),
                          .order = calloc(b->expr_n, sizeof *out->order)};
    grammar_expr top = b->rule[root].expr;
    ob_status status = OB_OK;
    if (!out->fact || !out->size || !out->order)
        status = error_memory(error, "a grammar", b->expr_n * sizeof *out->size);
    else if (!top) status = undefined(b, root, error);
    if (!status) status = find_order(b, out, top, error);
    if (!status) status = find_facts(b, out, error);
    if (!status) status = refuse_left_recursion(b, out, error);
    if (!status && !(out->fact[top] & FACT_FRUITFUL))
        status = error_set(error, OB_ERR_ARGUMENT, "the grammar matches no text");
    for (uint32_t i = 0; !status && i < out->order_n; i++) {
        grammar_expr id = out->order[i];
        for (int repeated = 0; repeated < 2; repeated++)
            out->size[id][repeated] = size_of(b, out, id, repeated);
    }
    if (status) facts_close(out);
    return status;
}
