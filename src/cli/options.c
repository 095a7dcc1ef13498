/* SPDX-License-Identifier: Apache-2.0
 * options.c: see options.h. Words are read as GNU programs read them: --flag VALUE, --flag=VALUE,
 * -n VALUE, -nVALUE, letters of flags joined, -- ends the options. The next word is an option's
 * value whatever it looks like. */
#include "cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

/* Sets of commands, for options.def. The names of commands that are not in commands.def do not
 * compile, so an option cannot be for a command that is not there. */
#define ON(name) (1u << COMMAND_##name)
#define ENGINE (ON(run) | ON(serve) | ON(bench) | ON(eval) | ON(embed))
#define SAMPLING (ON(run) | ON(serve))
#define ALL UINT32_MAX

/* clang-format off */
const struct option option_list[OPTION_COUNT] = {
#define OPTION(field, kind, flag, letter, value, otherwise, min, max, environment, group, \
               commands, help) \
    {OPTION_##kind, flag, letter, value, otherwise, min, max, environment, group, commands, help, \
     offsetof(struct options, field)},
#include "cli/options.def"
#undef OPTION
};
/* clang-format on */

bool option_is_for(const struct option *option, enum command_index command) {
    return option->commands >> command & 1;
}

const struct option *option_find(enum command_index command, const char *flag, size_t n) {
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (option_is_for(&option_list[i], command) && strlen(option_list[i].flag) == n &&
            memcmp(option_list[i].flag, flag, n) == 0)
            return &option_list[i];
    return NULL;
}

static const struct option *find_letter(enum command_index command, char letter) {
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (option_is_for(&option_list[i], command) && option_list[i].letter == letter)
            return &option_list[i];
    return NULL;
}

bool option_choice_at(const struct option *option, size_t i, const char **word, size_t *n) {
    const char *p = option->value;
    for (;; p++) {
        size_t len = strcspn(p, "|");
        if (i-- == 0) {
            *word = p;
            *n = len;
            return true;
        }
        p += len;
        if (!*p) return false;
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_choice(const struct option *option, const char *text) {
    const char *word;
    size_t n;
    for (size_t i = 0; option_choice_at(option, i, &word, &n); i++)
        if (strlen(text) == n && memcmp(word, text, n) == 0) return true;
    return false;
}

/* "8G", "1.5MiB", "4096": units are powers of 1024. */
static bool read_bytes(const char *text, double *out) {
    static const char units[] = "KMGT";
    char *end;
    *out = strtod(text, &end);
    if (end == text) return false;
    const char *unit = *end ? strchr(units, *end & ~0x20) : NULL;
    if (unit) {
        *out = ldexp(*out, 10 * (int)(unit - units + 1));
        end++;
        if (*end == 'i' && end[1] == 'B') end++;
    }
    if (*end == 'B') end++;
    return *end == 0;
}

/* Numbers as typed by people: decimal, no spaces, no "0x", "inf" or "nan". */
static bool read_number(const struct option *option, const char *text, double *number,
                        int64_t *integer) {
    if (!*text ||
        strspn(text, option->kind == OPTION_bytes     ? "0123456789.KMGTkmgtiB"
                     : option->kind == OPTION_integer ? "+-0123456789"
                                                      : "+-0123456789.eE") != strlen(text))
        return false;
    if (option->kind == OPTION_bytes) return read_bytes(text, number);
    char *end;
    errno = 0;
    if (option->kind == OPTION_integer) {
        *integer = strtoll(text, &end, 10);
        *number = (double)*integer;
    } else {
        *number = strtod(text, &end);
    }
    return end != text && *end == 0 && (errno == 0 || fabs(*number) <= 1);
}

bool option_set(const struct option *option, const char *text, struct options *out,
                char message[OPTION_MESSAGE]) {
    void *field = (char *)out + option->offset;
    double number = 0;
    int64_t integer = 0;
    switch (option->kind) {
        case OPTION_flag: *(option_flag *)field = true; return true;
        case OPTION_choice:
            if (!is_choice(option, text)) {
                snprintf(message, OPTION_MESSAGE, "\"%s\" is none of %s", text, option->value);
                return false;
            }
            *(option_choice *)field = text;
            return true;
        case OPTION_text: *(option_text *)field = text; return true;
        case OPTION_integer:
        case OPTION_number:
        case OPTION_bytes: break;
    }
    if (!read_number(option, text, &number, &integer)) {
        snprintf(message, OPTION_MESSAGE, "\"%s\" is not %s", text,
                 option->kind == OPTION_integer  ? "a whole number"
                 : option->kind == OPTION_number ? "a number"
                                                 : "a number of bytes such as 512M or 8G");
        return false;
    }
    if (!(number >= option->min && number <= option->max)) {
        char min[32], max[32];
        snprintf(message, OPTION_MESSAGE, "%s is not from %s to %s", text,
                 str_number(option->min, min), str_number(option->max, max));
        return false;
    }
    if (option->kind == OPTION_integer) *(option_integer *)field = integer;
    if (option->kind == OPTION_number) *(option_number *)field = number;
    if (option->kind == OPTION_bytes) *(option_bytes *)field = (uint64_t)number;
    return true;
}

void option_name(const struct option *option, const struct options *from, char out[40]) {
    bool variable = from->from_environment[option - option_list];
    snprintf(out, 40, "%s%s", variable ? "" : "--", variable ? option->environment : option->flag);
}

void option_reset(const struct option *option, struct options *out) {
    static const struct options none = {0};
    static const size_t size[] = {
        [OPTION_flag] = sizeof(option_flag),     [OPTION_text] = sizeof(option_text),
        [OPTION_choice] = sizeof(option_choice), [OPTION_integer] = sizeof(option_integer),
        [OPTION_number] = sizeof(option_number), [OPTION_bytes] = sizeof(option_bytes),
    };
    char message[OPTION_MESSAGE];
    memcpy((char *)out + option->offset, (const char *)&none + option->offset, size[option->kind]);
    if (option->otherwise) option_set(option, option->otherwise, out, message);
    out->given[option - option_list] = false;
}

void option_value(const struct option *option, const struct options *from, struct buf *out) {
    const void *field = (const char *)from + option->offset;
    char number[32];
    const char *text;
    bool words = option->kind == OPTION_text || option->kind == OPTION_choice; /* NULL: none */
    if (!words && !option->otherwise && !from->given[option - option_list]) return;
    switch (option->kind) {
    case OPTION_flag: buf_puts(out, *(const option_flag *)field ? "on" : "off"); break;
    case OPTION_text:
    case OPTION_choice:
        text = *(const option_text *)field;
        if (text) buf_puts(out, text);
        break;
    case OPTION_integer: buf_printf(out, "%lld", (long long)*(const option_integer *)field); break;
    case OPTION_number:
        buf_puts(out, str_number(*(const option_number *)field, number));
        break;
    case OPTION_bytes:
        buf_printf(out, "%llu", (unsigned long long)*(const option_bytes *)field);
        break;
    }
}

/* Puts "--temp: " before a message of option_set. */
static bool blame(const char *dashes, const char *name, size_t n, char message[OPTION_MESSAGE]) {
    char why[OPTION_MESSAGE];
    snprintf(why, sizeof why, "%s", message);
    int at = snprintf(message, OPTION_MESSAGE, "%s%.*s: ", dashes, (int)(n > 64 ? 64 : n), name);
    snprintf(message + at, OPTION_MESSAGE - (size_t)at, "%s", why);
    return false;
}

/* ---- words ----------------------------------------------------------------------------------- */

struct words {
    enum command_index command;
    int argc, at; /* `at` is the next word */
    char **argv;
    struct options *out;
    char *message;
};

/* Sets the option; its value is `joined`, or the next word. */
static bool take(struct words *w, const struct option *option, const char *dashes, const char *name,
                 size_t n, const char *joined) {
    const char *text = joined;
    if (option->kind == OPTION_flag && joined) {
        snprintf(w->message, OPTION_MESSAGE, "takes no value");
        return blame(dashes, name, n, w->message);
    }
    if (option->kind != OPTION_flag && !joined) {
        if (w->at == w->argc) {
            snprintf(w->message, OPTION_MESSAGE, "needs a value (%s)", option->value);
            return blame(dashes, name, n, w->message);
        }
        text = w->argv[w->at++];
    }
    w->out->given[option - option_list] = true;
    w->out->from_environment[option - option_list] = false;
    return option_set(option, text, w->out, w->message) || blame(dashes, name, n, w->message);
}

static bool take_long(struct words *w, const char *word) {
    size_t n = strcspn(word, "=");
    const struct option *option = option_find(w->command, word, n);
    if (option) return take(w, option, "--", word, n, word[n] ? word + n + 1 : NULL);
    snprintf(w->message, OPTION_MESSAGE, "unknown option");
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strlen(option_list[i].flag) == n && memcmp(option_list[i].flag, word, n) == 0)
            snprintf(w->message, OPTION_MESSAGE, "not an option of this command");
    return blame("--", word, n, w->message);
}

static bool take_letters(struct words *w, const char *word) {
    for (; *word; word++) {
        const struct option *option = find_letter(w->command, *word);
        if (!option) {
            snprintf(w->message, OPTION_MESSAGE, "unknown option");
            uint32_t code; /* the whole character, although options are ASCII */
            return blame("-", word, utf8_decode(word, strlen(word), &code), w->message);
        }
        if (option->kind != OPTION_flag)
            return take(w, option, "-", word, 1, word[1] ? word + 1 : NULL);
        if (!take(w, option, "-", word, 1, NULL)) return false;
    }
    return true;
}

/* Defaults, then the environment. */
static bool prepare(struct words *w) {
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *option = &option_list[i];
        if (option->otherwise && !option_set(option, option->otherwise, w->out, w->message))
            return blame("default of --", option->flag, strlen(option->flag), w->message);
        if (!option->environment || !option_is_for(option, w->command)) continue;
        const char *text = getenv(option->environment);
        if (!text || !*text) continue;
        if (!option_set(option, text, w->out, w->message))
            return blame("", option->environment, strlen(option->environment), w->message);
        w->out->given[i] = w->out->from_environment[i] = true;
    }
    return true;
}

bool options_parse(enum command_index command, int argc, char **argv, struct options *out,
                   char message[OPTION_MESSAGE]) {
    *out = (struct options){0};
    struct words w = {command, argc, 0, argv, out, message};
    bool only_operands = false;
    out->operand = argv; /* operands move to the front, behind what is read */
    if (!prepare(&w)) return false;
    while (w.at < argc && !out->help) {
        char *word = argv[w.at++];
        if (only_operands || word[0] != '-' || !word[1]) {
            out->operand[out->operands++] = word;
        } else if (strcmp(word, "--") == 0) {
            only_operands = true;
        } else if (!(word[1] == '-' ? take_long(&w, word + 2) : take_letters(&w, word + 1))) {
            return false;
        }
    }
    return true;
}
