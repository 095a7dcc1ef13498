/* SPDX-License-Identifier: Apache-2.0
 *
 * call_walk.c: a tool of tests/tools/test_call_grammars.py: what a model that knows nothing writes
 * under a grammar of calls, and what the parser makes of it. Each line of the standard input is a
 * JSON object, each line of the answer too:
 *
 *   {"format": F, "template": T, "prompt": T, "thinks": B, "request": {"tools": .., ...},
 *    "controls": [T, ..], "pieces": [T, ..], "texts": [T, ..], "random": N, "seed": N, "most": N}
 *   -> {"accepts": [B, ..], "answers": [{"text", "whole", "content", "thought", "calls"}, ..]},
 *      {"free": true}: any text is fine, or {"error": LINE, "where": W, "status": N}
 *
 * The vocabulary is all bytes, the control tokens, the pieces, and a token that ends. Pieces and
 * control tokens are drawn more often than bytes, so that answers come to an end. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/rng.h"
#include "base/utf8.h"
#include "text/chat_grammar.h"

enum { BYTES = 256 };

struct words {
    const json_t *controls, *pieces;
    uint32_t size;
};

static struct str word(const json_t *list, size_t i) {
    const json_t *one = json_array_get(list, i);
    return (struct str){json_string_value(one), json_string_length(one)};
}

static bool is_end(const void *user, int32_t id) {
    return (uint32_t)id + 1 == ((const struct words *)user)->size;
}

static void piece(const void *user, int32_t id, bool special, struct buf *out) {
    const struct words *w = user;
    size_t at = (size_t)id, controls = json_array_size(w->controls);
    struct str text = {0};
    if (at < BYTES) {
        buf_putc(out, (char)at);
        return;
    }
    at -= BYTES;
    if (at < controls && special) text = word(w->controls, at);
    else if (at >= controls) text = word(w->pieces, at - controls);
    if (text.n) buf_add(out, text.p, text.n);
}

static int32_t control(const void *user, struct str text, bool *ends) {
    const struct words *w = user;
    *ends = false;
    for (size_t i = 0; i < json_array_size(w->controls); i++)
        if (str_eq(word(w->controls, i), text)) return (int32_t)(BYTES + i);
    return -1;
}

/* ---- reading back ---------------------------------------------------------------------------- */

struct heard {
    struct buf content, thought, arguments;
    json_t *calls;
};

static void hear(void *user, const struct chat_event *e) {
    struct heard *h = user;
    if (e->kind == CHAT_CONTENT) buf_add(&h->content, e->text.p, e->text.n);
    if (e->kind == CHAT_REASONING) buf_add(&h->thought, e->text.p, e->text.n);
    if (e->kind == CHAT_TOOL) {
        buf_clear(&h->arguments);
        json_array_append_new(h->calls, json_pack("{s:s%, s:s}", "name", e->name.p, e->name.n,
                                                  "arguments", ""));
    }
    if (e->kind == CHAT_ARGUMENTS) {
        buf_add(&h->arguments, e->text.p, e->text.n);
        json_object_set_new(json_array_get(h->calls, e->index), "arguments",
                            json_stringn_nocheck(h->arguments.p, h->arguments.n));
    }
}

static json_t *text_json(const struct buf *b) {
    return json_stringn_nocheck(b->p ? b->p : "", b->n);
}

/* Whole, or live in pieces. */
static json_t *read_back(const struct chat_grammar_options *o, struct str text, bool live) {
    struct heard h = {.calls = json_array()};
    struct chat_parser *p = chat_parser_new(&(struct chat_parser_options){
        .format = o->format, .calls = true, .style = o->style, .prompt = o->prompt,
        .begin = o->style ? CHAT_BEGIN_ANSWER : CHAT_BEGIN_CONTENT, .tools = o->tools, .live = live,
        .single = o->choice.single, .seed = 1, .on = hear, .user = &h});
    for (size_t at = 0; at < text.n && live; at++)
        chat_parser_add(p, (struct str){text.p + at, 1});
    if (!live) chat_parser_add(p, text);
    chat_parser_end(p);
    chat_parser_free(&p);
    json_t *out = json_pack("{s:o, s:o, s:o}", "content", text_json(&h.content), "thought",
                            text_json(&h.thought), "calls", h.calls);
    buf_free(&h.content);
    buf_free(&h.thought);
    buf_free(&h.arguments);
    return out;
}

/* ---- writing --------------------------------------------------------------------------------- */

static double weight(const struct words *w, uint32_t id) {
    if (is_end(w, (int32_t)id)) return 40;
    return id >= BYTES ? 10 : strchr("\"\"}],:{[0123456789 \n", (int)id) && id ? 4 : 0.5;
}

/* -1: nothing is allowed. */
static int32_t draw(struct grammar_state *state, const struct words *w, uint32_t *mask,
                    uint64_t seed, uint64_t at) {
    ob_error error;
    double sum = 0;
    if (grammar_mask(state, mask, &error) != OB_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    for (uint32_t i = 0; i < w->size; i++)
        if (mask[i / 32] >> (i % 32) & 1) sum += weight(w, i);
    double left = sum * (double)(rng_u64(seed, at) >> 11) / 9007199254740992.0;
    int32_t last = -1;
    for (uint32_t i = 0; i < w->size; i++) {
        if (!(mask[i / 32] >> (i % 32) & 1)) continue;
        last = (int32_t)i;
        if ((left -= weight(w, i)) < 0) break;
    }
    return last;
}

static json_t *random_answer(struct grammar *grammar, struct grammar_vocab *vocab,
                             const struct words *w, const struct chat_grammar_options *o,
                             uint64_t seed, size_t most) {
    struct grammar_state *state;
    struct buf text = BUF_INIT;
    ob_error error;
    bool whole = false, dead = false;
    uint32_t *mask = calloc(w->size / 32 + 1, sizeof *mask);
    if (grammar_state_open(grammar, vocab, &state, &error) != OB_OK) exit(1);
    for (size_t n = 0; n < most && !whole && !dead; n++) {
        int32_t id = draw(state, w, mask, seed, n);
        dead = id < 0 || !grammar_accept(state, id);
        whole = !dead && is_end(w, id);
        if (!dead && !whole) piece(w, id, true, &text);
        if (!dead && !whole && grammar_is_over(state)) whole = true;
    }
    if (text.n) text.n = utf8_whole(text.p, text.n); /* cut: as the engine tells text */
    struct str said = {text.p ? text.p : "", text.n};
    json_t *out = read_back(o, said, false), *live = read_back(o, said, true);
    json_object_set_new(out, "live", live);
    json_object_set_new(out, "text", text_json(&text));
    json_object_set_new(out, "whole", json_boolean(whole));
    json_object_set_new(out, "dead", json_boolean(dead));
    grammar_state_close(&state);
    buf_free(&text);
    free(mask);
    return out;
}

static bool accepts(struct grammar *grammar, struct str text) {
    struct grammar_state *state;
    ob_error error;
    if (grammar_state_open(grammar, NULL, &state, &error) != OB_OK) exit(1);
    bool out = grammar_accept_bytes(state, text) == text.n && grammar_is_whole(state);
    grammar_state_close(&state);
    return out;
}

static json_t *answer(const json_t *line) {
    const json_t *request = json_object_get(line, "request");
    struct words words = {json_object_get(line, "controls"), json_object_get(line, "pieces"), 0};
    words.size = (uint32_t)(BYTES + json_array_size(words.controls) +
                            json_array_size(words.pieces) + 1);
    struct chat_tokens tokens = {&words, control};
    const char *prompt = json_string_value(json_object_get(line, "prompt"));
    const char *template = json_string_value(json_object_get(line, "template"));
    struct chat_grammar_options o = {.tools = json_object_get(request, "tools"),
                                     .source = str_of(template ? template : ""),
                                     .prompt = str_of(prompt ? prompt : ""), .tokens = &tokens};
    struct grammar *grammar;
    ob_error error;
    ob_status s = chat_format_find(json_string_value(json_object_get(line, "format")), &o.format,
                                   &error);
    if (s == OB_OK && json_is_true(json_object_get(line, "thinks")))
        o.style = chat_thought_of(o.format, o.source);
    if (s == OB_OK) s = chat_choice_read(request, &o.choice, &error);
    if (s == OB_OK && !chat_choice_binds(&o.choice)) return json_pack("{s:b}", "free", 1);
    if (s == OB_OK) s = chat_grammar(&o, &grammar, &error);
    if (s != OB_OK)
        return json_pack("{s:s, s:s, s:i}", "error", error.message, "where", error.where,
                         "status", (int)s);
    json_t *accepted = json_array(), *answers = json_array();
    const json_t *texts = json_object_get(line, "texts");
    for (size_t i = 0; i < json_array_size(texts); i++)
        json_array_append_new(accepted, json_boolean(accepts(grammar, word(texts, i))));
    struct grammar_vocab *vocab;
    struct sample_vocab pieces = {.user = &words, .size = words.size, .context = 4096,
                                  .end = (int32_t)words.size - 1, .piece = piece,
                                  .is_end = is_end};
    if (grammar_vocab_open(&pieces, &vocab, &error) != OB_OK) exit(1);
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(line, "seed"));
    json_int_t n = json_integer_value(json_object_get(line, "random"));
    size_t most = (size_t)json_integer_value(json_object_get(line, "most"));
    for (json_int_t i = 0; i < n; i++)
        json_array_append_new(answers, random_answer(grammar, vocab, &words, &o,
                                                     seed * 1000 + (uint64_t)i, most));
    grammar_vocab_close(&vocab);
    grammar_drop(&grammar);
    return json_pack("{s:o, s:o}", "accepts", accepted, "answers", answers);
}

int main(void) {
    char *line = NULL;
    size_t cap = 0;
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        json_error_t where;
        json_t *json = json_loadb(line, (size_t)n, JSON_ALLOW_NUL, &where);
        json_t *out = json ? answer(json) : json_pack("{s:s}", "unread", where.text);
        json_dumpf(out, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
        putchar('\n');
        fflush(stdout);
        json_decref(out);
        json_decref(json);
    }
    free(line);
    return 0;
}
