/* SPDX-License-Identifier: Apache-2.0
 * cli.c: from argv to a command, and the messages that all commands share. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"

const struct command *const command_list[COMMAND_COUNT] = {
#define COMMAND(name) &command_##name,
#include "cli/commands.def"
#undef COMMAND
};

static char program[32] = "1bit"; /* with the command's name, for messages */
static enum command_index running = COMMAND_COUNT;
static struct options given; /* of the command that runs */

enum command_index command_find(const char *name) {
    size_t i = 0;
    while (i < COMMAND_COUNT && strcmp(command_list[i]->name, name) != 0) i++;
    return (enum command_index)i;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* One write, so that lines of two programs do not mix; control characters of names become "?". */
static void say(const char *format, va_list args) {
    char line[1400];
    int n = snprintf(line, sizeof line, "%s: ", program);
    vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = '?';
    strcat(line, "\n");
    fputs(line, stderr);
}

void cli_say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

int cli_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    return EXIT_FAILED;
}

int cli_misuse(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    return EXIT_USAGE;
}

const struct option *cli_option_of(const ob_error *error) {
    static const struct {
        const char *member, *flag;
    } renamed[] = {
        {"order", "samplers"}, {"penalty_last_n", "repeat-last-n"}, {"temperature", "temp"}};
    const char *member = error->where;
    char flag[sizeof error->where];
    if (running == COMMAND_COUNT || error->file[0] || !*member) return NULL;
    snprintf(flag, sizeof flag, "%s", member);
    for (char *p = flag; *p; p++)
        if (*p == '_') *p = '-';
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (strcmp(member, renamed[i].member) == 0)
            snprintf(flag, sizeof flag, "%s", renamed[i].flag);
    return option_find(running, flag, strlen(flag));
}

int cli_fail_error(const ob_error *error) {
    char line[1024];
    ob_error said = *error;
    const struct option *option = cli_option_of(error);
    if (option) {
        char name[40];
        option_name(option, &given, name);
        snprintf(said.where, sizeof said.where, "%s", name);
    }
    return cli_fail("%s", ob_error_line(&said, line, sizeof line));
}

int cli_output_failed(int error) {
    static bool said = false;
    if (error != EPIPE && !said)
        cli_say("cannot write to the standard output: %s", strerror(error));
    said = true;
    return EXIT_FAILED;
}

/* ---- the program ----------------------------------------------------------------------------- */

static int print(struct buf *text, FILE *stream, int code) {
    if (text->failed)
        code = cli_fail("out of memory");
    else
        fwrite(text->p, 1, text->n, stream);
    buf_free(text);
    return code;
}

/* Output that is lost makes a success a failure. When a write in between failed, stdio no longer
 * knows why: one more tells. */
static int finish(int code) {
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return code;
    if (!errno) {
        clearerr(stdout);
        putchar('\n');
        fflush(stdout);
    }
    int failed = cli_output_failed(errno ? errno : EIO);
    return code ? code : failed;
}

static int run_command(enum command_index index, int argc, char **argv) {
    const struct command *command = command_list[index];
    char message[OPTION_MESSAGE];
    struct buf text = BUF_INIT;
    running = index;
    snprintf(program, sizeof program, "1bit %s", command->name);
    map_guard(program);
    if (!options_parse(index, argc, argv, &given, message))
        return cli_misuse("%s (see 1bit %s --help)", message, command->name);
    if (given.help) {
        usage_command(index, &text);
        return print(&text, stdout, EXIT_OK);
    }
    if (given.operands > command->operands_max)
        return cli_misuse("unexpected argument \"%s\" (see 1bit %s --help)",
                          given.operand[command->operands_max], command->name);
    if (given.operands < command->operands_min)
        return cli_misuse("%s is missing (see 1bit %s --help)", command->operands, command->name);
    if (given.verbose) log_set_level(LOG_INFO);
    return command->run(&given);
}

int cli_main(int argc, char **argv) {
    struct buf text = BUF_INIT;
    const char *word = argc > 1 ? argv[1] : NULL;
    if (!word) {
        usage_program(&text);
        return print(&text, stderr, EXIT_USAGE);
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) word = "help";
    if (strcmp(word, "--version") == 0) word = "version";
    enum command_index command = command_find(word);
    if (command == COMMAND_COUNT)
        return cli_misuse("unknown %s \"%s\" (see 1bit help)",
                          word[0] == '-' ? "option" : "command", word);
    return finish(run_command(command, argc - 2, argv + 2));
}
