/* SPDX-License-Identifier: Apache-2.0
 * template.c: `1bit template`: what a model's chat template makes of messages. */
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"
#include "format/source.h"
#include "text/chat.h"

/* The file holds a request (an object with "messages"), or the messages alone. */
static ob_status read_request(const char *path, json_t **out, ob_error *error) {
    struct buf text = BUF_INIT;
    json_error_t at;
    ob_status status = cli_read_text(path, &text, error);
    size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL;
    if (status == OB_OK && !(*out = json_loadb(text.p ? text.p : "", text.n, flags, &at))) {
        status = error_set(error, OB_ERR_FORMAT, "not JSON: %s", at.text);
        error_at(error, path, NULL, (uint64_t)at.position);
    }
    if (status == OB_OK && json_is_array(*out)) *out = json_pack("{s:o}", "messages", *out);
    if (status == OB_OK && !*out) status = error_memory(error, "a request", text.n);
    buf_free(&text);
    return status;
}

static int run(const struct options *options) {
    ob_error error;
    struct source *source = NULL;
    struct tok *tok = NULL;
    struct chat *chat = NULL;
    json_t *request = NULL;
    struct buf text = BUF_INIT;
    ob_tokens ids = {0};
    int code = EXIT_OK;
    if (read_request(options->operands ? options->operand[0] : "-", &request, &error) != OB_OK ||
        cli_tok_open(options->model, &source, &tok, &error) != OB_OK ||
        chat_open(tok, NULL, source_path(source), &chat, &error) != OB_OK ||
        chat_prompt(chat, request, &ids, &text, &error) != OB_OK) {
        code = cli_fail_error(&error);
    } else {
        if (text.n) fwrite(text.p, 1, text.n, stdout);
        if (options->tokens) {
            putchar('\n');
            for (size_t i = 0; i < ids.n; i++) printf("%s%d", i ? " " : "", ids.id[i]);
            putchar('\n');
        }
    }
    ob_tokens_free(&ids);
    buf_free(&text);
    json_decref(request);
    chat_close(&chat);
    tok_close(&tok);
    source_close(&source);
    return code;
}

const struct command command_template = {
    .name = "template",
    .summary = "render messages with a model's chat template",
    .operands = "[FILE]",
    .operands_max = 1,
    .about =
        "Prints the prompt that a model's chat template makes of a JSON file: a list of messages, "
        "or an object with \"messages\" and what else a chat request may have (\"tools\", "
        "\"add_generation_prompt\", \"chat_template_kwargs\"). Reads the standard input without a "
        "file.\n\n"
        "  echo '[{\"role\":\"user\",\"content\":\"Hi\"}]' | 1bit template",
    .run = run,
};
