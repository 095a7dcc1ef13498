/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_rwkv.c: RWKV's "world" tokenizer: at each place the longest token of the vocabulary. A GGUF
 * spells tokens with the escapes \t \n \r \xHH and \ before any other character, since they are
 * bytes. */
#include <stdlib.h>

#include "base/error.h"
#include "text/tok_impl.h"

static bool encode(const struct tok *tok, struct tok_work *work, struct str piece) {
    const struct trie *trie = &tok->trie;
    for (size_t at = 0; at < piece.n;) {
        int32_t best = -1;
        size_t end = at + 1;
        uint32_t node = 0;
        for (size_t i = at; i < piece.n; i++) {
            node = trie_child(trie, node, (unsigned char)piece.p[i]);
            if (!node) break;
            if (trie->node[node].id < 0) continue;
            best = trie->node[node].id;
            end = i + 1;
        }
        if (best < 0) best = tok->unk;
        if (best >= 0 && !tok_work_put(work, best)) return false;
        at = end;
    }
    return true;
}

static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Writes the bytes a token stands for over its text; false: a malformed escape. */
static bool unescape(char *p, size_t *n) {
    size_t to = 0;
    for (size_t i = 0; i < *n; i++) {
        char c = p[i];
        if (c == '\\') {
            if (++i == *n) return false;
            c = p[i];
            if (c == 't') c = '\t';
            else if (c == 'n') c = '\n';
            else if (c == 'r') c = '\r';
            else if (c == 'x') {
                if (*n - i < 3 || hex(p[i + 1]) < 0 || hex(p[i + 2]) < 0) return false;
                c = (char)(hex(p[i + 1]) << 4 | hex(p[i + 2]));
                i += 2;
            }
        }
        p[to++] = c;
    }
    *n = to;
    return true;
}

static ob_status open_gguf(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    (void)gguf;
    size_t n = 0;
    struct trie_entry *entry = malloc(((size_t)tok->vocab.n + 1) * sizeof *entry);
    if (!entry) return error_memory(error, "trie of tokens", tok->vocab.n);
    for (uint32_t id = 0; id < tok->vocab.n; id++) {
        if (!vocab_is_data(&tok->vocab, (int32_t)id)) continue;
        struct str *text = &tok->vocab.text[id];
        char *copy = arena_copy(&tok->arena, text->p, text->n);
        if (!copy || !unescape(copy, &text->n)) {
            free(entry);
            return copy ? error_set(error, OB_ERR_FORMAT, "token %u has a malformed escape", id)
                        : error_memory(error, "vocabulary", text->n);
        }
        text->p = copy;
        if (text->n) entry[n++] = (struct trie_entry){*text, (int32_t)id};
    }
    ob_status status = trie_build(&tok->trie, entry, n, &tok->arena, error);
    free(entry);
    tok->describe = "rwkv";
    /* The texts are others now. */
    return status == OB_OK ? vocab_index(&tok->vocab, &tok->arena, error) : status;
}

const struct tok_model tokenizer_rwkv = {
    .name = "rwkv",
    .gguf = "rwkv",
    .open_gguf = open_gguf,
    .encode = encode,
};
