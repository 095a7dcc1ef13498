/* SPDX-License-Identifier: Apache-2.0
 * json_array.c: arrays: first items with schemas of their own, then any number of others; see
 * json_schema.h. */
#include <stdlib.h>

#include "sample/schema/json_schema.h"

/* What the set says of item k; behind all prefixes it says the same of each. */
static struct set item_set(struct json_schema *s, const struct set *set, size_t k) {
    struct set none = {0}, out = set_copy(s, &none);
    for (uint32_t i = 0; i < set->n && schema_works(s, 1); i++) {
        const json_t *prefix = schema_get(set->item[i].schema, "prefixItems");
        const json_t *one = json_array_get(prefix, k);
        if (!one) one = schema_items(set->item[i].schema);
        if (one) set_add(s, &out, one);
    }
    return out;
}

static size_t longest_prefix(struct json_schema *s, const struct set *set, bool *open) {
    size_t longest = 0;
    bool others = false;
    for (uint32_t i = 0; i < set->n; i++) {
        const json_t *prefix = schema_get(set->item[i].schema, "prefixItems");
        if (json_array_size(prefix) > longest) longest = json_array_size(prefix);
        others |= schema_items(set->item[i].schema) != NULL;
    }
    *open = longest == 0 || others || s->options.open;
    return longest;
}

static grammar_expr seq2(struct json_schema *s, grammar_expr a, grammar_expr b) {
    return grammar_seq(s->b, (const grammar_expr[]){a, b}, 2);
}

grammar_expr array_expr(struct json_schema *s, const struct set *set, const struct facts *f) {
    bool open;
    size_t prefix = longest_prefix(s, set, &open);
    uint32_t min = f->min_items, max = f->max_items;
    if (s->status != OB_OK || !schema_works(s, prefix + 1)) return 0;
    /* What "items" leaves open is left out, unless it is needed. */
    if (!open && min <= prefix && max > prefix) max = (uint32_t)prefix;
    grammar_expr *item = arena_array(&s->arena, prefix + 1, sizeof *item);
    if (!item) return schema_out_of_memory(s), 0;
    for (size_t k = 0; k <= prefix && k < max; k++) {
        struct set one = item_set(s, set, k);
        if (one.never) max = (uint32_t)k;
        else item[k] = set_use(s, &one);
    }
    if (s->status != OB_OK) return 0;
    if (min > max) return grammar_nothing(s->b);
    if (max == 0) return json_between(&s->text, "[", grammar_nothing(s->b), "]", true);
    /* From the end: what may follow the first k items, k > 0. */
    grammar_expr tail = grammar_empty(s->b);
    size_t shown = prefix < max ? prefix : max;
    if (max > prefix) {
        uint32_t first = prefix ? 0 : 1; /* of the others, the first has no comma */
        uint32_t least = min > prefix + first ? min - (uint32_t)prefix - first : 0;
        uint32_t most = max == GRAMMAR_NO_LIMIT ? max : max - (uint32_t)prefix - first;
        tail = grammar_repeat(s->b, seq2(s, s->text.comma, item[prefix]), least, most);
    }
    for (size_t k = shown; k-- > 1;) {
        tail = seq2(s, seq2(s, s->text.comma, item[k]), tail);
        if (k >= min) tail = grammar_repeat(s->b, tail, 0, 1);
    }
    return json_between(&s->text, "[", seq2(s, item[0], tail), "]", min == 0);
}
