/* SPDX-License-Identifier: Apache-2.0
 * chat_llama3.c: JSON or Python calls that nothing marks: they are calls if they name a tool of
 * the request, else an answer; or behind a token. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_llama3 = {
    .name = "llama3",
    .about = "Llama 3.1 to 4: JSON, [f(a=1)], <|python_tag|>",
    .source = {"<|start_header_id|>", "tools"},
    .call = {"<|python_tag|>%A%.", "<|python_tag|>%Y%.", "<|python_start|>%Y%.%_<|python_end|>",
             "<|python_start|>%A%.%_<|python_end|>"},
    .bare = {"%!%A%.", "%!%Y%."},
    .write = {{.source = "func_name1(", .before = "[", .call = "%N%Y", .between = ", ",
               .after = "]", .bare = true},
              {.call = "{\"name\": \"%N\", \"parameters\": %J}", .between = "; ", .bare = true}},
};
