/* SPDX-License-Identifier: Apache-2.0
 *
 * hf_defaults.c: see hf_defaults.h. The rows are sorted, but a file asks for one or two of them. */
#include "format/hf_defaults.h"

#include <stddef.h>

static const struct {
    const char *model_type, *row;
} list[] = {
#define DEFAULTS(model_type, row) {model_type, row},
#include "format/hf_defaults_table.h"
#undef DEFAULTS
};

const char *hf_defaults_of(struct str model_type) {
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (str_is(model_type, list[i].model_type)) return list[i].row;
    return NULL;
}
