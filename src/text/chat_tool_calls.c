/* SPDX-License-Identifier: Apache-2.0
 * chat_tool_calls.c: JSON objects in an array or on lines, in a tag. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_tool_calls = {
    .name = "tool-calls",
    .about = "MiniMax M1, Apriel: <tool_calls>",
    .source = {"<tool_calls>"},
    .call = {"<tool_calls>%_%A%.%_</tool_calls>"},
    .write = {{.before = "<tool_calls>[", .call = "{\"name\": \"%N\", \"arguments\": %J}",
               .between = ", ", .after = "]</tool_calls>"}},
};
