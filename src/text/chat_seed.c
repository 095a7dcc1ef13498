/* SPDX-License-Identifier: Apache-2.0
 * chat_seed.c: parameters as tags. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_seed = {
    .name = "seed",
    .about = "Seed-OSS: <seed:tool_call>",
    .source = {"<seed:tool_call>"},
    .call = {"<seed:tool_call>%_<function=%N>%_%P</function>%.%_</seed:tool_call>"},
    .parameter = "<parameter=%K>%V</parameter>%_",
    .write = {{.call = "<seed:tool_call>\n<function=%N>\n%P</function>\n</seed:tool_call>",
               .between = "\n", .parameter = "<parameter=%K>%V</parameter>\n"}},
};
