/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.c: see chat.h. A request is brought into the form the template understands (chat_fit.c),
 * rendered, cut where the last message is to be continued, and tokenized by provenance. */
#include "text/chat.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "text/chat_impl.h"

struct chat {
    const struct tok *tok;
    const char *model;
    char *override;           /* ours */
    struct form plain, tools; /* tools.jinja: NULL if the model has no template for them */
    const struct chat_format *format;
    const struct chat_thought *style;
};

/* "FILE: chat template line 3: ..." from the "line 3" of the template engine. */
static ob_status blame(ob_error *error, const char *model, ob_status status) {
    if (!error) return status;
    char where[sizeof error->where];
    snprintf(where, sizeof where, "chat template%s%.60s", error->where[0] ? " " : "", error->where);
    memcpy(error->where, where, sizeof where);
    error_at(error, model, NULL, OB_NO_OFFSET);
    return status;
}

/* ---- built-in templates ---- */

static const struct {
    const char *name, *about, *source;
} builtins[] = {
#define BUILTIN(name, about, source) {name, about, source},
#include "text/templates.def"
#undef BUILTIN
};
enum { BUILTINS = sizeof builtins / sizeof builtins[0] };

bool chat_builtin_at(size_t i, const char **name, const char **about) {
    if (i >= BUILTINS) return false;
    *name = builtins[i].name;
    *about = builtins[i].about;
    return true;
}

ob_status chat_source(const char *name_or_source, const char **source, ob_error *error) {
    static const char names[] =
#define BUILTIN(name, about, source) " " name
#include "text/templates.def"
#undef BUILTIN
        ;
    for (size_t i = 0; i < BUILTINS; i++)
        if (strcmp(name_or_source, builtins[i].name) == 0)
            return *source = builtins[i].source, OB_OK;
    *source = name_or_source;
    if (strchr(name_or_source, '{')) return OB_OK; /* else it would print the same for all chats */
    error_set(error, OB_ERR_NOT_FOUND, "no chat template is called \"%.60s\"; there are%s",
              name_or_source, names);
    error_at(error, NULL, "chat_template", OB_NO_OFFSET);
    return OB_ERR_NOT_FOUND;
}

ob_status chat_check(const char *name_or_source, ob_error *error) {
    const char *source;
    struct jinja *jinja;
    ob_status status = chat_source(name_or_source, &source, error);
    if (status) return status;
    status = jinja_parse(source, strlen(source), &jinja, error);
    if (status) return blame(error, NULL, status);
    jinja_free(&jinja);
    return OB_OK;
}

/* ---- opening ---- */

static ob_status open_forms(struct chat *chat, ob_error *error) {
    const struct tok *tok = chat->tok;
    struct str plain = chat->override ? str_of(chat->override) : tok_template(tok, NULL);
    struct str tools = chat->override ? (struct str){0} : tok_template(tok, "tool_use");
    if (!plain.n) {
        error_set(error, OB_ERR_NOT_FOUND,
                  "the model has no chat template (--chat-template gives it one)");
        error_at(error, chat->model, NULL, OB_NO_OFFSET);
        return OB_ERR_NOT_FOUND;
    }
    ob_status status = chat_form_open(tok, plain, &chat->plain, error);
    if (!status && tools.n) status = chat_form_open(tok, tools, &chat->tools, error);
    if (status) return blame(error, chat->model, status);
    chat->format = chat_detect(tok, tools.n ? &chat->tools : &chat->plain);
    chat->style = chat_thought_of(chat->format, plain);
    return OB_OK;
}

ob_status chat_open(const struct tok *tok, const char *override, const char *model,
                    struct chat **out, ob_error *error) {
    const char *source = NULL;
    *out = NULL;
    ob_status status = override ? chat_source(override, &source, error) : OB_OK;
    if (status) return status;
    struct chat *chat = calloc(1, sizeof *chat);
    if (!chat) return error_memory(error, "a chat template", sizeof *chat);
    chat->tok = tok;
    chat->model = model;
    if (source && !(chat->override = strdup(source)))
        status = error_memory(error, "a chat template", strlen(source));
    if (!status) status = open_forms(chat, error);
    if (status) chat_close(&chat);
    *out = chat;
    return status;
}

void chat_close(struct chat **chat) {
    if (!*chat) return;
    chat_form_close(&(*chat)->plain);
    chat_form_close(&(*chat)->tools);
    free((*chat)->override);
    free(*chat);
    *chat = NULL;
}

ob_status chat_set_tool_format(struct chat *chat, const char *name, ob_error *error) {
    ob_status status = chat_format_find(name, &chat->format, error);
    if (!status) chat->style = chat_thought_of(chat->format, chat->plain.source);
    return status;
}

const struct chat_format *chat_tool_format(const struct chat *chat) { return chat->format; }
const struct chat_thought *chat_thought_style(const struct chat *chat) { return chat->style; }
struct str chat_tools_source(const struct chat *chat) {
    return chat->tools.jinja ? chat->tools.source : chat->plain.source;
}

/* ---- the last message, to be continued ---- */

/* Where `what` occurs last in text, SIZE_MAX if nowhere. */
static size_t find_last(const struct buf *text, struct str what) {
    for (size_t at = text->n < what.n ? 0 : text->n - what.n + 1; at-- > 0;)
        if (memcmp(text->p + at, what.p, what.n) == 0) return at;
    return SIZE_MAX;
}

static void remove_marks(struct buf *text, struct buf *trust) {
    const struct str mark = STR_LIT(CHAT_MARK);
    for (size_t at; (at = find_last(text, mark)) != SIZE_MAX;) {
        size_t after = text->n - at - mark.n;
        memmove(text->p + at, text->p + at + mark.n, after);
        memmove(trust->p + at, trust->p + at + mark.n, after);
        text->n = trust->n = at + after;
    }
}

/* Cuts the prompt behind the last message. A template that trims it has taken the mark's space, and
 * would have trimmed what the message ends with too. */
static ob_status cut(struct buf *text, struct buf *trust, ob_error *error) {
    const struct str mark = STR_LIT(CHAT_MARK);
    size_t at = find_last(text, (struct str){mark.p, mark.n - 1});
    if (at == SIZE_MAX) {
        error_set(error, OB_ERR_ARGUMENT, "the chat template does not show the end of the last "
                  "message, so it cannot be continued");
        error_at(error, NULL, "continue_final_message", OB_NO_OFFSET);
        return OB_ERR_ARGUMENT;
    }
    bool trimmed = at + mark.n > text->n || text->p[at + mark.n - 1] != ' ';
    while (trimmed && at && isspace((unsigned char)text->p[at - 1])) at--;
    text->n = trust->n = at;
    remove_marks(text, trust); /* of a template that shows the text twice */
    return OB_OK;
}

/* ---- tokens ---- */

/* Exactly one BOS if the model uses one: what the template wrote, or ours. */
static ob_status encode(const struct tok *tok, const struct buf *text, const struct buf *trust,
                        ob_tokens *ids, ob_error *error) {
    ob_tokens own = {0};
    int32_t bos = tok_bos(tok);
    ob_status status = tok_encode(tok, text->p ? text->p : "", text->n,
                                  (const uint8_t *)(trust->p ? trust->p : ""), true, false, &own,
                                  error);
    if (status) return status;
    size_t skip = 0;
    while (bos >= 0 && skip < own.n && own.id[skip] == bos) skip++;
    bool add = bos >= 0 && (skip || tok_adds_bos(tok));
    size_t n = ids->n + own.n - skip + add;
    int32_t *grown = n ? realloc(ids->id, n * sizeof *grown) : ids->id;
    if (n && !grown) {
        free(own.id);
        return error_memory(error, "the prompt", n * sizeof *grown);
    }
    ids->id = grown;
    if (add) ids->id[ids->n++] = bos;
    if (own.n > skip) memcpy(ids->id + ids->n, own.id + skip, (own.n - skip) * sizeof *grown);
    ids->n = n;
    free(own.id);
    return OB_OK;
}

/* The template's text and trust for the request. */
static ob_status render(const struct chat *chat, const struct form *form, const json_t *request,
                        struct buf *text, struct buf *trust, ob_error *error) {
    bool continues = false;
    json_t *data = json_object();
    ob_status status = data ? chat_fit(form, request, data, &continues, error)
                            : error_memory(error, "a chat", 0);
    if (!status) {
        status = chat_render(chat->tok, form->jinja, data, text, trust, error);
        if (status) blame(error, chat->model, status);
        else if (continues) status = cut(text, trust, error);
    }
    json_decref(data);
    return status;
}

ob_status chat_prompt(const struct chat *chat, const json_t *request, ob_tokens *ids,
                      struct buf *text, ob_error *error) {
    struct buf made = BUF_INIT, trust = BUF_INIT;
    if (!json_is_object(request))
        return error_set(error, OB_ERR_ARGUMENT, "the request is not an object");
    bool tools = json_array_size(json_object_get(request, "tools")) != 0;
    const struct form *form = tools && chat->tools.jinja ? &chat->tools : &chat->plain;
    ob_status status = render(chat, form, request, &made, &trust, error);
    if (!status) status = encode(chat->tok, &made, &trust, ids, error);
    if (!status && text) {
        buf_add(text, made.p, made.n);
        if (text->failed) status = error_memory(error, "the prompt", made.n);
    }
    buf_free(&made);
    buf_free(&trust);
    return status;
}
