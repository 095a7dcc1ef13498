/* SPDX-License-Identifier: Apache-2.0
 * completion.c: completion scripts for bash, zsh and fish, from the lists. Values complete from
 * the row: choices, files for FILE, for MODEL also what the models folder holds, for DEVICE the
 * devices. Names of files may hold blanks and all that a shell reads as syntax: no script evaluates
 * them. */
#include <string.h>

#include "cli/cli.h"

/* Text between single quotes of a POSIX shell (or fish, where a backslash does it); `plain` drops
 * what _arguments would read as syntax. */
static void quoted(struct buf *out, const char *text, bool fish, bool plain) {
    for (; *text; text++) {
        if (*text == '\'')
            buf_puts(out, fish ? "\\'" : "'\\''");
        else if (plain && strchr("[]:", *text))
            buf_puts(out, *text == ':' ? "," : "");
        else
            buf_putc(out, *text);
    }
}

static bool takes(const struct option *option, const char *value) {
    return option->value && strcmp(option->value, value) == 0;
}

/* A list of words with commas between. */
static bool takes_list(const struct option *option) { return takes(option, "TYPE,..."); }

/* What an option's value, or a word of its list, can be, separated by spaces; "": anything. */
static void choices(struct buf *out, const struct option *option) {
    const struct option *from = takes_list(option) ? &option_list[OPTION_INDEX_kv_type] : option;
    const char *word;
    size_t n;
    ob_device device;
    if (takes(option, "DEVICE")) {
        buf_puts(out, "auto");
        for (size_t i = 0; ob_device_at(i, &device); i++) {
            buf_printf(out, " %s", device.name);
            if (device.count > 1) buf_printf(out, ":%u", device.index);
        }
    }
    if (from->kind != OPTION_choice) return;
    for (size_t i = 0; option_choice_at(from, i, &word, &n); i++) {
        buf_puts(out, i ? " " : "");
        buf_add(out, word, n);
    }
}

static bool has_choices(const struct option *option) {
    return option->kind == OPTION_choice || takes(option, "DEVICE") || takes_list(option);
}

static bool names_file(const struct command *command) { return strstr(command->operands, "FILE"); }
static bool names_model(const struct command *command) {
    return strstr(command->operands, "MODEL");
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* The functions complete $word: from words, from words with commas between, from files, and from
 * files and the models folder. Quotes that the user has typed are taken off; readline quotes. */
static const char bash_functions[] =
    "_1bit_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$word\"); }\n"
    "_1bit_list() {\n"
    "    local last=${word##*,}\n"
    "    mapfile -t COMPREPLY < <(compgen -P \"${word%\"$last\"}\" -W \"$1\" -- \"$last\")\n"
    "}\n"
    "_1bit_files() { mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); }\n"
    "_1bit_models() {\n"
    "    local path name\n"
    "    _1bit_files\n"
    "    for path in \"${XDG_DATA_HOME:-$HOME/.local/share}/1bit/models\"/*; do\n"
    "        name=${path##*/} name=${name%.gguf}\n"
    "        [[ -e $path && $name == \"$word\"* ]] && COMPREPLY+=(\"$name\")\n"
    "    done\n"
    "}\n";

static void bash_values(struct buf *out, const struct option *option) {
    if (option->kind == OPTION_flag) return;
    buf_printf(out, "        --%s", option->flag);
    if (option->letter) buf_printf(out, "|-%c", option->letter);
    buf_puts(out, ") ");
    if (has_choices(option)) {
        buf_printf(out, "_1bit_%s '", takes_list(option) ? "list" : "words");
        choices(out, option);
        buf_puts(out, "'; ");
    } else if (takes(option, "FILE")) {
        buf_puts(out, "_1bit_files; ");
    } else if (takes(option, "MODEL")) {
        buf_puts(out, "_1bit_models; ");
    }
    buf_puts(out, "return ;;\n");
}

/* Operands that are one of some words ("a|b"): the words with spaces between; else nothing. */
static void operand_words(struct buf *out, const struct command *command) {
    if (!strchr(command->operands, '|')) return;
    for (const char *p = command->operands; *p; p++) buf_putc(out, *p == '|' ? ' ' : *p);
}

static void bash_command(struct buf *out, enum command_index index) {
    const struct command *command = command_list[index];
    buf_printf(out, "    %s)\n        case $before in\n", command->name);
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (option_is_for(&option_list[i], index)) bash_values(out, &option_list[i]);
    buf_puts(out, "        esac\n        if [[ $word == -* ]]; then\n            _1bit_words '");
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (option_is_for(&option_list[i], index)) buf_printf(out, "--%s ", option_list[i].flag);
    buf_puts(out, "'\n        else\n            ");
    if (names_model(command)) {
        buf_puts(out, "_1bit_models");
    } else if (names_file(command)) {
        buf_puts(out, "_1bit_files");
    } else {
        buf_puts(out, "_1bit_words '");
        operand_words(out, command);
        for (size_t i = 0; index == COMMAND_help && i < COMMAND_COUNT; i++)
            buf_printf(out, "%s ", command_list[i]->name);
        buf_putc(out, '\'');
    }
    buf_puts(out, "\n        fi\n        ;;\n");
}

static void bash(struct buf *out) {
    buf_puts(out, "# bash completion for 1bit, generated from its option list\n");
    buf_puts(out, bash_functions);
    buf_puts(out,
             "_1bit() {\n"
             "    local word=${COMP_WORDS[COMP_CWORD]//\\\\/} before=${COMP_WORDS[COMP_CWORD-1]}\n"
             "    word=${word#[\\\"\\']}\n"
             "    COMPREPLY=()\n"
             "    if [ \"$COMP_CWORD\" = 1 ]; then\n        _1bit_words '");
    for (size_t i = 0; i < COMMAND_COUNT; i++) buf_printf(out, "%s ", command_list[i]->name);
    buf_puts(out,
             "'\n        [[ $word != -* ]] || _1bit_words '--help --version'\n"
             "        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) bash_command(out, (enum command_index)i);
    buf_puts(out, "    esac\n}\ncomplete -o filenames -F _1bit 1bit\n");
}

/* ---- zsh ------------------------------------------------------------------------------------- */

static void zsh_option(struct buf *out, const struct option *option) {
    for (int form = 0; form < (option->letter ? 2 : 1); form++) {
        if (form)
            buf_printf(out, "            '-%c[", option->letter);
        else
            buf_printf(out, "            '--%s%s[", option->flag, option->value ? "=" : "");
        quoted(out, option->help, false, true);
        buf_putc(out, ']');
        if (option->value) {
            buf_puts(out, ":value:");
            if (takes_list(option)) {
                buf_puts(out, "_values -s , type ");
                choices(out, option);
            } else if (has_choices(option)) {
                buf_putc(out, '(');
                choices(out, option);
                buf_putc(out, ')');
            } else if (takes(option, "FILE")) {
                buf_puts(out, "_files");
            } else if (takes(option, "MODEL")) {
                buf_puts(out, "_1bit_models");
            }
        }
        buf_puts(out, "' \\\n");
    }
}

static void zsh(struct buf *out) {
    buf_puts(out,
             "#compdef 1bit\n# zsh completion for 1bit, generated from its option list\n"
             "_1bit_models() {\n    local -a names\n");
    buf_puts(out,
             "    names=(${XDG_DATA_HOME:-$HOME/.local/share}/1bit/models/*(N:t))\n"
             "    names=(${names%.gguf})\n"
             "    compadd -a names\n    _files\n}\n_1bit() {\n"
             "    local -a commands\n    commands=(\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        buf_printf(out, "        '%s:", command_list[i]->name);
        quoted(out, command_list[i]->summary, false, true);
        buf_puts(out, "'\n");
    }
    buf_puts(out,
             "    )\n    if (( CURRENT == 2 )); then\n"
             "        if [[ $PREFIX == -* ]]; then compadd -- --help --version\n"
             "        else _describe command commands; fi\n"
             "        return\n    fi\n    local command=$words[2]\n    shift words\n"
             "    (( CURRENT-- ))\n    case $command in\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        buf_printf(out, "    %s)\n        _arguments \\\n", command_list[i]->name);
        for (size_t j = 0; j < OPTION_COUNT; j++)
            if (option_is_for(&option_list[j], (enum command_index)i))
                zsh_option(out, &option_list[j]);
        bool words = strchr(command_list[i]->operands, '|');
        buf_printf(out, "            '*:argument:%s%s",
                   names_model(command_list[i])  ? "_1bit_models"
                   : names_file(command_list[i]) ? "_files"
                                                 : "",
                   words ? "(" : "");
        operand_words(out, command_list[i]);
        buf_printf(out, "%s'\n        ;;\n", words ? ")" : "");
    }
    buf_puts(out, "    esac\n}\n_1bit \"$@\"\n");
}

/* ---- fish ------------------------------------------------------------------------------------ */

static void fish_option(struct buf *out, const char *command, const struct option *option) {
    buf_printf(out, "complete -c 1bit -n '__fish_seen_subcommand_from %s' -l %s", command,
               option->flag);
    if (option->letter) buf_printf(out, " -s %c", option->letter);
    if (option->value)
        buf_puts(out, takes(option, "FILE") || takes(option, "MODEL") ? " -r -F" : " -x");
    if (has_choices(option)) {
        buf_puts(out, takes_list(option) ? " -a '(__fish_append , " : " -a '");
        choices(out, option);
        buf_puts(out, takes_list(option) ? ")'" : "'");
    } else if (takes(option, "MODEL")) {
        buf_puts(out, " -a '(__1bit_models)'");
    }
    buf_puts(out, " -d '");
    quoted(out, option->help, true, false);
    buf_puts(out, "'\n");
}

static void fish(struct buf *out) {
    buf_puts(out,
             "# fish completion for 1bit, generated from its option list\n"
             "function __1bit_models\n    set -l data $XDG_DATA_HOME\n"
             "    test -n \"$data\"; or set data ~/.local/share\n"
             "    command ls $data/1bit/models 2>/dev/null | string replace -r '\\.gguf$' ''\n"
             "end\ncomplete -c 1bit -n __fish_use_subcommand -f\n"
             "complete -c 1bit -n __fish_use_subcommand -l help -s h -d 'List the commands'\n"
             "complete -c 1bit -n __fish_use_subcommand -l version -d 'Print the version'\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct command *command = command_list[i];
        buf_printf(out, "complete -c 1bit -n __fish_use_subcommand -a %s -d '", command->name);
        quoted(out, command->summary, true, false);
        buf_puts(out, "'\n");
        if (names_model(command))
            buf_printf(out,
                       "complete -c 1bit -n '__fish_seen_subcommand_from %s' "
                       "-a '(__1bit_models)'\n",
                       command->name);
        else if (!names_file(command))
            buf_printf(out, "complete -c 1bit -n '__fish_seen_subcommand_from %s' -f\n",
                       command->name);
        if (strchr(command->operands, '|')) {
            buf_printf(out, "complete -c 1bit -n '__fish_seen_subcommand_from %s' -a '",
                       command->name);
            operand_words(out, command);
            buf_puts(out, "'\n");
        }
        for (size_t j = 0; j < OPTION_COUNT; j++)
            if (option_is_for(&option_list[j], (enum command_index)i))
                fish_option(out, command->name, &option_list[j]);
    }
}

void completion_write(const char *shell, struct buf *out) {
    if (strcmp(shell, "bash") == 0) bash(out);
    if (strcmp(shell, "fish") == 0) fish(out);
    if (strcmp(shell, "zsh") == 0) zsh(out);
}
