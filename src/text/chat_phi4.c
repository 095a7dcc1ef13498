/* SPDX-License-Identifier: Apache-2.0
 * chat_phi4.c: an array behind a token or a word. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_phi4 = {
    .name = "phi4",
    .about = "Phi-4-mini: <|tool_call|>[...], functools[...]",
    .source = {"<|tool|>", "<|assistant|>"},
    .call = {"<|tool_call|>%_%A%.%_<|/tool_call|>", "<|tool_calls|>%_%A%.%_<|/tool_calls|>",
             "functools%_%A%."},
    .bare = {"%!%A%."},
    .write = {{.before = "<|tool_call|>[", .call = "{\"name\": \"%N\", \"arguments\": %J}",
               .between = ", ", .after = "]<|/tool_call|>"}},
};
