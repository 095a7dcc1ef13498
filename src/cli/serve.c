/* SPDX-License-Identifier: Apache-2.0
 * serve.c: `1bit serve`: the model behind an HTTP API; see server/. */
#include <stdlib.h>

#include "cli/cli.h"
#include "server/server.h"

static void say(void *user, const char *line) {
    (void)user;
    cli_say("%s", line);
}

static void loaded(void *user, const ob_engine *engine) { cli_say_context(engine, user); }

static int run(const struct options *options) {
    char *path;
    ob_error error;
    if (cli_check_kv_memory(options, &error) != OB_OK ||
        cli_model_path(options->model, &path, &error) != OB_OK)
        return cli_fail_error(&error);
    struct server_options server = {
        .host = options->host,
        .port = (uint16_t)options->port,
        .alias = options->alias,
        .engine = cli_engine_options(options),
        .notice = say,
        .loaded = loaded,
        .user = (void *)(uintptr_t)options,
    };
    server.engine.model = path;
    server.engine.parallel = (uint32_t)options->parallel;
    ob_status status = ob_engine_check(&server.engine, &error); /* before anything is said */
    if (status == OB_OK) status = server_run(&server, &error);
    free(path);
    return status == OB_OK ? EXIT_OK : cli_fail_error(&error);
}

const struct command command_serve = {
    .name = "serve",
    .summary = "serve a model over HTTP",
    .operands = "",
    .about =
        "Serves the model with an API that OpenAI's clients speak, until Ctrl-C. It listens at "
        "once; /health says 503 until the model is loaded, then 200. There is no authentication: "
        "on 127.0.0.1 only programs of this machine can use it.\n\n"
        "  1bit serve -m qwen2.5-coder-0.5b\n"
        "  curl http://127.0.0.1:8000/v1/chat/completions \\\n"
        "    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'",
    .run = run,
};
