/* SPDX-License-Identifier: Apache-2.0
 * chat_match.c: see chat_match.h. */
#include "text/chat_match.h"

enum match match_at(struct str text, size_t at, struct str mark) {
    size_t n = text.n - at < mark.n ? text.n - at : mark.n;
    if (n && memcmp(text.p + at, mark.p, n) != 0) return MATCH_NO;
    return n == mark.n ? MATCH_YES : MATCH_PART;
}

size_t match_find(struct str text, size_t from, const struct str *mark, size_t n, bool last,
                  size_t *which) {
    for (size_t at = from; at < text.n; at++) {
        size_t best = n;
        bool part = false;
        for (size_t k = 0; k < n; k++) {
            if (text.p[at] != mark[k].p[0]) continue;
            enum match match = match_at(text, at, mark[k]);
            if (match == MATCH_PART) part = true;
            if (match == MATCH_YES && (best == n || mark[k].n > mark[best].n)) best = k;
        }
        /* a part at the end of the text is as long as what is left: longer than any whole one */
        *which = part && !last ? n : best;
        if ((part && !last) || best < n) return at;
    }
    *which = n;
    return text.n;
}
