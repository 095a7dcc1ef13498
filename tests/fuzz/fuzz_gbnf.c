/* SPDX-License-Identifier: Apache-2.0
 * fuzz_gbnf.c: any bytes as GBNF, up to a NUL, and a text after it that the grammar reads. */
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
    const char *p = (const char *)bytes, *nul = size ? memchr(p, 0, size) : NULL;
    struct str text = {p, nul ? (size_t)(nul - p) : size};
    struct grammar *grammar;
    ob_error error = {0};
    if (text.n > 2000) return 0;
    if (schema_gbnf(text, NULL, &grammar, &error) != OB_OK) {
        if (!error.message[0]) abort();
        return 0;
    }
    walk(grammar, bytes + text.n, size - text.n);
    grammar_drop(&grammar);
    return 0;
}
