/* SPDX-License-Identifier: Apache-2.0
 * fuzz_call_grammar.c: any JSON as a request with tools, for every tool format, and the same bytes
 * as an answer that its grammar reads. What is refused says why, and where. */
#include <stdlib.h>

#include "base/base.h"
#include "text/chat_grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void walk(struct grammar *grammar, const uint8_t *bytes, size_t size) {
    struct grammar_state *state;
    if (grammar_state_open(grammar, NULL, &state, NULL) != OB_OK) return;
    for (size_t i = 0; i < size && i < 64; i++) {
        char c = (char)bytes[i];
        if (grammar_accept_bytes(state, (struct str){&c, 1}) > 1) abort();
    }
    grammar_state_close(&state);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct grammar *grammar;
    ob_error error = {0};
    json_t *request = json_loadb((const char *)bytes, size, 0, NULL);
    struct chat_grammar_options options = {.tools = json_object_get(request, "tools"),
                                           .source = STR_LIT("<think></think>"),
                                           .compact = size & 1};
    if (request && chat_choice_read(request, &options.choice, &error) != OB_OK &&
        !error.message[0])
        abort();
    bool binds = request && !error.message[0] && chat_choice_binds(&options.choice);
    for (size_t i = 0; binds && (options.format = chat_format_at(i)); i++) {
        options.style = chat_thought_of(options.format, options.source);
        if (chat_grammar(&options, &grammar, &error) == OB_OK) {
            walk(grammar, bytes, size);
            grammar_drop(&grammar);
        } else if (!error.message[0] || !error.where[0]) {
            abort();
        }
    }
    json_decref(request);
    return 0;
}
