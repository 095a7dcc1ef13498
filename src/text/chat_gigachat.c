/* SPDX-License-Identifier: Apache-2.0
 * chat_gigachat.c: a JSON object behind a marker or in a message of its own. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_gigachat = {
    .name = "gigachat",
    .about = "GigaChat 3: function call<|role_sep|>, <|function_call|>",
    .source = {"<|role_sep|>", "<|message_sep|>"},
    .call = {"<|function_call|>%_%A%.",
             "%(<|message_sep|>%)%_function call<|role_sep|>%_%A%."},
    .write = {{.source = "<|function_call|>", .before = "<|function_call|>",
               .call = "{\"name\": \"%N\", \"arguments\": %J}", .single = true},
              {.before = "function call<|role_sep|>\n",
               .call = "{\"name\": \"%N\", \"arguments\": %J}", .single = true}},
};
