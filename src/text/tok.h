/* SPDX-License-Identifier: Apache-2.0
 *
 * tok.h: tokenizers: bytes to token ids and back, from a GGUF's metadata or a Hugging Face
 * directory's files. A tokenizer model is one tok_<model>.c and a row in tokenizers.def; a
 * pre-tokenizer a row in pretok.def. Immutable after open, so thread safe.
 *
 * Trust: a CONTROL token (GGUF token type 3, "special": true) is only recognised in bytes marked
 * trusted; other added tokens (type 4, "special": false) everywhere, as the reference does. */
#ifndef TEXT_TOK_H
#define TEXT_TOK_H

#include "base/buf.h"
#include "format/source.h"
#include "onebit.h"

struct tok;

ob_status tok_open(const struct source *source, struct tok **out, ob_error *error);
void tok_close(struct tok **tok);

/* Appends to *ids (malloc'd, grown; start from a zeroed ob_tokens). `trust` has one byte for each
 * of text's (non-zero: trusted), or is NULL: all as `parse_special` says. add_special: BOS and EOS
 * as the tokenizer's settings say; BOS is never doubled when the text already starts with it. */
ob_status tok_encode(const struct tok *tok, const char *text, size_t n, const uint8_t *trust,
                     bool parse_special, bool add_special, ob_tokens *ids, ob_error *error);

/* The bytes a token stands for, appended; control tokens give nothing unless `special`. Ids out of
 * range give nothing. Pieces of one sequence joined are its text, except for what the tokenizer
 * strips at the start of a text (SentencePiece's first space): `first` says so. */
void tok_piece(const struct tok *tok, int32_t id, bool special, bool first, struct buf *out);

uint32_t tok_count(const struct tok *tok);
/* The token as the vocabulary spells it. */
struct str tok_text(const struct tok *tok, int32_t id);
int32_t tok_find(const struct tok *tok, struct str text); /* -1 if none */
bool tok_is_control(const struct tok *tok, int32_t id);
/* In the union of what the files call an end of generation. */
bool tok_is_end(const struct tok *tok, int32_t id);
int32_t tok_bos(const struct tok *tok); /* -1: none */
int32_t tok_eos(const struct tok *tok);
bool tok_adds_bos(const struct tok *tok);
/* "bpe (qwen2)", for info. */
const char *tok_describe(const struct tok *tok);
/* The Jinja source of the chat template, n = 0 if the files have none. `name`: NULL for the
 * default, or a named one ("tool_use"). */
struct str tok_template(const struct tok *tok, const char *name);

/* Puts the tokenizer's keys into a GGUF file whose embedding has `vocab` rows. Refuses what GGUF
 * cannot say. */
struct gguf_writer;
ob_status tok_export(const struct tok *tok, uint32_t vocab, struct gguf_writer *writer,
                     ob_error *error);

/* ---- streaming detokenizer: never gives half a character ---- */
struct tok_stream {
    const struct tok *tok;
    struct buf held; /* bytes of an unfinished character */
    bool special, started;
};
void tok_stream_init(struct tok_stream *s, const struct tok *tok, bool special);
/* Appends to out what became whole by this token. */
void tok_stream_add(struct tok_stream *s, int32_t id, struct buf *out);
/* Appends what is held, malformed bytes included. */
void tok_stream_end(struct tok_stream *s, struct buf *out);
void tok_stream_free(struct tok_stream *s);

#endif
