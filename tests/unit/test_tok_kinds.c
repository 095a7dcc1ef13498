/* SPDX-License-Identifier: Apache-2.0
 * test_tok_kinds.c: the kinds of tokenizers besides BPE, SentencePiece and WordPiece, on
 * vocabularies made here: Unigram and RWKV of a GGUF, tekken.json, tiktoken's format; the rows of
 * pretok.def, each opened; components of tokenizer.json that only some texts tell apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "format/gguf_write.h"
#include "tempdir.h"
#include "text/tok_impl.h"
#include "text/tok_tiktoken.h"

#define KEY(name) "tokenizer.ggml." name
#define SPACE "\xe2\x96\x81"

static const char *ids_of(const struct tok *tok, const char *text, bool special) {
    static char out[1024];
    ob_tokens ids = {0};
    ob_error error;
    if (tok_encode(tok, text, strlen(text), NULL, special, special, &ids, &error) != OB_OK)
        fail_msg("%s", error.message);
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < ids.n && n < sizeof out - 16; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, i ? " %d" : "%d", ids.id[i]);
    ob_tokens_free(&ids);
    return out;
}

static const char *text_of(const struct tok *tok, const int32_t *id, size_t n) {
    static char out[256];
    struct buf all = BUF_INIT;
    for (size_t i = 0; i < n; i++) tok_piece(tok, id[i], false, i == 0, &all);
    snprintf(out, sizeof out, "%.*s", (int)all.n, all.p ? all.p : "");
    buf_free(&all);
    return out;
}

/* ---- GGUF ---- */

struct row {
    const char *text;
    int32_t kind;
    float score;
};

static struct gguf_writer *vocabulary(const char *model, const struct row *row, size_t n) {
    struct str text[64];
    int32_t kind[64];
    float score[64];
    struct gguf_writer *w = gguf_writer_new();
    assert_non_null(w);
    for (size_t i = 0; i < n; i++) {
        text[i] = str_of(row[i].text);
        kind[i] = row[i].kind;
        score[i] = row[i].score;
    }
    gguf_put_str(w, "general.architecture", STR_LIT("llama"));
    gguf_put_str(w, KEY("model"), str_of(model));
    gguf_put_strs(w, KEY("tokens"), text, n);
    gguf_put_array(w, KEY("token_type"), GGUF_I32, kind, n);
    gguf_put_array(w, KEY("scores"), GGUF_F32, score, n);
    return w;
}

static ob_status open_gguf(struct gguf_writer *w, const char *dir, struct tok **tok,
                           ob_error *error) {
    char path[512];
    struct source *source;
    snprintf(path, sizeof path, "%s/v.gguf", dir);
    *tok = NULL;
    assert_int_equal(gguf_write_file(w, path, NULL), OB_OK);
    gguf_writer_free(&w);
    assert_int_equal(source_open(path, &source, NULL), OB_OK);
    ob_status status = tok_open(source, tok, error);
    source_close(&source);
    unlink(path);
    return status;
}

static const struct row pieces[] = {
    {"<pad>", 3, 0},      {"</s>", 3, 0},   {"<unk>", 2, 0}, {SPACE, 1, -2},
    {SPACE "ab", 1, -3},  {"a", 1, -4},     {"b", 1, -4},    {"abc", 1, -5},
    {"c", 1, -4},         {"bc", 1, -2},    {"<x>", 4, 0},   {SPACE "a", 1, -4},
};
enum { PIECES = sizeof pieces / sizeof pieces[0] };

static void unigram_takes_the_likeliest(void **state) {
    struct tok *tok;
    struct gguf_writer *w = vocabulary("t5", pieces, PIECES);
    gguf_put_whole(w, KEY("add_space_prefix"), GGUF_BOOL, true);
    assert_int_equal(open_gguf(w, *state, &tok, NULL), OB_OK);
    assert_string_equal(tok_describe(tok), "unigram");
    assert_string_equal(ids_of(tok, "ab", false), "4");
    assert_string_equal(ids_of(tok, "abc", false), "11 9"); /* -6, by "ab" and "c" -7 */
    assert_string_equal(ids_of(tok, "a  c", false), "11 3 3 8");
    assert_string_equal(ids_of(tok, "xyz", false), "3 2"); /* unknown characters are one */
    assert_string_equal(ids_of(tok, "axyb", false), "11 2 6");
    assert_string_equal(ids_of(tok, "a<x>b", false), "11 10 3 6");
    assert_string_equal(ids_of(tok, "ab", true), "4 1");
    assert_string_equal(ids_of(tok, "", true), "1");
    assert_string_equal(text_of(tok, (const int32_t[]){4, 9, 1}, 3), "abbc");
    tok_close(&tok);

    w = vocabulary("t5", pieces, PIECES);
    gguf_put_whole(w, KEY("remove_extra_whitespaces"), GGUF_BOOL, true);
    assert_int_equal(open_gguf(w, *state, &tok, NULL), OB_OK);
    assert_string_equal(ids_of(tok, "  a   ab ", false), "11 4");
    tok_close(&tok);
}

/* The double array of one rule, "x" to "ab": root at 0, 'x' at base ^ 'x', its leaf. */
static size_t one_rule(uint8_t *out) {
    enum { BASE = 128, X = BASE ^ 'x', LEAF = X ^ 1, UNITS = 256 };
    uint32_t unit[UNITS];
    for (size_t i = 0; i < UNITS; i++) unit[i] = 0x800000ffu;
    unit[0] = (uint32_t)BASE << 10;
    unit[X] = 'x' | 1u << 8 | 1u << 10; /* has a leaf, at X ^ 1 */
    unit[LEAF] = 1u << 31; /* value 0 */
    size_t n = 0;
    uint32_t size = sizeof unit;
    memcpy(out, &size, 4);
    memcpy(out + 4, unit, sizeof unit);
    n = 4 + sizeof unit;
    memcpy(out + n, "ab", 3);
    return n + 3;
}

static void charsmap_of_a_gguf(void **state) {
    struct tok *tok;
    ob_error error;
    uint8_t map[2048];
    size_t n = one_rule(map);
    struct gguf_writer *w = vocabulary("t5", pieces, PIECES);
    gguf_put_array(w, KEY("precompiled_charsmap"), GGUF_U8, map, n);
    assert_int_equal(open_gguf(w, *state, &tok, NULL), OB_OK);
    assert_string_equal(ids_of(tok, "xc", false), "7"); /* as "abc" */
    assert_string_equal(ids_of(tok, "\xff", false), "2");
    tok_close(&tok);
    for (size_t cut = 1; cut < 8; cut++) {
        w = vocabulary("t5", pieces, PIECES);
        gguf_put_array(w, KEY("precompiled_charsmap"), GGUF_U8, map, cut == 7 ? n - 1 : cut);
        assert_int_equal(open_gguf(w, *state, &tok, &error), OB_ERR_FORMAT);
        assert_non_null(strstr(error.message, "cut short"));
    }
}

static void rwkv_takes_the_longest(void **state) {
    static const struct row rows[] = {
        {"<s>", 3, 0}, {"a", 1, 0}, {"ab", 1, 0}, {"abc\\n", 1, 0}, {"\\xff", 1, 0},
        {"c", 1, 0},   {"\\\\", 1, 0}, {" ", 1, 0}};
    struct tok *tok;
    ob_error error;
    assert_int_equal(open_gguf(vocabulary("rwkv", rows, 8), *state, &tok, NULL), OB_OK);
    assert_string_equal(tok_describe(tok), "rwkv");
    assert_string_equal(ids_of(tok, "abc\nabca", false), "3 2 5 1");
    assert_string_equal(ids_of(tok, "\xff\\ <s>", false), "4 6 7"); /* no token: nothing */
    assert_string_equal(text_of(tok, (const int32_t[]){3, 4, 6}, 3), "abc\n\xff\\");
    tok_close(&tok);
    static const struct row bad[] = {{"a\\x1", 1, 0}};
    assert_int_equal(open_gguf(vocabulary("rwkv", bad, 1), *state, &tok, &error), OB_ERR_FORMAT);
    assert_non_null(strstr(error.message, "token 0 has a malformed escape"));
}

#define PRETOK(name, flags, ...) name,
static const char *const names[] = {
#include "text/pretok.def"
};
#undef PRETOK

static void every_name_opens(void **state) {
    static const struct row rows[] = {{"a", 1, 0}, {"b", 1, 0}, {"ab", 1, 0}, {"1", 1, 0}};
    static const struct str merges[] = {STR_LIT("a b")};
    struct tok *tok;
    ob_error error;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct gguf_writer *w = vocabulary("gpt2", rows, 4);
        gguf_put_str(w, KEY("pre"), str_of(names[i]));
        gguf_put_strs(w, KEY("merges"), merges, 1);
        if (open_gguf(w, *state, &tok, &error) != OB_OK)
            fail_msg("%s: %s", names[i], error.message);
        assert_string_equal(ids_of(tok, "ab1", false), "2 3");
        assert_non_null(strstr(tok_describe(tok), names[i]));
        tok_close(&tok);
    }
    struct gguf_writer *w = vocabulary("gpt2", rows, 4);
    gguf_put_str(w, KEY("pre"), STR_LIT("qwen99"));
    gguf_put_strs(w, KEY("merges"), merges, 1);
    assert_int_equal(open_gguf(w, *state, &tok, &error), OB_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "\"qwen99\""));
}

/* ---- ranks ---- */

/* Ranks of base64: a b c ab bc abc. */
static void tekken(void **state) {
    (void)state;
    static const char json[] =
        "{\"config\":{\"pattern\":\"[a-z<>/]+|\\\\s+\",\"default_vocab_size\":10,"
        "\"default_num_special_tokens\":4},\"vocab\":[{\"rank\":0,\"token_bytes\":\"YQ==\"},"
        "{\"rank\":1,\"token_bytes\":\"Yg==\"},{\"rank\":2,\"token_bytes\":\"Yw==\"},"
        "{\"rank\":3,\"token_bytes\":\"YmM=\"},{\"rank\":4,\"token_bytes\":\"YWI=\"},"
        "{\"rank\":5,\"token_bytes\":\"PHM+\"},{\"rank\":6,\"token_bytes\":\"YWJj\"}],"
        "\"special_tokens\":[{\"rank\":0,\"token_str\":\"<unk>\"},{\"rank\":1,\"token_str\":"
        "\"<s>\"},{\"rank\":2,\"token_str\":\"</s>\"}]}";
    struct tok *tok = tok_new();
    ob_error error;
    if (tok_tekken(tok, str_of(json), &error) != OB_OK) fail_msg("%s", error.message);
    assert_int_equal(tok_count(tok), 10); /* the last of the list is more than the model has */
    assert_int_equal(tok_bos(tok), 1);
    assert_int_equal(tok_eos(tok), 2);
    assert_string_equal(ids_of(tok, "abc ab", true), "1 4 7 8");
    assert_string_equal(ids_of(tok, "<s>ab", true), "1 8");
    assert_string_equal(ids_of(tok, "<s>", false), "9");
    assert_true(str_is(tok_text(tok, 3), "<SPECIAL_3>"));
    assert_string_equal(text_of(tok, (const int32_t[]){4, 7, 2}, 3), "abc");
    tok_close(&tok);
    static const struct {
        const char *json, *says;
    } bad[] = {
        {"{\"vocab\":[]}", "config has no pattern"},
        {"{\"config\":{\"pattern\":\"a\"}}", "no vocab"},
        {"{\"config\":{\"pattern\":\"a\"},\"vocab\":[{\"rank\":0,\"token_bytes\":\"*\"}]}",
         "no base64"},
        {"{\"config\":{\"pattern\":\"a\"},\"vocab\":[{\"token_bytes\":\"YQ==\"}]}",
         "not as expected"},
        {"{\"config\":{\"pattern\":\"a\"},\"vocab\":[{\"rank\":1,\"token_bytes\":\"YQ==\"},"
         "{\"rank\":1,\"token_bytes\":\"Yg==\"}]}", "two tokens have the rank"},
        {"{\"config\":{\"pattern\":\"a\"},\"vocab\":[{\"rank\":99999,\"token_bytes\":\"YQ==\"}]}",
         "out of proportion"},
        {"{\"config\":{\"pattern\":\"\\\\K\"},\"vocab\":[{\"rank\":0,\"token_bytes\":\"YQ==\"}]}",
         "not supported"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tok = tok_new();
        assert_true(tok_tekken(tok, str_of(bad[i].json), &error) != OB_OK);
        if (!strstr(error.message, bad[i].says)) fail_msg("%zu: %s", i, error.message);
        tok_close(&tok);
    }
}

static struct tok *open_dir(const char *dir, ob_error *error) {
    static const char weights[] = "0\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\",\"shape\":[1],"
                                  "\"data_offsets\":[0,4]}}";
    char data[8 + 64 + 4] = {0};
    struct source *source;
    struct tok *tok = NULL;
    memset(data + 8, ' ', 64);
    memcpy(data, weights, sizeof weights - 1);
    data[0] = 64;
    tempdir_write(dir, "model.safetensors", data, sizeof data);
    tempdir_write(dir, "config.json", "{\"model_type\":\"llama\"}", 22);
    ob_status status = source_open(dir, &source, error);
    if (status != OB_OK) fail_msg("%s", error->message);
    tok_open(source, &tok, error);
    source_close(&source);
    return tok;
}

static void tiktoken(void **state) {
    ob_error error;
    static const char ranks[] = "YQ== 0\nYg== 1\r\nYWI= 2\n\nw4k= 3\n";
    static const char qwen[] = "{\"tokenizer_class\":\"QWenTokenizer\"}";
    static const char kimi[] = "{\"tokenizer_class\":\"TikTokenTokenizer\",\"eos_token\":\"[EOS]\","
                               "\"added_tokens_decoder\":{\"6\":{\"content\":\"[EOS]\","
                               "\"special\":true},\"7\":{\"content\":\"<t>\",\"special\":false}}}";
    tempdir_write(*state, "qwen.tiktoken", ranks, sizeof ranks - 1);
    tempdir_write(*state, "tokenizer_config.json", qwen, sizeof qwen - 1);
    struct tok *tok = open_dir(*state, &error);
    if (!tok) fail_msg("%s", error.message);
    assert_string_equal(tok_describe(tok), "bpe (tiktoken)"); /* no GGUF name: NFC, whole words */
    assert_string_equal(ids_of(tok, "abba", false), "2 1 0");
    assert_string_equal(ids_of(tok, "E\xcc\x81<|im_end|>", true), "3 6"); /* NFC */
    assert_int_equal(tok_count(tok), 4 + 3 + 205);
    assert_true(tok_is_end(tok, 4));
    tok_close(&tok);

    tempdir_write(*state, "tokenizer_config.json", kimi, sizeof kimi - 1);
    assert_null(open_dir(*state, &error));
    assert_non_null(strstr(error.message, "no tokenizer.json"));
    tempdir_write(*state, "tiktoken.model", ranks, sizeof ranks - 1);
    tok = open_dir(*state, &error);
    if (!tok) fail_msg("%s", error.message);
    assert_string_equal(ids_of(tok, "ab<t>[EOS]", true), "2 7 6");
    assert_int_equal(tok_eos(tok), 6);
    tok_close(&tok);

    tempdir_write(*state, "tiktoken.model", "YQ== 0\nYg==\n", 12);
    assert_null(open_dir(*state, &error));
    assert_non_null(strstr(error.message, "line 2 is no token and its rank"));
    tempdir_empty(*state);
}

/* ---- tokenizer.json ---- */

#define BPE(rest) "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\" \":3," rest
static struct tok *parse(const char *json) {
    struct tok *tok = tok_new();
    ob_error error;
    char line[1024];
    if (tok_hf_json(tok, str_of(json), &error) != OB_OK)
        fail_msg("%s", ob_error_line(&error, line, sizeof line));
    return tok;
}

/* A costly expression ends the encoding with an error, not the program's time. */
static void costly_expressions_are_given_up(void **state) {
    (void)state;
    struct tok *tok = parse("{" BPE("\"c\":4},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"Split\","
                                    "\"pattern\":{\"Regex\":\"((a|a)+)+\\\\z\"},\"behavior\":"
                                    "\"Isolated\",\"invert\":false}}"));
    ob_tokens ids = {0};
    ob_error error;
    static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac";
    assert_int_equal(tok_encode(tok, text, sizeof text - 1, NULL, false, false, &ids, &error),
                     OB_ERR_LIMIT);
    assert_non_null(strstr(error.message, "costs too much"));
    assert_string_equal(ids_of(tok, "ab", false), "0 1");
    tok_close(&tok);
}

static void tokens_beside_the_model_are_not_found_by_it(void **state) {
    (void)state;
    struct tok *tok = parse("{" BPE("\"c\":4},\"merges\":[\"a b\"],\"ignore_merges\":true},"
                                    "\"added_tokens\":[{\"id\":9,\"content\":\"abc\",\"special\":"
                                    "false,\"single_word\":true}]}"));
    assert_string_equal(ids_of(tok, "abc", false), "9");
    assert_string_equal(ids_of(tok, "abc a", false), "9 3 0");
    assert_string_equal(ids_of(tok, "abca", false), "2 4 0");
    assert_string_equal(ids_of(tok, "\xe2\x80\x8d" "abc", false), "2 4"); /* of a word, too */
    tok_close(&tok);
}

static void malformed_bytes_in_expressions(void **state) {
    (void)state;
    struct tok *tok = parse("{" BPE("\"c\":4},\"unk_token\":\"c\",\"merges\":[\"a b\"]},"
                                    "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":"
                                    "\"b+|\\\\s\"},\"behavior\":\"Removed\",\"invert\":false}}"));
    assert_string_equal(ids_of(tok, "a\xff" "bba\xe2\x82", false), "0 4 0 4 4");
    tok_close(&tok);
}

/* Which side of a split a match goes to; only "ab" in one piece is one token. */
static void matches_join_their_neighbours(void **state) {
    (void)state;
    static const struct { const char *pattern, *behavior, *ids; } row[] = {
        {"a", "Isolated", "0 1 0 1"},           {"a", "Removed", "1 1"},
        {"a", "MergedWithNext", "2 2"},         {"a", "MergedWithPrevious", "0 1 0 1"},
        {"b", "MergedWithNext", "0 1 0 1"},     {"b", "MergedWithPrevious", "2 2"},
        {"[ab]", "Isolated", "0 1 0 1"},        {"[ab]", "Contiguous", "2 2"},
        {"a", "Contiguous", "0 1 0 1"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        char json[400];
        snprintf(json, sizeof json,
                 "{" BPE("\"c\":4},\"merges\":[\"a b\"]},\"pre_tokenizer\":{\"type\":\"Split\","
                         "\"pattern\":{\"Regex\":\"%s\"},\"behavior\":\"%s\",\"invert\":false}}"),
                 row[i].pattern, row[i].behavior);
        struct tok *tok = parse(json);
        assert_string_equal(ids_of(tok, "abab", false), row[i].ids);
        tok_close(&tok);
    }
}

/* A space and letters: few enough words that they come again, too many for a slot each. */
static struct str word_at(uint64_t i, char out[16]) {
    uint64_t bits = rng_u64(9, i);
    size_t n = 1 + bits % 12;
    out[0] = ' ';
    for (size_t k = 1; k <= n; k++) out[k] = bits >> (8 + k) & 1 ? 'a' : 'b';
    return (struct str){out, n + 1};
}

/* Words of a long text that come again give what they give alone. */
static void words_met_before(void **state) {
    (void)state;
    char room[16];
    struct tok *tok = parse(
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\xc4\xa0\":3,"
        "\"\xc4\xa0" "ab\":4},\"merges\":[\"a b\",\"\xc4\xa0 ab\"]},\"pre_tokenizer\":{"
        "\"type\":\"ByteLevel\",\"add_prefix_space\":false}}");
    struct buf text = BUF_INIT;
    ob_tokens all = {0};
    enum { WORDS = 20000 };
    for (uint64_t i = 0; i < WORDS; i++) {
        struct str word = word_at(i, room);
        buf_add(&text, word.p, word.n);
    }
    assert_int_equal(tok_encode(tok, text.p, text.n, NULL, false, false, &all, NULL), OB_OK);
    size_t at = 0;
    for (uint64_t i = 0; i < WORDS; i++) {
        struct str word = word_at(i, room);
        ob_tokens one = {0};
        assert_int_equal(tok_encode(tok, word.p, word.n, NULL, false, false, &one, NULL),
                         OB_OK);
        assert_true(at + one.n <= all.n);
        assert_memory_equal(all.id + at, one.id, one.n * sizeof *one.id);
        at += one.n;
        ob_tokens_free(&one);
    }
    assert_int_equal(at, all.n);
    ob_tokens_free(&all);
    buf_free(&text);
    tok_close(&tok);
}

static void several_tokens_a_side(void **state) {
    (void)state;
    struct tok *tok = parse(
        "{" BPE("\"c\":4},\"merges\":[]},\"post_processor\":{\"type\":\"TemplateProcessing\","
                "\"single\":[{\"SpecialToken\":{\"id\":\"x\"}},{\"SpecialToken\":{\"id\":\"y\"}},"
                "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"y\"}},{\"SpecialToken\":"
                "{\"id\":\"x\"}}],\"special_tokens\":{\"x\":{\"ids\":[2]},\"y\":{\"ids\":"
                "[3,4]}}}}"));
    assert_string_equal(ids_of(tok, "ba", true), "2 3 4 1 0 3 4 2");
    assert_string_equal(ids_of(tok, "ba", false), "1 0");
    tok_close(&tok);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unigram_takes_the_likeliest),
        cmocka_unit_test(charsmap_of_a_gguf),
        cmocka_unit_test(rwkv_takes_the_longest),
        cmocka_unit_test(every_name_opens),
        cmocka_unit_test(tekken),
        cmocka_unit_test(tiktoken),
        cmocka_unit_test(costly_expressions_are_given_up),
        cmocka_unit_test(tokens_beside_the_model_are_not_found_by_it),
        cmocka_unit_test(malformed_bytes_in_expressions),
        cmocka_unit_test(matches_join_their_neighbours),
        cmocka_unit_test(words_met_before),
        cmocka_unit_test(several_tokens_a_side),
    };
    return cmocka_run_group_tests(tests, tempdir_make, tempdir_remove);
}
