/* SPDX-License-Identifier: Apache-2.0
 * chat.c: the interactive chat: lines by libedit with a history, commands that start with a slash,
 * answers streamed. Ctrl-C stops an answer, at the prompt it drops the line; Ctrl-D ends. */
#include "cli/chat.h"

#include <histedit.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/os.h"
#include "cli/generate.h"

enum { HISTORY = 1000 };

struct chat_loop {
    ob_engine *engine;
    struct options options; /* a copy that /set changes */
    struct conversation conversation;
    struct arena arena; /* values of /set */
    EditLine *edit;
    History *history;
    char *history_path; /* NULL: not kept */
    struct buf line;
    bool quit;
};

/* ---- the line editor ------------------------------------------------------------------------- */

static char *prompt_text(EditLine *edit) {
    struct chat_loop *loop;
    el_get(edit, EL_CLIENTDATA, &loop);
    return loop->line.n ? "| " : "> ";
}

static bool open_editor(struct chat_loop *loop) {
    HistEvent event;
    setlocale(LC_CTYPE, ""); /* only how bytes form characters: numbers stay as in C */
    loop->edit = el_init("1bit", stdin, stdout, stderr);
    loop->history = history_init();
    if (!loop->edit || !loop->history) return false;
    history(loop->history, &event, H_SETSIZE, HISTORY);
    history(loop->history, &event, H_SETUNIQUE, 1);
    el_set(loop->edit, EL_CLIENTDATA, loop);
    el_set(loop->edit, EL_EDITOR, "emacs");
    el_set(loop->edit, EL_PROMPT, prompt_text);
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
        unsigned interrupts = os_interrupts();
        const char *text = el_gets(loop->edit, &n);
        if (os_interrupts() != interrupts) {
            el_set(loop->edit, EL_REFRESH);
            puts("^C");
            buf_clear(&loop->line);
            continue;
        }
        if (!text || n <= 0) return false;
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
        "/set NAME VALUE   change an option, for example /set temp 0\n"
        "/quit             end (or Ctrl-D)\n"
        "A line that ends with \\ goes on. Ctrl-C stops an answer. Options that /set takes:");
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (can_set(&option_list[i]))
            printf("  %-18s %s\n", option_list[i].flag, option_list[i].help);
}

static void set(struct chat_loop *loop, const char *words) {
    char message[OPTION_MESSAGE];
    size_t n = strcspn(words, " =");
    const struct option *option = option_find(COMMAND_run, words, n);
    if (!can_set(option)) {
        cli_say("/set has no option \"%.*s\" (see /help)", (int)(n > 40 ? 40 : n), words);
        return;
    }
    const char *value = arena_printf(&loop->arena, "%s", words + n + strspn(words + n, " ="));
    if (!value || !*value) {
        cli_say("/set %s needs a value", option->flag);
        return;
    }
    if (!option_set(option, value, &loop->options, message))
        cli_say("%s: %s", option->flag, message);
    else
        loop->options.given[option - option_list] = true;
}

static void command(struct chat_loop *loop, const char *line) {
    if (strcmp(line, "/quit") == 0 || strcmp(line, "/exit") == 0)
        loop->quit = true;
    else if (strcmp(line, "/help") == 0)
        help();
    else if (strcmp(line, "/reset") == 0)
        conversation_reset(&loop->conversation);
    else if (strncmp(line, "/set ", 5) == 0)
        set(loop, line + 5 + strspn(line + 5, " "));
    else
        cli_say("unknown command %.40s (see /help)", line);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void turn(struct chat_loop *loop) {
    ob_error error;
    ob_tokens ids = {0};
    struct answer answer = {0};
    struct str said = {loop->line.p, loop->line.n};
    if (conversation_add(&loop->conversation, "user", said, &error) != OB_OK) {
        cli_fail_error(&error);
        return;
    }
    ob_status status =
        conversation_prompt(loop->engine, &loop->conversation, &loop->options, &ids, &error);
    if (status == OB_OK) status = generate(loop->engine, &ids, &loop->options, &answer, &error);
    if (answer.text.n && answer.text.p[answer.text.n - 1] != '\n') putchar('\n');
    fflush(stdout);
    if (status == OB_OK) {
        struct str text = {answer.text.p ? answer.text.p : "", answer.text.n};
        status = conversation_add(&loop->conversation, "assistant", text, &error);
        generate_report(&answer, &loop->options);
    } else {
        conversation_drop(&loop->conversation, said.n);
    }
    if (status != OB_OK) cli_fail_error(&error);
    if (answer.finish == OB_FINISH_LENGTH && !loop->options.max_tokens)
        cli_say("the context is full: the answer is cut, /reset starts anew");
    if (answer.output_error) loop->quit = true;
    buf_free(&answer.text);
    ob_tokens_free(&ids);
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
        ob_engine_get_info(engine, &info);
        fprintf(stderr, "%s on %s, context %u%s; /help lists commands\n", info.name, info.device,
                info.context,
                loop.conversation.plain ? ", no chat template: it continues your text" : "");
        while (!loop.quit && read_line(&loop)) {
            if (loop.line.failed)
                cli_say("out of memory");
            else if (loop.line.n && loop.line.p[0] == '/')
                command(&loop, loop.line.p);
            else if (loop.line.n)
                turn(&loop);
        }
    }
    close_editor(&loop);
    conversation_close(&loop.conversation);
    buf_free(&loop.line);
    arena_free(&loop.arena);
    return code;
}
