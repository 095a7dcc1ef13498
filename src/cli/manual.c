/* SPDX-License-Identifier: Apache-2.0
 * manual.c: the man page 1bit(1), from the lists (man macros: groff_man(7)). */
#include <string.h>

#include "cli/cli.h"

/* Text as roff, where backslashes, dashes and a dot or quote at the start of a line mean more. */
static void roff(struct buf *out, const char *text) {
    for (bool start = true; *text; text++) {
        if (start && (*text == '.' || *text == '\'')) buf_puts(out, "\\&");
        if (*text == '\\')
            buf_puts(out, "\\e");
        else if (*text == '-')
            buf_puts(out, "\\-");
        else
            buf_putc(out, *text);
        start = *text == '\n';
    }
}

static void about(struct buf *out, const char *text) {
    struct buf part = BUF_INIT;
    for (bool first = true; *text; first = false) {
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) : strlen(text);
        buf_clear(&part);
        buf_add(&part, text, n);
        if (part.failed) break;
        if (!first) buf_puts(out, ".PP\n");
        if (*text == ' ') buf_puts(out, ".nf\n");
        roff(out, part.p);
        buf_puts(out, *text == ' ' ? "\n.fi\n" : "\n");
        text += n + strspn(text + n, "\n");
    }
    if (part.failed) out->failed = true;
    buf_free(&part);
}

static void one_option(struct buf *out, const struct option *option) {
    buf_puts(out, ".TP\n");
    if (option->letter) buf_printf(out, "\\fB\\-%c\\fR, ", option->letter);
    buf_puts(out, "\\fB\\-\\-");
    roff(out, option->flag);
    buf_puts(out, "\\fR");
    if (option->value) {
        buf_puts(out, " \\fI");
        roff(out, option->value);
        buf_puts(out, "\\fR");
    }
    buf_putc(out, '\n');
    roff(out, option->help);
    if (option->otherwise) {
        buf_puts(out, " Default: ");
        roff(out, option->otherwise);
        buf_putc(out, '.');
    }
    buf_putc(out, '\n');
}

static void one_command(struct buf *out, enum command_index index) {
    const struct command *command = command_list[index];
    buf_printf(out, ".SS 1bit %s [OPTION]...%s%s\n", command->name, *command->operands ? " " : "",
               command->operands);
    about(out, command->about);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (option_is_for(&option_list[i], index) && option_list[i].commands != UINT32_MAX)
            one_option(out, &option_list[i]);
}

/* A variable stands once, though commands may have options of their own for it. */
static bool is_first_of_environment(size_t index) {
    for (size_t i = 0; i < index; i++)
        if (option_list[i].environment &&
            strcmp(option_list[i].environment, option_list[index].environment) == 0)
            return false;
    return true;
}

void manual_write(struct buf *out) {
    buf_puts(out,
             ".TH 1BIT 1 \"\" \"1bit " OB_VERSION
             "\" \"User Commands\"\n.SH NAME\n"
             "1bit \\- run language models on this machine\n.SH SYNOPSIS\n"
             ".B 1bit\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]...\n.SH COMMANDS\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) one_command(out, (enum command_index)i);
    buf_puts(out, ".SH OPTIONS OF EVERY COMMAND\n");
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (option_list[i].commands == UINT32_MAX) one_option(out, &option_list[i]);
    buf_puts(out, ".SH ENVIRONMENT\n");
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (option_list[i].environment && is_first_of_environment(i)) {
            buf_printf(out, ".TP\n.B %s\nDefault of ", option_list[i].environment);
            roff(out, "--");
            roff(out, option_list[i].flag);
            buf_puts(out, ".\n");
        }
    buf_puts(
        out,
        ".SH FILES\n.TP\n.I $XDG_DATA_HOME/1bit/models\nModels that \\-m finds by name; without "
        "XDG_DATA_HOME in\n.IR ~/.local/share/1bit/models .\n"
        ".TP\n.I $XDG_STATE_HOME/1bit/history\nWhat was typed in chats; without XDG_STATE_HOME "
        "in\n.IR ~/.local/state/1bit/history .\n"
        ".SH EXIT STATUS\n0 if all went well, 1 if something failed, 2 if the command line was "
        "wrong, 130 if Ctrl\\-C\nended the program, but 0 if it ended\n.BR \"1bit serve\" ,\n"
        "which runs until then.\n");
}
