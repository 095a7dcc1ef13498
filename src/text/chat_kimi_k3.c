/* SPDX-License-Identifier: Apache-2.0
 * chat_kimi_k3.c: elements between three tokens, which say the type of each argument. */
#include "text/chat_parse_impl.h"

static const struct chat_thought thought = {
    .name = "kimi-k3", .open = "<|open|>think<|sep|>", .close = "<|close|>think<|sep|>"};

const struct chat_format chat_format_kimi_k3 = {
    .name = "kimi-k3",
    .about = "Kimi K3: <|open|>call tool=...<|sep|>",
    .source = {"<|open|>", "<|close|>", "<|end_of_msg|>"},
    .call = {"%(<|open|>tools<|sep|>%)%_<|open|>call tool=\"%N\"%*<|sep|>%_%P"
             "<|close|>call<|sep|>%.%_<|close|>tools<|sep|>"},
    .parameter = "<|open|>argument key=\"%K\" type=\"%T\"<|sep|>%V<|close|>argument<|sep|>%_",
    .skip = {"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>",
             "<|end_of_msg|>"},
    .thought = &thought,
    .ends_thought = true,
    .write = {{.before = "<|open|>tools<|sep|>",
               .call = "<|open|>call tool=\"%N\" index=\"%#\"<|sep|>%P<|close|>call<|sep|>",
               .after = "<|close|>tools<|sep|>",
               .parameter = "<|open|>argument key=\"%K\" type=\"%T\"<|sep|>%V"
                            "<|close|>argument<|sep|>"}},
};
