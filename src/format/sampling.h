/* SPDX-License-Identifier: Apache-2.0
 *
 * sampling.h: what a model's files say of sampling: the keys of onebit_sampling.def in a GGUF
 * ("general.sampling.temp") or in generation_config.json ("temperature"). */
#ifndef FORMAT_SAMPLING_H
#define FORMAT_SAMPLING_H

#include "format/source.h"
#include "onebit.h"

#define SOURCE_SAMPLING_ORDER "general.sampling.sequence"

enum source_sampling_index {
#define OB_SETTING(member, ...) SOURCE_SAMPLING_##member,
#include "onebit_sampling.def"
#undef OB_SETTING
    SOURCE_SAMPLINGS
};

struct source_sampling {
    ob_sampling settings;         /* on entry what holds where the files say nothing */
    bool given[SOURCE_SAMPLINGS]; /* by the files */
    char order[256];              /* SOURCE_SAMPLING_ORDER; "": none. Names are not checked */
};

/* OB_ERR_FORMAT names the file and the key of a value that is no number or out of range. */
ob_status source_sampling_read(const struct source *source, struct source_sampling *out,
                               ob_error *error);

/* Puts what the files say as keys of a GGUF. */
struct gguf_writer;
ob_status source_sampling_put(const struct source *source, struct gguf_writer *writer,
                              ob_error *error);

#endif
