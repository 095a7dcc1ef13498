/* SPDX-License-Identifier: Apache-2.0
 *
 * export.h: a model, however it is spelled, as a GGUF file: canonical tensors under llama.cpp's
 * names, fused where llama.cpp has them fused, keys from the recipe's keys[], and the config.json
 * it came from (SOURCE_CONFIG_KEY), from which we read it again: so nothing that the GGUF keys
 * cannot say is lost. Tensors are converted while they are written, row by row. */
#ifndef MODELS_EXPORT_H
#define MODELS_EXPORT_H

#include "format/gguf_write.h"
#include "models/model.h"

struct export;

/* One tensor of the new file; `from` is its first part in the model's own format. */
struct export_row {
    const char *name;
    const struct quant *from, *to;
    uint64_t bytes;
    uint32_t parts;
};

/* A pooler without classes behind it: llama.cpp's converters leave it out, too. */
bool export_drops(const struct model *model, const struct weight *w);

/* What would be written. `type`: the format of matrices, NULL: as they are; a matrix whose rows are
 * no whole blocks of it becomes F16, what must be F32 stays it. The model outlives the export. */
ob_status export_open(const struct model *model, const struct quant *type, struct export **out,
                      ob_error *error);
void export_close(struct export **export);
size_t export_count(const struct export *export);
struct export_row export_at(const struct export *export, size_t i);
/* "llama": general.architecture of the new file. */
const char *export_architecture(const struct export *export);
/* Puts keys and tensors, not the tokenizer's; the export outlives the writing. */
void export_put(struct export *export, struct gguf_writer *writer);

#endif
