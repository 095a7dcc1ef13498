/* SPDX-License-Identifier: Apache-2.0
 * tokenize.c: `1bit tokenize`: text to token ids. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/cli.h"
#include "format/source.h"
#include "text/tok.h"

/* A piece as JSON: a string, or the bytes where they are not UTF-8 (half a character). */
static json_t *piece_json(const struct buf *piece) {
    json_t *out = json_stringn(piece->p ? piece->p : "", piece->n);
    if (out) return out;
    out = json_array();
    for (size_t i = 0; i < piece->n; i++)
        json_array_append_new(out, json_integer((unsigned char)piece->p[i]));
    return out;
}

static int print_json(const struct tok *tok, const ob_tokens *ids, bool pieces) {
    json_t *list = json_array();
    struct buf piece = BUF_INIT;
    for (size_t i = 0; i < ids->n; i++) {
        json_t *id = json_integer(ids->id[i]);
        buf_clear(&piece);
        if (pieces) tok_piece(tok, ids->id[i], true, false, &piece);
        json_array_append_new(
            list, pieces ? json_pack("{s:o, s:o}", "id", id, "piece", piece_json(&piece)) : id);
    }
    buf_free(&piece);
    return cli_print_json(json_pack("{s:o}", "tokens", list));
}

static int print_text(const struct tok *tok, const ob_tokens *ids, bool pieces) {
    struct buf piece = BUF_INIT;
    for (size_t i = 0; i < ids->n; i++) {
        if (!pieces) {
            printf("%s%d", i ? " " : "", ids->id[i]);
            continue;
        }
        buf_clear(&piece);
        tok_piece(tok, ids->id[i], true, false, &piece);
        json_t *json = piece_json(&piece);
        char *text = json ? json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        printf("%8d  %s\n", ids->id[i], text ? text : "");
        free(text);
        json_decref(json);
    }
    if (!pieces) putchar('\n');
    buf_free(&piece);
    return EXIT_OK;
}

static int run(const struct options *options) {
    ob_error error;
    struct source *source = NULL;
    struct tok *tok = NULL;
    struct buf text = BUF_INIT;
    ob_tokens ids = {0};
    int code = EXIT_OK;
    if (options->operands && options->file)
        return cli_misuse("a text and --file exclude each other");
    if (options->operands) buf_puts(&text, options->operand[0]);
    if ((!options->operands &&
         cli_read_text(options->file ? options->file : "-", &text, &error) != OB_OK) ||
        cli_tok_open(options->model, &source, &tok, &error) != OB_OK ||
        tok_encode(tok, text.p ? text.p : "", text.n, NULL, options->special, !options->no_bos,
                   &ids, &error) != OB_OK)
        code = cli_fail_error(&error);
    else if (options->json)
        code = print_json(tok, &ids, options->pieces);
    else
        code = print_text(tok, &ids, options->pieces);
    ob_tokens_free(&ids);
    tok_close(&tok);
    source_close(&source);
    buf_free(&text);
    return code;
}

const struct command command_tokenize = {
    .name = "tokenize",
    .summary = "turn text into token ids",
    .operands = "[TEXT]",
    .operands_max = 1,
    .about =
        "Prints the token ids of a text (an argument, a file, or the standard input) for a model's "
        "tokenizer.\n\n"
        "  1bit tokenize \"Hello world\"\n  1bit tokenize --pieces -f README.md",
    .run = run,
};
