/* SPDX-License-Identifier: Apache-2.0
 * responses.h: requests of OpenAI's responses API in the words of chat completions. */
#ifndef SERVER_RESPONSES_H
#define SERVER_RESPONSES_H

#include "server/wording.h"

ob_status responses_translate(struct server *server, const json_t *request, json_t **out,
                              ob_error *error);
extern const char *const responses_fields[][2];

#endif
