/* SPDX-License-Identifier: Apache-2.0
 * sse.h: server-sent events (HTML Living Standard, section 9.2) as the OpenAI API uses them. */
#ifndef SERVER_SSE_H
#define SERVER_SSE_H

#include <jansson.h>

#include "base/buf.h"

#define SSE_TYPE "text/event-stream"
#define SSE_PING ": ping\n\n" /* a comment, which clients skip */
#define LINES_TYPE "application/x-ndjson"

/* Appends "data: JSON"; takes json over. NULL, or no memory, fails the buffer. */
void sse_json(struct buf *out, json_t *json);
void sse_done(struct buf *out); /* "data: [DONE]" */
/* The same with the event's name before it. */
void sse_event(struct buf *out, const char *name, json_t *json);
/* JSON as a line (NDJSON). */
void line_json(struct buf *out, json_t *json);

#endif
