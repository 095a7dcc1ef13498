/* SPDX-License-Identifier: Apache-2.0
 * sse.c: see sse.h. Compact JSON has no newline, so an event is one line. */
#include "server/sse.h"

#include "server/reply.h"

static int add(const char *text, size_t n, void *out) {
    buf_add(out, text, n);
    return ((struct buf *)out)->failed ? -1 : 0;
}

static void put(struct buf *out, json_t *json) {
    if (!json || json_dump_callback(json, add, out, REPLY_JSON) != 0) out->failed = true;
    json_decref(json);
}

void sse_json(struct buf *out, json_t *json) {
    buf_puts(out, "data: ");
    put(out, json);
    buf_puts(out, "\n\n");
}

void sse_event(struct buf *out, const char *name, json_t *json) {
    buf_printf(out, "event: %s\n", name);
    sse_json(out, json);
}

void line_json(struct buf *out, json_t *json) {
    put(out, json);
    buf_putc(out, '\n');
}

void sse_done(struct buf *out) { buf_puts(out, "data: [DONE]\n\n"); }
