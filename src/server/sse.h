/* SPDX-License-Identifier: Apache-2.0
 * sse.h: server-sent events (HTML Living Standard, section 9.2) as the OpenAI API uses them. */
#ifndef SERVER_SSE_H
#define SERVER_SSE_H

#include <jansson.h>

#include "base/buf.h"

#define SSE_TYPE "text/event-stream"

/* Appends "data: JSON"; takes json over. NULL, or no memory, fails the buffer. */
void sse_json(struct buf *out, json_t *json);
void sse_done(struct buf *out); /* "data: [DONE]" */

#endif
