/* SPDX-License-Identifier: Apache-2.0
 * test_tok.c: tokenizers of vocabularies made here: the cutting of added tokens and trust, merging,
 * BOS and EOS, ends, templates, decoding, and what is refused. Exactness: test_tok_golden.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "format/gguf_write.h"
#include "tempdir.h"
#include "text/pretok.h"
#include "text/tok_impl.h"

#define KEY(name) "tokenizer.ggml." name

/* ---- vocabularies ---- */

enum { MOST = 400 };
struct make {
    char text[MOST][24];
    struct str token[MOST];
    int32_t kind[MOST];
    float score[MOST];
    size_t n;
};

static int32_t put(struct make *m, const char *text, int32_t kind, float score) {
    size_t i = m->n++;
    snprintf(m->text[i], sizeof m->text[i], "%s", text);
    m->token[i] = str_of(m->text[i]);
    m->kind[i] = kind;
    m->score[i] = score;
    return (int32_t)i;
}

static void put_vocab(struct gguf_writer *w, const struct make *m, const char *model) {
    gguf_put_str(w, "general.architecture", STR_LIT("qwen2"));
    gguf_put_str(w, KEY("model"), str_of(model));
    gguf_put_strs(w, KEY("tokens"), m->token, m->n);
    gguf_put_array(w, KEY("token_type"), GGUF_I32, m->kind, m->n);
}

/* Ids 0-255: the bytes; then tokens of the test. */
enum { T_HE = 256, T_LL, T_HELL, T_HELLO, T_GH, T_IM, T_CALL, T_END, T_IM2, T_SPACES };
static void make_bpe(struct gguf_writer *w, const char *pre) {
    static struct make m;
    static const struct str merges[] = {STR_LIT("h e"), STR_LIT("l l"), STR_LIT("he ll"),
                                        STR_LIT("hell o"), STR_LIT("\xc4\xa0 h")};
    m.n = 0;
    for (uint32_t b = 0; b < 256; b++) {
        char text[8] = {0};
        utf8_encode(tok_byte_char((uint8_t)b), text);
        put(&m, text, TOK_NORMAL, 0);
    }
    assert_int_equal(put(&m, "he", TOK_NORMAL, 0), T_HE);
    put(&m, "ll", TOK_NORMAL, 0);
    put(&m, "hell", TOK_NORMAL, 0);
    put(&m, "hello", TOK_NORMAL, 0);
    put(&m, "\xc4\xa0h", TOK_NORMAL, 0);
    put(&m, "<|im|>", TOK_CONTROL, 0);
    put(&m, "<call>", TOK_ADDED, 0);
    put(&m, "<|im_end|>", TOK_CONTROL, 0);
    put(&m, "<|im|><|im|>", TOK_CONTROL, 0);
    assert_int_equal(put(&m, "   ", TOK_ADDED, 0), T_SPACES);
    put_vocab(w, &m, "gpt2");
    if (pre) gguf_put_str(w, KEY("pre"), str_of(pre));
    gguf_put_strs(w, KEY("merges"), merges, 5);
}

static ob_status open_written(struct gguf_writer *w, const char *dir, struct tok **tok,
                              ob_error *error) {
    char path[512];
    struct source *source;
    snprintf(path, sizeof path, "%s/tok.gguf", dir);
    assert_int_equal(gguf_write_file(w, path, NULL), OB_OK);
    gguf_writer_free(&w);
    assert_int_equal(source_open(path, &source, NULL), OB_OK);
    ob_status status = tok_open(source, tok, error);
    source_close(&source);
    return status;
}

static struct tok *open_bpe(const char *dir, const char *pre) {
    struct gguf_writer *w = gguf_writer_new();
    struct tok *tok;
    make_bpe(w, pre);
    gguf_put_whole(w, KEY("eos_token_id"), GGUF_U32, T_IM);
    assert_int_equal(open_written(w, dir, &tok, NULL), OB_OK);
    return tok;
}

/* "1 2 3" */
static const char *ids_of(const struct tok *tok, struct str text, const char *trust, bool parse,
                          bool special) {
    static char out[4096];
    uint8_t mask[256];
    for (size_t i = 0; trust && i < text.n; i++) mask[i] = trust[i] == '1';
    ob_tokens ids = {0};
    assert_int_equal(
        tok_encode(tok, text.p, text.n, trust ? mask : NULL, parse, special, &ids, NULL), OB_OK);
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < ids.n && n < sizeof out - 16; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, i ? " %d" : "%d", ids.id[i]);
    free(ids.id);
    return out;
}
#define IDS(text, parse) ids_of(tok, STR_LIT(text), NULL, parse, false)

/* ---- tests ---- */

static void scanners_cut_as_the_expressions_do(void **state) {
    (void)state;
    static const struct {
        const char *name, *pieces; /* joined with | */
    } cases[] = {
        {"gpt2", "I|'ll| say|'|S| 1234|x"},
        {"qwen2", "I|'LL| say|'S|1|2|x"},
        {"qwen2", "it|'\xc5\xbf|a"}, /* long s folds to s */
        {"llama3", "a| |123|45|b"},
        {"gpt2", "a|  | b| \n|\n|c|   "},
        {"qwen2", "a|  | b| \n\n|c|   "},
        {"qwen2", "a|!?\n\n| (|x| \xe4\xba\xac|\xf0\x9f\x98\x80!|\t|\tx"},
        {"qwen2", "\xff\xff|a\xe4\xba\xac|\xe2\x82"}, /* malformed bytes are symbols */
        {"qwen2", "(a|_b| c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rule *rule = pretok_find(str_of(cases[i].name))->rule[0];
        char text[64];
        size_t n = 0, at = 0;
        for (const char *p = cases[i].pieces; *p; p++)
            if (*p != '|') text[n++] = *p;
        for (const char *p = cases[i].pieces; *p;) {
            size_t want = strcspn(p, "|");
            size_t got = rule->next(text + at, n - at);
            if (got != want) fail_msg("case %zu at %zu: %zu for %zu", i, at, got, want);
            at += got;
            p += want + (p[want] == '|');
        }
        assert_int_equal(at, n);
    }
}

static void merges_by_rank_and_leftmost(void **state) {
    struct tok *tok = open_bpe(*state, "gpt-2");
    assert_string_equal(IDS("hello", false), "259");
    assert_string_equal(IDS("lll hell hi", false), "257 108 32 258 260 105");
    assert_string_equal(IDS("", false), "");
    assert_string_equal(tok_describe(tok), "bpe (gpt-2)");
    tok_close(&tok);
}

static void added_tokens_and_trust(void **state) {
    struct tok *tok = open_bpe(*state, "gpt-2");
    assert_string_equal(IDS("<|im|>hello<call>", true), "261 259 262");
    assert_string_equal(IDS("<|im|><|im|><|im|>", true), "264 261"); /* leftmost, then longest */
    assert_string_equal(IDS("a    <call>", true), "97 265 32 262");
    /* Untrusted: data stays data, other added tokens are found all the same. */
    assert_null(strstr(IDS("<|im|>", false), "261"));
    assert_string_equal(IDS("hello<call>", false), "259 262");
    struct str text = STR_LIT("<|im|><|im|>");
    assert_string_equal(ids_of(tok, text, "111111111111", false, false), "264");
    assert_string_equal(ids_of(tok, text, "111111000000", false, false),
                        "261 60 124 105 109 124 62");
    assert_null(strstr(ids_of(tok, text, "111110111110", true, false), "261"));
    assert_string_equal(ids_of(tok, text, "011111110111", true, false),
                        "60 124 105 109 124 62 60 124 105 109 124 62");
    assert_true(tok_is_control(tok, T_IM));
    assert_false(tok_is_control(tok, T_CALL));
    tok_close(&tok);
}

static void ends_are_the_union(void **state) {
    struct tok *tok = open_bpe(*state, "gpt-2");
    assert_true(tok_is_end(tok, T_IM));  /* by eos_token_id */
    assert_true(tok_is_end(tok, T_END)); /* by its text */
    assert_false(tok_is_end(tok, T_CALL));
    assert_false(tok_is_end(tok, -1));
    assert_false(tok_is_end(tok, 1 << 20));
    assert_int_equal(tok_eos(tok), T_IM);
    assert_int_equal(tok_bos(tok), -1);
    tok_close(&tok);

    struct gguf_writer *w = gguf_writer_new();
    make_bpe(w, "gpt-2");
    gguf_put_whole(w, KEY("eot_token_id"), GGUF_U32, T_CALL);
    assert_int_equal(open_written(w, *state, &tok, NULL), OB_OK);
    assert_true(tok_is_end(tok, T_CALL));
    assert_true(tok_is_control(tok, T_CALL)); /* data must not end a turn */
    assert_null(strstr(IDS("<call>", false), "262"));
    tok_close(&tok);
}

/* Where turns end with tokens of their own, "<|end|>" does not end one. */
static void end_of_a_part_is_no_end(void **state) {
    static const char *const names[] = {"a", "<|end|>", "<|call|>", "<|return|>"};
    for (size_t n = 2; n <= 4; n += 2) {
        static struct make m;
        struct gguf_writer *w = gguf_writer_new();
        struct tok *tok;
        m.n = 0;
        for (size_t i = 0; i < n; i++) put(&m, names[i], i ? TOK_CONTROL : TOK_NORMAL, 0);
        put_vocab(w, &m, "gpt2");
        gguf_put_str(w, KEY("pre"), STR_LIT("gpt-2"));
        gguf_put_strs(w, KEY("merges"), NULL, 0);
        assert_int_equal(open_written(w, *state, &tok, NULL), OB_OK);
        assert_int_equal(tok_is_end(tok, 1), n == 2);
        if (n == 4) assert_true(tok_is_end(tok, 2) && tok_is_end(tok, 3));
        tok_close(&tok);
    }
}

static void one_bos(void **state) {
    struct gguf_writer *w = gguf_writer_new();
    struct tok *tok;
    make_bpe(w, "gpt-2");
    gguf_put_whole(w, KEY("bos_token_id"), GGUF_U32, T_IM);
    gguf_put_whole(w, KEY("eos_token_id"), GGUF_U32, T_END);
    gguf_put_whole(w, KEY("add_bos_token"), GGUF_BOOL, 1);
    gguf_put_whole(w, KEY("add_eos_token"), GGUF_BOOL, 1);
    gguf_put_str(w, "tokenizer.chat_template", STR_LIT("{{ default }}"));
    gguf_put_str(w, "tokenizer.chat_template.tool_use", STR_LIT("{{ tools }}"));
    assert_int_equal(open_written(w, *state, &tok, NULL), OB_OK);
    assert_true(tok_adds_bos(tok));
    assert_string_equal(ids_of(tok, STR_LIT("hello"), NULL, true, true), "261 259 263");
    assert_string_equal(ids_of(tok, STR_LIT("<|im|>hello<|im_end|>"), NULL, true, true),
                        "261 259 263");
    assert_string_equal(ids_of(tok, STR_LIT(""), NULL, true, true), "261 263");
    assert_string_equal(ids_of(tok, STR_LIT("hello"), NULL, true, false), "259");
    assert_true(str_is(tok_template(tok, NULL), "{{ default }}"));
    assert_true(str_is(tok_template(tok, "tool_use"), "{{ tools }}"));
    assert_int_equal(tok_template(tok, "rag").n, 0);
    tok_close(&tok);
}

/* decode(encode(x)) == x for all bytes; NFC only where the text is not normalized. */
static void byte_level_decodes_to_the_same_bytes(void **state) {
    struct tok *tok = open_bpe(*state, "gpt-2");
    for (uint64_t round = 0; round < 300; round++) {
        char text[64];
        size_t n = rng_u64(7, round) % sizeof text;
        for (size_t i = 0; i < n; i++) {
            uint64_t r = rng_u64(round, i);
            text[i] = r & 256 ? "hello <|im|>"[r % 12] : (char)r;
        }
        ob_tokens ids = {0};
        struct buf out = BUF_INIT;
        assert_int_equal(tok_encode(tok, text, n, NULL, true, false, &ids, NULL), OB_OK);
        for (size_t i = 0; i < ids.n; i++) tok_piece(tok, ids.id[i], true, i == 0, &out);
        assert_int_equal(out.n, n);
        if (n) assert_memory_equal(out.p, text, n);
        buf_free(&out);
        free(ids.id);
    }
    tok_close(&tok);
}

static void a_stream_gives_whole_characters(void **state) {
    struct tok *tok = open_bpe(*state, "gpt-2");
    static const char text[] = "\xe4\xba\xac\xf0\x9f\x98\x80\xff!";
    static const size_t whole[] = {0, 0, 3, 3, 3, 3, 7, 8, 9};
    struct tok_stream s;
    struct buf out = BUF_INIT;
    tok_stream_init(&s, tok, false);
    for (size_t i = 0; i < 9; i++) {
        tok_stream_add(&s, (uint8_t)text[i], &out);
        assert_int_equal(out.n, whole[i]);
    }
    tok_stream_add(&s, T_IM, &out); /* control: nothing */
    tok_stream_add(&s, 0xe4, &out);
    assert_int_equal(out.n, 9);
    tok_stream_end(&s, &out);
    assert_int_equal(out.n, 10);
    tok_stream_free(&s);
    buf_free(&out);
    tok_close(&tok);
}

static void sentencepiece_joins_by_score(void **state) {
    static struct make m;
    struct gguf_writer *w = gguf_writer_new();
    struct tok *tok;
    m.n = 0;
    put(&m, "<unk>", TOK_UNKNOWN, 0);
    put(&m, "<s>", TOK_CONTROL, 0);
    put(&m, "</s>", TOK_CONTROL, 0);
    for (int b = 0; b < 256; b++) { /* 3-258 */
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", b);
        put(&m, text, TOK_BYTE, 0);
    }
    put(&m, "\xe2\x96\x81", TOK_NORMAL, -9); /* 259 */
    put(&m, "a", TOK_NORMAL, -10);
    put(&m, "b", TOK_NORMAL, -11);
    put(&m, "ab", TOK_NORMAL, -2); /* 262 */
    put(&m, "ba", TOK_NORMAL, -1); /* 263 */
    put(&m,
        "\xe2\x96\x81"
        "ab",
        TOK_NORMAL, -3);
    put_vocab(w, &m, "llama");
    gguf_put_array(w, KEY("scores"), GGUF_F32, m.score, m.n);
    assert_int_equal(open_written(w, *state, &tok, NULL), OB_OK);
    assert_string_equal(IDS("ab", false), "264");
    assert_string_equal(IDS("aba", false), "259 260 263"); /* the better score, not the left */
    assert_string_equal(IDS("a\xe4\xba\xac", false), "259 260 231 189 175");
    assert_string_equal(ids_of(tok, STR_LIT("<s>ab"), NULL, true, true), "1 264");
    struct buf out = BUF_INIT;
    tok_piece(tok, 264, false, true, &out);
    assert_string_equal(out.p, "ab"); /* the space that encoding added is gone */
    tok_piece(tok, 264, false, false, &out);
    assert_string_equal(out.p, "ab ab");
    buf_free(&out);
    tok_close(&tok);
}

static void a_long_line_is_no_trouble(void **state) {
    static const char *const units[] = {"hello", "l", " ", "1", "\n", "<", "\xcc\xa3\xcc\x81"};
    enum { SIZE = 1 << 20 };
    struct tok *tok = open_bpe(*state, "qwen2");
    char *text = malloc(SIZE);
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        size_t len = strlen(units[u]);
        for (size_t i = 0; i < SIZE; i++) text[i] = units[u][i % len];
        ob_tokens ids = {0};
        assert_int_equal(tok_encode(tok, text, SIZE, NULL, true, false, &ids, NULL), OB_OK);
        assert_true(ids.n > 0);
        free(ids.id);
    }
    free(text);
    tok_close(&tok);
}

static void refuse(const char *dir, struct gguf_writer *w, ob_status want, const char *line) {
    struct tok *tok;
    ob_error error;
    char text[1024];
    assert_int_equal(open_written(w, dir, &tok, &error), want);
    assert_null(tok);
    ob_error_line(&error, text, sizeof text);
    if (!strstr(text, line)) fail_msg("%s", text);
}

static void bad_tokenizers_are_refused_by_name(void **state) {
    static struct make m;
    struct gguf_writer *w = gguf_writer_new();
    make_bpe(w, "cuneiform");
    refuse(*state, w, OB_ERR_UNSUPPORTED, "pre: pre-tokenizer \"cuneiform\"");

    m.n = 0;
    put(&m, "a", TOK_NORMAL, 0);
    put_vocab(w = gguf_writer_new(), &m, "abacus");
    refuse(*state, w, OB_ERR_UNSUPPORTED, "model: tokenizer \"abacus\"");
    put_vocab(w = gguf_writer_new(), &m, "gpt2");
    refuse(*state, w, OB_ERR_FORMAT, "merges is missing");
    put_vocab(w = gguf_writer_new(), &m, "llama");
    refuse(*state, w, OB_ERR_FORMAT, "scores is missing");
    m.kind[0] = 7;
    put_vocab(w = gguf_writer_new(), &m, "llama");
    refuse(*state, w, OB_ERR_FORMAT, "token_type: ");

    make_bpe(w = gguf_writer_new(), "qwen2");
    gguf_put_whole(w, KEY("eos_token_id"), GGUF_U32, 100000);
    refuse(*state, w, OB_ERR_FORMAT, "eos_token_id: not the id of a token");
    gguf_put_str(w = gguf_writer_new(), "general.architecture", STR_LIT("qwen2"));
    refuse(*state, w, OB_ERR_NOT_FOUND, "has no tokenizer");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scanners_cut_as_the_expressions_do),
        cmocka_unit_test(merges_by_rank_and_leftmost),
        cmocka_unit_test(added_tokens_and_trust),
        cmocka_unit_test(ends_are_the_union),
        cmocka_unit_test(end_of_a_part_is_no_end),
        cmocka_unit_test(one_bos),
        cmocka_unit_test(byte_level_decodes_to_the_same_bytes),
        cmocka_unit_test(a_stream_gives_whole_characters),
        cmocka_unit_test(sentencepiece_joins_by_score),
        cmocka_unit_test(a_long_line_is_no_trouble),
        cmocka_unit_test(bad_tokenizers_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, tempdir_make, tempdir_remove);
}
