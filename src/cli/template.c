/* SPDX-License-Identifier: Apache-2.0
 * template.c: `1bit template`: what a model's chat template makes of messages. */
#include <string.h>

#include "base/error.h"
#include "base/os.h"
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

ob_status cli_chat_template(const struct options *options, struct buf *text, const char **out,
                            ob_error *error) {
    const char *given = options->chat_template, *name, *about;
    *out = NULL;
    if (!given) return OB_OK;
    for (size_t i = 0; chat_builtin_at(i, &name, &about); i++)
        if (strcmp(given, name) == 0) return *out = name, OB_OK;
    /* neither: the list of names says more than a missing file */
    if (!strchr(given, '/') && !os_exists(given)) return chat_check(given, error);
    ob_status status = cli_read_text(given, text, error);
    if (status != OB_OK) return status;
    buf_putc(text, 0);
    *out = text->p;
    if (text->failed) return error_memory(error, "a chat template", text->n);
    if (strlen(text->p) + 1 != text->n)
        status = error_set(error, OB_ERR_FORMAT, "has a zero byte");
    else if (!strchr(text->p, '{'))
        status = error_set(error, OB_ERR_FORMAT, "not a chat template: it has no tags");
    else
        status = chat_check(text->p, error);
    if (status != OB_OK) error_at(error, given, NULL, OB_NO_OFFSET);
    return status;
}

static int run(const struct options *options) {
    ob_error error;
    struct source *source = NULL;
    struct tok *tok = NULL;
    struct chat *chat = NULL;
    json_t *request = NULL;
    struct buf text = BUF_INIT, template = BUF_INIT;
    const char *override = NULL;
    ob_tokens ids = {0};
    int code = EXIT_OK;
    if (cli_chat_template(options, &template, &override, &error) != OB_OK ||
        read_request(options->operands ? options->operand[0] : "-", &request, &error) != OB_OK ||
        cli_tok_open(options->model, &source, &tok, &error) != OB_OK ||
        chat_open(tok, override, override ? NULL : source_path(source), &chat, &error) != OB_OK ||
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
    buf_free(&template);
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
        "\"add_generation_prompt\", \"continue_final_message\", \"enable_thinking\", "
        "\"chat_template_kwargs\"). Reads the standard input without a file.\n\n"
        "  echo '[{\"role\":\"user\",\"content\":\"Hi\"}]' | 1bit template\n\n"
        "Built-in templates, for --chat-template:\n\n"
#define BUILTIN(name, models, source) "  " name ": " models "\n"
#include "text/templates.def"
#undef BUILTIN
        ,
    .run = run,
};
