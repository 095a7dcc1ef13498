/* SPDX-License-Identifier: Apache-2.0
 * prompt.c: see prompt.h. */
#include "server/prompt.h"

#include <stdlib.h>

#include "base/error.h"

void opening_free(struct opening *o) {
    for (size_t i = 0; i < o->n; i++) {
        ob_tokens_free(&o->prompt[i]);
        if (o->own) free(o->own[i]);
    }
    free(o->prompt);
    free(o->echo);
    free(o->own);
    free(o->text);
    *o = (struct opening){0};
}

ob_status prompt_add(struct opening *o, ob_tokens *prompt, ob_error *error) {
    if (o->n == PROMPT_CHOICES) {
        ob_tokens_free(prompt);
        error_set(error, OB_ERR_LIMIT, "has more than %d prompts", PROMPT_CHOICES);
        error_at(error, NULL, "prompt", OB_NO_OFFSET);
        return OB_ERR_LIMIT;
    }
    ob_tokens *more = realloc(o->prompt, (o->n + 1) * sizeof *more);
    if (!more) {
        ob_tokens_free(prompt);
        return error_memory(error, "prompts", o->n * sizeof *more);
    }
    o->prompt = more;
    o->prompt[o->n++] = *prompt;
    return OB_OK;
}

/* ---- a conversation -------------------------------------------------------------------------- */

/* How an answer begins that continues the last message: `request` has passed the template. */
static enum chat_begin continued(const json_t *request, const struct chat_thought *style) {
    const json_t *how = json_object_get(request, "continue_final_message");
    const json_t *messages = json_object_get(request, "messages");
    const json_t *last = json_array_get(messages, json_array_size(messages) - 1);
    const json_t *content = json_object_get(last, "content");
    size_t parts = json_array_size(content);
    if (json_is_string(how) && strcmp(json_string_value(how), "content") != 0)
        return CHAT_BEGIN_REASONING;
    if (parts) content = json_object_get(json_array_get(content, parts - 1), "text");
    struct str text = {json_string_value(content), json_string_length(content)};
    return text.p && chat_thought_is_inside(style, text) ? CHAT_BEGIN_REASONING
                                                         : CHAT_BEGIN_CONTENT;
}

ob_status prompt_chat(const ob_engine *engine, const json_t *request, const struct params *params,
                      struct opening *out, ob_error *error) {
    ob_tokens tokens = {0};
    json_t *copy = json_copy((json_t *)(uintptr_t)request);
    if (!copy) return error_memory(error, "the request", 0);
    if (params->drop_tools) json_object_del(copy, "tools");
    ob_status s = ob_chat_prompt_json(engine, copy, &tokens, &out->text, &out->text_n, error);
    json_decref(copy);
    if (s == OB_OK) s = prompt_add(out, &tokens, error);
    if (s != OB_OK) return s;
    out->chat = true;
    if (!out->style) return OB_OK;
    const json_t *how = json_object_get(request, "continue_final_message");
    if (json_is_true(how) || json_is_string(how))
        out->begin = continued(request, out->style);
    else if (chat_thought_is_open(out->style, (struct str){out->text, out->text_n}))
        out->begin = CHAT_BEGIN_REASONING;
    else
        out->begin = CHAT_BEGIN_ANSWER;
    return OB_OK;
}

/* ---- texts and tokens ------------------------------------------------------------------------ */

/* Appends `more`, which is freed. */
static ob_status append(ob_tokens *out, ob_tokens *more, ob_error *error) {
    int32_t *id = realloc(out->id, (out->n + more->n + 1) * sizeof *id);
    if (id) {
        out->id = id;
        if (more->n) memcpy(id + out->n, more->id, more->n * sizeof *id);
        out->n += more->n;
    }
    ob_tokens_free(more);
    return id ? OB_OK : error_memory(error, "tokens", out->n * sizeof *id);
}

static ob_status append_text(const ob_engine *engine, struct str text, bool add_special,
                             bool parse_special, ob_tokens *out, ob_error *error) {
    ob_tokens more = {0};
    ob_status s =
        ob_tokenize(engine, text.p, text.n, add_special, parse_special, &more, error);
    return s == OB_OK ? append(out, &more, error) : s;
}

ob_status prompt_tokens(const ob_engine *engine, const json_t *value, bool add_special,
                        bool parse_special, const char *field, ob_tokens *out, ob_error *error) {
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    if (json_is_string(value))
        return append_text(engine, (struct str){json_string_value(value),
                                                json_string_length(value)},
                           add_special, parse_special, out, error);
    size_t n = json_array_size(value);
    if (!json_is_array(value))
        return params_refuse(error, field, value, "a string or an array of token ids");
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(value, i);
        json_int_t id = json_integer_value(one);
        ob_status s;
        if (json_is_string(one)) {
            s = append_text(engine, (struct str){json_string_value(one), json_string_length(one)},
                            add_special && i == 0, parse_special, out, error);
        } else if (!json_is_integer(one) || id < 0 || id >= info.vocab) {
            s = params_refuse(error, field, one, "a string or token ids of the vocabulary");
        } else {
            /* Rooms for all that are left, at the first of a run. */
            int32_t *more = i && json_is_integer(json_array_get(value, i - 1))
                                ? out->id
                                : realloc(out->id, (out->n + n - i + 1) * sizeof *more);
            s = more ? OB_OK : error_memory(error, "tokens", (n - i) * sizeof *more);
            if (more) out->id = more, out->id[out->n++] = (int32_t)id;
        }
        if (s != OB_OK) return s;
    }
    return OB_OK;
}

/* What the answer to it repeats: the text as it was written, else the tokens' own. */
static ob_status add_echo(const ob_engine *engine, const json_t *prompt, struct opening *out,
                          ob_error *error) {
    size_t i = out->n - 1;
    if (!out->echo) out->echo = calloc(PROMPT_CHOICES, sizeof *out->echo);
    if (!out->own) out->own = calloc(PROMPT_CHOICES, sizeof *out->own);
    if (!out->echo || !out->own) return error_memory(error, "prompts", 0);
    if (json_is_string(prompt)) {
        out->echo[i] = (struct str){json_string_value(prompt), json_string_length(prompt)};
        return OB_OK;
    }
    ob_status s = ob_detokenize(engine, out->prompt[i].id, out->prompt[i].n, true, &out->own[i],
                                &out->echo[i].n, error);
    out->echo[i].p = out->own[i];
    return s;
}

static ob_status add_one(const ob_engine *engine, const json_t *prompt,
                         const struct params *params, struct opening *out, ob_error *error) {
    ob_tokens tokens = {0};
    ob_status s;
    if (!params->suffix.n) {
        s = prompt_tokens(engine, prompt, true, params->parse_special, "prompt", &tokens, error);
    } else if (!json_is_string(prompt)) {
        s = params_refuse(error, "prompt", prompt, "a string, beside a suffix");
    } else {
        struct str text = {json_string_value(prompt), json_string_length(prompt)};
        s = prompt_infill(engine, text, params->suffix, (struct str){0}, NULL, &tokens, error);
        if (s == OB_ERR_UNSUPPORTED) error_at(error, NULL, "suffix", OB_NO_OFFSET);
    }
    if (s == OB_OK && tokens.n == 0) {
        s = error_set(error, OB_ERR_ARGUMENT, "is empty");
        error_at(error, NULL, "prompt", OB_NO_OFFSET);
    }
    if (s != OB_OK) {
        ob_tokens_free(&tokens);
        return s;
    }
    s = prompt_add(out, &tokens, error);
    return s == OB_OK && params->echo ? add_echo(engine, prompt, out, error) : s;
}

ob_status prompt_texts(const ob_engine *engine, const json_t *request, const struct params *params,
                       struct opening *out, ob_error *error) {
    const json_t *prompt = json_object_get(request, "prompt");
    const json_t *continues = json_object_get(request, "continue_final_message");
    if (continues && !json_is_null(continues) && !json_is_false(continues))
        return params_refuse(error, "continue_final_message", continues, "false: there is no chat");
    if (!json_is_string(prompt) && !json_is_array(prompt))
        return params_refuse(error, "prompt", prompt, "a string or an array of token ids");
    /* One prompt of tokens, perhaps with texts between them, has a number in it. */
    size_t n = json_array_size(prompt), numbers = 0, lists = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(prompt, i);
        if (json_is_array(one)) lists++;
        else if (!json_is_string(one)) numbers++;
    }
    if (n == 0 || (numbers && !lists)) return add_one(engine, prompt, params, out, error);
    ob_status s = OB_OK;
    for (size_t i = 0; s == OB_OK && i < n; i++)
        s = add_one(engine, json_array_get(prompt, i), params, out, error);
    return s;
}

/* ---- a gap ----------------------------------------------------------------------------------- */

/* How models mark the three parts of a text with a gap, and files before it. From their published
 * tokenizers: Qwen 2.5 Coder and Granite, StarCoder and Refact, DeepSeek Coder, Codestral (which
 * wants the suffix first), CodeGemma, Code Llama, Seed Coder. */
static const struct gap {
    const char *prefix, *suffix, *middle, *file;
    bool suffix_first;
} gaps[] = {
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>", false},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<file_sep>", false},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", NULL, false},
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", NULL, false},
    {"[PREFIX]", "[SUFFIX]", "[MIDDLE]", NULL, true},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", NULL, false},
    {"▁<PRE>", "▁<SUF>", "▁<MID>", NULL, false},
    {"<PRE>", "<SUF>", "<MID>", NULL, false},
};

/* The control token of that text; -1 if there is none. */
static int32_t control(const ob_engine *engine, const char *text) {
    ob_tokens plain = {0}, special = {0};
    int32_t id = -1;
    size_t n = text ? strlen(text) : 0;
    if (n && ob_tokenize(engine, text, n, false, true, &special, NULL) == OB_OK &&
        special.n == 1 && ob_tokenize(engine, text, n, false, false, &plain, NULL) == OB_OK &&
        !(plain.n == 1 && plain.id[0] == special.id[0]))
        id = special.id[0];
    ob_tokens_free(&plain);
    ob_tokens_free(&special);
    return id;
}

static ob_status append_mark(int32_t id, ob_tokens *out, ob_error *error) {
    ob_tokens one = {.id = malloc(sizeof *one.id), .n = 1};
    if (!one.id) return error_memory(error, "tokens", sizeof *one.id);
    *one.id = id;
    return append(out, &one, error);
}

/* Other files first, each with its name. */
static ob_status append_files(const ob_engine *engine, const json_t *extra, int32_t mark,
                              ob_tokens *out, ob_error *error) {
    for (size_t i = 0; i < json_array_size(extra); i++) {
        const json_t *file = json_array_get(extra, i), *text = json_object_get(file, "text");
        const json_t *name = json_object_get(file, "filename");
        const char *named = json_string_value(name);
        if (!json_is_object(file) || !json_is_string(text) || (name && !named))
            return params_refuse(error, "input_extra", file,
                                 "a list of objects with \"filename\" and \"text\"");
        ob_status s = mark >= 0 ? append_mark(mark, out, error) : OB_OK;
        if (s == OB_OK && named)
            s = append_text(engine, str_of(named), false, false, out, error);
        if (s == OB_OK) s = append_text(engine, STR_LIT("\n"), false, false, out, error);
        if (s == OB_OK)
            s = append_text(engine, (struct str){json_string_value(text),
                                                 json_string_length(text)},
                            false, false, out, error);
        if (s == OB_OK) s = append_text(engine, STR_LIT("\n"), false, false, out, error);
        if (s != OB_OK) return s;
    }
    return extra && json_array_size(extra) && mark >= 0 ? append_mark(mark, out, error) : OB_OK;
}

ob_status prompt_infill(const ob_engine *engine, struct str prefix, struct str suffix,
                        struct str behind, const json_t *extra, ob_tokens *out, ob_error *error) {
    int32_t mark[3] = {-1, -1, -1};
    size_t i = 0;
    for (; i < sizeof gaps / sizeof gaps[0]; i++) {
        mark[0] = control(engine, gaps[i].prefix);
        mark[1] = mark[0] < 0 ? -1 : control(engine, gaps[i].suffix);
        mark[2] = mark[1] < 0 ? -1 : control(engine, gaps[i].middle);
        if (mark[2] >= 0) break;
    }
    if (mark[2] < 0)
        return error_set(error, OB_ERR_UNSUPPORTED,
                         "this model has no tokens for text before and behind a gap");
    ob_status s = append_text(engine, STR_LIT(""), true, false, out, error); /* its first token */
    if (s == OB_OK)
        s = append_files(engine, extra, control(engine, gaps[i].file), out, error);
    for (int part = 0; s == OB_OK && part < 2; part++) {
        bool second = part != gaps[i].suffix_first;
        struct str text = second ? suffix : prefix;
        s = append_mark(mark[second], out, error);
        if (s == OB_OK) s = append_text(engine, text, false, false, out, error);
    }
    if (s == OB_OK && !gaps[i].suffix_first) s = append_mark(mark[2], out, error);
    return s == OB_OK && behind.n ? append_text(engine, behind, false, false, out, error) : s;
}
