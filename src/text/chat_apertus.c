/* SPDX-License-Identifier: Apache-2.0
 * chat_apertus.c: calls in an array; the name is the only key of each. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_apertus = {
    .name = "apertus",
    .about = "Apertus: <|tools_prefix|>[{\"name\": {...}}]",
    .source = {"<|tools_prefix|>", "<|tools_suffix|>"},
    .call = {"<|tools_prefix|>%A%.<|tools_suffix|>"},
    .name_is_key = true,
    .write = {{.before = "<|tools_prefix|>[", .call = "{\"%N\": %J}", .between = ", ",
               .after = "]<|tools_suffix|>"}},
};
