/* SPDX-License-Identifier: Apache-2.0
 *
 * test_schema.c: what JSON schemas let through and where they are refused, values spelled for tool
 * formats, and texts without markers. tests/tools/test_schema.py holds many more against the
 * jsonschema package. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/rng.h"
#include "sample/schema/schema.h"

static bool accepts(struct grammar *grammar, struct str text) {
    struct grammar_state *state;
    assert_int_equal(grammar_state_open(grammar, NULL, &state, NULL), OB_OK);
    bool out = grammar_accept_bytes(state, text) == text.n && grammar_is_whole(state);
    grammar_state_close(&state);
    return out;
}

/* The texts that a schema lets through, and those it does not: each list ends at NULL. */
struct row {
    const char *schema;
    const char *good[5], *bad[5];
    struct schema_options options;
};

static const char raw_mark[] = "</x>";

static const struct row rows[] = {
    {"{\"type\": \"string\", \"maxLength\": 2}",
     {"\"\"", "\"ab\"", "\"\\u00e9\\n\""}, {"\"abc\"", "1", "\"a"}, {.open = false}},
    {"{\"properties\": {\"a\": {}, \"b\": {\"type\": \"null\"}}, \"type\": \"object\"}",
     {"{}", "{\"a\": [1]}", "{\"a\":1,\"b\":null}"}, {"{\"b\":1}", "{\"c\":1}", "[]"},
     {.open = false}},
    {"{\"properties\": {\"a\": {\"const\": 1}}, \"type\": \"object\"}",
     {"{\"c\": 2}", "{\"a\":1,\"c\":2}"}, {"{\"a\":2}", "{\"\\u0061\":2}"}, {.open = true}},
    {"{\"enum\": [\"x<\", true]}", {"\"x<\"", "true"}, {"\"x\\u003c\"", "True"}, {.open = false}},
    {"{\"enum\": [\"x<\", true]}", {"\"x\\u003c\"", "true"}, {"\"x<\"", "True"},
     {.spelling = {.kind = SCHEMA_MARKED}}},
    {"{\"type\": \"string\", \"pattern\": \"^[<a]+$\"}", {"\"a\\u003c\""}, {"\"<\"", "\"\""},
     {.spelling = {.kind = SCHEMA_MARKED}}},
    {"{\"enum\": [\"x/\", true, null]}", {"\"x/\"", "True", "None"}, {"\"x\\/\"", "true"},
     {.spelling = {.kind = SCHEMA_PYTHON}}},
    {"{\"type\": \"string\"}", {"\"\\u00e9\"", "\"\\\"\""}, {"\"\\/\"", "\"\\ud83d\\ude00\""},
     {.spelling = {.kind = SCHEMA_PYTHON}}},
    {"{}", {"a \"b\" <x> </", "", "\n"}, {"a</x>", "</x>b"},
     {.type = "string", .spelling = {SCHEMA_RAW, "", raw_mark}}},
    {"{\"enum\": [\"a\", \"b</x>\", 1]}", {"a"}, {"b</x>", "1", "\"a\""},
     {.type = "string", .spelling = {SCHEMA_RAW, "", raw_mark}}},
    {"{\"maxLength\": 3}", {"abc"}, {"abcd", "a<"},
     {.type = "string", .spelling = {SCHEMA_RAW, "", raw_mark}}},
    {"{\"properties\": {\"a\": {\"type\": \"string\"}, \"b c\": {\"type\": \"integer\"}}}",
     {"{a:<|\"|>x\"y<|\"|>,<|\"|>b c<|\"|>:1}", "{}"}, {"{\"a\":\"x\"}", "{a:x}"},
     {.type = "object", .spelling = {SCHEMA_RAW, "<|\"|>", "<|\"|>"}}},
};

static void test_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct grammar *grammar;
        ob_error error = {0};
        json_t *schema = json_loads(rows[i].schema, JSON_DECODE_ANY, NULL);
        assert_non_null(schema);
        if (schema_json(schema, &rows[i].options, &grammar, &error) != OB_OK)
            fail_msg("%s: %s", rows[i].schema, error.message);
        for (size_t k = 0; k < 5; k++) {
            const char *good = rows[i].good[k], *bad = rows[i].bad[k];
            if (good && !accepts(grammar, str_of(good))) fail_msg("%zu: not %s", i, good);
            if (bad && accepts(grammar, str_of(bad))) fail_msg("%zu: %s", i, bad);
        }
        grammar_drop(&grammar);
        json_decref(schema);
    }
}

static void test_refused_by_place(void **state) {
    (void)state;
    static const char *const refused[][2] = {
        {"{\"properties\": {\"a/b\": {\"not\": {}}}}", "/properties/a~1b/not"},
        {"{\"items\": {\"type\": \"strin\"}}", "/items/type"},
        {"{\"nonsense\": 1}", "/nonsense"},
        {"{\"allOf\": [{\"$ref\": \"#/$defs/x\"}]}", "/allOf/0/$ref"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct grammar *grammar;
        ob_error error = {0};
        struct schema_options options = {0};
        json_t *schema = json_loads(refused[i][0], 0, NULL);
        assert_int_equal(schema_json(schema, &options, &grammar, &error), OB_ERR_ARGUMENT);
        assert_string_equal(error.where, refused[i][1]);
        json_decref(schema);
    }
}

/* A $ref of a part is found in the whole. */
static void test_parts(void **state) {
    (void)state;
    json_t *whole = json_loads("{\"properties\": {\"a\": {\"$ref\": \"#/$defs/x\"}},"
                               " \"$defs\": {\"x\": {\"const\": 7}}}", 0, NULL);
    const json_t *part = json_object_get(json_object_get(whole, "properties"), "a");
    struct schema_options options = {.root = whole};
    struct grammar *grammar;
    assert_int_equal(schema_json(part, &options, &grammar, NULL), OB_OK);
    assert_true(accepts(grammar, STR_LIT("7")) && !accepts(grammar, STR_LIT("8")));
    grammar_drop(&grammar);
    json_decref(whole);
}

/* ---- texts without markers ------------------------------------------------------------------- */

static struct grammar *without(const char *const *marker, size_t n, bool no_json) {
    struct schema_symbol symbol[8][16];
    struct schema_marker list[8];
    struct grammar *grammar;
    struct grammar_builder *b = grammar_builder_new();
    for (size_t i = 0; i < n; i++) {
        list[i] = (struct schema_marker){symbol[i], strlen(marker[i])};
        for (size_t k = 0; k < list[i].n; k++)
            symbol[i][k] = (struct schema_symbol){(unsigned char)marker[i][k], -1};
    }
    grammar_rule root = grammar_rule_new(b, "root");
    grammar_define(b, root, schema_free(b, &(struct schema_free){
        .marker = list, .markers = n, .no_json = no_json}));
    assert_int_equal(grammar_finish(b, root, &grammar, NULL), OB_OK);
    grammar_builder_free(&b);
    return grammar;
}

static void test_texts_without_markers(void **state) {
    (void)state;
    static const char *const markers[][3] = {
        {"ab"}, {"aab", "ba"}, {"abab", "bb", "aaaa"}, {"a"}, {"abcab", "bcb", "cc"},
        {"abca", "bc"}};
    for (size_t m = 0; m < sizeof markers / sizeof markers[0]; m++) {
        size_t n = 0;
        while (n < 3 && markers[m][n]) n++;
        struct grammar *grammar = without(markers[m], n, false);
        for (uint64_t seed = 0; seed < 3000; seed++) {
            char text[12];
            size_t length = rng_u64(seed, 0) % sizeof text;
            for (size_t i = 0; i < length; i++) text[i] = (char)('a' + rng_u64(seed, i + 1) % 3);
            struct str said = {text, length};
            bool has = false;
            for (size_t k = 0; k < n; k++) has |= str_contains(said, markers[m][k]);
            assert_int_equal(accepts(grammar, said), !has);
        }
        grammar_drop(&grammar);
    }
}

static void test_no_json(void **state) {
    (void)state;
    static const char *const marker[] = {"<t>"};
    static const struct { const char *text; bool free; } texts[] = {
        {"", true}, {"x{", true}, {"{", false}, {" \n{\"a\"", false}, {"[1]", true}, {"[{", false},
        {"[ \n{", false}, {"[f(a", false}, {"[f (a", true}, {"[link](x)", true}, {"x[f(", true},
        {"a<t", true}, {"a<t>", false}, {"[<t>", false}, {"f(", true}};
    struct grammar *grammar = without(marker, 1, true);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (accepts(grammar, str_of(texts[i].text)) != texts[i].free)
            fail_msg("%s", texts[i].text);
    grammar_drop(&grammar);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_refused_by_place),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_texts_without_markers),
        cmocka_unit_test(test_no_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
