/* SPDX-License-Identifier: Apache-2.0
 *
 * grammar_walk.c: a tool of tests/tools/test_schema.py: each line of the standard input is a JSON
 * object, each line of the answer too.
 *
 *   {"schema": S | "gbnf": T | "regex": T, "compact": B, "open": B,
 *    "texts": [T, ...], "random": N, "seed": N, "most": BYTES}
 *   -> {"accepts": [B, ...], "random": [T | null, ...]}, or {"error": LINE, "where": POINTER}
 *
 * A random text is what a model would write that knows nothing: bytes drawn among those allowed,
 * the marks of JSON more often than others, so that it ends. null: it did not within `most`. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/rng.h"
#include "sample/schema/schema.h"

static ob_status compile(const json_t *line, struct grammar **out, ob_error *error) {
    const json_t *schema = json_object_get(line, "schema"), *text;
    struct schema_options options = {.compact = json_is_true(json_object_get(line, "compact")),
                                     .open = json_is_true(json_object_get(line, "open"))};
    if (schema) return schema_json(schema, &options, out, error);
    if ((text = json_object_get(line, "gbnf")))
        return schema_gbnf((struct str){json_string_value(text), json_string_length(text)}, NULL,
                           out, error);
    text = json_object_get(line, "regex");
    return schema_regex((struct str){json_string_value(text), json_string_length(text)}, out,
                        error);
}

static bool accepts(struct grammar *grammar, const json_t *text) {
    struct grammar_state *state;
    struct str bytes = {json_string_value(text), json_string_length(text)};
    ob_error error;
    if (grammar_state_open(grammar, NULL, &state, &error) != OB_OK) exit(1);
    bool out = grammar_accept_bytes(state, bytes) == bytes.n && grammar_is_whole(state);
    grammar_state_close(&state);
    return out;
}

static uint64_t next(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* Goes on by one byte; false: none is allowed. */
static bool draw(struct grammar_state *state, uint64_t *seed, struct buf *out) {
    static const char marks[] = "\"\"\"}],:{[0123456789.-etfnul ";
    for (int i = 0; i < 24; i++) {
        char c = next(seed) % 4 ? marks[next(seed) % (sizeof marks - 1)] : (char)next(seed);
        if (grammar_accept_bytes(state, (struct str){&c, 1}) == 1) return buf_putc(out, c), true;
    }
    unsigned from = (unsigned)next(seed);
    for (unsigned i = 0; i < 256; i++) {
        char c = (char)(from + i);
        if (grammar_accept_bytes(state, (struct str){&c, 1}) == 1) return buf_putc(out, c), true;
    }
    return false;
}

static json_t *random_text(struct grammar *grammar, uint64_t seed, size_t most) {
    struct grammar_state *state;
    struct buf out = BUF_INIT;
    ob_error error;
    json_t *text = NULL;
    if (grammar_state_open(grammar, NULL, &state, &error) != OB_OK) exit(1);
    buf_puts(&out, "");
    while (!text && out.n <= most) {
        bool whole = grammar_is_whole(state);
        if (whole && (next(&seed) % 4 == 0 || grammar_is_over(state)))
            text = json_stringn_nocheck(out.p, out.n);
        else if (!draw(state, &seed, &out))
            text = whole ? json_stringn_nocheck(out.p, out.n) : json_string("DEAD END");
    }
    grammar_state_close(&state);
    buf_free(&out);
    return text ? text : json_null();
}

static json_t *answer(const json_t *line) {
    struct grammar *grammar;
    ob_error error;
    size_t i;
    json_t *text;
    if (compile(line, &grammar, &error) != OB_OK)
        return json_pack("{s:s, s:s}", "error", error.message, "where", error.where);
    json_t *accepted = json_array(), *random = json_array();
    json_array_foreach(json_object_get(line, "texts"), i, text)
        json_array_append_new(accepted, json_boolean(accepts(grammar, text)));
    json_int_t n = json_integer_value(json_object_get(line, "random"));
    uint64_t seed = (uint64_t)json_integer_value(json_object_get(line, "seed"));
    size_t most = (size_t)json_integer_value(json_object_get(line, "most"));
    for (json_int_t k = 0; k < n; k++)
        json_array_append_new(random, random_text(grammar, seed * 1000 + (uint64_t)k, most));
    grammar_drop(&grammar);
    return json_pack("{s:o, s:o}", "accepts", accepted, "random", random);
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
