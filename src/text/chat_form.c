/* SPDX-License-Identifier: Apache-2.0
 *
 * chat_form.c: a chat template, and what it understands. Requests come in OpenAI's spelling,
 * templates were written for transformers'. Where the two differ, rendering a probe finds out:
 * - content as a string or as a list of parts;
 * - arguments of a tool call as an object or as JSON text: objects, unless the template fails on
 *   them or prints them as Python does and text works.
 * Everything in the data is untrusted, but for the role names below: templates write
 * '<|' + role + '|>'. */
#include <stdlib.h>

#include "base/error.h"
#include "base/os.h"
#include "text/chat_impl.h"

static const char *const roles[] = {"assistant", "developer", "function", "ipython", "model",
                                    "observation", "system", "tool", "user", NULL};

/* The names a template may use that come from the model. */
static json_t *trusted_names(const struct tok *tok) {
    json_t *names = json_object();
    struct str bos = tok_bos(tok) >= 0 ? tok_text(tok, tok_bos(tok)) : (struct str){0};
    struct str eos = tok_eos(tok) >= 0 ? tok_text(tok, tok_eos(tok)) : (struct str){0};
    if (bos.p) json_object_set_new(names, "bos_token", json_stringn(bos.p, bos.n));
    if (eos.p) json_object_set_new(names, "eos_token", json_stringn(eos.p, eos.n));
    return names;
}

ob_status chat_render(const struct tok *tok, const struct jinja *jinja, const json_t *data,
                      struct buf *text, struct buf *trust, ob_error *error) {
    static const struct jinja_limits limits = {.roles = roles};
    json_t *names = trusted_names(tok);
    if (!names) return error_memory(error, "a chat", 0);
    ob_status status =
        jinja_render(jinja, data, names, os_local_time(), &limits, text, trust, error);
    json_decref(names);
    return status;
}

/* ---- probes ---- */

static bool contains(const struct buf *text, const char *what) {
    return text->p && strstr(text->p, what) != NULL;
}

static bool probe_with(const struct tok *tok, const struct jinja *jinja, const char *messages,
                       const char *tools, const char *wanted, const char *unwanted) {
    struct buf text = BUF_INIT;
    json_t *data = json_pack("{s:o?, s:o?, s:n, s:b}", "messages", json_loads(messages, 0, NULL),
                             "tools", json_loads(tools, JSON_DECODE_ANY, NULL), "documents",
                             "add_generation_prompt", 1);
    bool ok = data && chat_render(tok, jinja, data, &text, NULL, NULL) == OB_OK &&
              contains(&text, wanted) && !(unwanted && contains(&text, unwanted));
    buf_free(&text);
    json_decref(data);
    return ok;
}

/* Whether the conversation, given as JSON, renders and shows `wanted` but not `unwanted`; some
 * templates work only with tools. */
static bool probe(const struct tok *tok, const struct jinja *jinja, const char *messages,
                  const char *wanted, const char *unwanted) {
    static const char *const tools[] = {
        "null", "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"d\","
                " \"parameters\": {\"type\": \"object\", \"properties\": {}}}}]"};
    return probe_with(tok, jinja, messages, tools[0], wanted, unwanted) ||
           probe_with(tok, jinja, messages, tools[1], wanted, unwanted);
}

#define PROBE_CONTENT(content) "[{\"role\": \"user\", \"content\": " content "}]"
#define PROBE_CALL(content, arguments)                                                   \
    "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": " content \
    ", \"tool_calls\": [{\"id\": \"probe0001\", \"type\": \"function\", \"function\":"         \
    " {\"name\": \"f\", \"arguments\": " arguments "}}]}]"
#define PROBE_OBJECT "{\"pr0be\": \"v\"}"
#define PROBE_TEXT "\"{\\\"pr0be\\\": \\\"v\\\"}\""

/* Some templates show calls only where the content is null. */
static bool shows_object(const struct tok *tok, const struct jinja *j) {
    static const char python[] = "'pr0be': ";
    return probe(tok, j, PROBE_CALL("\"\"", PROBE_OBJECT), "pr0be", python) ||
           probe(tok, j, PROBE_CALL("null", PROBE_OBJECT), "pr0be", python);
}

static bool shows_text(const struct tok *tok, const struct jinja *j) {
    return probe(tok, j, PROBE_CALL("\"\"", PROBE_TEXT), "pr0be", NULL) ||
           probe(tok, j, PROBE_CALL("null", PROBE_TEXT), "pr0be", NULL);
}

ob_status chat_form_open(const struct tok *tok, struct str source, struct form *out,
                         ob_error *error) {
    ob_status status = jinja_parse(source.p, source.n, &out->jinja, error);
    if (status) return status;
    struct jinja *j = out->jinja;
    out->source = source;
    out->text_content = probe(tok, j, PROBE_CONTENT("\"pr0be\""), "pr0be", NULL);
    out->part_content = probe(tok, j, PROBE_CONTENT("[{\"type\": \"text\", \"text\": \"pr0be\"}]"),
                              "pr0be", "'pr0be'");
    out->text_arguments = !shows_object(tok, j) && shows_text(tok, j);
    return OB_OK;
}

void chat_form_close(struct form *form) { jinja_free(&form->jinja); }
