/* SPDX-License-Identifier: Apache-2.0
 * chat_granite.c: an array behind a token; reasoning is followed by a <response>. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_granite = {
    .name = "granite",
    .about = "Granite 3: <|tool_call|>[...], <tool_call>",
    .source = {"<|start_of_role|>", "<|tool_call|>"},
    .call = {"<|tool_call|>%_%A%.", "<tool_call>%_%A%.%_</tool_call>", "<function_call>%_%A%."},
    .skip = {"<response>", "</response>"},
    .skip_after_thought = true,
    .write = {{.before = "<|tool_call|>[", .call = "{\"name\": \"%N\", \"arguments\": %J}",
               .between = ", ", .after = "]"}},
};
