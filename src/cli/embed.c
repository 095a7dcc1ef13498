/* SPDX-License-Identifier: Apache-2.0
 * embed.c: `1bit embed`: texts to vectors. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/cli.h"

enum { PARALLEL = 32 };

struct texts {
    struct str *text;
    ob_tokens *ids;
    size_t n;
    float *vector; /* [n, cols] */
    uint32_t cols;
};

static void texts_free(struct texts *t) {
    for (size_t i = 0; i < t->n && t->ids; i++) ob_tokens_free(&t->ids[i]);
    free(t->text);
    free(t->ids);
    free(t->vector);
}

/* The operands, or the lines of what was read. */
static bool collect(const struct options *options, const struct buf *lines, struct texts *t) {
    size_t most = options->operands;
    for (size_t i = 0; i < lines->n; i++) most += lines->p[i] == '\n';
    t->text = calloc(most + 1, sizeof *t->text);
    if (!t->text) return false;
    for (size_t i = 0; i < options->operands; i++) t->text[t->n++] = str_of(options->operand[i]);
    for (size_t at = 0; at < lines->n;) {
        const char *end = memchr(lines->p + at, '\n', lines->n - at);
        size_t n = end ? (size_t)(end - lines->p) - at : lines->n - at;
        t->text[t->n++] = (struct str){lines->p + at, n};
        if (end && n > 0 && end[-1] == '\r') t->text[t->n - 1].n--; /* of Windows' lines */
        at += n + 1;
    }
    t->ids = calloc(t->n + 1, sizeof *t->ids);
    return t->ids != NULL;
}

static ob_status embed(const ob_engine *engine, struct texts *t, ob_error *error) {
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    t->cols = info.embedding;
    if (t->cols == 0)
        return error_set(error, OB_ERR_UNSUPPORTED,
                         "%s does not embed texts: its files do not say how; scripts/fetch-model "
                         "minilm brings a model that does (-m minilm)",
                         info.name);
    t->vector = calloc(t->n * t->cols + 1, sizeof *t->vector);
    if (!t->vector) return error_memory(error, "vectors", t->n * t->cols);
    for (size_t i = 0; i < t->n; i++) {
        ob_status s = ob_tokenize(engine, t->text[i].p, t->text[i].n, true, false, &t->ids[i],
                                  error);
        if (s != OB_OK) return s;
    }
    return ob_embed(engine, t->ids, t->n, t->vector, error);
}

static void print_text(const struct texts *t) {
    for (size_t i = 0; i < t->n; i++)
        for (uint32_t c = 0; c < t->cols; c++)
            printf("%.9g%c", (double)t->vector[i * t->cols + c], c + 1 < t->cols ? ' ' : '\n');
}

/* An object a line: vectors are long. */
static int print_json(const struct texts *t) {
    for (size_t i = 0; i < t->n; i++) {
        json_t *list = json_array();
        for (uint32_t c = 0; c < t->cols; c++)
            json_array_append_new(list, json_real((double)t->vector[i * t->cols + c]));
        json_t *json = json_pack("{s:o, s:I, s:o}", "text", cli_json_text(t->text[i]), "tokens",
                                 (json_int_t)t->ids[i].n, "embedding", list);
        if (!json) return cli_fail("out of memory");
        int bad = json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
        json_decref(json);
        if (bad) return EXIT_FAILED;
        putchar('\n');
    }
    return EXIT_OK;
}

static int run(const struct options *options) {
    ob_error error;
    ob_engine *engine = NULL;
    struct buf lines = BUF_INIT;
    struct texts texts = {0};
    int code = EXIT_OK;
    if (options->operands && options->file)
        return cli_misuse("texts and --file exclude each other");
    ob_status s = options->operands
                      ? OB_OK
                      : cli_read_text(options->file ? options->file : "-", &lines, &error);
    if (s == OB_OK && !collect(options, &lines, &texts)) s = error_memory(&error, "texts", 0);
    if (s == OB_OK && texts.n == 0) code = cli_fail("there is no text");
    else if (s == OB_OK) s = cli_engine_open(options, PARALLEL, &engine, &error);
    if (s == OB_OK && engine) s = embed(engine, &texts, &error);
    if (s != OB_OK) code = cli_fail_error(&error);
    else if (code == EXIT_OK && options->json)
        code = print_json(&texts);
    else if (code == EXIT_OK)
        print_text(&texts);
    ob_engine_close(&engine);
    texts_free(&texts);
    buf_free(&lines);
    return code;
}

const struct command command_embed = {
    .name = "embed",
    .summary = "turn texts into vectors",
    .operands = "[TEXT]...",
    .operands_max = SIZE_MAX,
    .about =
        "Prints the vector of each text (arguments, or the lines of a file or of the standard "
        "input), a line each, in the order of the texts. The model must be an encoder, or one "
        "whose files say how it makes one vector of a text. A text of more tokens than the model "
        "reads (its context, as 1bit info shows it) is refused, never cut.\n\n"
        "  1bit embed -m minilm \"A cat sat on the mat\" \"Ein Hund\"\n"
        "  1bit embed -m minilm --json < sentences.txt",
    .run = run,
};
