/* SPDX-License-Identifier: Apache-2.0
 * chat.c: the interactive chat: lines by libedit with a history, commands that start with a slash,
 * answers streamed. Ctrl-C stops an answer, at the prompt it drops the line; Ctrl-D ends, and so do
 * SIGTERM and SIGHUP, after the terminal is as it was and the history kept.
 *
 * Input is UTF-8 whatever the locale, and no byte of it is dropped in silence: what is malformed
 * becomes U+FFFD in view of the user. */
#include "cli/chat.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/os.h"
#include "base/utf8.h"
#include "cli/generate.h"
#include "cli/sampling.h"

#define BLANKS " \t\n"
enum { HISTORY = 1000, REPLACEMENT = 0xFFFD };

struct chat_loop {
    ob_engine *engine;
    struct options options; /* a copy that /set changes */
    struct conversation conversation;
    struct arena arena; /* values of /set */
    EditLine *edit;
    History *history;
    char *history_path; /* NULL: not kept */
    struct buf line;
    unsigned interrupts; /* os_interrupts() when the line began */
    char part[4]; /* bytes of a character that is not whole yet */
    size_t part_n;
    bool quit;
};

/* ---- the line editor ------------------------------------------------------------------------- */

static char *prompt_text(EditLine *edit) {
    struct chat_loop *loop;
    el_get(edit, EL_CLIENTDATA, &loop);
    return loop->line.n ? "| " : "> ";
}

/* Waits for a key; false: Ctrl-C. A signal just before the wait does not end it: so look now and
 * then. */
static bool wait_for_input(const struct chat_loop *loop) {
    bool waits = false;
    while (!waits && !os_end() && os_interrupts() == loop->interrupts) waits = os_input_waits(0.1);
    return waits;
}

/* A Ctrl-D typed before the editor has taken the terminal over comes as a NUL. On an empty line it
 * is the end all the same; elsewhere NUL is a key of its own. */
static bool is_early_end(EditLine *edit, uint32_t code) {
    const LineInfo *line = code == 0 ? el_line(edit) : NULL;
    return line && line->lastchar == line->buffer;
}

/* The next character for the editor: 1, 0 at the end, -1 with errno. */
static int read_character(EditLine *edit, wchar_t *out) {
    struct chat_loop *loop;
    uint32_t code;
    el_get(edit, EL_CLIENTDATA, &loop);
    while (loop->part_n == 0 || utf8_whole(loop->part, loop->part_n) == 0) {
        if (!wait_for_input(loop)) return errno = EINTR, -1;
        clearerr(stdin);
        int c = getc(stdin);
        if (c == EOF && ferror(stdin)) return -1;
        if (c == EOF && loop->part_n == 0) return 0;
        if (c == EOF) break;
        loop->part[loop->part_n++] = (char)c;
    }
    size_t n = utf8_decode(loop->part, loop->part_n, &code);
    loop->part_n -= n;
    memmove(loop->part, loop->part + n, loop->part_n);
    if (is_early_end(edit, code)) return 0;
    *out = (wchar_t)(code == UTF8_BAD ? REPLACEMENT : code);
    return 1;
}

/* The editor knows how to show and give back what the locale can write. Only how bytes form
 * characters is taken from it: numbers stay as in C. */
static void find_locale(void) {
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0 && !setlocale(LC_CTYPE, "C.UTF-8"))
        cli_say("there is no UTF-8 locale here: only ASCII can be typed");
}

static bool open_editor(struct chat_loop *loop) {
    HistEvent event;
    find_locale();
    setvbuf(stdin, NULL, _IONBF, 0); /* a signal must find no character half read */
    loop->edit = el_init("1bit", stdin, stdout, stderr);
    loop->history = history_init();
    if (!loop->edit || !loop->history) return false;
    history(loop->history, &event, H_SETSIZE, HISTORY);
    history(loop->history, &event, H_SETUNIQUE, 1);
    el_set(loop->edit, EL_CLIENTDATA, loop);
    el_set(loop->edit, EL_EDITOR, "emacs");
    el_set(loop->edit, EL_PROMPT, prompt_text);
    el_set(loop->edit, EL_GETCFN, read_character);
    el_set(loop->edit, EL_HIST, history, loop->history);
    el_source(loop->edit, NULL); /* the user's ~/.editrc */
    char *folder = os_state_dir();
    if (folder && os_mkdirs(folder)) {
        const char *path = arena_printf(&loop->arena, "%s/history", folder);
        loop->history_path = path ? strdup(path) : NULL;
    }
    free(folder);
    if (loop->history_path) history(loop->history, &event, H_LOAD, loop->history_path);
    return true;
}

static void close_editor(struct chat_loop *loop) {
    HistEvent event;
    if (loop->history_path) history(loop->history, &event, H_SAVE, loop->history_path);
    if (loop->history) history_end(loop->history);
    if (loop->edit) el_end(loop->edit);
    free(loop->history_path);
}

/* One input into loop->line; a backslash at the end of a line continues it. false at the end. */
static bool read_line(struct chat_loop *loop) {
    HistEvent event;
    buf_clear(&loop->line);
    for (;;) {
        int n = 0;
        loop->interrupts = os_interrupts();
        const char *text = el_gets(loop->edit, &n);
        if (os_end()) return false;
        if (os_interrupts() != loop->interrupts) {
            puts("^C");
            buf_clear(&loop->line);
            continue;
        }
        if (!text || n <= 0) {
            putchar('\n');
            return false;
        }
        while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r')) n--;
        bool more = n > 0 && text[n - 1] == '\\';
        buf_add(&loop->line, text, (size_t)(more ? n - 1 : n));
        if (more) {
            buf_putc(&loop->line, '\n');
            continue;
        }
        if (loop->line.n) history(loop->history, &event, H_ENTER, loop->line.p);
        return true;
    }
}

/* ---- commands -------------------------------------------------------------------------------- */

static bool can_set(const struct option *option) {
    return option && (strcmp(option->group, "Sampling") == 0 ||
                      option == &option_list[OPTION_INDEX_max_tokens] ||
                      option == &option_list[OPTION_INDEX_system]);
}

static void help(void) {
    puts(
        "/help             this list\n"
        "/reset            forget the conversation\n"
        "/set [NAME]       what the options are set to\n"
        "/set NAME VALUE   change one, for example /set temp 0\n"
        "/unset NAME       back to its default\n"
        "/quit             end (or Ctrl-D)\n"
        "A line that ends with \\ goes on. Ctrl-C stops an answer. Options that /set changes:");
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (can_set(&option_list[i]))
            printf("  %-18s %s\n", option_list[i].flag, option_list[i].help);
}

static void show_value(const struct option *option, const struct options *options) {
    struct buf value = BUF_INIT;
    option_value(option, options, &value);
    printf("  %-18s %s\n", option->flag, value.n ? value.p : "none");
    buf_free(&value);
}

static void show_values(const struct options *options) {
    puts("/set NAME VALUE changes one of these, /unset NAME gives it its default:");
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (can_set(&option_list[i])) show_value(&option_list[i], options);
}

/* What the options say together; the error names the one that is wrong. */
static ob_status check(const struct chat_loop *loop, const struct options *tried, ob_error *error) {
    struct cli_sampling sampling;
    if (loop->conversation.plain && tried->system) {
        error_set(error, OB_ERR_ARGUMENT, "there is no chat template, and so no system message");
        error_at(error, NULL, "system", OB_NO_OFFSET);
        return OB_ERR_ARGUMENT;
    }
    ob_status status = cli_sampling_open(tried, &sampling, error);
    cli_sampling_close(&sampling);
    return status == OB_OK ? conversation_check(tried, error) : status;
}

/* Takes what was changed if it is right together; errors call options as /set does. */
static void adopt(struct chat_loop *loop, const struct options *tried) {
    char line[1024];
    ob_error error;
    if (check(loop, tried, &error) == OB_OK) {
        loop->options = *tried;
        return;
    }
    const struct option *option = cli_option_of(&error);
    if (option) snprintf(error.where, sizeof error.where, "%s", option->flag);
    cli_say("%s", ob_error_line(&error, line, sizeof line));
}

/* The option of this name; NULL, after saying so, if it cannot be changed here. */
static const struct option *find_setting(const char *name, size_t n) {
    const struct option *option = option_find(COMMAND_run, name, n);
    if (can_set(option)) return option;
    cli_say("there is no option \"%.*s\" to set (see /help)", (int)(n > 40 ? 40 : n), name);
    return NULL;
}

static void set(struct chat_loop *loop, const char *words) {
    char message[OPTION_MESSAGE];
    struct options tried = loop->options;
    size_t n = strcspn(words, " =");
    if (n == 0) {
        show_values(&loop->options);
        return;
    }
    const struct option *option = find_setting(words, n);
    if (!option) return;
    const char *value = arena_printf(&loop->arena, "%s", words + n + strspn(words + n, " ="));
    if (!value || !*value) {
        show_value(option, &loop->options);
        return;
    }
    if (!option_set(option, value, &tried, message)) {
        cli_say("%s: %s", option->flag, message);
        return;
    }
    tried.given[option - option_list] = true;
    adopt(loop, &tried);
}

static void unset(struct chat_loop *loop, const char *name) {
    struct options tried = loop->options;
    if (!*name) {
        cli_say("/unset needs a NAME (see /help)");
        return;
    }
    const struct option *option = find_setting(name, strcspn(name, " "));
    if (!option) return;
    option_reset(option, &tried);
    ob_sampling model = ob_engine_sampling(loop->engine);
    cli_sampling_adopt(&model, &tried);
    adopt(loop, &tried);
}

/* What follows the word on the line, without blanks; NULL if the line starts with another. */
static const char *after(const char *line, const char *word) {
    size_t n = strlen(word);
    if (strncmp(line, word, n) != 0 || (line[n] && line[n] != ' ')) return NULL;
    return line + n + strspn(line + n, " ");
}

static void command(struct chat_loop *loop, char *line) {
    const char *words;
    for (size_t n = strlen(line); n && strchr(BLANKS, line[n - 1]); n--) line[n - 1] = 0;
    if (strcmp(line, "/quit") == 0 || strcmp(line, "/exit") == 0)
        loop->quit = true;
    else if (strcmp(line, "/help") == 0)
        help();
    else if (strcmp(line, "/reset") == 0)
        conversation_reset(&loop->conversation);
    else if ((words = after(line, "/set")))
        set(loop, words);
    else if ((words = after(line, "/unset")))
        unset(loop, words);
    else
        cli_say("unknown command %.40s (see /help)", line);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void turn(struct chat_loop *loop) {
    ob_error error;
    struct prompt asked = {0};
    struct answer answer = {0};
    struct str said = {loop->line.p, loop->line.n};
    if (conversation_add(&loop->conversation, "user", said, &error) != OB_OK) {
        cli_fail_error(&error);
        return;
    }
    ob_status status =
        conversation_prompt(loop->engine, &loop->conversation, &loop->options, &asked, &error);
    if (status == OB_OK) status = generate(loop->engine, &asked, &loop->options, &answer, &error);
    if (answer.mid_line) putchar('\n');
    fflush(stdout);
    if (status == OB_OK) {
        status = conversation_add_answer(&loop->conversation, &answer, &error);
        generate_report(&answer, &loop->options);
    } else {
        conversation_drop(&loop->conversation, said.n);
    }
    if (status != OB_OK) cli_fail_error(&error);
    if (generate_context_full(&answer, &loop->options))
        cli_say("the context is full: the answer is cut, /reset starts anew");
    if (answer.output_error) loop->quit = true;
    answer_free(&answer);
    prompt_free(&asked);
}

static void take_line(struct chat_loop *loop) {
    if (loop->line.failed) {
        cli_say("out of memory");
        return;
    }
    if (!loop->line.n) return;
    char *words = loop->line.p + strspn(loop->line.p, BLANKS);
    if (*words == '/')
        command(loop, words);
    else if (*words)
        turn(loop);
}

int chat_interactive(ob_engine *engine, const struct options *options) {
    struct chat_loop loop = {.engine = engine, .options = *options};
    ob_error error;
    ob_engine_info info;
    int code = EXIT_OK;
    if (conversation_open(engine, options, &loop.conversation, &error) != OB_OK)
        code = cli_fail_error(&error);
    else if (!open_editor(&loop))
        code = cli_fail("cannot use the terminal");
    if (code == EXIT_OK) {
        os_count_ends();
        ob_engine_get_info(engine, &info);
        fprintf(stderr, "%s on %s, context %u%s; /help lists commands\n", info.name, info.device,
                info.context,
                options->raw               ? ", raw: it continues your text"
                : loop.conversation.plain ? ", no chat template: it continues your text"
                                           : "");
        while (!loop.quit && !os_end() && read_line(&loop)) take_line(&loop);
    }
    if (os_end()) code = EXIT_SIGNAL + os_end();
    close_editor(&loop);
    conversation_close(&loop.conversation);
    buf_free(&loop.line);
    arena_free(&loop.arena);
    return code;
}
