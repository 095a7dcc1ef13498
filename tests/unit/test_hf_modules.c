/* SPDX-License-Identifier: Apache-2.0
 * test_hf_modules.c: what sentence-transformers' files say about one vector of a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "format/hf_modules.h"

#define MODULE(class, path) \
    "{\"type\":\"sentence_transformers.models." class "\",\"path\":\"" path "\"}"

/* folders: of the pooling, then of dense layers, separated by spaces. */
static void modules(const char *text, const char *folders, bool unit) {
    struct hf_modules m;
    char have[3 * HF_FOLDER];
    assert_int_equal(hf_modules_parse(str_of(text), &m, NULL), OB_OK);
    snprintf(have, sizeof have, "%s%s%s%s%s", m.pools ? m.pooling : "-", m.denses ? " " : "",
             m.dense[0].folder, m.denses > 1 ? " " : "", m.dense[1].folder);
    assert_string_equal(have, folders);
    assert_int_equal(m.unit, unit);
}

static void modules_refused(const char *text, ob_status status, const char *says) {
    struct hf_modules m;
    ob_error error;
    assert_int_equal(hf_modules_parse(str_of(text), &m, &error), status);
    if (!strstr(error.message, says)) fail_msg("%s", error.message);
}

static void lists_of_modules(void **state) {
    (void)state;
    modules("[" MODULE("Transformer", "") "," MODULE("Pooling", "1_Pooling") "]", "1_Pooling",
            false);
    modules("[" MODULE("Pooling", "") "," MODULE("Normalize", "2_Normalize") "]", "", true);
    modules("[" MODULE("Pooling", "p") "," MODULE("Dense", "2_Dense") "," MODULE("Dense", "3")
            "," MODULE("Normalize", "") "]", "p 2_Dense 3", true);
    modules("[" MODULE("Transformer", "") "]", "-", false);
    modules_refused("[]", OB_ERR_FORMAT, "is no list of modules");
    modules_refused("{}", OB_ERR_FORMAT, "is no list of modules");
    modules_refused("[" MODULE("Pooling", "p") "," MODULE("CNN", "d") "]", OB_ERR_UNSUPPORTED,
                    "\"CNN\"");
    modules_refused("[" MODULE("Pooling", "a") "," MODULE("Pooling", "b") "]", OB_ERR_UNSUPPORTED,
                    "two poolings");
    modules_refused("[" MODULE("Dense", "a") "," MODULE("Pooling", "b") "]", OB_ERR_UNSUPPORTED,
                    "a Dense before the pooling");
    modules_refused("[" MODULE("Normalize", "") "]", OB_ERR_UNSUPPORTED,
                    "a Normalize before the pooling");
    modules_refused("[" MODULE("Pooling", "") "," MODULE("Normalize", "") "," MODULE("Dense", "b")
                    "]", OB_ERR_UNSUPPORTED, "a Dense after the norm");
    modules_refused("[" MODULE("Pooling", "") "," MODULE("Dense", "") "," MODULE("Dense", "") ","
                    MODULE("Dense", "") "]", OB_ERR_UNSUPPORTED, "after two others");
    modules_refused("[" MODULE("Pooling", "../x") "]", OB_ERR_FORMAT, "no folder of the model");
    modules_refused("[" MODULE("Pooling", "") "," MODULE("Dense", "/etc") "]", OB_ERR_FORMAT,
                    "no folder of the model");
    modules_refused("[{}]", OB_ERR_FORMAT, "a module has no \"type\"");
    modules_refused("[{\"type\":5}]", OB_ERR_FORMAT, "\"type\" is not a string");
    modules_refused("[{\"type\":\"Pooling\",\"path\":5}]", OB_ERR_FORMAT, "\"path\" is not");
    modules_refused("[", OB_ERR_FORMAT, "malformed JSON");
    modules_refused("", OB_ERR_FORMAT, "malformed JSON");
}

static void pooled(const char *text, const char *as) {
    struct hf_modules m = {.unit = true}, again = {0};
    char have[HF_POOLINGS];
    assert_int_equal(hf_pooling_parse(str_of(text), &m, NULL), OB_OK);
    hf_poolings_text(&m, have);
    assert_string_equal(have, as);
    assert_true(m.unit); /* said elsewhere */
    assert_true(hf_poolings_of(str_of(have), &again));
    assert_int_equal(again.pools, m.pools);
    assert_memory_equal(again.pool, m.pool, m.pools * sizeof m.pool[0]);
}

static void pooling_refused(const char *text, const char *says) {
    struct hf_modules m = {0};
    ob_error error;
    assert_int_not_equal(hf_pooling_parse(str_of(text), &m, &error), OB_OK);
    if (!strstr(error.message, says)) fail_msg("%s", error.message);
}

static void ways_of_pooling(void **state) {
    (void)state;
    pooled("{\"pooling_mode_mean_tokens\":true,\"pooling_mode_cls_token\":false}", "mean");
    pooled("{\"pooling_mode_cls_token\":true}", "cls");
    pooled("{\"pooling_mode_lasttoken\":true}", "lasttoken");
    pooled("{\"pooling_mode_max_tokens\":true}", "max");
    pooled("{\"pooling_mode_mean_sqrt_len_tokens\":true}", "mean_sqrt_len_tokens");
    pooled("{\"pooling_mode_weightedmean_tokens\":true}", "weightedmean");
    pooled("{\"pooling_mode_mean_tokens\":true,\"pooling_mode_cls_token\":true}", "cls+mean");
    pooled("{\"pooling_mode\":\"cls\"}", "cls");
    pooled("{\"pooling_mode\":[\"max\",\"cls\"]}", "max+cls");
    pooling_refused("{\"pooling_mode\":\"median\"}", "\"median\"");
    pooling_refused("{\"pooling_mode\":[\"max\",1]}", "\"pooling_mode\" is not a string");
    pooling_refused("{\"pooling_mode_cls_token\":1}", "is not true or false");
    pooling_refused("{\"pooling_mode\":\"cls\",\"word_embedding_dimension\":0}",
                    "\"word_embedding_dimension\" is not in 1");
    pooling_refused("{}", "names no pooling");
    pooling_refused("[]", "names no pooling");
    pooling_refused("{\"a\":", "malformed JSON");
    struct hf_modules m = {0};
    assert_false(hf_poolings_of(STR_LIT("cls+"), &m));
    assert_false(hf_poolings_of(STR_LIT(""), &m));
}

static void dense(const char *rest, uint32_t in, uint32_t out, bool bias, enum act_kind act) {
    struct hf_dense d;
    char text[256];
    snprintf(text, sizeof text, "{\"in_features\":%u,\"out_features\":%u%s}", in, out, rest);
    assert_int_equal(hf_dense_parse(str_of(text), &d, NULL), OB_OK);
    assert_int_equal(d.in, in);
    assert_int_equal(d.out, out);
    assert_int_equal(d.bias, bias);
    assert_int_equal(d.act, act);
}

static void dense_refused(const char *text, const char *says) {
    struct hf_dense d;
    ob_error error;
    assert_int_not_equal(hf_dense_parse(str_of(text), &d, &error), OB_OK);
    if (!strstr(error.message, says)) fail_msg("%s", error.message);
}

#define SIZES "\"in_features\":4,\"out_features\":3"

static void dense_layers(void **state) {
    (void)state;
    dense("", 4, 3, true, ACT_TANH);
    dense(",\"bias\":false,\"activation_function\":\"torch.nn.modules.linear.Identity\"", 8, 2,
          false, ACT_IDENTITY);
    dense(",\"activation_function\":\"torch.nn.modules.activation.GELU\"", 8, 2, true,
          ACT_GELU_ERF);
    dense_refused("{" SIZES ",\"activation_function\":\"torch.nn.Mish\"}", "\"Mish\"");
    dense_refused("{\"in_features\":4}", "out_features");
    dense_refused("{\"in_features\":0,\"out_features\":1}", "in_features");
    dense_refused("{" SIZES ",\"use_residual\":true}", "use_residual");
    dense_refused("{" SIZES ",\"module_input_name\":\"token_embeddings\"}", "module_input_name");
    dense_refused("[", "malformed JSON");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_modules),
        cmocka_unit_test(ways_of_pooling),
        cmocka_unit_test(dense_layers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
