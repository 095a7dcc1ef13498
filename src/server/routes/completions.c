/* SPDX-License-Identifier: Apache-2.0
 * completions.c: the model continues texts, or lists of tokens, or fills the gap in a text. */
#include "server/clean.h"
#include "server/internal.h"
#include "server/logprobs.h"
#include "server/openai.h"
#include "server/prompt.h"
#include "server/sse.h"

#define OBJECT "text_completion"

/* Of the tokens that were not told yet; NULL: there are none. */
static json_t *logprobs(const struct answer *a, struct str records, size_t *offset) {
    if (!records.n) return NULL;
    return a->params->logprobs_after ? logprobs_chat(a->engine, records, true)
                                     : logprobs_completion(a->engine, records, offset);
}

static json_t *choice(unsigned index, json_t *text, const char *finish) {
    return json_pack("{s:i, s:o, s:n, s:s?}", "index", (int)index, "text", text, "logprobs",
                     "finish_reason", finish);
}

static json_t *whole(struct answer *a, const struct said *said) {
    json_t *choices = json_array();
    for (unsigned i = 0; i < a->choices; i++) {
        json_t *one = choice(i, clean_json(said[i].text), said[i].finish);
        json_t *probs = logprobs(a, said[i].records, said[i].offset);
        if (probs) json_object_set_new(one, "logprobs", probs);
        if (json_array_append_new(choices, one) != 0) return json_decref(choices), NULL;
    }
    return openai_whole(a, OBJECT, choices);
}

static void piece(struct answer *a, const struct piece *p, struct buf *out) {
    openai_chunk(a, OBJECT, choice(p->index, clean_json(p->event->text), NULL),
                 logprobs(a, p->records, p->offset), out);
}

static void ending(struct answer *a, const struct said *said, struct buf *out) {
    openai_ending(a, OBJECT, choice(said->index, json_string(""), said->finish),
                  logprobs(a, said->records, said->offset), out);
}

static void last(struct answer *a, struct buf *out) { openai_last(a, OBJECT, out); }

static void handle(struct server *server, struct http_exchange *x) {
    static const struct wording wording = {
        .id = "cmpl-", .type = SSE_TYPE, .ping = SSE_PING, .prompts = prompt_texts, .whole = whole,
        .piece = piece, .ending = ending, .last = last, .failed = openai_failed,
    };
    generation_start(server, x, &wording);
}

const struct route route_completions = {
    .method = "POST", .paths = {"/v1/completions"}, .handle = handle, .needs_model = true,
};
