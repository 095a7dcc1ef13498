/* SPDX-License-Identifier: Apache-2.0
 * usage.c: the text of --help, from the lists. */
#include <string.h>

#include "cli/cli.h"

enum { WIDTH = 79, HELP_COLUMN = 29 };

/* Words of `text` up to WIDTH; lines after the first start at `column`, where the first is now. */
static void wrap(struct buf *out, const char *text, size_t column) {
    size_t at = column;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (at > column && at + 1 + n > WIDTH) {
            buf_printf(out, "\n%*s", (int)column, "");
            at = column;
        } else if (at > column) {
            buf_putc(out, ' ');
            at++;
        }
        buf_add(out, text, n);
        at += n;
        text += n + strspn(text + n, " ");
    }
    buf_putc(out, '\n');
}

static void one_option(struct buf *out, const struct option *option) {
    struct buf head = BUF_INIT, help = BUF_INIT;
    if (option->letter)
        buf_printf(&head, "  -%c, --%s", option->letter, option->flag);
    else
        buf_printf(&head, "      --%s", option->flag);
    if (option->value) buf_printf(&head, " %s", option->value);
    buf_puts(&help, option->help);
    if (option->otherwise) buf_printf(&help, " Default: %s.", option->otherwise);
    if (option->environment) buf_printf(&help, " Environment: %s.", option->environment);
    if (head.failed || help.failed) {
        out->failed = true;
    } else {
        buf_puts(out, head.p);
        if (head.n + 2 > HELP_COLUMN)
            buf_printf(out, "\n%*s", HELP_COLUMN, "");
        else
            buf_printf(out, "%*s", (int)(HELP_COLUMN - head.n), "");
        wrap(out, help.p, HELP_COLUMN);
    }
    buf_free(&head);
    buf_free(&help);
}

static void about(struct buf *out, const char *text) {
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) : strlen(text);
        if (*text == ' ') {
            buf_add(out, text, n);
            buf_putc(out, '\n');
        } else {
            struct buf paragraph = BUF_INIT;
            buf_add(&paragraph, text, n);
            if (!paragraph.failed)
                wrap(out, paragraph.p, 0);
            else
                out->failed = true;
            buf_free(&paragraph);
        }
        text += n + strspn(text + n, "\n");
        buf_puts(out, "\n");
    }
}

void usage_command(enum command_index index, struct buf *out) {
    const struct command *command = command_list[index];
    buf_printf(out, "Usage: 1bit %s [OPTION]...%s%s\n\n", command->name,
               *command->operands ? " " : "", command->operands);
    about(out, command->about);
    const char *group = NULL;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &option_list[i];
        if (!option_is_for(option, index)) continue;
        if (!group || strcmp(group, option->group) != 0)
            buf_printf(out, "%s%s:\n", group ? "\n" : "", option->group);
        group = option->group;
        one_option(out, option);
    }
}

void usage_program(struct buf *out) {
    buf_puts(out,
             "Usage: 1bit COMMAND [OPTION]... [ARGUMENT]...\n\n"
             "Runs language models on this machine.\n\nCommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        buf_printf(out, "  %-12s %s\n", command_list[i]->name, command_list[i]->summary);
    buf_puts(out, "\n`1bit COMMAND --help` tells about one of them.\n");
}
