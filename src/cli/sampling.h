/* SPDX-License-Identifier: Apache-2.0
 * sampling.h: the sampling options as settings of the engine. */
#ifndef CLI_SAMPLING_H
#define CLI_SAMPLING_H

#include "cli/cli.h"
#include "format/source.h"
#include "server/sampling.h"

struct cli_sampling {
    ob_sampling settings; /* points into the options and the rest */
    json_t *bias, *breakers;
    struct sampling_lists lists;
};

/* What the options say, checked; a new seed unless one was given. The error names the member. Close
 * it in any case. */
ob_status cli_sampling_open(const struct options *options, struct cli_sampling *out,
                            ob_error *error);
void cli_sampling_close(struct cli_sampling *sampling);
/* Options that were not given become what the model's files say. */
void cli_sampling_adopt(const ob_sampling *model, struct options *options);
/* What holds for a model without options, for `1bit info`: every setting, the "order", and which of
 * them are "from_files"; or the "error" of what the files say. */
json_t *cli_sampling_json(const struct source *source);

#endif
