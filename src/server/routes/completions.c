/* SPDX-License-Identifier: Apache-2.0
 * completions.c: the model continues a text, or a list of tokens. */
#include <stdlib.h>

#include "base/error.h"
#include "server/clean.h"
#include "server/internal.h"
#include "server/logprobs.h"

static ob_status read_ids(const ob_engine *engine, const json_t *list, ob_tokens *out,
                          ob_error *error) {
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    size_t n = json_array_size(list);
    out->id = malloc((n ? n : 1) * sizeof *out->id);
    if (!out->id) return error_memory(error, "the prompt", n * sizeof *out->id);
    for (size_t i = 0; i < n; i++) {
        const json_t *id = json_array_get(list, i);
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 || value >= info.vocab)
            return params_refuse(error, "prompt", id, "a string or token ids of the vocabulary");
        out->id[out->n++] = (int32_t)value;
    }
    return OB_OK;
}

static ob_status prompt(const ob_engine *engine, const json_t *request, const struct params *params,
                        ob_tokens *out, struct opening *opening, ob_error *error) {
    const json_t *prompt = json_object_get(request, "prompt");
    (void)opening;
    ob_status s;
    const json_t *continues = json_object_get(request, "continue_final_message");
    if (continues && !json_is_null(continues) && !json_is_false(continues))
        return params_refuse(error, "continue_final_message", continues, "false: there is no chat");
    /* A batch of one string is as good as the string. */
    if (json_array_size(prompt) == 1 && json_is_string(json_array_get(prompt, 0)))
        prompt = json_array_get(prompt, 0);
    if (json_is_string(prompt))
        s = ob_tokenize(engine, json_string_value(prompt), json_string_length(prompt), true,
                        params->parse_special, out, error);
    else if (json_is_array(prompt))
        s = read_ids(engine, prompt, out, error);
    else
        return params_refuse(error, "prompt", prompt, "a string or an array of token ids");
    if (s == OB_OK && out->n == 0) {
        s = error_set(error, OB_ERR_ARGUMENT, "is empty");
        error_at(error, NULL, "prompt", OB_NO_OFFSET);
    }
    return s;
}

static json_t *choice(json_t *text, const char *finish) {
    return json_pack("{s:i, s:o, s:n, s:s?}", "index", 0, "text", text, "logprobs",
                     "finish_reason", finish);
}

static json_t *answer(const struct said *said) {
    return choice(clean_json(said->text), said->finish);
}

static json_t *piece(const struct chat_event *event) {
    return choice(clean_json(event->text), NULL);
}

static json_t *ending(const char *finish) { return choice(json_string(""), finish); }

static json_t *logprobs(const ob_engine *engine, struct str records, bool after, size_t *offset) {
    return after ? logprobs_chat(engine, records, true)
                 : logprobs_completion(engine, records, offset);
}

static void handle(struct server *server, struct http_exchange *x) {
    static const struct wording wording = {
        .id = "cmpl", .whole = "text_completion", .chunk = "text_completion", .prompt = prompt,
        .answer = answer, .piece = piece, .ending = ending, .logprobs = logprobs,
    };
    generation_start(server, x, &wording);
}

const struct route route_completions = {
    .method = "POST", .paths = {"/v1/completions"}, .handle = handle, .needs_model = true,
};
