/* SPDX-License-Identifier: Apache-2.0
 *
 * convert.c: `1bit convert`: a model as one GGUF file. Tensors go from the mapped files to the new
 * one row by row, so memory stays small; a run that was interrupted is taken up again. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/os.h"
#include "base/path.h"
#include "cli/cli.h"
#include "format/sampling.h"
#include "format/source.h"
#include "models/export.h"
#include "text/tok.h"

struct convert {
    const struct options *options;
    struct source *source;
    struct model *model;
    struct export *export;
    struct tok *tok; /* NULL: the model has none */
    struct gguf_writer *writer;
};

static ob_status open_all(struct convert *c, ob_error *error) {
    const char *type = c->options->type;
    char *path;
    ob_status s = cli_model_path(c->options->operand[0], &path, error);
    if (s != OB_OK) return s;
    s = source_open(path, &c->source, error);
    free(path);
    if (s == OB_OK) s = model_open(c->source, NULL, &c->model, error);
    if (s == OB_OK) s = export_open(c->model, type ? quant_named(type) : NULL, &c->export, error);
    if (s != OB_OK) return s;
    s = tok_open(c->source, &c->tok, error);
    return s == OB_ERR_NOT_FOUND ? OB_OK : s; /* fixtures and parts of models have none */
}

static void close_all(struct convert *c) {
    gguf_writer_free(&c->writer);
    tok_close(&c->tok);
    export_close(&c->export);
    model_close(&c->model);
    source_close(&c->source);
}

/* ---- what would be written ------------------------------------------------------------------- */

static int print_rows(const struct convert *c) {
    uint64_t total = 0;
    char size[24];
    printf("architecture %s\n", export_architecture(c->export));
    for (size_t i = 0; i < export_count(c->export); i++) {
        struct export_row row = export_at(c->export, i);
        total += row.bytes;
        cli_bytes(row.bytes, size);
        printf("%-40s %-5s -> %-5s %10s%s\n", row.name, row.from->name, row.to->name, size,
               row.parts > 1 ? "  joined" : "");
    }
    for (uint32_t i = 0; i < c->model->unused_count; i++)
        printf("left out: %.*s\n", STR_ARG(c->model->unused[i]));
    for (uint32_t i = 0; i < c->model->weights; i++)
        if (export_drops(c->model, c->model->weight[i]))
            printf("left out: %s: a pooler is not part of the embedding\n",
                   c->model->weight[i]->name);
    cli_bytes(total, size);
    printf("%zu tensors, %s, tokenizer: %s\n", export_count(c->export), size,
           c->tok ? tok_describe(c->tok) : "none");
    return EXIT_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct writing {
    const char *path;
    bool began;
};

static bool on_progress(void *user, uint64_t done, uint64_t total) {
    struct writing *w = user;
    if (!w->began && done > 0)
        fprintf(stderr, "1bit convert: %s.part is taken up at %llu of %llu bytes\n", w->path,
                (unsigned long long)done, (unsigned long long)total);
    w->began = true;
    cli_progress("writing", done, total);
    return !os_end() && os_interrupts() == 0;
}

static ob_status put_tokenizer(struct convert *c, ob_error *error) {
    uint32_t vocab = c->model->hp.vocab;
    if (c->tok) return tok_export(c->tok, vocab, c->writer, error);
    gguf_put_str(c->writer, "tokenizer.ggml.model", STR_LIT("none"));
    fprintf(stderr, "1bit convert: %s has no tokenizer%s: the file will have none\n",
            source_path(c->source), source_kind(c->source) == SOURCE_HF ? ".json" : "");
    return OB_OK;
}

/* All keys; then everything that can be refused has been. */
static ob_status put_keys(struct convert *c, ob_error *error) {
    if (!(c->writer = gguf_writer_new())) return error_memory(error, "a GGUF file", 0);
    gguf_put_str(c->writer, "general.name", path_stem(source_path(c->source)));
    ob_status s = put_tokenizer(c, error);
    if (s == OB_OK) s = source_sampling_put(c->source, c->writer, error);
    if (s != OB_OK) error_at(error, source_path(c->source), NULL, OB_NO_OFFSET);
    return s;
}

static ob_status write_file(struct convert *c, const char *path, ob_error *error) {
    struct writing w = {.path = path};
    export_put(c->export, c->writer);
    os_count_interrupts();
    ob_status s = gguf_write_resumed(c->writer, path, source_identity(c->source),
                                     &(struct gguf_progress){on_progress, &w}, error);
    if (s != OB_ERR_CANCELLED) return s;
    cli_progress("writing", 1, 1); /* no half line */
    fprintf(stderr, "1bit convert: interrupted; the same command goes on with %s.part\n", path);
    return s;
}

static int run(const struct options *options) {
    struct convert c = {.options = options};
    ob_error error;
    int code = EXIT_OK;
    const char *to = options->operands > 1 ? options->operand[1] : NULL;
    if (!to && !options->dry_run) return cli_misuse("where to write? Name a file, or --dry-run");
    if (to && !*to) return cli_misuse("the name of the file to write is empty");
    if (to && !options->dry_run && os_name_taken(to)) return cli_fail("%s exists already", to);
    ob_status s = open_all(&c, &error);
    if (s == OB_OK) s = put_keys(&c, &error);
    if (s == OB_OK && options->dry_run) code = print_rows(&c);
    else if (s == OB_OK) s = write_file(&c, to, &error);
    if (s != OB_OK) code = s == OB_ERR_CANCELLED ? EXIT_INTERRUPTED : cli_fail_error(&error);
    close_all(&c);
    return code;
}

const struct command command_convert = {
    .name = "convert",
    .summary = "write a model as a GGUF file",
    .operands = "MODEL [FILE]",
    .operands_min = 1,
    .operands_max = 2,
    .about =
        "Writes a Hugging Face directory, or another model, as one GGUF file that llama.cpp reads, "
        "too, where it knows the architecture. Weights are converted while they are written; "
        "memory stays small. A run that was interrupted leaves FILE.part and is taken up again by "
        "the same command while the model's files are unchanged. Nothing that exists is replaced."
        "\n\n"
        "  1bit convert ./Qwen3-0.6B qwen3.gguf\n"
        "  1bit convert --type q8_0 ./Qwen3-0.6B qwen3-q8.gguf\n"
        "  1bit convert --dry-run ./Qwen3-0.6B",
    .run = run,
};
