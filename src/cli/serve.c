/* SPDX-License-Identifier: Apache-2.0
 * serve.c: `1bit serve`: the model behind an HTTP API; see server/. */
#include <stdlib.h>

#include "cli/sampling.h"
#include "server/server.h"

static void say(void *user, const char *line) {
    (void)user;
    cli_say("%s", line);
}

static void loaded(void *user, const ob_engine *engine) { cli_say_context(engine, user); }

/* What requests do not set: the options that were given, over what the model's files say. */
static struct cli_sampling sampling;

static void set_sampling(void *user, ob_sampling *model) {
    struct options with_model = *(const struct options *)user;
    struct cli_sampling made;
    ob_error error;
    cli_sampling_adopt(model, &with_model);
    if (cli_sampling_open(&with_model, &made, &error) != OB_OK) cli_fail_error(&error);
    *model = made.settings;
    cli_sampling_close(&sampling);
    sampling = made;
}

static int run(const struct options *options) {
    char *path;
    ob_error error;
    struct buf template = BUF_INIT, keys = BUF_INIT;
    const char *chat_template;
    if (cli_sampling_open(options, &sampling, &error) != OB_OK) {
        cli_fail_error(&error);
        cli_sampling_close(&sampling);
        return EXIT_USAGE;
    }
    if (cli_check_kv_memory(options, &error) != OB_OK ||
        cli_chat_template(options, &template, &chat_template, &error) != OB_OK ||
        (options->api_key_file &&
         cli_read_text(options->api_key_file, &keys, &error) != OB_OK) ||
        cli_model_path(options->model, &path, &error) != OB_OK) {
        buf_free(&template);
        buf_free(&keys);
        cli_sampling_close(&sampling);
        return cli_fail_error(&error);
    }
    struct server_options server = {
        .host = options->host,
        .port = (uint16_t)options->port,
        .alias = options->alias,
        .keys = options->api_key,
        .key_lines = !options->api_key_file ? NULL : keys.p ? keys.p : "",
        .origins = options->cors,
        .reasoning_format = options->reasoning_format,
        .limit_reasoning = options->reasoning_budget >= 0,
        .reasoning_tokens = (uint32_t)options->reasoning_budget,
        .seeded = options->given[OPTION_INDEX_seed],
        .seed = (uint64_t)options->seed,
        .engine = cli_engine_options(options),
        .notice = say,
        .sampling = set_sampling,
        .loaded = loaded,
        .user = (void *)(uintptr_t)options,
    };
    server.engine.model = path;
    server.engine.chat_template = chat_template;
    server.engine.parallel = (uint32_t)options->parallel;
    server.engine.queue = (uint32_t)options->max_queue;
    server.engine.max_gap = (uint32_t)options->max_gap;
    ob_status status = ob_engine_check(&server.engine, &error); /* before anything is said */
    if (status == OB_OK) status = server_run(&server, &error);
    free(path);
    cli_sampling_close(&sampling);
    buf_free(&template);
    buf_free(&keys);
    return status == OB_OK ? EXIT_OK : cli_fail_error(&error);
}

const struct command command_serve = {
    .name = "serve",
    .summary = "serve a model over HTTP",
    .operands = "",
    .about =
        "Serves the model with an API that OpenAI's clients speak, until Ctrl-C. It listens at "
        "once; /health says 503 until the model is loaded, then 200. On 127.0.0.1 "
        "only programs of this machine can use it; elsewhere give it an --api-key.\n\n"
        "  1bit serve -m qwen2.5-coder-0.5b\n"
        "  curl http://127.0.0.1:8000/v1/chat/completions \\\n"
        "    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'",
    .run = run,
};
