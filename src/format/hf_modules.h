/* SPDX-License-Identifier: Apache-2.0
 *
 * hf_modules.h: how a sentence-transformers directory makes one vector of a text: modules.json
 * lists what follows the model, <n>_Pooling/config.json says how rows become one. */
#ifndef FORMAT_HF_MODULES_H
#define FORMAT_HF_MODULES_H

#include "base/kinds.h"
#include "format/source.h"

struct hf_pooling {
    bool found;          /* there is a modules.json that names a pooling */
    enum pool_kind kind;
    bool unit;           /* the vector is brought to length 1 */
};

/* A module or a way of pooling that is not known is OB_ERR_UNSUPPORTED, by its name. A GGUF has
 * none. */
ob_status hf_modules_read(const struct source *source, struct hf_pooling *out, ob_error *error);

/* The two files, as text; the path of the second, below the directory, is malloc'd into *path
 * (NULL: no pooling is named). */
ob_status hf_modules_parse(struct str text, struct hf_pooling *out, char **path, ob_error *error);
ob_status hf_pooling_parse(struct str text, struct hf_pooling *out, ob_error *error);

#endif
