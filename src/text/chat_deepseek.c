/* SPDX-License-Identifier: Apache-2.0
 * chat_deepseek.c: a name and JSON (V3.1), or a type, a name and JSON in a code block (V3, R1). */
#include "text/chat_parse_impl.h"

#define BEGIN "%(<｜tool▁calls▁begin｜>%)%_<｜tool▁call▁begin｜>"
#define END "%_<｜tool▁call▁end｜>%_<｜tool▁calls▁end｜>"

const struct chat_format chat_format_deepseek = {
    .name = "deepseek",
    .about = "DeepSeek R1, V3, V3.1: <｜tool▁call▁begin｜>",
    .source = {"<｜tool▁calls▁begin｜>"},
    .call = {BEGIN "%N<｜tool▁sep｜>%_%J%." END,
             BEGIN "%*<｜tool▁sep｜>%N%_```json%_%J%.%_```" END},
    .ends_thought = true,
    .write = {{.source = "```json", .before = "<｜tool▁calls▁begin｜>",
               .call = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>%N\n```json\n%J\n```"
                       "<｜tool▁call▁end｜>",
               .between = "\n", .after = "<｜tool▁calls▁end｜>"},
              {.before = "<｜tool▁calls▁begin｜>",
               .call = "<｜tool▁call▁begin｜>%N<｜tool▁sep｜>%J<｜tool▁call▁end｜>",
               .after = "<｜tool▁calls▁end｜>"}},
};
