/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_engine.c: onebit.h without a model, so that the server can be tested for what a real engine
 * seldom does. A token is a byte. The answer depends on how the prompt (of a chat: the last
 * message) begins:
 *   "fail"     three tokens, then an error          "endless"  "x" until it is cancelled
 *   "flood"    the same; from "open" on as fast as it goes (before that, its client may not have
 *              the answer's head yet)
 *   "open"     lets the floods go; its own text     "broken"   bytes that are no UTF-8
 *   "nap"      itself, half a second later
 *   "think"    a <think> block, then an answer      else       the prompt itself
 * A stop string is kept to. The model's name decides how it loads: "slow" takes a second, "bad"
 * fails; "fim" has tokens for a gap. */
#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "sample/sample.h"
#include "sample/schema/schema.h"
#include "text/chat_grammar.h"

struct ob_engine {
    bool fim; /* it has tokens for text before and behind a gap: the bytes 1, 2, 3 */
};

struct ob_request {
    os_thread thread;
    ob_request_options options;
    char *prompt;
    atomic_bool cancel;
};

static atomic_bool open_gate; /* the floods may go */

static void nap(double seconds) {
    os_mutex lock;
    os_cond never;
    os_mutex_init(&lock);
    os_cond_init(&never);
    os_lock(&lock);
    os_wait_for(&never, &lock, seconds);
    os_unlock(&lock);
    os_cond_free(&never);
    os_mutex_free(&lock);
}

ob_status ob_engine_open(const ob_engine_options *options, ob_engine **out, ob_error *error) {
    *out = NULL;
    if (strstr(options->model, "slow")) nap(1);
    if (strstr(options->model, "bad")) {
        error_set(error, OB_ERR_FORMAT, "the fake is bad");
        error_at(error, options->model, "key", 7);
        return OB_ERR_FORMAT;
    }
    *out = calloc(1, sizeof **out);
    if (*out) (*out)->fim = strstr(options->model, "fim") != NULL;
    return *out ? OB_OK : error_memory(error, "an engine", sizeof **out);
}

void ob_engine_close(ob_engine **engine) {
    free(*engine);
    *engine = NULL;
}

void ob_engine_get_info(const ob_engine *engine, ob_engine_info *info) {
    (void)engine;
    *info = (ob_engine_info){.name = "fake", .family = "fake", .device = "none", .context = 4096,
                             .train_context = 4096, .vocab = 256, .embedding = 2, .parallel = 2,
                             .tool_format = "hermes", .reasoning_style = "think"};
}

void ob_tokens_free(ob_tokens *tokens) {
    free(tokens->id);
    *tokens = (ob_tokens){0};
}

ob_status ob_tokenize(const ob_engine *engine, const char *text, size_t n, bool add_special,
                      bool parse_special, ob_tokens *out, ob_error *error) {
    static const char *const marks[] = {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"};
    (void)add_special;
    out->n = n;
    out->id = malloc((n + 1) * sizeof *out->id);
    if (!out->id) return error_memory(error, "tokens", n);
    for (size_t i = 0; i < n; i++) out->id[i] = (unsigned char)text[i];
    for (int i = 0; engine->fim && parse_special && i < 3; i++)
        if (n == strlen(marks[i]) && memcmp(text, marks[i], n) == 0)
            out->n = 1, out->id[0] = i + 1;
    return OB_OK;
}

ob_status ob_chat_prompt_json(const ob_engine *engine, const json_t *request, ob_tokens *out,
                              char **text, size_t *text_n, ob_error *error) {
    const json_t *messages = json_object_get(request, "messages");
    size_t count = json_array_size(messages);
    const json_t *last = count ? json_array_get(messages, count - 1) : NULL;
    const char *content = json_string_value(json_object_get(last, "content"));
    ob_status s = OB_ERR_ARGUMENT;
    if (content) {
        s = ob_tokenize(engine, content, strlen(content), true, false, out, error);
        if (text) *text = strdup(content), *text_n = strlen(content);
    } else {
        error_set(error, s, "must be a string");
        error_at(error, NULL, "messages[].content", OB_NO_OFFSET);
    }
    return s;
}

ob_sampling ob_sampling_default(void) {
    return (ob_sampling){.temperature = 0.8f, .top_p = 1, .typical_p = 1, .repeat_penalty = 1};
}
ob_sampling ob_engine_sampling(const ob_engine *engine) {
    (void)engine;
    return ob_sampling_default();
}
ob_status ob_sampling_check(const ob_sampling *sampling, ob_error *error) {
    return sample_check(sampling, error);
}

ob_status ob_detokenize(const ob_engine *engine, const int32_t *id, size_t count, bool special,
                        char **out, size_t *n, ob_error *error) {
    (void)engine, (void)special, (void)error;
    *out = malloc(count + 1);
    if (!*out) return OB_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) (*out)[i] = (char)id[i];
    (*out)[*n = count] = 0;
    return OB_OK;
}

/* Two numbers: how many tokens, and the first. */
ob_status ob_embed(const ob_engine *engine, const ob_tokens *text, size_t n, float *out,
                   ob_error *error) {
    (void)engine, (void)error;
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = (float)text[i].n;
        out[2 * i + 1] = text[i].n ? (float)text[i].id[0] : 0;
    }
    return OB_OK;
}

/* ---- generation ------------------------------------------------------------------------------ */

/* -1 for the byte itself, -2 for the next one and so on. */
static void fill_logprobs(const ob_request_options *o, ob_event *event, ob_logprob *top) {
    event->logprob = o->logprobs || o->logprobs_after ? -1 : 0;
    event->top = top;
    event->top_n = o->top_logprobs;
    for (uint32_t i = 0; i < o->top_logprobs; i++)
        top[i] = (ob_logprob){(event->id + (int32_t)i) % 256, -1 - (float)i};
}

static void *generate(void *arg) {
    struct ob_request *r = arg;
    static const char thought[] = "<think>\nhm\n</think>\n\nanswer";
    static const char broken[] = "a\xff\xc3(b\xe2\x82";
    ob_error error;
    const char *text = r->prompt;
    bool fail = strncmp(text, "fail", 4) == 0, flood = strncmp(text, "flood", 5) == 0;
    bool endless = flood || strncmp(text, "endless", 7) == 0;
    if (strncmp(text, "open", 4) == 0) atomic_store(&open_gate, true);
    if (strncmp(text, "nap", 3) == 0) nap(0.5);
    if (strncmp(text, "think", 5) == 0) text = thought;
    else if (strncmp(text, "broken", 6) == 0) text = broken;
    size_t n = endless ? SIZE_MAX : fail ? 3 : strlen(text);
    ob_event event = {.timings = {.prompt_n = (uint32_t)r->options.prompt_n, .prompt_ms = 1}};
    ob_finish finish = fail ? OB_FINISH_ERROR : OB_FINISH_STOP;
    for (size_t i = 0; i < n; i++) {
        if (atomic_load(&r->cancel)) {
            finish = OB_FINISH_CANCEL;
            break;
        }
        if (r->options.max_tokens && i == r->options.max_tokens) {
            finish = OB_FINISH_LENGTH;
            break;
        }
        event.text = endless ? "x" : text + i;
        event.stop = NULL;
        for (size_t k = 0; !endless && k < r->options.stop_n; k++)
            if (strncmp(event.text, r->options.stop[k], strlen(r->options.stop[k])) == 0)
                event.stop = r->options.stop[k];
        if (event.stop) break;
        event.text_n = 1;
        event.id = (unsigned char)*event.text;
        ob_logprob top[OB_TOP_LOGPROBS];
        fill_logprobs(&r->options, &event, top);
        event.timings.predicted_n++;
        event.timings.predicted_ms += 1;
        r->options.on_event(r->options.user, &event);
        if (!flood || !atomic_load(&open_gate)) nap(0.001);
    }
    error_set(&error, OB_ERR_NUMERIC, "the fake failed");
    event.text_n = 0;
    event.id = -1;
    event.finish = finish;
    event.error = finish == OB_FINISH_ERROR ? &error : NULL;
    r->options.on_event(r->options.user, &event);
    return NULL;
}

/* Grammars are read, and then not kept to. */
struct ob_grammar {
    struct grammar *grammar;
};

static ob_status give(struct grammar *grammar, ob_status s, ob_grammar **out) {
    *out = s == OB_OK ? malloc(sizeof **out) : NULL;
    if (*out) (*out)->grammar = grammar;
    return s;
}

ob_status ob_grammar_gbnf(const ob_engine *engine, const char *text, size_t n, ob_grammar **out,
                          ob_error *error) {
    struct grammar *grammar;
    (void)engine;
    ob_status s = schema_gbnf((struct str){text, n}, NULL, &grammar, error);
    return give(grammar, s, out);
}

ob_status ob_grammar_regex(const ob_engine *engine, const char *text, size_t n, ob_grammar **out,
                           ob_error *error) {
    struct grammar *grammar;
    (void)engine;
    ob_status s = schema_regex((struct str){text, n}, &grammar, error);
    return give(grammar, s, out);
}

ob_status ob_grammar_json_schema_json(const ob_engine *engine, const json_t *schema,
                                      unsigned flags, ob_grammar **out, ob_error *error) {
    struct grammar *grammar;
    struct schema_options options = {.compact = flags & OB_JSON_COMPACT};
    (void)engine;
    ob_status s = schema_json(schema, &options, &grammar, error);
    return give(grammar, s, out);
}

ob_status ob_grammar_tools_json(const ob_engine *engine, const json_t *request,
                                const char *prompt, size_t prompt_n, unsigned flags,
                                ob_grammar **out, ob_error *error) {
    struct grammar *grammar = NULL;
    struct chat_grammar_options options = {
        .tools = json_object_get(request, "tools"), .prompt = {prompt, prompt_n},
        .source = STR_LIT("<think></think>"), .compact = flags & OB_JSON_COMPACT};
    (void)engine;
    *out = NULL;
    ob_status s = chat_choice_read(request, &options.choice, error);
    if (s != OB_OK || !chat_choice_binds(&options.choice)) return s;
    s = chat_format_find("hermes", &options.format, error);
    if (flags & OB_TOOLS_REASON) options.style = chat_thought_find("think");
    if (s == OB_OK) s = chat_grammar(&options, &grammar, error);
    return give(grammar, s, out);
}

void ob_grammar_free(ob_grammar **grammar) {
    if (!*grammar) return;
    grammar_drop(&(*grammar)->grammar);
    free(*grammar);
    *grammar = NULL;
}

ob_status ob_submit(ob_engine *engine, const ob_request_options *options, ob_request **out,
                    ob_error *error) {
    (void)engine;
    struct ob_request *r = calloc(1, sizeof *r);
    char *prompt = malloc(options->prompt_n + 1);
    *out = r;
    if (r && prompt) {
        r->options = *options;
        r->prompt = prompt;
        for (size_t i = 0; i < options->prompt_n; i++) prompt[i] = (char)options->prompt[i];
        prompt[options->prompt_n] = 0;
        if (os_thread_start(&r->thread, generate, r)) return OB_OK;
    }
    free(prompt);
    free(r);
    *out = NULL;
    return error_memory(error, "a request", sizeof *r);
}

void ob_cancel(ob_request *request) { atomic_store(&request->cancel, true); }

void ob_release(ob_request **request) {
    os_thread_join(&(*request)->thread);
    free((*request)->prompt);
    free(*request);
    *request = NULL;
}
