/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_hf_read.h: reading the small components of tokenizer.json: a row says how to read each type;
 * a Sequence is its elements in order. What has no row, and a setting that asks for something we
 * lack, is refused by its name. */
#ifndef TEXT_TOK_HF_READ_H
#define TEXT_TOK_HF_READ_H

#include <jansson.h>

#include "text/tok_impl.h"

struct hf_reader { /* what reading a section needs and finds */
    struct tok *tok;
    const char *section;
    ob_error *error;
    bool fused; /* decoder: tokens are one text from here on */
    bool bytes; /* the last pre-tokenizer: ByteLevel */
    bool posted; /* a post-processor that adds tokens was there */
};

struct hf_row {
    const char *type;
    ob_status (*read)(struct hf_reader *r, const json_t *part);
};

extern const struct hf_row hf_normalizers[], hf_pretokenizers[], hf_post_processors[],
    hf_decoders[]; /* type NULL at the end */

/* A member that is a string: "" if there is none, a boolean, a number. */
struct str hf_str(const json_t *part, const char *key);
bool hf_bool(const json_t *part, const char *key, bool missing);
/* "section": TYPE SETTING is not supported. */
ob_status hf_refuse(const struct hf_reader *r, const json_t *part, const char *setting);
/* A copy in the tokenizer's memory; n = 0 and p = NULL when out of it. */
struct str hf_keep(const struct hf_reader *r, struct str text);
/* pattern: {"String": s} or {"Regex": e}: one of them has n > 0, else it is refused. */
ob_status hf_pattern(const struct hf_reader *r, const json_t *part, struct str *string,
                     struct str *regex);
ob_status hf_step(const struct hf_reader *r, normal_fn *apply, struct str from, struct str to);

#endif
