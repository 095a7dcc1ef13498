/* SPDX-License-Identifier: Apache-2.0
 * logprobs.c: see logprobs.h. A record is a head and its top list; the bytes of a token need not
 * be characters, so its text is made UTF-8 and its bytes stand beside it. */
#include "server/logprobs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/clean.h"

struct head {
    ob_logprob token;
    uint32_t top_n;
};

static const double never = -9999; /* what clients know -inf as: JSON has none */

void logprobs_add(struct buf *records, const ob_event *event) {
    struct head head = {{event->id, event->logprob}, (uint32_t)event->top_n};
    if (event->id < 0) return;
    buf_add(records, &head, sizeof head);
    buf_add(records, event->top, event->top_n * sizeof *event->top);
}

/* The i-th of a record's top list. */
static ob_logprob entry(const char *from, uint32_t i) {
    ob_logprob one;
    memcpy(&one, from + sizeof(struct head) + i * sizeof one, sizeof one);
    return one;
}

static double real(float logprob) {
    return (double)logprob > never ? (double)logprob : never;
}

/* The text of a token, in UTF-8 and as bytes; NULL: out of memory. */
static json_t *text_of(const ob_engine *engine, int32_t id, json_t *bytes) {
    char *text;
    size_t n;
    if (ob_detokenize(engine, &id, 1, true, &text, &n, NULL) != OB_OK) return NULL;
    for (size_t i = 0; bytes && i < n; i++)
        json_array_append_new(bytes, json_integer((unsigned char)text[i]));
    json_t *out = clean_json((struct str){text, n});
    free(text);
    return out;
}

static json_t *token_json(const ob_engine *engine, ob_logprob one, bool after) {
    json_t *bytes = json_array(), *text = text_of(engine, one.id, bytes);
    double value = after ? exp((double)one.logprob) : real(one.logprob);
    return json_pack("{s:i, s:o, s:o, s:f}", "id", (int)one.id, "token", text, "bytes", bytes,
                     after ? "prob" : "logprob", value);
}

json_t *logprobs_chat(const ob_engine *engine, struct str records, bool after) {
    json_t *list = json_array();
    struct head head;
    for (size_t at = 0; at < records.n; at += sizeof head + head.top_n * sizeof(ob_logprob)) {
        memcpy(&head, records.p + at, sizeof head);
        json_t *one = token_json(engine, head.token, after), *top = json_array();
        for (uint32_t i = 0; i < head.top_n; i++)
            json_array_append_new(top, token_json(engine, entry(records.p + at, i), after));
        json_object_set_new(one, after ? "top_probs" : "top_logprobs", top);
        json_array_append_new(list, one);
    }
    return json_pack("{s:o}", "content", list);
}

static size_t characters(const char *text) {
    size_t n = 0;
    for (; text && *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

json_t *logprobs_completion(const ob_engine *engine, struct str records, size_t *offset) {
    json_t *tokens = json_array(), *values = json_array(), *tops = json_array(),
           *offsets = json_array();
    struct head head;
    for (size_t at = 0; at < records.n; at += sizeof head + head.top_n * sizeof(ob_logprob)) {
        memcpy(&head, records.p + at, sizeof head);
        json_t *text = text_of(engine, head.token.id, NULL), *top = json_object();
        for (uint32_t i = 0; i < head.top_n; i++) {
            ob_logprob one = entry(records.p + at, i);
            json_t *name = text_of(engine, one.id, NULL);
            const char *key = json_string_value(name);
            if (key && !json_object_get(top, key)) /* the likelier of two that look alike */
                json_object_set_new(top, key, json_real(real(one.logprob)));
            json_decref(name);
        }
        json_array_append_new(offsets, json_integer((json_int_t)*offset));
        *offset += characters(json_string_value(text));
        json_array_append_new(tokens, text);
        json_array_append_new(values, json_real(real(head.token.logprob)));
        json_array_append_new(tops, top);
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", values,
                     "top_logprobs", tops, "text_offset", offsets);
}
