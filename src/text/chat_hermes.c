/* SPDX-License-Identifier: Apache-2.0
 * chat_hermes.c: a JSON object in a tag; small models forget the tag, so JSON alone counts where
 * it names a tool of the request. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_hermes = {
    .name = "hermes",
    .about = "Hermes, Qwen 2.5 and 3, Granite 4, MiMo and many others: <tool_call>{...}",
    .source = {"<tool_call>"},
    .call = {"<tool_call>%_%A%.%_</tool_call>", "<tools>%_%!%A%.%_</tools>",
             "```json%_%!%A%.%_```", "<function_call>%_%!%A%.%_</function_call>"},
    .bare = {"%!%A%."},
    .write = {{.call = "<tool_call>\n{\"name\": \"%N\", \"arguments\": %J}\n</tool_call>",
               .between = "\n"}},
};
