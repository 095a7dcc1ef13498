/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_batch.c: the tokenizer of a model on many texts in one process, for comparisons with other
 * tokenizers.
 *   tok_batch [--special] [--text] MODEL TEXTS.json
 *      ["text", ...] to a JSON array of arrays of ids; --special: control tokens are recognised,
 *      and BOS and EOS added; --text: of [ids, their text], its bytes as characters
 *   tok_batch --time MODEL FILE     megabytes a second of a whole file, best of five, one thread */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/base.h"
#include "text/tok.h"

static int fail(const ob_error *error) {
    char line[1024];
    fprintf(stderr, "%s\n", ob_error_line(error, line, sizeof line));
    return 1;
}

static json_t *bytes_of(const struct tok *tok, const ob_tokens *ids) {
    struct buf bytes = BUF_INIT, text = BUF_INIT;
    struct tok_stream stream;
    tok_stream_init(&stream, tok, false);
    for (size_t k = 0; k < ids->n; k++) tok_stream_add(&stream, ids->id[k], &bytes);
    tok_stream_end(&stream, &bytes);
    tok_stream_free(&stream);
    for (size_t i = 0; i < bytes.n; i++) {
        char c[4];
        buf_add(&text, c, utf8_encode((unsigned char)bytes.p[i], c));
    }
    json_t *out = json_stringn(text.p ? text.p : "", text.n);
    buf_free(&bytes);
    buf_free(&text);
    return out;
}

static int encode_all(const struct tok *tok, const json_t *texts, bool special, bool decode) {
    json_t *out = json_array(), *text;
    size_t i;
    json_array_foreach(texts, i, text) {
        ob_tokens ids = {0};
        ob_error error;
        json_t *row = json_array();
        if (tok_encode(tok, json_string_value(text), json_string_length(text), NULL, special,
                       special && decode, &ids, &error) != OB_OK)
            return fail(&error);
        for (size_t k = 0; k < ids.n; k++) json_array_append_new(row, json_integer(ids.id[k]));
        json_array_append_new(out, decode ? json_pack("[oo]", row, bytes_of(tok, &ids)) : row);
        ob_tokens_free(&ids);
    }
    json_dumpf(out, stdout, JSON_COMPACT);
    json_decref(out);
    return 0;
}

static int measure(const struct tok *tok, const char *path) {
    char *text;
    size_t n;
    ob_error error;
    double best = 0;
    if (os_read_file(path, (size_t)1 << 30, &text, &n, &error) != OB_OK) return fail(&error);
    for (int i = 0; i < 5; i++) {
        ob_tokens ids = {0};
        double start = os_seconds();
        if (tok_encode(tok, text, n, NULL, false, false, &ids, &error) != OB_OK)
            return fail(&error);
        double rate = (double)n / 1e6 / (os_seconds() - start);
        if (rate > best) best = rate;
        if (i == 4) printf("%.2f MB/s, %zu tokens\n", best, ids.n);
        ob_tokens_free(&ids);
    }
    free(text);
    return 0;
}

static int open_and_run(const char *model, const char *file, bool special, bool decode, bool time) {
    struct source *source = NULL;
    struct tok *tok = NULL;
    ob_error error;
    int status = 1;
    json_error_t problem;
    json_t *texts = time ? NULL : json_load_file(file, JSON_ALLOW_NUL, &problem);
    if (!time && !texts) {
        fprintf(stderr, "%s: %s\n", file, problem.text);
        return 1;
    }
    if (source_open(model, &source, &error) != OB_OK || tok_open(source, &tok, &error) != OB_OK)
        fail(&error);
    else status = time ? measure(tok, file) : encode_all(tok, texts, special, decode);
    tok_close(&tok);
    source_close(&source);
    json_decref(texts);
    return status;
}

int main(int argc, char **argv) {
    bool special = false, decode = false, time = false;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        special = special || strcmp(argv[i], "--special") == 0;
        decode = decode || strcmp(argv[i], "--text") == 0;
        time = time || strcmp(argv[i], "--time") == 0;
    }
    if (argc != i + 2) {
        fprintf(stderr, "usage: tok_batch [--special] [--text] [--time] MODEL FILE\n");
        return 2;
    }
    return open_and_run(argv[i], argv[i + 1], special, decode, time);
}
