/* SPDX-License-Identifier: Apache-2.0
 * tok_wordlevel.c: words of the vocabulary, whole, and the unknown token. Only tokenizer.json has
 * it. */
#include "text/tok_impl.h"

static bool encode(const struct tok *tok, struct tok_work *work, struct str piece) {
    int32_t id = vocab_find_data(&tok->vocab, piece);
    if (id < 0) id = tok->unk;
    return id < 0 || tok_work_put(work, id);
}

const struct tok_model tokenizer_wordlevel = {.name = "wordlevel", .encode = encode};
