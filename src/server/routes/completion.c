/* SPDX-License-Identifier: Apache-2.0
 * completion.c: llama-server's own completion: prompts are continued. */
#include "server/internal.h"
#include "server/llama.h"
#include "server/openai.h"
#include "server/prompt.h"
#include "server/sse.h"

static void handle(struct server *server, struct http_exchange *x) {
    static const struct wording wording = {
        .id = "cmpl-", .type = SSE_TYPE, .ping = SSE_PING, .translate = llama_translate,
        .prompts = prompt_texts, .whole = llama_whole, .piece = llama_piece,
        .ending = llama_ending, .failed = openai_failed,
    };
    generation_start(server, x, &wording);
}

const struct route route_completion = {
    .method = "POST", .paths = {"/completion", "/completions"}, .handle = handle,
    .needs_model = true,
};
