/* SPDX-License-Identifier: Apache-2.0
 * test_tok_hf.c: tokenizer.json files made here: what is read, and what is refused by its name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "text/tok_impl.h"

#define MODEL \
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"
#define SPACES "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"}"
#define DECODER "\"decoder\":" SPACES

static ob_status parse(const char *json, struct tok **tok, ob_error *error) {
    *tok = tok_new();
    assert_non_null(*tok);
    return tok_hf_json(*tok, str_of(json), error);
}

/* trust: '1' for each byte that is trusted, NULL: all. */
static void check_trust(const char *json, const char *text, const char *trust, const char *want) {
    uint8_t mask[64];
    struct tok *tok;
    ob_error error;
    ob_tokens ids = {0};
    char out[256] = "", line[1024];
    for (size_t i = 0; trust && trust[i]; i++) mask[i] = trust[i] == '1';
    if (parse(json, &tok, &error) != OB_OK)
        fail_msg("%s", ob_error_line(&error, line, sizeof line));
    assert_int_equal(
        tok_encode(tok, text, strlen(text), trust ? mask : NULL, true, true, &ids, NULL), OB_OK);
    for (size_t i = 0, n = 0; i < ids.n && n < 200; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, i ? " %d" : "%d", ids.id[i]);
    assert_string_equal(out, want);
    free(ids.id);
    tok_close(&tok);
}

static void check_ids(const char *json, const char *text, const char *want) {
    check_trust(json, text, NULL, want);
}

static void refuse(const char *json, ob_status status, const char *line) {
    struct tok *tok;
    ob_error error;
    char text[1024];
    assert_int_equal(parse(json, &tok, &error), status);
    tok_close(&tok);
    ob_error_line(&error, text, sizeof text);
    if (!strstr(text, line)) fail_msg("%s", text);
}

static void members_in_any_order(void **state) {
    (void)state;
    check_ids("{" MODEL "," DECODER "}", "abba", "2 1 0");
    check_ids("{\"added_tokens\":[{\"id\":5,\"content\":\"bb\",\"special\":false}]," DECODER
              ",\"later\":[{}]," MODEL "}",
              "abbaab", "0 5 0 2");
    check_ids("{" DECODER
              ",\"model\":{\"merges\":[[\"a\",\"b\"]],\"vocab\":{\"ab\":2,\"a\":0,\"b\":1}}}",
              "ab", "2");
    /* "ignore_merges": a piece that is a token is that token */
    check_ids("{" DECODER
              ",\"model\":{\"ignore_merges\":true,\"merges\":[],\"vocab\":{\"a\":0,\"b\":1,"
              "\"ab\":2}}}",
              "ab", "2");
    check_ids(
        "{" MODEL "," DECODER
        ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":["
        "{\"SpecialToken\":{\"id\":\"x\"}},{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":"
        "\"y\"}}],\"special_tokens\":{\"x\":{\"ids\":[1]},\"y\":{\"ids\":[0]}}}}",
        "ab", "1 2 0");
}

static void characters_without_a_token(void **state) {
    (void)state;
#define UNKNOWN(fuse)                                                \
    "{" DECODER ",\"model\":{\"unk_token\":\"?\",\"fuse_unk\":" fuse \
    ",\"merges\":[],"                                                \
    "\"vocab\":{\"a\":0,\"?\":1}}}"
    check_ids(UNKNOWN("false"), "axya", "0 1 1 0");
    check_ids(UNKNOWN("true"), "axya", "0 1 0");
    check_ids("{" DECODER ",\"model\":{\"merges\":[],\"vocab\":{\"a\":0}}}", "axa", "0 0");
    check_ids("{" DECODER
              ",\"model\":{\"byte_fallback\":true,\"merges\":[],\"vocab\":{\"a\":0,"
              "\"<0xC3>\":1,\"<0xA9>\":2}}}",
              "a\xc3\xa9", "0 1 2");
}

/* Neither merges nor whole words nor what normalizers make of data give a control token. */
static void data_gives_no_control_token(void **state) {
    (void)state;
    static const char merged[] =
        "{" DECODER
        ",\"added_tokens\":[{\"id\":2,\"content\":\"ab\",\"special\":true}],"
        "\"model\":{\"ignore_merges\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":["
        "\"a b\"]}}";
    static const char normalized[] =
        "{" DECODER
        ",\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"bb\"},"
        "\"content\":\"x\"},\"added_tokens\":[{\"id\":3,\"content\":\"abb\",\"special\":true,"
        "\"normalized\":true}]," MODEL "}";
    check_trust(merged, "ab", "00", "0 1");
    check_trust(merged, "ab", "11", "2");
    check_trust(normalized, "aabb", "0111", "0 3");
    check_trust(normalized, "aabb", "0110", "0 0");
    check_trust(normalized, "aabb", "0101", "0 0");
}

/* BERT's parts, alone and together; what a word that cannot be spelled becomes. */
static void words_of_bert(void **state) {
    (void)state;
#define BERT(settings)                                                                        \
    "{\"normalizer\":{\"type\":\"BertNormalizer\"" settings "},\"pre_tokenizer\":{"           \
    "\"type\":\"BertPreTokenizer\"},\"decoder\":{\"type\":\"WordPiece\"},\"added_tokens\":[{" \
    "\"id\":9,\"content\":\"[C]\",\"special\":true}],\"post_processor\":{\"type\":"           \
    "\"BertProcessing\",\"cls\":[\"[C]\",9],\"sep\":[\"[S]\",8]},\"model\":{\"type\":"        \
    "\"WordPiece\",\"unk_token\":\"[U]\",\"max_input_chars_per_word\":5,\"vocab\":{\"a\":0,"  \
    "\"ab\":1,\"##c\":2,\"##ca\":3,\"!\":4,\"[U]\":5,\"A\":6,\"\xe4\xba\xac\":7,\"[S]\":8}}}"
    check_ids(BERT(""), "abca ac", "9 1 3 0 2 8");
    check_ids(BERT(""), "abx\tab", "9 5 1 8");         /* no token goes on with x */
    check_ids(BERT(""), "abcc acacac", "9 1 2 2 5 8");  /* six characters are too many */
    check_ids(BERT(""), "a!a\x01""b", "9 0 4 1 8");     /* a control is not there */
    check_ids(BERT(""), "\xc3\x81 A\xcc\x81", "9 0 0 8");
    check_ids(BERT(",\"lowercase\":false"), "A \xc3\x81", "9 6 5 8");
    check_ids(BERT(",\"lowercase\":false,\"strip_accents\":true"), "A \xc3\x81", "9 6 6 8");
    check_ids(BERT(""), "a\xe4\xba\xac""ab", "9 0 7 1 8");
    check_ids(BERT(",\"handle_chinese_chars\":false"), "a\xe4\xba\xac", "9 5 8");
    check_ids(BERT(""), "a[C]b", "9 0 9 5 8");
    check_trust(BERT(""), "a[C]", "0000", "9 0 5 5 5 8");
}

static void unknown_components_are_refused_by_name(void **state) {
    (void)state;
    const ob_status no = OB_ERR_UNSUPPORTED;
    refuse("{" MODEL "," DECODER ",\"normalizer\":{\"type\":\"Uppercase\"}}", no,
           "normalizer: \"Uppercase\"");
    refuse("{" MODEL "," DECODER
           ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":["
           "{\"type\":\"NFC\"},{\"type\":\"NFQ\"}]}}",
           no, "normalizer: \"NFQ\"");
    refuse("{" MODEL "," DECODER ",\"pre_tokenizer\":{\"type\":\"Sentences\"}}", no,
           "pre_tokenizer: \"Sentences\"");
    refuse("{" MODEL "," DECODER
           ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x\\\\Kx\"},"
           "\"behavior\":\"Isolated\",\"invert\":false}}",
           no, "an escape of a letter or digit");
    refuse("{" MODEL "," DECODER
           ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"x\"},"
           "\"behavior\":\"Glued\",\"invert\":false}}",
           no, "Split Glued");
    refuse("{" MODEL "," DECODER ",\"post_processor\":{\"type\":\"PairProcessing\"}}", no,
           "post_processor: \"PairProcessing\"");
    refuse("{" MODEL "," DECODER ",\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":"
           "[\"a\",9],\"sep\":[\"b\",1]}}",
           no, "post_processor: \"BertProcessing cls\"");
    refuse("{" MODEL ",\"decoder\":{\"type\":\"CTC\"}}", no, "decoder: \"CTC\"");
    refuse("{" DECODER ",\"model\":{\"type\":\"Bigram\",\"vocab\":[]}}", no, "model: \"Bigram\"");
}

static void malformed_files_name_the_place(void **state) {
    (void)state;
    const ob_status bad = OB_ERR_FORMAT;
    refuse("", bad, "malformed JSON");
    refuse("[]", bad, "an object is expected");
    refuse("{" DECODER "}", bad, "no model");
    refuse("{" DECODER ",\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", bad,
           "model.merges: merge 0: \"b\" is not in the vocabulary");
    refuse("{" DECODER ",\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"ab\"]}}", bad,
           "model.merges: a merge is no pair (offset ");
    refuse("{" DECODER ",\"model\":{\"vocab\":{\"a\":-1},\"merges\":[]}}", bad, "model.vocab: ");
    refuse("{" DECODER ",\"model\":{\"vocab\":{\"a\":2000000000},\"merges\":[]}}", bad,
           "out of proportion");
    refuse("{" DECODER ",\"model\":{\"vocab\":{},\"merges\":[]}}", bad, "vocabulary is empty");
    refuse("{" DECODER "," MODEL ",\"added_tokens\":[{\"id\":0,\"content\":\"x\"}]}", bad,
           "added_tokens: \"x\" has the id of \"a\"");
    refuse("{" DECODER "," MODEL
           ",\"added_tokens\":[{\"id\":18446744073709551615,\"content\":\"x\"}]}",
           bad, "out of proportion");
    refuse("{" DECODER "," MODEL ",\"added_tokens\":[{\"content\":\"x\"}]}", bad, "lacks its id");
    refuse("{" DECODER "," MODEL ",\"added_tokens\":[3]}", bad, "no object");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_in_any_order),
        cmocka_unit_test(characters_without_a_token),
        cmocka_unit_test(data_gives_no_control_token),
        cmocka_unit_test(unknown_components_are_refused_by_name),
        cmocka_unit_test(words_of_bert),
        cmocka_unit_test(malformed_files_name_the_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
