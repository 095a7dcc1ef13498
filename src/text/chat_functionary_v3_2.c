/* SPDX-License-Identifier: Apache-2.0
 * chat_functionary_v3_2.c: every message has a recipient: all, or a tool. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_functionary_v3_2 = {
    .name = "functionary-v3.2",
    .about = "Functionary v3.2: >>>NAME and JSON",
    .source = {"<|start_header_id|>", ">>>all"},
    .call = {">>>%N%_%J%."},
    .skip = {">>>all\n"},
    .prompt = ">>>",
    .write = {{.call = "%N\n%J", .between = ">>>", .content = "all\n"}},
};
