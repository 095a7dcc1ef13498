/* SPDX-License-Identifier: Apache-2.0
 * chat_solar.c: an id, a name and JSON, a token before each. */
#include "text/chat_parse_impl.h"

static const struct chat_thought thought = {
    .name = "solar",
    .open = "<|think|>",
    .close = "<|end|>",
    .end = "<|end|><|begin|>assistant<|content|>",
    .anywhere = true,
};

const struct chat_format chat_format_solar = {
    .name = "solar",
    .about = "Solar Open: <|tool_call:begin|>",
    .source = {"<|tool_call:begin|>", "<|tool_call:args|>"},
    .call = {"%(<|tool_calls|>%)%_<|tool_call:begin|>%I<|tool_call:name|>%N<|tool_call:args|>%_%J%."
             "<|tool_call:end|>"},
    .skip = {"<|begin|>assistant", "<|content|>", "<|end|>", "<|calls|>"},
    .prompt = "<|begin|>assistant",
    .thought = &thought,
    .write = {{.before = "<|tool_calls|>",
               .call = "<|tool_call:begin|>%I<|tool_call:name|>%N<|tool_call:args|>%J"
                       "<|tool_call:end|>",
               .after = "<|calls|>"}},
};
