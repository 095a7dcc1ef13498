/* SPDX-License-Identifier: Apache-2.0
 * sampling.h: sampling settings written in JSON: the fields of a request, and the two lists that
 * the command line also takes. */
#ifndef SERVER_SAMPLING_H
#define SERVER_SAMPLING_H

#include <jansson.h>

#include "base/buf.h"
#include "onebit.h"

/* What settings point to, besides strings of the JSON. Zeroed at first. */
struct sampling_lists {
    struct buf order;
    ob_logit_bias *bias;
    const char **breakers;
};
void sampling_free(struct sampling_lists *lists);

/* Fields that are there replace those of *out; the JSON must live as long as it. The error names
 * the field. */
ob_status sampling_read(const json_t *request, ob_sampling *out, struct sampling_lists *lists,
                        ob_error *error);
/* {"15": -1, " text": false}, or [[15, -1], [" text", false]]. */
ob_status sampling_read_bias(const json_t *value, ob_sampling *out, struct sampling_lists *lists,
                             ob_error *error);
/* ["\n", ":"]; [] for none. */
ob_status sampling_read_breakers(const json_t *value, ob_sampling *out,
                                 struct sampling_lists *lists, ob_error *error);

#endif
