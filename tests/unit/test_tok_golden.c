/* SPDX-License-Identifier: Apache-2.0
 * test_tok_golden.c: the ids of tests/golden/tok/, made by tools/make_tok_goldens.py with the
 * reference: small tokenizers in both spellings, and the real models if they are there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "format/gguf_write.h"
#include "text/tok.h"

#define FOLDER "tests/golden/tok/"

static json_t *strings;

static int read_strings(void **state) {
    (void)state;
    strings = json_load_file(FOLDER "strings.json", JSON_ALLOW_NUL, NULL);
    return json_array_size(strings) == 500 ? 0 : -1;
}

static int free_strings(void **state) {
    (void)state;
    json_decref(strings);
    return 0;
}

static struct tok *open_tok(const char *path) {
    struct source *source;
    struct tok *tok = NULL;
    ob_error error;
    char line[1024];
    if (source_open(path, &source, &error) != OB_OK || tok_open(source, &tok, &error) != OB_OK)
        fail_msg("%s", ob_error_line(&error, line, sizeof line));
    source_close(&source);
    return tok;
}

/* The ids of a text must be the numbers at *line, up to '|' or the end of the line. */
static void check_ids(const struct tok *tok, const char *name, struct str text, bool parse,
                      char *line) {
    ob_tokens ids = {0};
    assert_int_equal(tok_encode(tok, text.p, text.n, NULL, parse, false, &ids, NULL), OB_OK);
    for (size_t i = 0;; i++) {
        char *end;
        long want = strtol(line, &end, 10);
        bool more = end != line;
        if (more != (i < ids.n) || (more && want != ids.id[i]))
            fail_msg("%s, parse %d, text \"%.*s\", id %zu: %d for %ld", name, parse, STR_ARG(text),
                     i, i < ids.n ? ids.id[i] : -1, more ? want : -1L);
        if (!more) break;
        line = end;
    }
    free(ids.id);
}

static void check_golden(const char *path, const char *name) {
    char file[256];
    snprintf(file, sizeof file, FOLDER "%s.ids", name);
    FILE *f = fopen(file, "r");
    assert_non_null(f);
    struct tok *tok = open_tok(path);
    char line[16384];
    for (size_t i = 0; i < json_array_size(strings); i++) {
        const json_t *value = json_array_get(strings, i);
        struct str text = {json_string_value(value), json_string_length(value)};
        assert_non_null(fgets(line, sizeof line, f));
        assert_non_null(strchr(line, '\n'));
        char *other = strchr(line, '|');
        if (other) *other = 0;
        check_ids(tok, name, text, true, line);
        check_ids(tok, name, text, false, other ? other + 1 : line);
    }
    fclose(f);
    tok_close(&tok);
}

static void small_tokenizers_in_both_spellings(void **state) {
    (void)state;
    check_golden(FOLDER "small_bert", "small_bert");
    check_golden(FOLDER "small_bert.gguf", "small_bert");
    check_golden(FOLDER "small_bert_cased", "small_bert_cased");
    check_golden(FOLDER "small_qwen2", "small_qwen2");
    check_golden(FOLDER "small_qwen2.gguf", "small_qwen2");
    check_golden(FOLDER "small_gemma", "small_gemma");
    check_golden(FOLDER "small_gemma.gguf", "small_gemma");
    check_golden(FOLDER "small_llama", "small_llama");
    check_golden(FOLDER "small_llama.gguf", "small_llama");
    check_golden(FOLDER "small_llama3", "small_llama3");
    check_golden(FOLDER "small_metaspace", "small_metaspace");
}

/* Written as a GGUF and read again, a tokenizer gives the same ids. */
static void exported_tokenizers(void **state) {
    (void)state;
    static const char *const names[] = {"small_bert", "small_gemma", "small_llama", "small_qwen2"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char from[256], to[] = "/tmp/1bit-test-XXXXXX.gguf";
        int file = mkstemps(to, 5);
        assert_true(file >= 0);
        close(file);
        snprintf(from, sizeof from, FOLDER "%s", names[i]);
        struct tok *tok = open_tok(from);
        struct gguf_writer *writer = gguf_writer_new();
        assert_non_null(writer);
        gguf_put_str(writer, "general.architecture", STR_LIT("llama"));
        assert_int_equal(tok_export(tok, tok_count(tok) + 3, writer, NULL), OB_OK);
        assert_int_equal(gguf_write_file(writer, to, NULL), OB_OK);
        gguf_writer_free(&writer);
        check_golden(to, names[i]);
        struct tok *again = open_tok(to);
        assert_int_equal(tok_bos(again), tok_bos(tok));
        assert_int_equal(tok_eos(again), tok_eos(tok));
        assert_int_equal(tok_adds_bos(again), tok_adds_bos(tok));
        tok_close(&again);
        tok_close(&tok);
        unlink(to);
    }
    /* A GGUF cannot say that Chinese characters are no words. */
    struct tok *tok = open_tok(FOLDER "small_bert_cased");
    struct gguf_writer *writer = gguf_writer_new();
    assert_int_equal(tok_export(tok, tok_count(tok), writer, NULL), OB_ERR_UNSUPPORTED);
    gguf_writer_free(&writer);
    tok_close(&tok);
}

static void check_real(const char *name, const char *ending) {
    char path[1024], *folder = os_models_dir();
    snprintf(path, sizeof path, "%s/%s%s", folder, name, ending);
    free(folder);
    if (!os_exists(path)) {
        print_message("SKIPPED: %s is not there: scripts/fetch-model %s\n", path, name);
        skip();
    }
    check_golden(path, name);
}

static void the_real_qwen(void **state) {
    (void)state;
    check_real("qwen2.5-coder-0.5b", ".gguf");
}

static void the_real_gemma(void **state) {
    (void)state;
    check_real("gemma3-270m", ".gguf");
}

static void the_real_minilm(void **state) {
    (void)state;
    check_real("minilm", "");
}

/* What the files around tokenizer.json say. */
static void directories_are_read_whole(void **state) {
    (void)state;
    struct tok *tok = open_tok(FOLDER "small_qwen2");
    int32_t end = tok_find(tok, STR_LIT("<|im_end|>")),
            text = tok_find(tok, STR_LIT("<|endoftext|>"));
    assert_int_equal(tok_eos(tok), end);
    assert_int_equal(tok_bos(tok), -1);
    assert_false(tok_adds_bos(tok));
    assert_true(tok_is_end(tok, end) && tok_is_end(tok, text));
    assert_true(str_is(tok_template(tok, NULL), "{{ 'plain' }}"));
    assert_string_equal(tok_describe(tok), "bpe (qwen2)");
    tok_close(&tok);

    tok = open_tok(FOLDER "small_llama3"); /* BOS by the post-processor, templates by name */
    assert_true(tok_adds_bos(tok));
    assert_int_equal(tok_bos(tok), tok_find(tok, STR_LIT("<s>")));
    assert_true(tok_is_end(tok, tok_find(tok, STR_LIT("<|eot_id|>"))));
    assert_true(str_is(tok_template(tok, NULL), "{{ 'first' }}"));
    assert_true(str_is(tok_template(tok, "tool_use"), "{{ 'tools' }}"));
    tok_close(&tok);

    tok = open_tok(FOLDER "small_gemma"); /* ends by generation_config.json */
    assert_true(tok_adds_bos(tok));
    assert_true(tok_is_end(tok, 1) && tok_is_end(tok, 5) && !tok_is_end(tok, 4));
    tok_close(&tok);
}

/* A decoded text is the text, but for what normalization and SentencePiece's prefix change. */
static void texts_come_back(void **state) {
    (void)state;
    static const char *const paths[] = {FOLDER "small_gemma", FOLDER "small_llama.gguf",
                                        FOLDER "small_llama3"};
    for (size_t k = 0; k < 3; k++) {
        struct tok *tok = open_tok(paths[k]);
        for (size_t i = 0; i < json_array_size(strings); i++) {
            const json_t *value = json_array_get(strings, i);
            struct str text = {json_string_value(value), json_string_length(value)};
            if (k == 2 && (strstr(text.p, "<l>") || strstr(text.p, "<r>")))
                continue; /* they eat spaces */
            ob_tokens ids = {0};
            struct tok_stream stream;
            struct buf out = BUF_INIT;
            assert_int_equal(tok_encode(tok, text.p, text.n, NULL, false, true, &ids, NULL), OB_OK);
            tok_stream_init(&stream, tok, false);
            for (size_t t = 0; t < ids.n; t++) tok_stream_add(&stream, ids.id[t], &out);
            tok_stream_end(&stream, &out);
            if (out.n != text.n || (text.n && memcmp(out.p, text.p, text.n) != 0))
                fail_msg("%s: \"%.*s\" became \"%.*s\"", paths[k], STR_ARG(text), (int)out.n,
                         out.p);
            tok_stream_free(&stream);
            buf_free(&out);
            free(ids.id);
        }
        tok_close(&tok);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_tokenizers_in_both_spellings),
        cmocka_unit_test(exported_tokenizers),
        cmocka_unit_test(directories_are_read_whole),
        cmocka_unit_test(texts_come_back),
        cmocka_unit_test(the_real_qwen),
        cmocka_unit_test(the_real_gemma),
        cmocka_unit_test(the_real_minilm),
    };
    return cmocka_run_group_tests(tests, read_strings, free_strings);
}
