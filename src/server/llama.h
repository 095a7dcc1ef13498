/* SPDX-License-Identifier: Apache-2.0
 * llama.h: what the wordings of llama-server's own routes have in common. */
#ifndef SERVER_LLAMA_H
#define SERVER_LLAMA_H

#include "server/wording.h"

/* Refuses what llama-server does and this server does not. */
ob_status llama_translate(struct server *server, const json_t *request, json_t **out,
                          ob_error *error);
json_t *llama_whole(struct answer *answer, const struct said *said);
void llama_piece(struct answer *answer, const struct piece *piece, struct buf *out);
void llama_ending(struct answer *answer, const struct said *said, struct buf *out);

#endif
