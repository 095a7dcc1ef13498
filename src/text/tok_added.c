/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_added.c: see tok_added.h. A trie whose children are lists: added tokens share prefixes, and a
 * text leaves the trie at the first byte nearly everywhere. */
#include "text/tok_added.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/unicode.h"

static bool grow(void **p, uint32_t *cap, uint32_t n, size_t size) {
    if (n < *cap) return true;
    uint32_t more = *cap ? *cap * 2 : 64;
    void *q = more > *cap ? realloc(*p, more * size) : NULL;
    if (!q) return false;
    *p = q;
    *cap = more;
    return true;
}

static uint32_t child_of(const struct added *added, uint32_t node, unsigned char byte) {
    uint32_t i = added->node[node].child;
    while (i && added->node[i].byte != byte) i = added->node[i].sibling;
    return i;
}

static uint32_t add_child(struct added *added, uint32_t parent, unsigned char byte) {
    if (!grow((void **)&added->node, &added->node_cap, added->nodes, sizeof *added->node)) return 0;
    uint32_t i = added->nodes++;
    added->node[i] = (struct added_node){.byte = byte, .sibling = added->node[parent].child};
    added->node[parent].child = i;
    return i;
}

ob_status added_put(struct added *added, struct str text, struct added_token token,
                    ob_error *error) {
    if (text.n == 0) return OB_OK;
    if (!added->nodes) {
        if (!grow((void **)&added->node, &added->node_cap, 0, sizeof *added->node))
            return error_memory(error, "added tokens", 0);
        added->node[added->nodes++] = (struct added_node){0};
    }
    uint32_t node = 0;
    for (size_t i = 0; i < text.n; i++) {
        unsigned char byte = (unsigned char)text.p[i];
        uint32_t child = child_of(added, node, byte);
        if (!child) child = add_child(added, node, byte);
        if (!child) return error_memory(error, "added tokens", added->nodes);
        node = child;
    }
    if (!grow((void **)&added->token, &added->cap, added->n, sizeof *added->token))
        return error_memory(error, "added tokens", added->n);
    added->token[added->n++] = token;
    added->node[node].token = added->n;
    added->first[(unsigned char)text.p[0]] = true;
    return OB_OK;
}

void added_set_control(struct added *added, int32_t id) {
    for (uint32_t i = 0; i < added->n; i++)
        if (added->token[i].id == id) added->token[i].control = true;
}

void added_free(struct added *added) {
    free(added->token);
    free(added->node);
    *added = (struct added){0};
}

/* \w of the reference's single_word rule, which has joiners too. */
static bool word_char(uint32_t code) {
    return unicode_is_word(code) || code == 0x200c || code == 0x200d;
}

/* Start of the character that ends before p[at]. */
static size_t before(const char *p, size_t from, size_t at, uint32_t *code) {
    for (size_t back = 1; back <= 4 && back <= at - from; back++)
        if (utf8_decode(p + at - back, back, code) == back && *code != UTF8_BAD) return at - back;
    *code = UTF8_BAD;
    return at - 1;
}

static bool alone(const char *p, size_t n, size_t start, size_t end) {
    uint32_t code;
    if (start > 0 && (before(p, 0, start, &code), word_char(code))) return false;
    return end == n || (utf8_decode(p + end, n - end, &code), !word_char(code));
}

static void widen(const char *p, size_t n, size_t from, const struct added_token *token,
                  struct added_match *m) {
    uint32_t code;
    while (token->left && m->start > from) {
        size_t at = before(p, from, m->start, &code);
        if (!unicode_is_space(unicode_of(code))) break;
        m->start = at;
    }
    while (token->right && m->end < n) {
        size_t len = utf8_decode(p + m->end, n - m->end, &code);
        if (!unicode_is_space(unicode_of(code))) break;
        m->end += len;
    }
}

struct added_match added_find(const struct added *added, const char *p, size_t n, size_t from,
                              const uint8_t *trust, bool trusted) {
    for (size_t start = from; added->nodes && start < n; start++) {
        if (!added->first[(unsigned char)p[start]]) continue;
        bool control = trust == NULL && trusted; /* are all bytes so far trusted? */
        const struct added_token *best = NULL;
        struct added_match m = {.start = start};
        uint32_t node = 0;
        for (size_t at = start; at < n; at++) {
            node = child_of(added, node, (unsigned char)p[at]);
            if (!node) break;
            if (trust) control = (at == start || control) && trust[at];
            const struct added_token *token =
                added->node[node].token ? &added->token[added->node[node].token - 1] : NULL;
            if (!token || (token->control && !control)) continue;
            if (token->word && !alone(p, n, start, at + 1)) continue;
            best = token;
            m.end = at + 1;
        }
        if (best) {
            m.id = best->id;
            widen(p, n, from, best, &m);
            return m;
        }
    }
    return (struct added_match){n, n, -1};
}
