/* SPDX-License-Identifier: Apache-2.0
 * detokenize.c: `1bit detokenize`: token ids to the bytes they stand for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"
#include "format/source.h"
#include "text/tok.h"

/* Writes the ids of `list` (separated by spaces, commas, brackets or lines) as text to `out`. */
static ob_status decode(struct tok_stream *stream, const char *list, struct buf *out,
                        ob_error *error) {
    static const char between[] = " \t\r\n,[]";
    for (const char *p = list + strspn(list, between); *p; p += strspn(p, between)) {
        char *end;
        errno = 0;
        long long id = strtoll(p, &end, 10);
        size_t n = strcspn(p, between);
        if (errno || end != p + n || id < 0 || id >= (long long)tok_count(stream->tok))
            return error_set(error, OB_ERR_ARGUMENT, "\"%.*s\" is not a token id from 0 to %u",
                             (int)(n > 40 ? 40 : n), p, tok_count(stream->tok) - 1);
        tok_stream_add(stream, (int32_t)id, out);
        p = end;
    }
    return OB_OK;
}

static int run(const struct options *options) {
    ob_error error;
    struct source *source = NULL;
    struct tok *tok = NULL;
    struct buf list = BUF_INIT, text = BUF_INIT;
    struct tok_stream stream;
    int code = EXIT_OK;
    for (size_t i = 0; i < options->operands; i++) buf_printf(&list, "%s ", options->operand[i]);
    if ((!options->operands && cli_read_text("-", &list, &error) != OB_OK) ||
        cli_tok_open(options->model, &source, &tok, &error) != OB_OK) {
        code = cli_fail_error(&error);
    } else {
        tok_stream_init(&stream, tok, options->special);
        if (decode(&stream, list.p ? list.p : "", &text, &error) != OB_OK) {
            code = cli_fail_error(&error);
        } else {
            tok_stream_end(&stream, &text);
            if (text.n) fwrite(text.p, 1, text.n, stdout);
            putchar('\n');
        }
        tok_stream_free(&stream);
    }
    tok_close(&tok);
    source_close(&source);
    buf_free(&list);
    buf_free(&text);
    return code;
}

const struct command command_detokenize = {
    .name = "detokenize",
    .summary = "turn token ids into text",
    .operands = "[ID]...",
    .operands_max = SIZE_MAX,
    .about =
        "Prints the text of token ids, given as arguments or on the standard input, separated by "
        "spaces, commas or lines.\n\n"
        "  1bit detokenize 9707 1879",
    .run = run,
};
