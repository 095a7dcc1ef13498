/* SPDX-License-Identifier: Apache-2.0
 *
 * safetensors.h: the tensors of a Hugging Face directory: model.safetensors, or the shards that
 * model.safetensors.index.json names; mapped and bounds-checked. A file is a length (u64), a JSON
 * header {name: {dtype, shape, data_offsets}} and the data.
 * After opening every tensor lies inside its file, names are unique over all shards, dims are
 * non-zero, tensors of one file do not overlap, and bytes are what dtype and shape say. Gaps
 * between tensors are tolerated. Data types without a weight format of ours (F64, I64, F8_E4M3...)
 * are listed with quant NULL: who needs such a tensor refuses it by name. Immutable after open, so
 * thread safe. */
#ifndef FORMAT_SAFETENSORS_H
#define FORMAT_SAFETENSORS_H

#include "base/map.h"
#include "base/str.h"
#include "onebit.h"
#include "quant/quant.h"

struct safetensors_tensor {
    struct str name;
    struct str dtype;          /* as the file spells it */
    const struct quant *quant; /* NULL: none of ours */
    uint32_t ndim;             /* 1-4; a scalar has 1; of more than 4 the outer ones are folded */
    uint64_t dim[4];           /* dim[0] is the row length, the last of the file's shape */
    const void *data;          /* any alignment */
    size_t bytes;
    uint32_t part;
    uint64_t offset;           /* in that file */
};

struct safetensors;

ob_status safetensors_open(const char *directory, struct safetensors **out, ob_error *error);
/* One whole file of bytes that outlive the reader; `name` stands for its path in errors. */
ob_status safetensors_open_memory(const void *data, size_t size, const char *name,
                                  struct safetensors **out, ob_error *error);
void safetensors_close(struct safetensors **st);

uint32_t safetensors_parts(const struct safetensors *st);
const char *safetensors_part_path(const struct safetensors *st, uint32_t part);
uint64_t safetensors_file_bytes(const struct safetensors *st); /* all parts */
/* All parts: map.h. */
ob_status safetensors_load(struct safetensors *st, const struct map_load *load, ob_error *error);
uint64_t safetensors_identity(const struct safetensors *st, uint64_t hash);
size_t safetensors_tensor_count(const struct safetensors *st);
/* In the order of the names. */
const struct safetensors_tensor *safetensors_tensor_at(const struct safetensors *st, size_t i);
const struct safetensors_tensor *safetensors_tensor_find(const struct safetensors *st,
                                                         struct str name);

#endif
