/* SPDX-License-Identifier: Apache-2.0
 * chat_generic.c: for templates that know no calls: JSON that names a tool of the request. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_generic = {
    .name = "generic",
    .about = "any other model: {\"tool_call\": ...}, {\"name\": ..., \"arguments\": ...}",
    .call = {"<tool_call>%_%A%.%_</tool_call>", "```json%_%!%A%.%_```", "<function_call>%_%!%A%."},
    .bare = {"{%_\"tool_call\"%_:%_%A%_%.}", "{%_\"tool_calls\"%_:%_%A%_%.}", "%!%A%."},
    .write = {{.before = "{\"tool_calls\": [", .call = "{\"name\": \"%N\", \"arguments\": %J}",
               .between = ", ", .after = "]}", .bare = true}},
};
