/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar.h: face of sample/grammar/: what text, and so which tokens, a grammar allows next.
 *
 * A grammar is compiled from rules (build.h; read from GBNF, a JSON schema or a regular expression)
 * to a pushdown automaton over bytes. A vocabulary is the trie of the tokens' bytes. A state is
 * where a text stands in a grammar, and says as a mask which tokens may follow: those whose bytes
 * the automaton can go on with, to their last byte. Every text that is allowed can be completed.
 *
 * Limits bound what a hostile grammar or text costs: readings of a text alive at once, the depth of
 * stacks, the steps of a mask. A state that meets one allows nothing more, and grammar_mask says so
 * (OB_ERR_LIMIT); nothing is dropped to go on. docs/grammars.md has them. */
#ifndef SAMPLE_GRAMMAR_GRAMMAR_H
#define SAMPLE_GRAMMAR_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "onebit.h"
#include "sample/sample.h"

/* ---- grammars: immutable, thread safe, counted ---- */
struct grammar;
struct grammar *grammar_keep(struct grammar *grammar);
void grammar_drop(struct grammar **grammar);

/* ---- vocabularies: one a model; the cache of masks inside is locked, so thread safe ---- */
struct grammar_vocab;
ob_status grammar_vocab_open(const struct sample_vocab *vocab, struct grammar_vocab **out,
                             ob_error *error);
void grammar_vocab_close(struct grammar_vocab **vocab);

/* ---- states: one a sequence; not thread safe ---- */
struct grammar_state;
/* Keeps (counts) the grammar, borrows the vocabulary. Without one (NULL) the state goes on by bytes
 * alone, and grammar_mask and grammar_accept may not be called. */
ob_status grammar_state_open(struct grammar *grammar, struct grammar_vocab *vocab,
                             struct grammar_state **out, ob_error *error);
/* An equal one: for drafts of several tokens, and for going back. */
ob_status grammar_state_copy(const struct grammar_state *from, struct grammar_state **out,
                             ob_error *error);
void grammar_state_close(struct grammar_state **state);

/* mask [(vocab size + 31) / 32]: bit id % 32 of word id / 32: the token may come next. Tokens that
 * end generation are allowed if and only if the text so far is whole. OB_ERR_MEMORY;
 * OB_ERR_LIMIT, here and from then on. */
ob_status grammar_mask(struct grammar_state *state, uint32_t *mask, ob_error *error);
/* Goes on by a token; false, and the state stays, if it is not allowed. A token that ends
 * generation is allowed where the text is whole, and leaves nothing allowed behind it. */
bool grammar_accept(struct grammar_state *state, int32_t id);
/* Goes on by bytes, as far as they are allowed; returns how many were. */
size_t grammar_accept_bytes(struct grammar_state *state, struct str bytes);
/* Whether the text so far is whole, and whether nothing may follow it. */
bool grammar_is_whole(const struct grammar_state *state);
bool grammar_is_over(const struct grammar_state *state);
/* Bytes that must come next, whatever follows them: appended to out, at most `most`. */
struct buf;
void grammar_forced(const struct grammar_state *state, size_t most, struct buf *out);

#endif
