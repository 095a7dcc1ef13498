/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_impl.h: what the files of chat.h share: a template with what it understands (chat_form.c),
 * and a request in the form a template wants (chat_fit.c). */
#ifndef TEXT_CHAT_IMPL_H
#define TEXT_CHAT_IMPL_H

#include <jansson.h>

#include "text/chat.h"
#include "text/chat_parse.h"
#include "text/jinja/jinja.h"

/* A template and what it understands. */
struct form {
    struct str source;
    struct jinja *jinja;
    bool text_content, part_content, text_arguments;
};

/* Keeps source.p. close also takes a zeroed form. */
ob_status chat_form_open(const struct tok *tok, struct str source, struct form *out,
                         ob_error *error);
void chat_form_close(struct form *form);
/* data: the template's names. Appends to text and trust (may be NULL). */
ob_status chat_render(const struct tok *tok, const struct jinja *jinja, const json_t *data,
                      struct buf *text, struct buf *trust, ob_error *error);

/* chat_detect.c: how the model writes tool calls. */
const struct chat_format *chat_detect(const struct tok *tok, const struct form *form);

/* Ends the message that is to be continued, so that it is found in what the template made of it;
 * the space shows whether the template trims. */
#define CHAT_MARK "[[the-last-message-ends-here]] "

/* Fills `data`, the template's names. *continues: the request asks for the last message to be
 * continued, so its text ends with CHAT_MARK. */
ob_status chat_fit(const struct form *form, const json_t *request, json_t *data, bool *continues,
                   ob_error *error);

#endif
