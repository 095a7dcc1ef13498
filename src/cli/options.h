/* SPDX-License-Identifier: Apache-2.0
 *
 * options.h: the options of options.def as a struct with one typed field each, and the parser that
 * fills it from defaults, then the environment, then the command line. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

typedef bool option_flag;
typedef const char *option_text;
typedef const char *option_choice;
typedef int64_t option_integer;
typedef double option_number;
typedef uint64_t option_bytes;

enum option_kind {
    OPTION_flag,
    OPTION_text,
    OPTION_choice,
    OPTION_integer,
    OPTION_number,
    OPTION_bytes
};

enum option_index {
#define OPTION(field, ...) OPTION_INDEX_##field,
#include "cli/options.def"
#undef OPTION
    OPTION_COUNT
};

enum command_index {
#define COMMAND(name) COMMAND_##name,
#include "cli/commands.def"
#undef COMMAND
    COMMAND_COUNT
};

/* One row of the list. */
struct option {
    enum option_kind kind;
    const char *flag;
    char letter;
    const char *value;     /* NULL for flags */
    const char *otherwise; /* the default as typed, or NULL */
    double min, max;
    const char *environment;
    const char *group;
    uint32_t commands; /* bit 1 << COMMAND_<name> */
    const char *help;
    size_t offset; /* in struct options */
};

extern const struct option option_list[OPTION_COUNT];

struct options {
#define OPTION(field, kind, ...) option_##kind field;
#include "cli/options.def"
#undef OPTION
    bool given[OPTION_COUNT]; /* on the command line or in the environment */
    bool from_environment[OPTION_COUNT]; /* only there */
    char **operand;           /* what is no option; points into argv */
    size_t operands;
};

enum { OPTION_MESSAGE = 512 };

/* Fills *out for a command from its words (the command's name excluded). --help ends the parsing.
 * false: `message` says what is wrong. Text values point into argv or the environment. */
bool options_parse(enum command_index command, int argc, char **argv, struct options *out,
                   char message[OPTION_MESSAGE]);
/* Sets one option from text, as the command line would. */
bool option_set(const struct option *option, const char *text, struct options *out,
                char message[OPTION_MESSAGE]);
/* How the user gave it: "--threads", or the name of the environment's variable. */
void option_name(const struct option *option, const struct options *from, char out[40]);
/* Back to the default, as if it had not been given. */
void option_reset(const struct option *option, struct options *out);
/* The value that an option has, as it would be typed, appended; nothing if it was not given and has
 * no default. */
void option_value(const struct option *option, const struct options *from, struct buf *out);
/* By flag without dashes; NULL if the command has none of this name. */
const struct option *option_find(enum command_index command, const char *flag, size_t n);
bool option_is_for(const struct option *option, enum command_index command);
/* The i-th word of a choice's `value`; false past the last. */
bool option_choice_at(const struct option *option, size_t i, const char **word, size_t *n);

#endif
