/* SPDX-License-Identifier: Apache-2.0
 * prompt.h: the prompts of a request: a conversation that the model's template writes out, texts
 * and token ids, a gap between two texts that the model fills. */
#ifndef SERVER_PROMPT_H
#define SERVER_PROMPT_H

#include "server/wording.h"

/* Answers to one request at most, and prompts. */
enum { PROMPT_CHOICES = 128 };

/* "messages", by the model's template. */
ob_status prompt_chat(const ob_engine *engine, const json_t *request, const struct params *params,
                      struct opening *out, ob_error *error);
/* "prompt": a text, token ids, both mixed, or a list of such; with "suffix" the text between. */
ob_status prompt_texts(const ob_engine *engine, const json_t *request, const struct params *params,
                       struct opening *out, ob_error *error);
/* A text, or a list of texts and token ids: one sequence. `field` is for errors. */
ob_status prompt_tokens(const ob_engine *engine, const json_t *value, bool add_special,
                        bool parse_special, const char *field, ob_tokens *out, ob_error *error);
/* What the model needs to write what stands between two texts, by its own tokens for that;
 * OB_ERR_UNSUPPORTED if it has none. `extra`: of other files, [{"filename", "text"}] or NULL. */
ob_status prompt_infill(const ob_engine *engine, struct str prefix, struct str suffix,
                        struct str behind, const json_t *extra, ob_tokens *out, ob_error *error);
/* One more prompt; takes it over. */
ob_status prompt_add(struct opening *opening, ob_tokens *prompt, ob_error *error);
void opening_free(struct opening *opening);

#endif
