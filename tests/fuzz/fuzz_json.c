/* SPDX-License-Identifier: Apache-2.0
 * fuzz_json.c: the pull reader against jansson: they accept the same texts, and the tree built from
 * the reader's events is jansson's. */
#include <stdlib.h>

#include <jansson.h>

#include "base/base.h"
#include "format/json_pull.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Where the two may differ: jansson refuses NUL in keys and numbers that do not fit, and takes a
 * NUL byte for the end of the text; we bound the nesting. */
static bool differ;

static json_t *build(struct json_pull *j);

static json_t *build_nest(struct json_pull *j, bool object) {
    json_t *out = object ? json_object() : json_array();
    for (;;) {
        enum pull_kind kind = pull_next(j);
        char *key = NULL;
        size_t n = 0;
        if (kind == PULL_ARRAY_END || kind == PULL_OBJECT_END) return out;
        if (kind == PULL_KEY) {
            n = j->text.n;
            key = malloc(n + 1);
            memcpy(key, j->text.p, n);
            key[n] = 0;
            if (memchr(key, 0, n)) differ = true;
            pull_next(j);
        }
        json_t *value = build(j);
        if (value && key) json_object_setn_new_nocheck(out, key, n, value);
        else if (value) json_array_append_new(out, value);
        free(key);
        if (!value) return json_decref(out), NULL;
    }
}

/* The value whose event was just read; NULL after PULL_BAD. */
static json_t *build(struct json_pull *j) {
    int64_t i;
    switch (j->kind) {
    case PULL_NULL: return json_null();
    case PULL_BOOL: return json_boolean(j->truth);
    case PULL_STRING: return json_stringn_nocheck(j->text.p, j->text.n);
    case PULL_ARRAY: return build_nest(j, false);
    case PULL_OBJECT: return build_nest(j, true);
    case PULL_NUMBER:
        if (pull_i64(j, &i)) return json_integer(i);
        if (!strpbrk(j->text.p, ".eE") || pull_number(j) > 1e308 || pull_number(j) < -1e308)
            differ = true;
        return json_real(differ ? 0 : pull_number(j));
    default: return NULL;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct json_pull j;
    json_error_t e;
    ob_error error;
    differ = memchr(bytes, 0, size) != NULL;
    pull_open(&j, (const char *)bytes, size);
    pull_next(&j);
    json_t *ours = build(&j);
    bool valid = ours && pull_next(&j) == PULL_END;
    if (!valid && (pull_error(&j, &error) != OB_ERR_FORMAT || pull_offset(&j) > size)) abort();
    if (j.message && strstr(j.message, "nested")) differ = true;
    json_t *theirs = json_loadb((const char *)bytes, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
    if (!differ && valid != (theirs != NULL)) abort();
    if (!differ && valid && !json_equal(ours, theirs)) abort();
    json_decref(ours);
    json_decref(theirs);
    pull_close(&j);

    pull_open(&j, (const char *)bytes, size); /* skipping accepts the same */
    if ((pull_skip(&j) && pull_next(&j) == PULL_END) != valid) abort();
    pull_close(&j);
    return 0;
}
