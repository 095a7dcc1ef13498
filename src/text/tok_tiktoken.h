/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_tiktoken.h: tokenizers of directories without a tokenizer.json: Mistral's tekken.json and
 * files in tiktoken's format. Both list the bytes of tokens by rank, and a pair joins when its
 * bytes are a token, the lowest rank first: BPE whose merges are all ways to make a token of two
 * others. */
#ifndef TEXT_TOK_TIKTOKEN_H
#define TEXT_TOK_TIKTOKEN_H

#include <jansson.h>

#include "text/tok_impl.h"

ob_status tok_tekken(struct tok *tok, struct str json, ob_error *error);

/* What tells how to read a file in tiktoken's format, by "tokenizer_class" of
 * tokenizer_config.json: it holds neither expression nor special tokens. NULL: not known. */
struct tiktoken_kind;
const struct tiktoken_kind *tiktoken_kind_of(struct str class);
bool tiktoken_is_file(const struct tiktoken_kind *kind, struct str name);
/* config: tokenizer_config.json. */
ob_status tok_tiktoken(struct tok *tok, const struct tiktoken_kind *kind, struct str text,
                       const json_t *config, ob_error *error);

#endif
