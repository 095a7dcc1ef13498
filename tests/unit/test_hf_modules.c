/* SPDX-License-Identifier: Apache-2.0
 * test_hf_modules.c: what sentence-transformers' files say about one vector of a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "format/hf_modules.h"

#define MODULE(class, path) \
    "{\"type\":\"sentence_transformers.models." class "\",\"path\":\"" path "\"}"

/* path: of the pooling's file, NULL: none is named. */
static void modules(const char *text, const char *path, bool unit) {
    struct hf_pooling pooling;
    char *have;
    assert_int_equal(hf_modules_parse(str_of(text), &pooling, &have, NULL), OB_OK);
    assert_int_equal(pooling.found, path != NULL);
    assert_int_equal(pooling.unit, unit);
    if (path) assert_string_equal(have, path);
    else assert_null(have);
    free(have);
}

static void modules_refused(const char *text, ob_status status, const char *says) {
    struct hf_pooling pooling;
    char *path;
    ob_error error;
    assert_int_equal(hf_modules_parse(str_of(text), &pooling, &path, &error), status);
    if (!strstr(error.message, says)) fail_msg("%s", error.message);
    free(path);
}

static void lists_of_modules(void **state) {
    (void)state;
    modules("[" MODULE("Transformer", "") "," MODULE("Pooling", "1_Pooling") "]",
            "1_Pooling/config.json", false);
    modules("[" MODULE("Pooling", "") "," MODULE("Normalize", "2_Normalize") "]", "config.json",
            true);
    modules("[" MODULE("Transformer", "") "]", NULL, false);
    modules("[]", NULL, false);
    modules_refused("[" MODULE("Pooling", "p") "," MODULE("Dense", "d") "]", OB_ERR_UNSUPPORTED,
                    "\"Dense\"");
    modules_refused("[" MODULE("Pooling", "a") "," MODULE("Pooling", "b") "]", OB_ERR_UNSUPPORTED,
                    "two poolings");
    modules_refused("[" MODULE("Pooling", "../x") "]", OB_ERR_FORMAT, "no folder of the model");
    modules_refused("[" MODULE("Pooling", "/etc") "]", OB_ERR_FORMAT, "no folder of the model");
    modules_refused("[{}]", OB_ERR_UNSUPPORTED, "a module \"\"");
    modules_refused("[", OB_ERR_FORMAT, "malformed JSON");
    modules_refused("", OB_ERR_FORMAT, "malformed JSON");
}

static void pooled(const char *text, enum pool_kind kind) {
    struct hf_pooling pooling = {.unit = true};
    assert_int_equal(hf_pooling_parse(str_of(text), &pooling, NULL), OB_OK);
    assert_int_equal(pooling.kind, kind);
    assert_true(pooling.unit); /* said elsewhere */
}

static void pooling_refused(const char *text, const char *says) {
    struct hf_pooling pooling = {0};
    ob_error error;
    assert_int_not_equal(hf_pooling_parse(str_of(text), &pooling, &error), OB_OK);
    if (!strstr(error.message, says)) fail_msg("%s", error.message);
}

static void ways_of_pooling(void **state) {
    (void)state;
    pooled("{\"pooling_mode_mean_tokens\":true,\"pooling_mode_cls_token\":false}", POOL_MEAN);
    pooled("{\"pooling_mode_cls_token\":true}", POOL_FIRST);
    pooled("{\"pooling_mode_lasttoken\":true}", POOL_LAST);
    pooled("{\"pooling_mode\":\"cls\"}", POOL_FIRST);
    pooling_refused("{\"pooling_mode_max_tokens\":true}", "pooling_mode_max_tokens");
    pooling_refused("{\"pooling_mode_mean_tokens\":true,\"pooling_mode_cls_token\":true}",
                    "is not supported");
    pooling_refused("{\"pooling_mode\":\"max\"}", "\"max\"");
    pooling_refused("{}", "is not supported");
    pooling_refused("[]", "is not supported");
    pooling_refused("{\"a\":", "malformed JSON");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_modules),
        cmocka_unit_test(ways_of_pooling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
