/* SPDX-License-Identifier: Apache-2.0
 *
 * test_api.c: onebit.h on the tiny model: whatever runs beside a request, was cached before it or
 * pushed it out of memory, its text is the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "onebit.h"

#define MODEL "tests/golden/tiny.gguf"

/* What a request delivered. Written on the owner thread, read after ob_release. */
struct got {
    struct buf text;
    uint32_t tokens, last;
    ob_finish finish;
    ob_timings timings;
    ob_error error;
    int32_t id[512];
    uint32_t cancel_after; /* tokens; 0 = never */
    ob_request *request;
    os_mutex *lock;
};

static void on_event(void *user, const ob_event *event) {
    struct got *got = user;
    buf_add(&got->text, event->text, event->text_n);
    if (event->id >= 0 && got->tokens < 512) got->id[got->tokens++] = event->id;
    got->timings = event->timings;
    if (event->finish != OB_FINISH_NONE) {
        got->finish = event->finish;
        got->last++;
        if (event->error) got->error = *event->error;
    }
    if (got->cancel_after && got->tokens == got->cancel_after) {
        os_lock(got->lock); /* ob_submit has returned and stored the request */
        ob_cancel(got->request);
        os_unlock(got->lock);
    }
}

static ob_engine *open_engine(const ob_engine_options *options) {
    ob_engine *engine;
    ob_error error;
    char line[1024];
    if (ob_engine_open(options, &engine, &error) != OB_OK)
        fail_msg("%s", ob_error_line(&error, line, sizeof line));
    return engine;
}

static ob_request_options prompt_options(const int32_t *prompt, size_t n, uint32_t max,
                                         struct got *got) {
    memset(got, 0, sizeof *got);
    return (ob_request_options){.prompt = prompt,
                                .prompt_n = n,
                                .max_tokens = max,
                                .on_event = on_event,
                                .user = got,
                                .ignore_eos = true,
                                .sampling = {.temperature = 0, .top_p = 1, .repeat_penalty = 1,
                                             .typical_p = 1}};
}

static ob_request *submit(ob_engine *engine, const ob_request_options *options) {
    ob_request *request;
    ob_error error;
    char line[1024];
    if (ob_submit(engine, options, &request, &error) != OB_OK)
        fail_msg("%s", ob_error_line(&error, line, sizeof line));
    return request;
}

static void run(ob_engine *engine, const ob_request_options *options) {
    ob_request *request = submit(engine, options);
    ob_release(&request);
    assert_null(request);
}

static void same(const struct got *have, const struct got *want) {
    assert_int_equal(have->last, 1);
    assert_int_equal(have->finish, want->finish);
    assert_int_equal(have->tokens, want->tokens);
    assert_memory_equal(have->id, want->id, want->tokens * sizeof *want->id);
    assert_int_equal(have->text.n, want->text.n);
    assert_memory_equal(have->text.p, want->text.p, want->text.n);
}

enum { REQUESTS = 8, TOKENS = 40, LONGEST = 150 };

static size_t make_prompt(int which, int32_t *id) {
    size_t n = (size_t)(which * 37 % LONGEST) + 1;
    for (size_t i = 0; i < n; i++) id[i] = (int32_t)(rng_u64((uint64_t)which, i) % 256);
    return n;
}

static void alone(struct got *want, float temperature) {
    for (int i = 0; i < REQUESTS; i++) {
        int32_t id[LONGEST];
        size_t n = make_prompt(i, id);
        ob_engine *engine = open_engine(&(ob_engine_options){.model = MODEL, .threads = 1});
        ob_request_options o = prompt_options(id, n, TOKENS, &want[i]);
        o.sampling.temperature = temperature;
        o.sampling.seed = (uint64_t)i;
        run(engine, &o);
        assert_int_equal(want[i].finish, OB_FINISH_LENGTH);
        assert_int_equal(want[i].tokens, TOKENS);
        ob_engine_close(&engine);
    }
}

static void together(const ob_engine_options *options, const struct got *want, float temperature) {
    static struct got got[REQUESTS];
    static int32_t id[REQUESTS][LONGEST];
    ob_request *request[REQUESTS];
    ob_engine *engine = open_engine(options);
    for (int i = 0; i < REQUESTS; i++) {
        ob_request_options o = prompt_options(id[i], make_prompt(i, id[i]), TOKENS, &got[i]);
        o.sampling.temperature = temperature;
        o.sampling.seed = (uint64_t)i;
        request[i] = submit(engine, &o);
    }
    for (int i = 0; i < REQUESTS; i++) ob_release(&request[i]);
    for (int i = 0; i < REQUESTS; i++) {
        same(&got[i], &want[i]);
        buf_free(&got[i].text);
    }
    ob_engine_close(&engine);
}

static void requests_do_not_matter_to_each_other(void **state) {
    (void)state;
    static struct got want[REQUESTS];
    for (int sampled = 0; sampled < 2; sampled++) {
        float t = sampled ? 0.9f : 0;
        alone(want, t);
        together(&(ob_engine_options){.model = MODEL, .threads = 2}, want, t);
        together(
            &(ob_engine_options){.model = MODEL, .threads = 2, .parallel = 3, .step_tokens = 16},
            want, t);
        together(&(ob_engine_options){.model = MODEL, .threads = 2, .max_gap = 1}, want, t);
        /* memory for four pages of 64: requests push each other out and are computed again */
        together(&(ob_engine_options){.model = MODEL, .context = 256, .kv_memory = 4 * 65536}, want,
                 t);
        for (int i = 0; i < REQUESTS; i++) buf_free(&want[i].text);
    }
}

static void a_cached_prefix_changes_nothing(void **state) {
    (void)state;
    static struct got first, again, longer, fresh;
    int32_t id[200];
    ob_engine *engine = open_engine(&(ob_engine_options){.model = MODEL});
    for (size_t i = 0; i < 200; i++) id[i] = (int32_t)(i * 7 % 256);
    ob_request_options o = prompt_options(id, 100, 20, &first);
    run(engine, &o);
    assert_int_equal(first.timings.cache_n, 0);
    assert_int_equal(first.timings.prompt_n, 100);
    o = prompt_options(id, 100, 20, &again);
    run(engine, &o);
    assert_int_equal(again.timings.cache_n, 99); /* one token is computed for its logits */
    assert_int_equal(again.timings.prompt_n, 1);
    same(&again, &first);
    o = prompt_options(id, 200, 20, &longer);
    run(engine, &o);
    assert_true(longer.timings.cache_n >= 100);
    ob_engine_close(&engine);
    engine = open_engine(&(ob_engine_options){.model = MODEL});
    o = prompt_options(id, 200, 20, &fresh);
    run(engine, &o);
    same(&longer, &fresh);
    ob_engine_close(&engine);
    buf_free(&first.text), buf_free(&again.text), buf_free(&longer.text), buf_free(&fresh.text);
}

/* Requests that come together and begin alike: the first computes it, the others take it, and go
 * their own ways. What one of them held stays for later when another way is taken from it. */
static void a_common_beginning_is_computed_once(void **state) {
    (void)state;
    enum { COMMON = 150, ALL = 200, WAYS = 5 };
    static struct got want[WAYS], got[WAYS];
    static int32_t id[WAYS][ALL];
    ob_request *request[WAYS];
    ob_engine *engine;
    for (uint64_t w = 0; w < WAYS; w++) {
        for (uint64_t i = 0; i < ALL; i++)
            id[w][i] = (int32_t)(rng_u64(i < COMMON ? 77 : 78 + w, i) % 256);
        engine = open_engine(&(ob_engine_options){.model = MODEL});
        ob_request_options o = prompt_options(id[w], ALL, 20, &want[w]);
        run(engine, &o);
        ob_engine_close(&engine);
    }
    engine = open_engine(&(ob_engine_options){.model = MODEL, .step_tokens = 32});
    for (int w = 0; w < WAYS; w++) {
        ob_request_options o = prompt_options(id[w], ALL, 20, &got[w]);
        request[w] = submit(engine, &o);
    }
    for (int w = 0; w < WAYS; w++) ob_release(&request[w]);
    for (int w = 0; w < WAYS; w++) {
        same(&got[w], &want[w]);
        assert_int_equal(got[w].timings.cache_n >= COMMON, w > 0);
        assert_int_equal(got[w].timings.cache_n + got[w].timings.prompt_n, ALL);
        buf_free(&got[w].text);
    }
    for (int w = 0; w < WAYS; w++) { /* each is still there */
        ob_request_options o = prompt_options(id[w], ALL, 20, &got[w]);
        run(engine, &o);
        same(&got[w], &want[w]);
        assert_int_equal(got[w].timings.cache_n, ALL - 1);
        buf_free(&got[w].text), buf_free(&want[w].text);
    }
    ob_engine_close(&engine);
}

/* The order in which requests get their first token; the first one waits there for the others. */
struct order {
    os_mutex *gate;
    unsigned *count, place;
};

static atomic_bool has_begun;

static void note_first(void *user, const ob_event *event) {
    struct order *order = user;
    if (order->place || event->id < 0) return;
    atomic_store(&has_begun, true);
    os_lock(order->gate);
    order->place = ++*order->count;
    os_unlock(order->gate);
}

static void urgent_requests_pass(void **state) {
    (void)state;
    enum { N = 4 };
    static const int32_t priority[N] = {0, 5, -1, 0};
    static const unsigned want[N] = {1, 4, 2, 3};
    struct order order[N];
    unsigned count = 0;
    int32_t id[N][8];
    ob_request *request[N];
    struct got none;
    os_mutex gate;
    os_mutex_init(&gate);
    ob_engine *engine = open_engine(&(ob_engine_options){.model = MODEL, .parallel = 1});
    os_lock(&gate);
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 8; k++) id[i][k] = 10 * i + k;
        order[i] = (struct order){.gate = &gate, .count = &count};
        ob_request_options o = prompt_options(id[i], 8, 2, &none);
        o.priority = priority[i];
        o.on_event = note_first;
        o.user = &order[i];
        request[i] = submit(engine, &o);
        while (!atomic_load(&has_begun)) sched_yield(); /* it has the only place */
    }
    os_unlock(&gate);
    for (int i = 0; i < N; i++) ob_release(&request[i]);
    for (int i = 0; i < N; i++) assert_int_equal(order[i].place, want[i]);
    ob_engine_close(&engine);
    os_mutex_free(&gate);
}

/* One runs, two wait, the next is told to come back; when all is done there is room again. */
static void a_full_line_is_said(void **state) {
    (void)state;
    enum { N = 3 };
    struct order order[N];
    unsigned count = 0;
    const int32_t id[] = {1, 2, 3};
    ob_request *request[N], *more = NULL;
    struct got got;
    ob_error error;
    os_mutex gate;
    os_mutex_init(&gate);
    ob_engine *engine =
        open_engine(&(ob_engine_options){.model = MODEL, .parallel = 1, .queue = 2});
    ob_request_options o = prompt_options(id, 3, 2, &got), later = o;
    o.on_event = note_first;
    os_lock(&gate);
    for (int i = 0; i < N; i++) {
        order[i] = (struct order){.gate = &gate, .count = &count};
        o.user = &order[i];
        request[i] = submit(engine, &o);
    }
    assert_int_equal(ob_submit(engine, &later, &more, &error), OB_ERR_BUSY);
    assert_string_equal(error.message, "1 requests run and 2 wait: no more are taken now");
    os_unlock(&gate);
    for (int i = 0; i < N; i++) ob_release(&request[i]);
    run(engine, &later);
    assert_int_equal(got.finish, OB_FINISH_LENGTH);
    ob_engine_close(&engine);
    buf_free(&got.text);
    os_mutex_free(&gate);
}

static void a_stop_string_cuts(void **state) {
    (void)state;
    static struct got whole, cut;
    int32_t id[] = {116, 104, 101};
    ob_engine *engine = open_engine(&(ob_engine_options){.model = MODEL});
    ob_request_options o = prompt_options(id, 3, 30, &whole);
    run(engine, &o);
    assert_true(whole.text.n > 6);
    char stop[4] = {0};
    memcpy(stop, whole.text.p + 3, 3);
    size_t at = (size_t)(strstr(whole.text.p, stop) - whole.text.p);
    o = prompt_options(id, 3, 30, &cut);
    o.stop = (const char *[]){stop};
    o.stop_n = 1;
    run(engine, &o);
    assert_int_equal(cut.finish, OB_FINISH_STOP);
    assert_int_equal(cut.text.n, at);
    assert_memory_equal(cut.text.p, whole.text.p, at);
    ob_engine_close(&engine);
    buf_free(&whole.text), buf_free(&cut.text);
}

static void cancel_ends_a_request(void **state) {
    (void)state;
    static struct got got;
    int32_t id[] = {1, 2, 3};
    os_mutex lock;
    os_mutex_init(&lock);
    ob_engine *engine = open_engine(&(ob_engine_options){.model = MODEL});
    ob_request_options o = prompt_options(id, 3, 0, &got);
    got.cancel_after = 5;
    got.lock = &lock;
    os_lock(&lock);
    ob_request *request = got.request = submit(engine, &o);
    os_unlock(&lock);
    ob_release(&request);
    assert_int_equal(got.finish, OB_FINISH_CANCEL);
    assert_int_equal(got.tokens, 5);
    ob_engine_close(&engine);
    os_mutex_free(&lock);
    buf_free(&got.text);
}

static void closing_cancels_what_runs(void **state) {
    (void)state;
    static struct got got[3];
    ob_request *request[3];
    int32_t id[] = {1, 2, 3};
    ob_engine *engine = open_engine(&(ob_engine_options){.model = MODEL, .parallel = 2});
    for (int i = 0; i < 3; i++) {
        ob_request_options o = prompt_options(id, 3, 0, &got[i]);
        request[i] = submit(engine, &o);
    }
    ob_engine_close(&engine);
    for (int i = 0; i < 3; i++) {
        ob_release(&request[i]); /* after the engine is gone */
        assert_int_equal(got[i].last, 1);
        assert_true(got[i].finish == OB_FINISH_CANCEL || got[i].finish == OB_FINISH_LENGTH);
        buf_free(&got[i].text);
    }
}

static void bad_requests_are_refused(void **state) {
    (void)state;
    static struct got got;
    int32_t id[4000] = {0}, bad[] = {5, 100000};
    ob_request *request;
    ob_error error;
    ob_engine *engine = open_engine(&(ob_engine_options){.model = MODEL});
    ob_request_options o = prompt_options(id, 0, 5, &got);
    assert_int_equal(ob_submit(engine, &o, &request, &error), OB_ERR_ARGUMENT);
    o = prompt_options(id, 4000, 5, &got);
    assert_int_equal(ob_submit(engine, &o, &request, &error), OB_ERR_LIMIT);
    assert_non_null(strstr(error.message, "4000 tokens, the context holds 2048"));
    o = prompt_options(bad, 2, 5, &got);
    assert_int_equal(ob_submit(engine, &o, &request, &error), OB_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "prompt token 1: id 100000"));
    o = prompt_options(id, 2, 5, &got);
    o.sampling.temperature = -1;
    assert_int_equal(ob_submit(engine, &o, &request, &error), OB_ERR_ARGUMENT);
    assert_null(request);
    ob_engine_close(&engine);
    assert_int_equal(
        ob_engine_open(&(ob_engine_options){.model = "/no/such.gguf"}, &engine, &error),
        OB_ERR_NOT_FOUND);
    assert_null(engine);
}

static void the_context_ends_a_request(void **state) {
    (void)state;
    static struct got got;
    int32_t id[60] = {0};
    ob_engine *engine = open_engine(&(ob_engine_options){.model = MODEL, .context = 64});
    ob_request_options o = prompt_options(id, 60, 100, &got);
    run(engine, &o);
    assert_int_equal(got.finish, OB_FINISH_LENGTH);
    assert_int_equal(got.tokens, 4);
    ob_engine_close(&engine);
    buf_free(&got.text);
}

static void chat_text_and_eval(void **state) {
    (void)state;
    static const char request[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"the <|im_end|>\"}]}";
    ob_engine *engine = open_engine(&(ob_engine_options){.model = MODEL});
    ob_tokens tokens, control;
    char *text;
    size_t n;
    ob_error error;
    assert_int_equal(ob_chat_prompt(engine, request, strlen(request), &tokens, &text, &n, &error),
                     OB_OK);
    assert_string_equal(text,
                        "<|im_start|>user\nthe <|im_end|><|im_end|>\n<|im_start|>assistant\n");
    assert_int_equal(ob_tokenize(engine, "<|im_end|>", 10, false, true, &control, &error), OB_OK);
    assert_int_equal(control.n, 1);
    uint32_t ends = 0;
    for (size_t i = 0; i < tokens.n; i++) ends += tokens.id[i] == control.id[0];
    assert_int_equal(ends, 1); /* the template's own, not the user's */
    free(text);
    assert_int_equal(ob_detokenize(engine, tokens.id, tokens.n, true, &text, &n, &error), OB_OK);
    assert_string_equal(text,
                        "<|im_start|>user\nthe <|im_end|><|im_end|>\n<|im_start|>assistant\n");
    free(text);

    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    float *whole = calloc(tokens.n + 1, info.vocab * sizeof *whole),
          *cut = calloc(tokens.n + 1, info.vocab * sizeof *cut);
    double seconds;
    assert_int_equal(ob_eval(engine, tokens.id, tokens.n, 0, whole, &seconds, &error), OB_OK);
    assert_int_equal(ob_eval(engine, tokens.id, tokens.n, 3, cut, &seconds, &error), OB_OK);
    assert_true(seconds > 0);
    assert_memory_equal(whole, cut, tokens.n * info.vocab * sizeof *whole);
    free(whole);
    free(cut);
    ob_tokens_free(&tokens);
    ob_tokens_free(&control);
    ob_engine_close(&engine);
}

static void what_is_wrong_is_known_before_loading(void **state) {
    (void)state;
    ob_error error;
    static const struct {
        ob_engine_options options;
        const char *where, *word;
    } bad[] = {
        {{.model = MODEL, .device = "abacus"}, "device", "there are: auto, cpu, cuda, ref"},
        {{.model = MODEL, .kv_type = "f8"}, "kv_type", "f8"},
        {{.model = MODEL, .kv_type = "q8_0", .kv_type_v = "F16"}, "kv_type_v", "F16"},
        {{.model = MODEL, .kv_memory = 1}, "kv_memory", "no page of 64 tokens"},
        {{.model = MODEL, .kv_memory = 65536, .context = 65}, "context", "65 tokens"},
        {{.model = "/no/such"}, "", "cannot open"},
        {{.model = NULL}, "", "no model"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ob_engine *engine;
        ob_error opened;
        assert_int_not_equal(ob_engine_check(&bad[i].options, &error), OB_OK);
        assert_string_equal(error.where, bad[i].where);
        assert_non_null(strstr(error.message, bad[i].word));
        assert_int_equal(ob_engine_open(&bad[i].options, &engine, &opened), error.status);
        assert_string_equal(opened.message, error.message);
    }
    assert_int_equal(ob_engine_check(&(ob_engine_options){.model = MODEL}, &error), OB_OK);

    ob_sampling sampling = ob_sampling_default();
    assert_int_equal(ob_sampling_check(&sampling, &error), OB_OK);
    sampling.order = "top_k;beam";
    assert_int_equal(ob_sampling_check(&sampling, &error), OB_ERR_ARGUMENT);
    assert_string_equal(error.where, "order");
    sampling = ob_sampling_default();
    sampling.temperature = -1000000;
    assert_int_equal(ob_sampling_check(&sampling, &error), OB_ERR_ARGUMENT);
    assert_string_equal(error.where, "temperature");
    assert_non_null(strstr(error.message, "-1000000")); /* all its digits */
}

static void devices_are_listed(void **state) {
    (void)state;
    ob_device device;
    size_t n = 0;
    for (; ob_device_at(n, &device); n++) {
        ob_error error;
        assert_true(device.text[0]);
        if (strcmp(device.name, "cuda") == 0) continue; /* a GPU may be there or not */
        assert_int_equal(device.count, 1);
        assert_true(device.memory_available <= device.memory_total);
        assert_int_equal(
            ob_engine_check(&(ob_engine_options){.model = MODEL, .device = device.name}, &error),
            OB_OK);
    }
    assert_true(n >= 3); /* more of cuda where there are several */
    assert_true(ob_device_at(0, &device));
    assert_string_equal(device.name, "cpu");
    for (char *isa = strtok(device.isa, " "); isa; isa = strtok(NULL, " "))
        assert_int_equal(
            ob_engine_check(&(ob_engine_options){.model = MODEL, .cpu_isa = isa}, NULL), OB_OK);
}

static void a_parsed_request_is_as_good_as_its_text(void **state) {
    (void)state;
    static const char text[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\\u0000b\"}]}";
    ob_engine *engine = open_engine(&(ob_engine_options){.model = MODEL});
    ob_tokens a, b, none;
    ob_error error;
    ob_engine_info info;
    char *rendered;
    size_t n;
    json_t *request = json_loads(text, JSON_ALLOW_NUL, NULL), *copy = json_deep_copy(request);
    ob_engine_get_info(engine, &info);
    assert_null(info.chat_error);
    assert_int_equal(ob_chat_prompt(engine, text, strlen(text), &a, NULL, NULL, &error), OB_OK);
    assert_int_equal(ob_chat_prompt_json(engine, request, &b, &rendered, &n, &error), OB_OK);
    assert_true(json_equal(request, copy));
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.id, b.id, a.n * sizeof *a.id);
    assert_int_equal(strlen(rendered) + 1 + strlen(strchr(rendered, 0) + 1), n); /* the zero byte */
    assert_int_equal(ob_chat_prompt(engine, "{", 1, &none, NULL, NULL, &error), OB_ERR_ARGUMENT);
    free(rendered);
    json_decref(request);
    json_decref(copy);
    ob_tokens_free(&b);
    ob_tokens_free(&a);
    ob_engine_close(&engine);
}

/* ---- answers told apart ---------------------------------------------------------------------- */

static void add_part(void *user, const ob_part *part) {
    char *out = user;
    size_t n = strlen(out);
    if (part->kind == OB_PART_CALL)
        snprintf(out + n, 500 - n, "|%u %.*s %d:", part->index, (int)part->name_n, part->name,
                 part->id_n > 0);
    else
        snprintf(out + n, 500 - n, "%s%.*s", part->kind == OB_PART_REASONING ? "~" : "",
                 (int)part->text_n, part->text);
}

static void answers_are_told_apart(void **state) {
    (void)state;
    static const char text[] = "<think>\nhm</think>\nyes <tool_call>{\"name\": \"f\", "
                               "\"arguments\": {\"a\": 1}}</tool_call> done";
    char heard[512] = "";
    ob_error error;
    ob_chat_parser *p;
    ob_chat_parse_options options = {.tool_format = "hermes", .on_part = add_part, .user = heard};
    assert_int_equal(ob_chat_parse_open(NULL, &options, &p, &error), OB_OK);
    for (size_t i = 0; i + 1 < sizeof text; i++)
        assert_int_equal(ob_chat_parse_add(p, text + i, 1, &error), OB_OK);
    assert_int_equal(ob_chat_parse_end(p, &error), OB_OK);
    ob_chat_parse_close(&p);
    assert_null(p);
    assert_string_equal(heard, "~h~myes|0 f 1:{\"a\": 1} done");
    /* the prompt has opened the reasoning; calls are content */
    heard[0] = 0;
    options.prompt = "x<think>\n";
    options.prompt_n = 9;
    options.no_calls = true;
    assert_int_equal(ob_chat_parse_open(NULL, &options, &p, &error), OB_OK);
    ob_chat_parse_add(p, "hm</think><tool_call>", 21, &error);
    ob_chat_parse_end(p, &error);
    ob_chat_parse_close(&p);
    assert_string_equal(heard, "~hm<tool_call>");
    options.tool_format = "x";
    assert_int_equal(ob_chat_parse_open(NULL, &options, &p, &error), OB_ERR_NOT_FOUND);
    options.tool_format = NULL;
    assert_int_equal(ob_chat_parse_open(NULL, &options, &p, &error), OB_ERR_ARGUMENT);
    options.tool_format = "hermes";
    options.reasoning_style = "x";
    assert_int_equal(ob_chat_parse_open(NULL, &options, &p, &error), OB_ERR_NOT_FOUND);
    assert_string_equal(error.where, "reasoning_style");
    options.reasoning_style = "";
    options.tools = "{}";
    options.tools_n = 2;
    assert_int_equal(ob_chat_parse_open(NULL, &options, &p, &error), OB_ERR_ARGUMENT);
    assert_string_equal(error.where, "tools");
}

static void calls_are_grammars(void **state) {
    (void)state;
    ob_engine_options options = {.model = "tests/golden/tiny.gguf", .chat_template = "chatml",
                                 .tool_format = "hermes"};
    ob_engine *engine;
    ob_error error;
    ob_grammar *grammar;
    assert_int_equal(ob_engine_open(&options, &engine, &error), OB_OK);
    static const struct {
        const char *request;
        ob_status status;
        bool some;
        const char *where;
    } rows[] = {
        {"{\"tools\": [{\"name\": \"f\"}]}", OB_OK, false, ""},
        {"{\"tools\": [{\"name\": \"f\", \"strict\": true}]}", OB_OK, true, ""},
        {"{\"tools\": [{\"name\": \"f\"}], \"tool_choice\": \"required\"}", OB_OK, true, ""},
        {"{\"tools\": [{\"name\": \"f\", \"parameters\": {\"not\": 1}}],"
         " \"tool_choice\": \"required\"}", OB_ERR_ARGUMENT, false, "tools[0].parameters#/not"},
        {"{", OB_ERR_ARGUMENT, false, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ob_status s = ob_grammar_tools(engine, rows[i].request, strlen(rows[i].request), NULL, 0,
                                       OB_TOOLS_REASON, &grammar, &error);
        assert_int_equal(s, rows[i].status);
        assert_int_equal(grammar != NULL, rows[i].some);
        if (s != OB_OK) assert_string_equal(error.where, rows[i].where);
        ob_grammar_free(&grammar);
    }
    ob_engine_close(&engine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_do_not_matter_to_each_other),
        cmocka_unit_test(a_cached_prefix_changes_nothing),
        cmocka_unit_test(a_common_beginning_is_computed_once),
        cmocka_unit_test(urgent_requests_pass),
        cmocka_unit_test(a_full_line_is_said),
        cmocka_unit_test(a_stop_string_cuts),
        cmocka_unit_test(cancel_ends_a_request),
        cmocka_unit_test(closing_cancels_what_runs),
        cmocka_unit_test(bad_requests_are_refused),
        cmocka_unit_test(the_context_ends_a_request),
        cmocka_unit_test(chat_text_and_eval),
        cmocka_unit_test(what_is_wrong_is_known_before_loading),
        cmocka_unit_test(devices_are_listed),
        cmocka_unit_test(a_parsed_request_is_as_good_as_its_text),
        cmocka_unit_test(answers_are_told_apart),
        cmocka_unit_test(calls_are_grammars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
