/* SPDX-License-Identifier: Apache-2.0
 * fuzz_json_schema.c: any JSON as a schema, and the same bytes as a text that its grammar
 * reads. Whatever it multiplies to, the answer comes soon. */
#include <stdlib.h>

#include "base/base.h"
#include "sample/schema/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Goes on by whatever byte is allowed, the input's where they are; each state stays a state. */
static void walk(struct grammar *grammar, const uint8_t *bytes, size_t size) {
    struct grammar_state *state;
    if (grammar_state_open(grammar, NULL, &state, NULL) != OB_OK) return;
    for (size_t i = 0; i < size && i < 64; i++) {
        char c = (char)bytes[i];
        if (grammar_accept_bytes(state, (struct str){&c, 1}) > 1) abort();
        if (grammar_is_over(state) && !grammar_is_whole(state)) abort();
    }
    grammar_state_close(&state);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct grammar *grammar;
    ob_error error = {0};
    struct schema_options options = {.compact = size & 1, .open = size & 2};
    json_t *schema = json_loadb((const char *)bytes, size, JSON_DECODE_ANY, NULL);
    if (schema && schema_json(schema, &options, &grammar, &error) == OB_OK) {
        walk(grammar, bytes, size);
        grammar_drop(&grammar);
    } else if (schema && !error.message[0]) {
        abort();
    }
    json_decref(schema);
    return 0;
}
