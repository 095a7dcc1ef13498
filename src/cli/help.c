/* SPDX-License-Identifier: Apache-2.0
 * help.c: `1bit help`: all that is made from the lists of commands and options. */
#include "cli/cli.h"

static int run(const struct options *options) {
    struct buf text = BUF_INIT;
    if (options->man + (options->completion != NULL) + (options->operands > 0) > 1)
        return cli_misuse("a command, --man and --completion exclude each other");
    if (options->man) {
        manual_write(&text);
    } else if (options->completion) {
        completion_write(options->completion, &text);
    } else if (options->operands) {
        enum command_index command = command_find(options->operand[0]);
        if (command == COMMAND_COUNT)
            return cli_misuse("there is no command \"%s\" (see 1bit help)", options->operand[0]);
        usage_command(command, &text);
    } else {
        usage_program(&text);
    }
    int code = text.failed ? cli_fail("out of memory") : EXIT_OK;
    if (code == EXIT_OK) fwrite(text.p, 1, text.n, stdout);
    buf_free(&text);
    return code;
}

const struct command command_help = {
    .name = "help",
    .summary = "list the commands, or tell about one",
    .operands = "[COMMAND]",
    .operands_max = 1,
    .about =
        "Lists the commands, or prints what `1bit COMMAND --help` prints. Also writes the man page "
        "and the completion scripts, which `meson install` puts where they belong.\n\n"
        "  1bit help --completion bash > ~/.local/share/bash-completion/completions/1bit",
    .run = run,
};
