/* SPDX-License-Identifier: Apache-2.0
 * fuzz_pattern.c: any bytes as a request's regular expression, up to a NUL, and a text after it.
 * A text that the grammar takes whole is one that the search over known texts finds. */
#include <stdlib.h>

#include "base/base.h"
#include "sample/schema/pattern.h"
#include "sample/schema/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void compare(struct grammar *grammar, struct str pattern, struct str text) {
    struct grammar_state *state;
    struct pattern tree;
    bool unknown;
    if (grammar_state_open(grammar, NULL, &state, NULL) != OB_OK) return;
    bool whole = grammar_accept_bytes(state, text) == text.n && grammar_is_whole(state);
    grammar_state_close(&state);
    if (!whole || pattern_read(pattern, &tree, NULL) != OB_OK) return;
    if (!pattern_matches(&tree, text, &unknown) && !unknown) abort();
    pattern_free(&tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    const char *p = (const char *)bytes, *nul = size ? memchr(p, 0, size) : NULL;
    struct str pattern = {p, nul ? (size_t)(nul - p) : size};
    struct str text = {nul ? nul + 1 : "", nul ? size - pattern.n - 1 : 0};
    struct grammar *grammar;
    ob_error error = {0};
    if (pattern.n > 200 || text.n > 64) return 0;
    if (schema_regex(pattern, &grammar, &error) != OB_OK) {
        if (!error.message[0]) abort();
        return 0;
    }
    compare(grammar, pattern, text);
    grammar_drop(&grammar);
    return 0;
}
