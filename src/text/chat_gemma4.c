/* SPDX-License-Identifier: Apache-2.0
 * chat_gemma4.c: arguments in a spelling of its own, strings between tokens. */
#include "text/chat_parse_impl.h"

static const struct chat_thought thought = {
    .name = "gemma4", .open = "<|channel>thought\n", .close = "<channel|>"};

const struct chat_format chat_format_gemma4 = {
    .name = "gemma4",
    .about = "Gemma 4: <|tool_call>call:NAME{...}",
    .source = {"<|tool_call>call:"},
    .call = {"<|tool_call>call:%N%G%.<tool_call|>"},
    .skip = {"<|tool_response>"},
    .thought = &thought,
    .quote = "<|\"|>",
    .ends_thought = true,
    .write = {{.call = "<|tool_call>call:%N%G<tool_call|>"}},
};
