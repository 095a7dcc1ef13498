/* SPDX-License-Identifier: Apache-2.0
 * tok_gemma4.c: Gemma 4's tokenizer: BPE whose tokens spell characters, with U+2581 for spaces; its
 * GGUF files name it as a model of its own and no pre-tokenizer. */
#include "text/tok_impl.h"

static ob_status open_gguf(struct tok *tok, const struct gguf *gguf, ob_error *error) {
    return tok_bpe_open(tok, gguf, STR_LIT("gemma4"), error);
}

const struct tok_model tokenizer_gemma4 = {
    .name = "bpe",
    .gguf = "gemma4",
    .open_gguf = open_gguf,
    .encode = tok_bpe_encode,
};
