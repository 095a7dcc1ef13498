/* SPDX-License-Identifier: Apache-2.0
 * chat_hunyuan.c: a name, then keys and values as tags, all with a suffix. */
#include "text/chat_parse_impl.h"

static const struct chat_thought thought = {
    .name = "hunyuan", .open = "<think:opensource>", .close = "</think:opensource>"};

const struct chat_format chat_format_hunyuan = {
    .name = "hunyuan",
    .about = "Hunyuan 3: <tool_call:opensource>",
    .source = {"<tool_sep", "<arg_key", "tool_call"},
    .call = {"%(<tool_calls:opensource>%)%_<tool_call:opensource>%_%N%_<tool_sep:opensource>%_%P"
             "</tool_call:opensource>%.%_</tool_calls:opensource>"},
    .thought = &thought,
    .parameter = "<arg_key:opensource>%K</arg_key:opensource>%_"
                 "<arg_value:opensource>%V</arg_value:opensource>%_",
    .write = {{.before = "<tool_calls:opensource>",
               .call = "<tool_call:opensource>%N<tool_sep:opensource>\n%P</tool_call:opensource>",
               .between = "\n", .after = "</tool_calls:opensource>",
               .parameter = "<arg_key:opensource>%K</arg_key:opensource>\n"
                            "<arg_value:opensource>%V</arg_value:opensource>\n"}},
};
