/* SPDX-License-Identifier: Apache-2.0
 *
 * cli.h: face of cli/: what a command is, and what commands share: messages, output, the models
 * folder, reading text. Everything here runs on the program's main thread. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <jansson.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/options.h"
#include "onebit.h"

enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_SIGNAL = 128, /* + its number */
    EXIT_INTERRUPTED = 130
};

struct source;
struct tok;

struct command {
    const char *name;
    const char *summary;  /* a few words, for the list */
    const char *operands; /* "FILE", "[TEXT]", "" */
    size_t operands_min, operands_max;
    const char *about; /* paragraphs for --help and the man page, separated by "\n\n"; a paragraph
                        * that starts with a space is an example, printed as it is */
    int (*run)(const struct options *options); /* an exit_code */
};

extern const struct command *const command_list[COMMAND_COUNT];
#define COMMAND(name) extern const struct command command_##name;
#include "cli/commands.def"
#undef COMMAND

/* The program: finds the command, parses, runs it; returns the exit code. */
int cli_main(int argc, char **argv);
/* COMMAND_COUNT if there is none of this name. */
enum command_index command_find(const char *name);

/* ---- messages: one line "1bit <command>: ..." on the standard error -------------------------- */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says it and returns EXIT_FAILED / EXIT_USAGE. Of an error, a member of onebit.h's structs is
 * called as the option that sets it. */
int cli_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_fail_error(const ob_error *error);
/* The option of the running command that an error is about; NULL if it is about none. */
const struct option *cli_option_of(const ob_error *error);
int cli_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The standard output failed with this errno: says so, unless its reader just went away, as
 * `| head` does. */
int cli_output_failed(int error);

/* ---- output ---------------------------------------------------------------------------------- */
/* Escape sequences, "" where colours are off. */
struct cli_style {
    const char *bold, *dim, *green, *off;
};
struct cli_style cli_style_for(FILE *stream, const struct options *options);
/* Redraws "text 42%" on a terminal's standard error; nothing elsewhere. done == total clears it. */
void cli_progress(const char *text, uint64_t done, uint64_t total);
/* "1.5 GB", "494.0 M": decimal, one digit behind the point. */
void cli_bytes(uint64_t bytes, char out[24]);
void cli_count(uint64_t count, char out[24]);
/* The ending of what is counted: "" of one, else "s". */
const char *cli_plural(uint64_t count);
/* Prints indented JSON and a newline, and frees it; NULL is out of memory. Gives the exit code. */
int cli_print_json(json_t *json);
/* A JSON string; bytes that are no UTF-8 become U+FFFD. NULL when out of memory. */
json_t *cli_json_text(struct str text);

/* ---- chat templates -------------------------------------------------------------------------- */
/* What --chat-template means: *out is a built-in's name or the file's text (in *text), NULL without
 * the option. It has been checked; errors name the file. */
ob_status cli_chat_template(const struct options *options, struct buf *text, const char **out,
                            ob_error *error);

/* ---- models ---------------------------------------------------------------------------------- */
/* What -m or an operand names: a path as it is, or a file or folder of the models folder (with or
 * without .gguf). malloc'd in *out. The error lists what there is. */
ob_status cli_model_path(const char *name, char **out, ob_error *error);
/* Finds a model and opens its files and tokenizer: no engine. Close both, the tokenizer first. */
ob_status cli_tok_open(const char *name, struct source **source, struct tok **tok, ob_error *error);
/* What the options say about the engine, but for the model. */
ob_engine_options cli_engine_options(const struct options *options);
/* Refuses a --kv-memory that no device of this machine has, even when it is empty. */
ob_status cli_check_kv_memory(const struct options *options, ob_error *error);
/* Finds and opens the engine, showing progress: as `engine` says, but for the model. */
ob_status cli_engine_open_with(const struct options *options, ob_engine_options engine,
                               ob_engine **out, ob_error *error);
/* The same with what the options say. */
ob_status cli_engine_open(const struct options *options, uint32_t parallel, ob_engine **out,
                          ob_error *error);
/* One line if sequences hold fewer tokens than the model was made for, and nobody asked for so few,
 * or more. */
void cli_say_context(const ob_engine *engine, const struct options *options);

/* ---- text ------------------------------------------------------------------------------------ */
enum { CLI_TEXT_MAX = 256 << 20 }; /* bytes of a prompt file */
/* The whole file, appended; "-" is the standard input. */
ob_status cli_read_text(const char *path, struct buf *out, ob_error *error);

/* ---- documents from the lists ---------------------------------------------------------------- */
void usage_program(struct buf *out);
void usage_command(enum command_index command, struct buf *out);
void manual_write(struct buf *out);
void completion_write(const char *shell, struct buf *out);

#endif
