/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_cut.h: pre-tokenizing as stages: each cuts a piece of text into smaller ones, drops some, or
 * writes it anew, and hands each result to the next stage, the last to the model. Depth first, so
 * pieces come in order and nothing is collected. */
#ifndef TEXT_TOK_CUT_H
#define TEXT_TOK_CUT_H

#include "base/buf.h"
#include "base/str.h"
#include "text/pretok.h"
#include "text/regex.h"

struct cut;
struct tok;
struct tok_work;

/* `start`: the text is the beginning of what the caller gave. */
typedef bool cut_fn(const struct tok *tok, struct tok_work *work, size_t stage, struct str text,
                    bool start);

/* What becomes of the matches of a split. */
enum cut_behavior {
    CUT_ISOLATED,
    CUT_REMOVED,
    CUT_CONTIGUOUS, /* matches that follow each other are one */
    CUT_WITH_PREVIOUS,
    CUT_WITH_NEXT,
};

enum cut_prefix { CUT_NEVER, CUT_FIRST, CUT_ALWAYS };

struct cut {
    cut_fn *apply;
    /* Of splits: the next match; it is a rule, an expression, a string or a class. */
    enum regex_result (*find)(const struct cut *cut, struct tok_work *work, struct str text,
                              size_t from, size_t *start, size_t *end);
    enum cut_behavior behavior;
    bool invert; /* what does not match is cut out */
    const struct rule *rule;
    struct regex *regex; /* owned by the tokenizer */
    struct str string;   /* to find; a prefix; what replaces a space */
    bool (*in)(uint32_t code);
    enum cut_prefix prefix;
    size_t length;
};

cut_fn cut_by_rule;    /* a rule with `next`, isolated */
cut_fn cut_split;      /* find, behavior, invert */
cut_fn cut_prefix;     /* `string` before a piece that does not start with it */
cut_fn cut_metaspace;  /* spaces by `string`, which goes before the piece too as `prefix` says */
cut_fn cut_lines;      /* the same for pieces that are no newlines: a GGUF's PRETOK_WORDS */
cut_fn cut_bytes;      /* bytes in the byte-level alphabet */
cut_fn cut_scripts;    /* where the script changes */
cut_fn cut_length;     /* every `length` characters */

enum regex_result cut_find_rule(const struct cut *cut, struct tok_work *work, struct str text,
                                size_t from, size_t *start, size_t *end);
enum regex_result cut_find_regex(const struct cut *cut, struct tok_work *work, struct str text,
                                 size_t from, size_t *start, size_t *end);
enum regex_result cut_find_string(const struct cut *cut, struct tok_work *work, struct str text,
                                  size_t from, size_t *start, size_t *end);
enum regex_result cut_find_class(const struct cut *cut, struct tok_work *work, struct str text,
                                 size_t from, size_t *start, size_t *end);
enum regex_result cut_find_words(const struct cut *cut, struct tok_work *work, struct str text,
                                 size_t from, size_t *start, size_t *end); /* \w+|[^\w\s]+ */

bool cut_is_number(uint32_t code);
bool cut_is_space(uint32_t code);
bool cut_is_punctuation(uint32_t code);

/* Expressions search a text with malformed bytes in a copy that has controls in their place, of
 * which they know as little. False: out of memory. */
bool cut_repair(struct str text, struct buf *out);

/* The stage for an expression isolated: by hand if the list has it. */
ob_status cut_open_regex(struct str regex, struct cut *cut, ob_error *error);

#endif
