/* SPDX-License-Identifier: Apache-2.0
 * chat_harmony.c: every message has a channel; one with a recipient is a call. */
#include "text/chat_parse_impl.h"

static const struct chat_thought thought = {
    .name = "harmony",
    .open = "<|channel|>analysis<|message|>",
    .close = "<|end|>",
    .end = "<|end|><|start|>assistant<|channel|>final<|message|>",
    .anywhere = true,
};

const struct chat_format chat_format_harmony = {
    .name = "harmony",
    .about = "gpt-oss, LLM-jp 4.1: channels",
    .source = {"<|channel|>"},
    .call = {"<|start|>assistant%_to=%F%*<|message|>%_%J%.%_<|call|>",
             "<|channel|>commentary%_to=%F%*<|message|>%_%J%.%_<|call|>",
             "<|channel|>analysis%_to=%F%*<|message|>%_%J%.%_<|call|>"},
    .skip = {"<|start|>assistant", "<|channel|>final<|message|>", "<|channel|>final <|message|>",
             "<|channel|>commentary<|message|>", "<|channel|>commentary <|message|>",
             "<|end|>", "<|return|>", "<|call|>"},
    .prompt = "<|start|>assistant",
    .thought = &thought,
    .write = {{.call = "<|channel|>commentary to=functions.%N <|constrain|>json<|message|>%J",
               .trigger = {"<|channel|>commentary to=", "<|channel|>analysis to=",
                           "<|start|>assistant to="},
               .single = true}},
};
