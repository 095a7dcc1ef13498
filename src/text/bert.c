/* SPDX-License-Identifier: Apache-2.0
 * bert.c: see bert.h: sorted ranges, halved. */
#include "text/bert.h"

#include <stddef.h>

struct range {
    uint32_t first, last;
};
struct run { /* every step-th code point from first to last, to which `add` is added */
    uint32_t first, last, step;
    int32_t add;
};

#include "text/bert_table.h"

static bool in(const struct range *list, size_t n, uint32_t code) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (code < list[mid].first) high = mid;
        else if (code > list[mid].last) low = mid + 1;
        else return true;
    }
    return false;
}
#define IN(list, code) in((list), sizeof(list) / sizeof(list)[0], (code))

bool bert_is_removed(uint32_t code) { return IN(removed, code); }
bool bert_is_chinese(uint32_t code) { return IN(chinese, code); }
bool bert_is_mark(uint32_t code) { return IN(dropped, code); }
bool bert_is_whole(uint32_t code) { return IN(whole, code); }
bool bert_is_whole_compat(uint32_t code) { return IN(whole_compat, code); }
bool bert_is_combining(uint32_t code) { return IN(combining, code); }
bool bert_is_punctuation(uint32_t code) { return IN(punctuation, code); }

uint32_t bert_lower(uint32_t code) {
    size_t low = 0, high = sizeof lower / sizeof lower[0];
    while (low < high) { /* the last run that does not begin after it */
        size_t mid = (low + high) / 2;
        if (lower[mid].first <= code) low = mid + 1;
        else high = mid;
    }
    if (low == 0) return code;
    const struct run *r = &lower[low - 1];
    return code <= r->last && (code - r->first) % r->step == 0 ? code + (uint32_t)r->add : code;
}
