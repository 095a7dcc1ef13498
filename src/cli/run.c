/* SPDX-License-Identifier: Apache-2.0
 * run.c: `1bit run`: one answer, or a chat on a terminal. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "cli/chat.h"
#include "cli/cli.h"
#include "cli/form.h"
#include "cli/generate.h"
#include "cli/sampling.h"

static int answer_once(ob_engine *engine, const struct options *options, struct str prompt) {
    ob_error error;
    struct conversation conversation;
    struct answer answer = {0};
    struct prompt asked = {0};
    int code = EXIT_OK;
    if (conversation_open(engine, options, &conversation, &error) != OB_OK ||
        conversation_add(&conversation, "user", prompt, &error) != OB_OK ||
        conversation_prompt(engine, &conversation, options, &asked, &error) != OB_OK ||
        generate(engine, &asked, options, &answer, &error) != OB_OK)
        code = cli_fail_error(&error);
    if (answer.mid_line) putchar('\n');
    if (fflush(stdout) != 0 && !answer.output_error) answer.output_error = errno;
    if (code == EXIT_OK && answer.output_error) {
        code = cli_output_failed(answer.output_error);
    } else if (code == EXIT_OK) {
        generate_report(&answer, options);
        if (answer.finish == OB_FINISH_CANCEL) code = EXIT_INTERRUPTED;
        if (generate_context_full(&answer, options))
            cli_say("the context is full: the answer is cut");
    }
    answer_free(&answer);
    prompt_free(&asked);
    conversation_close(&conversation);
    return code;
}

static int answer(ob_engine *engine, const struct options *options, bool interactive,
                  struct str prompt) {
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    if (info.encoder)
        return cli_fail("this model reads texts and writes none%s",
                        info.embedding ? "; `1bit embed` makes vectors of them"
                                       : ": it gives scores, which no command prints");
    return interactive ? chat_interactive(engine, options) : answer_once(engine, options, prompt);
}

/* Whether the form of answers is one that can be kept to. */
static int check_form(const ob_engine *engine, const struct options *options) {
    ob_error error;
    ob_grammar *grammar;
    if (cli_form_open(engine, options, &grammar, &error) != OB_OK) {
        cli_fail_error(&error);
        return EXIT_USAGE;
    }
    ob_grammar_free(&grammar);
    return EXIT_OK;
}

static int run(const struct options *given) {
    struct options own = *given, *options = &own;
    struct buf form = BUF_INIT;
    ob_error error;
    ob_engine *engine = NULL;
    struct buf prompt = BUF_INIT;
    if (options->prompt && options->file)
        return cli_misuse("--prompt and --file exclude each other");
    if (options->raw && options->system)
        return cli_misuse("--raw has no system message: it and --system exclude each other");
    if (options->special && !options->raw)
        return cli_misuse("--special is for --raw: in a chat only the template writes control "
                          "tokens");
    struct cli_sampling sampling;
    ob_status sampled = cli_sampling_open(options, &sampling, &error);
    cli_sampling_close(&sampling);
    if (sampled != OB_OK) {
        cli_fail_error(&error);
        return EXIT_USAGE;
    }
    if (conversation_check(options, &error) != OB_OK) {
        cli_fail_error(&error);
        return EXIT_USAGE;
    }
    bool interactive = !options->prompt && !options->file && os_is_terminal(fileno(stdin));
    int code = cli_form_read(options, &form);
    if (code == EXIT_OK && options->prompt)
        buf_puts(&prompt, options->prompt);
    else if (code == EXIT_OK && !interactive &&
             cli_read_text(options->file ? options->file : "-", &prompt, &error) != OB_OK)
        code = cli_fail_error(&error);
    if (code == EXIT_OK && !interactive && prompt.n == 0) code = cli_fail("the prompt is empty");
    if (code == EXIT_OK && cli_engine_open(options, 1, &engine, &error) != OB_OK)
        code = cli_fail_error(&error);
    if (code == EXIT_OK) {
        struct options with_model = *options;
        ob_sampling model = ob_engine_sampling(engine);
        cli_sampling_adopt(&model, &with_model);
        cli_say_context(engine, options);
        os_count_interrupts();
        code = check_form(engine, &with_model);
        struct str text = {prompt.p, prompt.n};
        if (code == EXIT_OK) code = answer(engine, &with_model, interactive, text);
    }
    ob_engine_close(&engine);
    buf_free(&prompt);
    buf_free(&form);
    return code;
}

const struct command command_run = {
    .name = "run",
    .summary = "answer a prompt, or chat",
    .operands = "",
    .about =
        "Loads a model and answers a prompt; the text is printed as it comes, the speed at the "
        "end, on "
        "the standard error. On a terminal without a prompt it is a chat: /help lists what can be "
        "typed, Ctrl-C stops an answer. A model with a chat template gets the prompt as a user's "
        "message; any other continues the text.\n\n"
        "  1bit run -p \"What is the capital of France?\"\n"
        "  1bit run -m gemma3-270m --temp 0 -n 32 -p \"Once upon a time\"\n"
        "  git diff | 1bit run --system \"Review this change.\"",
    .run = run,
};
