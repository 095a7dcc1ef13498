/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_batch.c: the tokenizer of a model on many texts in one process, for comparisons with other
 * tokenizers.
 *   tok_batch [--special] MODEL TEXTS.json    ["text", ...] to a JSON array of arrays of ids; with
 *                                             --special control tokens are recognised */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/base.h"
#include "text/tok.h"

static int fail(const ob_error *error) {
    char line[1024];
    fprintf(stderr, "%s\n", ob_error_line(error, line, sizeof line));
    return 1;
}

static int encode_all(const struct tok *tok, const json_t *texts, bool special) {
    json_t *out = json_array(), *text;
    size_t i;
    json_array_foreach(texts, i, text) {
        ob_tokens ids = {0};
        ob_error error;
        json_t *row = json_array();
        if (tok_encode(tok, json_string_value(text), json_string_length(text), NULL, special, false,
                       &ids, &error) != OB_OK)
            return fail(&error);
        for (size_t k = 0; k < ids.n; k++) json_array_append_new(row, json_integer(ids.id[k]));
        json_array_append_new(out, row);
        ob_tokens_free(&ids);
    }
    json_dumpf(out, stdout, JSON_COMPACT);
    json_decref(out);
    return 0;
}

int main(int argc, char **argv) {
    bool special = argc > 1 && strcmp(argv[1], "--special") == 0;
    if (argc != 3 + special) {
        fprintf(stderr, "usage: tok_batch [--special] MODEL TEXTS.json\n");
        return 2;
    }
    json_error_t problem;
    json_t *texts = json_load_file(argv[2 + special], JSON_ALLOW_NUL, &problem);
    if (!texts) {
        fprintf(stderr, "%s: %s\n", argv[2 + special], problem.text);
        return 1;
    }
    struct source *source = NULL;
    struct tok *tok = NULL;
    ob_error error;
    int status = 1;
    if (source_open(argv[1 + special], &source, &error) == OB_OK &&
        tok_open(source, &tok, &error) == OB_OK)
        status = encode_all(tok, texts, special);
    else fail(&error);
    tok_close(&tok);
    source_close(&source);
    json_decref(texts);
    return status;
}
