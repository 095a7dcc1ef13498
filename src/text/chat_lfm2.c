/* SPDX-License-Identifier: Apache-2.0
 * chat_lfm2.c: a list of Python calls between two tokens. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_lfm2 = {
    .name = "lfm2",
    .about = "LFM2: <|tool_call_start|>[f(a=1)]",
    .source = {"<|im_start|>", "List of tools: "},
    .call = {"<|tool_call_start|>%Y%.%_<|tool_call_end|>",
             "<|tool_call_start|>%A%.%_<|tool_call_end|>"},
    .bare = {"%!%Y%."},
    .write = {{.before = "<|tool_call_start|>[", .call = "%N%Y", .between = ", ",
               .after = "]<|tool_call_end|>"}},
};
