/* SPDX-License-Identifier: Apache-2.0
 * chat_kimi_k2.c: an id that holds the name, and JSON; the id goes back as it is. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_kimi_k2 = {
    .name = "kimi-k2",
    .about = "Kimi K2: <|tool_call_begin|>functions.NAME:INDEX",
    .source = {"<|tool_call_begin|>", "<|tool_call_argument_begin|>"},
    .call = {"%(<|tool_calls_section_begin|>%)%_<|tool_call_begin|>%_%F%_"
             "<|tool_call_argument_begin|>%_%J%.%_<|tool_call_end|>%_<|tool_calls_section_end|>"},
    .ends_thought = true,
    .write = {{.before = "<|tool_calls_section_begin|>",
               .call = "<|tool_call_begin|>functions.%N:%#<|tool_call_argument_begin|>%J"
                       "<|tool_call_end|>",
               .after = "<|tool_calls_section_end|>"}},
};
