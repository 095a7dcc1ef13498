/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_impl.h: the inside of a tokenizer, for the files of text/tok*. The pipeline, as in the
 * reference: cut out added tokens -> normalize what is between -> cut out added tokens that are
 * matched in normalized text -> pre-tokenize -> model. Immutable after opening. */
#ifndef TEXT_TOK_IMPL_H
#define TEXT_TOK_IMPL_H

#include "base/arena.h"
#include "format/gguf.h"
#include "text/tok.h"
#include "text/tok_added.h"
#include "text/tok_cut.h"
#include "text/tok_memo.h"
#include "text/tok_merge.h"
#include "text/tok_normal.h"
#include "text/tok_trie.h"
#include "text/tok_vocab.h"

struct tok_work;

/* One row of tokenizers.def. */
struct tok_model {
    const char *name; /* for people */
    const char *gguf; /* tokenizer.ggml.model, NULL: none */
    /* Reads what only this model has; the vocabulary is there already. */
    ob_status (*open_gguf)(struct tok *tok, const struct gguf *gguf, ob_error *error);
    /* The tokens of one piece of text (n >= 1) to work; false when out of memory. */
    bool (*encode)(const struct tok *tok, struct tok_work *work, struct str piece);
};

/* One step of turning a normal token to text: appends what becomes of `text`. `first`: the token is
 * the first of its text. */
struct decode_step {
    void (*apply)(const struct tok *tok, const struct decode_step *step, struct str text,
                  bool first, struct buf *out);
    struct str from, to;
    uint32_t left, right;
};
typedef void decode_fn(const struct tok *tok, const struct decode_step *step, struct str text,
                       bool first, struct buf *out);
decode_fn decode_bytes;     /* byte-level alphabet to bytes */
decode_fn decode_replace;   /* `from` by `to` */
decode_fn decode_strip;     /* at most `left` times `from` at the start, `right` at the end */
decode_fn decode_words;     /* WordPiece's; `left`: and English cleaned up */
decode_fn decode_suffix;    /* the end-of-word mark `from` to a space */
decode_fn decode_join;      /* a space before all but the first: no decoder */
decode_fn decode_metaspace; /* `from` to a space; in a text's first token to nothing */
#define TOKENIZER(name) extern const struct tok_model tokenizer_##name;
#include "text/tokenizers.def"
#undef TOKENIZER

struct tok_pair { /* a merge; free slots have id -1 */
    int32_t left, right, id;
    uint32_t rank;
};

struct tok_named { /* a chat template */
    const char *name; /* NULL: the default */
    struct str text;
};

enum { TOK_WORD_MOST = 100 }; /* of a word, where the file does not say */
enum { TOK_STEPS = 24, TOK_CUTS = 12, TOK_DECODERS = 8, TOK_SIDE = 8, TOK_TEMPLATES = 16 };
enum { TOK_WAITING = 16 };

struct tok_steps {
    struct normal_step step[TOK_STEPS];
    size_t n;
};

struct tok {
    struct arena arena;
    const struct tok_model *model;
    struct cut cut[TOK_CUTS]; /* the pre-tokenizer; none: the text is one piece */
    size_t cuts;
    bool regexes; /* some are by PCRE2 */
    struct decode_step decode[TOK_DECODERS];
    size_t decoders;
    bool decodes_bytes; /* one is decode_bytes: added tokens are no such text */
    struct vocab vocab;
    struct added raw, normalized; /* matched in the text as given, in normalized text */
    struct tok_steps normal; /* before `normalized` is matched */
    int32_t bos, eos, unk; /* -1: none */
    bool add_bos, add_eos;
    struct tok_side { /* more tokens that go with BOS and EOS */
        int32_t id[TOK_SIDE];
        size_t n;
    } after_bos, before_eos;
    struct tok_named templates[TOK_TEMPLATES];
    size_t template_count;
    const char *describe;
    int32_t byte_id[256]; /* tokens of bytes (byte-level, or byte fallback); -1: none */
    uint32_t ranks; /* all ranks are below: merges, or tokens */
    /* of bpe */
    struct tok_pair *pair; /* hash table */
    uint32_t pair_mask;
    uint32_t expected; /* while opening: the token that the next merge should make */
    struct tok_pair waiting[TOK_WAITING]; /* and merges whose slots are on their way */
    uint32_t waiting_n;
    bool byte_level;  /* tokens spell bytes in the byte-level alphabet */
    bool whole_words; /* a piece that is a token is that token */
    bool fuse_unk;
    bool byte_fallback; /* what has no token becomes bytes, if all of them have tokens */
    struct str goes_on, ends; /* what the tokens of a word spell before all but their first
                               * character, after the last; n = 0: nothing */
    /* of spm, and of decoders like it */
    uint32_t *rank;   /* of each token: lower joins first; dense */
    bool joins[256];  /* bytes after which some token has a space */
    bool strip_space; /* decoding drops the first space of a text */
    /* of wordpiece: what is before the text of tokens that begin a word or go on in it; characters
     * of a word at most */
    struct str word_begins, word_goes_on;
    uint32_t word_most;
    /* of unigram, and the trie of rwkv */
    struct trie trie;
    double *score, unknown_score;
    bool scored_all; /* special tokens have scores like others: tokenizer.json */
    bool added_normalized; /* added tokens that are no control tokens belong to `normalized` */
};

/* What one tok_encode needs; freed at its end. */
struct tok_work {
    struct merge merge;
    struct word_memo memo;
    struct normal_text text[2];
    struct buf stage_text[TOK_CUTS], repaired[TOK_CUTS]; /* of the stages */
    struct regex_work regex;
    bool malformed; /* the text has bytes that are no UTF-8; told only if there are regexes */
    bool limit;     /* why it failed: an expression gave up; else it is memory */
    struct buf piece; /* scratch of the model */
    struct tok_way *way; /* of unigram */
    size_t way_cap;
    int32_t *id;
    size_t n, cap;
    const uint8_t *trust; /* of the text being cut up, NULL: all as `trusted` */
    bool trusted;
};
bool tok_work_put(struct tok_work *work, int32_t id);
bool tok_work_add(struct tok_work *work, const int32_t *id, size_t n);

/* Hands a piece to a stage, or to the model after the last one. */
bool tok_cut_rest(const struct tok *tok, struct tok_work *work, size_t stage, struct str text,
                  bool start);

/* The byte-level alphabet (GPT-2's bytes_to_unicode): a printable character for each byte. */
uint32_t tok_byte_char(uint8_t byte);
int tok_char_byte(uint32_t code); /* -1: not of the alphabet */

/* The trie and the unknown token's score, from vocabulary and scores. */
ob_status tok_unigram_index(struct tok *tok, ob_error *error);

/* The pre-tokenizer of GGUF files that does the same; NULL: none. */
const struct pretok *tok_pretok(const struct tok *tok);

/* Fills byte_id from the vocabulary: byte-level characters, or "<0x0A>". */
void tok_find_bytes(struct tok *tok);

/* Room for n merges, then each in order of rank. left and right are tokens as the file spells them;
 * a merge whose result is a control token is dropped: data never yields one. */
ob_status tok_pairs_init(struct tok *tok, uint64_t n, ob_error *error);
ob_status tok_pairs_put(struct tok *tok, uint32_t rank, struct str left, struct str right,
                        struct buf *scratch, ob_error *error);
void tok_pairs_end(struct tok *tok); /* after the last one */

/* Marks an end of generation (id -1: none). An added token that is one becomes a control token, as
 * in llama.cpp: data must not be able to end a turn. */
void tok_mark_end(struct tok *tok, int32_t id);
/* Marks the ends that are known by their text. */
void tok_find_ends(struct tok *tok);

/* A tokenizer without anything; NULL when out of memory. */
struct tok *tok_new(void);
ob_status tok_add_step(struct tok_steps *steps, struct normal_step step, ob_error *error);

ob_status tok_add_cut(struct tok *tok, struct cut cut, ob_error *error); /* takes its regex */
ob_status tok_add_regex(struct tok *tok, struct str regex, ob_error *error);
ob_status tok_add_bert_cuts(struct tok *tok, ob_error *error); /* spaces out, punctuation apart */
ob_status tok_add_decoder(struct tok *tok, struct decode_step step, ob_error *error);

/* A text through all normalizers, in the tokenizer's memory; false when out of it. */
bool tok_normalize(struct tok *tok, struct str text, struct str *out);

/* Copies a template; name.n = 0: the default one. */
ob_status tok_add_template(struct tok *tok, struct str name, struct str text, ob_error *error);

/* ---- bpe, for models that are it by another name ---- */

ob_status tok_bpe_open(struct tok *tok, const struct gguf *gguf, struct str pre, ob_error *error);
bool tok_bpe_encode(const struct tok *tok, struct tok_work *work, struct str piece);

ob_status tok_open_gguf(struct tok *tok, const struct gguf *gguf, ob_error *error);
ob_status tok_open_hf(struct tok *tok, const struct source *source, ob_error *error);

/* ---- tokenizer.json (tok_hf*.c) ---- */

/* The whole file: everything but what the other files of the directory say. */
ob_status tok_hf_json(struct tok *tok, struct str json, ob_error *error);
/* Members of a JSON object as raw text, p = NULL for absent ones. base: the file it is part of, for
 * the offsets of errors. */
struct tok_hf_member {
    const char *name;
    struct str value;
};
ob_status tok_hf_members(struct str object, struct str base, struct tok_hf_member *member, size_t n,
                         ob_error *error);
/* What model it is. */
ob_status tok_hf_type(struct tok *tok, struct str model, struct str base, ob_error *error);
/* The vocabulary with the added tokens in it; the model. */
ob_status tok_hf_vocab(struct tok *tok, struct str model, struct str added, struct str base,
                       ob_error *error);
/* The added tokens into the tries; after the normalizers. */
ob_status tok_hf_added(struct tok *tok, struct str added, struct str base, ob_error *error);
/* "normalizer": component X is not supported. */
ob_status tok_hf_refuse(ob_error *error, const char *section, const char *what);

/* ---- tok_export_spm.c ---- */

/* Is it what SentencePiece does, by merges? *prefix: a space is put before a text. */
bool tok_is_spm(const struct tok *tok, bool *prefix);
/* Puts scores and the prefix; OB_ERR_UNSUPPORTED if the merges say more than scores can. */
ob_status tok_export_spm(const struct tok *tok, uint32_t vocab, bool prefix,
                         struct gguf_writer *w, ob_error *error);

#endif
