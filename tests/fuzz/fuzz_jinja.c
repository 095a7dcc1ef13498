/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_jinja.c: a template and the data it is rendered with: the input is the template, a NUL, and
 * the data as JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text/jinja/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const roles[] = {"user", NULL};
    const struct jinja_limits limits = {.steps = 200000, .memory = 16 << 20, .output = 1 << 20,
                                        .roles = roles};
    const uint8_t *nul = memchr(data, 0, size);
    size_t n = nul ? (size_t)(nul - data) : size;
    const char *rest = nul ? (const char *)nul + 1 : "";
    json_t *json = nul ? json_loadb(rest, size - n - 1, JSON_ALLOW_NUL, NULL) : NULL;
    struct jinja *jinja;
    ob_error error;
    if (!jinja_parse((const char *)data, n, &jinja, &error)) {
        struct buf text = BUF_INIT, trust = BUF_INIT;
        ob_status status = jinja_render(jinja, json, NULL, 1e9, &limits, &text, &trust, &error);
        if (status == OB_OK && text.n != trust.n) abort();
        if (status != OB_OK && !error.message[0]) abort();
        buf_free(&text);
        buf_free(&trust);
        jinja_free(&jinja);
    }
    json_decref(json);
    return 0;
}
