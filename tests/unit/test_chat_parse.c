/* SPDX-License-Identifier: Apache-2.0
 *
 * test_chat_parse.c: what models write, told apart: a golden or more for each format, each whole,
 * cut in two at every byte, in single bytes and at random, told whole and live. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "chat_goldens.h"
#include "text/chat_parse_impl.h"
#include "text/chat_scan.h"

/* What was told, as text: calls as NAME ARGUMENTS lines, ids apart. */
struct told {
    struct buf content, reasoning, calls, ids;
    unsigned count;
};

static void on(void *user, const struct chat_event *event) {
    struct told *told = user;
    switch (event->kind) {
    case CHAT_CONTENT: buf_add(&told->content, event->text.p, event->text.n); break;
    case CHAT_REASONING: buf_add(&told->reasoning, event->text.p, event->text.n); break;
    case CHAT_TOOL:
        assert_int_equal(event->index, told->count);
        told->count++;
        if (told->count > 1) buf_putc(&told->calls, '\n');
        buf_add(&told->calls, event->name.p, event->name.n);
        buf_putc(&told->calls, ' ');
        buf_add(&told->ids, event->id.p, event->id.n);
        buf_putc(&told->ids, ' ');
        break;
    case CHAT_ARGUMENTS:
        assert_int_equal(event->index + 1, told->count);
        assert_true(event->text.n > 0);
        buf_add(&told->calls, event->text.p, event->text.n);
        break;
    }
}

static void told_free(struct told *told) {
    buf_free(&told->content);
    buf_free(&told->reasoning);
    buf_free(&told->calls);
    buf_free(&told->ids);
}

/* How a text is cut: at `at`; into single bytes: SIZE_MAX; at random: seed. */
struct cuts {
    size_t at;
    uint64_t seed;
};

static size_t next_cut(const struct cuts *cuts, size_t from, size_t n) {
    if (cuts->seed) {
        size_t step = 1 + rng_u64(cuts->seed, from) % 9;
        return from + step < n ? from + step : n;
    }
    if (cuts->at == SIZE_MAX) return from + 1;
    return from < cuts->at && cuts->at < n ? cuts->at : n;
}

static void parse(const struct golden_chat *g, const json_t *tools, struct cuts cuts, bool live,
                  struct told *told) {
    const struct chat_format *format = NULL;
    struct str text = str_of(g->text);
    *told = (struct told){0};
    assert_int_equal(chat_format_find(g->format, &format, NULL), OB_OK);
    struct chat_parser *p = chat_parser_new(&(struct chat_parser_options){
        .format = format, .calls = true, .begin = g->begin, .tools = tools, .live = live,
        .single = g->single,
        .style = chat_thought_of(format, str_of(g->style ? g->style : "")), .on = on,
        .prompt = str_of(g->prompt ? g->prompt : ""), .user = told, .seed = 7});
    assert_non_null(p);
    for (size_t from = 0, to; from < text.n; from = to) {
        to = next_cut(&cuts, from, text.n);
        chat_parser_add(p, (struct str){text.p + from, to - from});
    }
    chat_parser_end(p);
    assert_false(chat_parser_failed(p));
    assert_int_equal(chat_parser_calls(p), told->count);
    chat_parser_free(&p);
    assert_null(p);
}

static const char *text_of(const struct buf *buf) { return buf->p ? buf->p : ""; }

static void same(const char *what, const struct golden_chat *g, const struct buf *is,
                 const char *wanted) {
    if (strcmp(text_of(is), wanted ? wanted : "") != 0)
        print_error("%s of %s: %s\n", what, g->format, g->text);
    assert_string_equal(text_of(is), wanted ? wanted : "");
}

static void check(const struct golden_chat *g, const json_t *tools, struct cuts cuts, bool live,
                  struct buf *ids) {
    struct told told;
    parse(g, tools, cuts, live, &told);
    bool other = live && g->live_calls;
    same("reasoning", g, &told.reasoning, g->reasoning);
    same("content", g, &told.content, other ? g->live_content : g->content);
    same("calls", g, &told.calls, other ? g->live_calls : g->calls);
    if (!ids->n) buf_add(ids, told.ids.p, told.ids.n);
    else if (!other) assert_string_equal(text_of(ids), text_of(&told.ids));
    told_free(&told);
}

static void check_golden(const struct golden_chat *g, const json_t *tools) {
    size_t n = strlen(g->text);
    struct buf ids = BUF_INIT;
    for (int live = 0; live < 2; live++) {
        check(g, tools, (struct cuts){0}, live, &ids);
        check(g, tools, (struct cuts){.at = SIZE_MAX}, live, &ids);
        for (size_t cut = 1; cut < n; cut++) check(g, tools, (struct cuts){.at = cut}, live, &ids);
        for (uint64_t seed = 1; seed < 20; seed++)
            check(g, tools, (struct cuts){.seed = seed}, live, &ids);
    }
    if (g->ids) assert_string_equal(text_of(&ids), g->ids);
    buf_free(&ids);
}

static json_t *load_tools(void) {
    json_t *tools = json_loads(golden_tools, 0, NULL);
    assert_non_null(tools);
    return tools;
}

static void test_goldens(void **state) {
    (void)state;
    json_t *tools = load_tools();
    for (size_t i = 0; i < sizeof golden_chats / sizeof golden_chats[0]; i++)
        check_golden(&golden_chats[i], tools);
    json_decref(tools);
}

static void test_every_format_has_one(void **state) {
    (void)state;
    const struct chat_format *format;
    for (size_t i = 0; (format = chat_format_at(i)); i++) {
        size_t n = 0;
        for (size_t k = 0; k < sizeof golden_chats / sizeof golden_chats[0]; k++)
            n += strcmp(golden_chats[k].format, chat_format_name(format)) == 0 &&
                 golden_chats[k].calls;
        if (!n) print_error("no golden of %s\n", chat_format_name(format));
        assert_true(n > 0);
        assert_true(strlen(chat_format_about(format)) > 0);
    }
}

/* Every beginning of every golden: nothing is lost, whatever is cut off. */
static void test_beginnings(void **state) {
    (void)state;
    json_t *tools = load_tools();
    for (size_t i = 0; i < sizeof golden_chats / sizeof golden_chats[0]; i++) {
        char text[2048];
        for (size_t n = 0; n < strlen(golden_chats[i].text); n++) {
            struct golden_chat g = golden_chats[i];
            struct told whole, bytes;
            snprintf(text, sizeof text, "%.*s", (int)n, g.text);
            g.text = text;
            for (int live = 0; live < 2; live++) {
                parse(&g, tools, (struct cuts){0}, live, &whole);
                parse(&g, tools, (struct cuts){.at = SIZE_MAX}, live, &bytes);
                assert_string_equal(text_of(&whole.content), text_of(&bytes.content));
                assert_string_equal(text_of(&whole.reasoning), text_of(&bytes.reasoning));
                assert_string_equal(text_of(&whole.calls), text_of(&bytes.calls));
                told_free(&whole);
                told_free(&bytes);
            }
        }
    }
    json_decref(tools);
}

/* Random texts of pieces of markers: the same wherever they are cut. */
static void test_random(void **state) {
    (void)state;
    static const char *const piece[] = {"<tool_call>", "</tool_call>", "{\"name\": \"get_weather\"",
        ", \"arguments\": {\"city\": \"P\"}}", "<function=f>", "<parameter=city>", "</parameter>",
        "</function>", "\n", " ", "x", "<think>", "</think>", "[TOOL_CALLS]", "f[ARGS]{", "}", "[",
        "]", "<|channel|>", "final<|message|>", "commentary to=functions.f<|message|>{}",
        "<|start|>assistant", "<|end|>", "[f(a=1)]", "f(a='", "')", "<arg_key>k</arg_key>",
        "<arg_value>v</arg_value>", "\"", "\\", "call:f{a:1}", "<|tool_call>", "```json\n", "```"};
    const struct chat_format *format;
    json_t *tools = load_tools();
    for (uint64_t seed = 0; seed < 3000; seed++) {
        char text[1024] = "";
        unsigned pieces = 1 + (unsigned)(rng_u64(seed, 0) % 24);
        for (unsigned k = 1; k <= pieces; k++)
            strcat(text, piece[rng_u64(seed, k) % (sizeof piece / sizeof piece[0])]);
        size_t formats = 0;
        while (chat_format_at(formats)) formats++;
        format = chat_format_at((size_t)(rng_u64(seed, 100) % formats));
        struct golden_chat g = {.format = chat_format_name(format), .text = text};
        for (int live = 0; live < 2; live++) {
            struct told whole, bytes, cut;
            parse(&g, tools, (struct cuts){0}, live, &whole);
            parse(&g, tools, (struct cuts){.at = SIZE_MAX}, live, &bytes);
            parse(&g, tools, (struct cuts){.seed = seed + 1}, live, &cut);
            assert_string_equal(text_of(&whole.content), text_of(&bytes.content));
            assert_string_equal(text_of(&whole.calls), text_of(&bytes.calls));
            assert_string_equal(text_of(&whole.content), text_of(&cut.content));
            assert_string_equal(text_of(&whole.calls), text_of(&cut.calls));
            assert_string_equal(text_of(&whole.reasoning), text_of(&cut.reasoning));
            told_free(&whole);
            told_free(&bytes);
            told_free(&cut);
        }
    }
    json_decref(tools);
}

static void test_open_prompts(void **state) {
    (void)state;
    const struct chat_thought *think = chat_thought_of(NULL, str_of(""));
    assert_true(chat_thought_is_open(think, str_of("a <think>")));
    assert_true(chat_thought_is_open(think, str_of("a\n<think>\n ")));
    assert_false(chat_thought_is_open(think, str_of("<think>\n\n</think>\n")));
    assert_false(chat_thought_is_open(think, str_of("think>")));
    assert_false(chat_thought_is_open(think, str_of("")));
    assert_true(chat_thought_is_inside(think, str_of("<think>a")));
    assert_true(chat_thought_is_inside(think, str_of("<think>a</think>b<think>")));
    assert_false(chat_thought_is_inside(think, str_of("<think>a</think>b")));
    assert_false(chat_thought_is_inside(think, str_of("</think>")));
    assert_false(chat_thought_is_inside(think, str_of("a <think")));
    assert_false(chat_thought_is_inside(think, str_of("")));
}

static void test_selection(void **state) {
    (void)state;
    const struct chat_format *format;
    ob_error error;
    assert_int_equal(chat_format_find("nope", &format, &error), OB_ERR_NOT_FOUND);
    assert_non_null(strstr(error.message, "\"nope\"; there are apertus command-r"));
    assert_non_null(strstr(error.message, " zyphra"));
    assert_string_equal(chat_format_name(chat_format_of(str_of("{{ x }}"))), "generic");
    assert_string_equal(chat_format_name(chat_format_of(str_of("<tool_call>"))), "hermes");
    assert_string_equal(
        chat_format_name(chat_format_of(str_of("<parameter= <function= <tool_call>"))),
        "qwen3-coder");
    assert_int_equal(chat_format_find("harmony", &format, &error), OB_OK);
    const struct chat_thought *style = chat_thought_of(format, str_of("<think></think>"));
    assert_true(str_is(chat_thought_end(style),
                       "<|end|><|start|>assistant<|channel|>final<|message|>"));
    assert_true(chat_format_needs(format, style, str_of("<|channel|>")));
    assert_true(chat_format_needs(format, style, str_of("<|constrain|>")) == false);
    assert_false(chat_format_needs(format, style, str_of("<|endoftext|>")));
    assert_true(chat_format_needs(NULL, chat_thought_of(NULL, str_of("[THINK][/THINK]")),
                                  str_of("[/THINK]")));
    assert_false(chat_format_needs(NULL, NULL, str_of("<think>")));
}

static void test_json(void **state) {
    (void)state;
    static const char *const good[] = {"{}", "[]", " 1 ", "-0.5e+3", "\"a\\u00e9\\n\"", "true",
        "[1, [2, {\"a\": null}], false]", "{\"a\": {\"b\": []}, \"c\": 0}", "0", "1e5"};
    static const char *const bad[] = {"", " ", "{", "]", "{]", "[}", "[1,]", "{\"a\" 1}", "{a: 1}",
        "01", "1.", "-", "1e", "tru", "truex", "\"a", "\"\\x\"", "\"\\u12g4\"", "[1 2]", "1 2",
        "{\"a\": 1,}", "\"a\nb\"", "nul", ",", "{\"a\": }", "{1: 2}"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(scan_is_json(str_of(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(scan_is_json(str_of(bad[i])));
    char deep[2 * SCAN_DEPTH + 3] = "";
    memset(deep, '[', SCAN_DEPTH + 1);
    memset(deep + SCAN_DEPTH + 1, ']', SCAN_DEPTH + 1);
    assert_false(scan_is_json(str_of(deep)));
    assert_true(scan_is_json((struct str){deep + 1, 2 * SCAN_DEPTH}));
    struct buf text = BUF_INIT;
    scan_put_decoded(&text, str_of("a\\\"\\\\\\/\\n\\u00e9\\ud83d\\ude42\\ud800x"));
    assert_string_equal(text.p, "a\"\\/\n\xc3\xa9\xf0\x9f\x99\x82\xef\xbf\xbdx");
    buf_clear(&text);
    scan_put_string(&text, str_of("a\"\\\n\x01\xc3\xa9"));
    assert_string_equal(text.p, "a\\\"\\\\\\n\\u0001\xc3\xa9");
    buf_free(&text);
}

/* ---- hostile texts --------------------------------------------------------------------------- */

/* A text of a pattern, cut behind its operation number `cut`. */
static void expand(const struct chat_format *f, const char *pattern, unsigned *cut, bool inner,
                   struct buf *out) {
    static const char *const texts[][2] = {
        {"N", "get_weather"}, {"F", "functions.f:0"}, {"I", "id1"}, {"K", "city"}, {"T", "true"},
        {"V", "x <y"}, {"J", "{\"city\": \"x"}, {"G", "{a:'x"}, {"Y", "get_weather(city='x"},
        {"A", "[{\"name\": \"get_weather\", \"arguments\": {\"city\": \"x"}};
    while (*pattern && *cut) {
        size_t n = strcspn(pattern, "%");
        buf_add(out, pattern, n);
        pattern += n;
        --*cut;
        if (!*pattern || !*cut) break;
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
            if (texts[i][0][0] == pattern[1]) buf_puts(out, texts[i][1]);
        if (pattern[1] == 'P' && !inner) expand(f, f->parameter, cut, true, out);
        pattern += 2;
    }
}

static void drop(void *user, const struct chat_event *event) {
    *(size_t *)user += event->text.n;
}

/* Hundreds of kilobytes of the same beginning. What is quadratic would take hours. */
static void repeat(const struct chat_format *f, struct str unit, const json_t *tools, size_t step) {
    enum { BYTES = 256 * 1024 };
    char *text = malloc(BYTES);
    size_t told = 0;
    struct chat_parser *p = chat_parser_new(&(struct chat_parser_options){
        .format = f, .calls = true, .style = chat_thought_of(f, (struct str){0}), .on = drop,
        .user = &told, .tools = tools, .live = step == 1, .begin = CHAT_BEGIN_CONTENT});
    for (size_t i = 0; i < BYTES; i++) text[i] = unit.p[i % unit.n];
    for (size_t i = 0; i < BYTES; i += step)
        chat_parser_add(p, (struct str){text + i, BYTES - i < step ? BYTES - i : step});
    chat_parser_end(p);
    assert_false(chat_parser_failed(p));
    chat_parser_free(&p);
    free(text);
}

static void test_hostile_texts(void **state) {
    (void)state;
    json_t *tools = load_tools();
    const struct chat_format *f;
    for (size_t i = 0; (f = chat_format_at(i)); i++) {
        for (size_t k = 0; k < CHAT_CALLS + CHAT_BARE; k++) {
            const char *pattern = k < CHAT_CALLS ? f->call[k] : f->bare[k - CHAT_CALLS];
            struct buf unit = BUF_INIT;
            size_t had = 0;
            for (unsigned cut = 1; pattern && cut < 30; cut++) {
                unsigned left = cut;
                buf_clear(&unit);
                expand(f, pattern, &left, false, &unit);
                if (unit.n > had) {
                    repeat(f, (struct str){unit.p, unit.n}, tools, 1);
                    repeat(f, (struct str){unit.p, unit.n}, tools, 256 * 1024);
                }
                had = unit.n;
            }
            buf_free(&unit);
        }
        repeat(f, STR_LIT(" \n"), tools, 1);
    }
    json_decref(tools);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_goldens),
        cmocka_unit_test(test_every_format_has_one),
        cmocka_unit_test(test_beginnings),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_hostile_texts),
        cmocka_unit_test(test_open_prompts),
        cmocka_unit_test(test_selection),
        cmocka_unit_test(test_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
