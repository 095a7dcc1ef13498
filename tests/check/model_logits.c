/* SPDX-License-Identifier: Apache-2.0
 * model_logits.c: a tool, not a test: writes the logits (of an encoder: the last states) that the
 * reference device gives for one sequence, or with --scores what a classifier says of it, to
 * compare another engine's with; with --exact of one that is no longer than that, which matters to
 * some ropes. The model needs no tokenizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

struct wish { bool scores, exact; };

static ob_status write_logits(struct engine *engine, const char *path, const int32_t *id,
                              uint32_t n, struct wish wish, ob_error *error) {
    const float *rows = NULL;
    struct seq *seq = seq_new(engine);
    if (seq && wish.exact) seq_admit(seq, n);
    struct engine_item item = {.seq = seq, .id = id, .n = n, .logits = n};
    ob_status s = seq ? engine_step(engine, &item, 1, &rows, error) : OB_ERR_MEMORY;
    size_t count = (size_t)n * model_output_cols(engine_model(engine));
    if (s == OB_OK && wish.scores) {
        uint32_t cols = 0;
        rows = engine_pooled(engine, &cols);
        count = cols;
        if (!rows) s = OB_ERR_UNSUPPORTED;
        if (!rows) snprintf(error->message, sizeof error->message, "the model is no classifier");
    }
    if (s == OB_OK) {
        FILE *file = fopen(path, "wb");
        bool written = file && fwrite(rows, sizeof *rows, count, file) == count;
        if (file) written &= fclose(file) == 0;
        if (!written) {
            s = OB_ERR_IO;
            snprintf(error->message, sizeof error->message, "%s cannot be written", path);
        }
    }
    seq_free(&seq);
    return s;
}

static ob_status run(const char *model, const char *path, const int32_t *id, uint32_t n,
                     struct wish wish, ob_error *error) {
    struct source *source = NULL;
    struct engine *engine = NULL;
    ob_status s = source_open(model, &source, error);
    if (s == OB_OK)
        s = engine_open(source, &(ob_engine_options){.device = "ref"}, &engine, error);
    if (s == OB_OK) s = write_logits(engine, path, id, n, wish, error);
    if (engine) engine_close(&engine);
    if (source) source_close(&source);
    return s;
}

int main(int argc, char **argv) {
    ob_error error = {0};
    char line[1024];
    struct wish wish = {.scores = argc > 1 && strcmp(argv[1], "--scores") == 0,
                        .exact = argc > 1 && strcmp(argv[1], "--exact") == 0};
    argv += wish.scores || wish.exact;
    argc -= wish.scores || wish.exact;
    if (argc < 4) {
        fprintf(stderr, "usage: model_logits [--scores|--exact] MODEL OUT ID...\n"
                        "Writes float32 rows [IDS, vocabulary], without a header.\n");
        return 2;
    }
    uint32_t n = (uint32_t)argc - 3;
    int32_t *id = calloc(n, sizeof *id);
    for (uint32_t i = 0; id && i < n; i++) id[i] = (int32_t)strtol(argv[3 + i], NULL, 10);
    ob_status s = id ? run(argv[1], argv[2], id, n, wish, &error) : OB_ERR_MEMORY;
    free(id);
    if (s == OB_OK) return 0;
    fprintf(stderr, "model_logits: %s\n", ob_error_line(&error, line, sizeof line));
    return 1;
}
