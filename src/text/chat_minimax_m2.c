/* SPDX-License-Identifier: Apache-2.0
 * chat_minimax_m2.c: parameters as tags. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_minimax_m2 = {
    .name = "minimax-m2",
    .about = "MiniMax M2: <minimax:tool_call>",
    .source = {"<minimax:tool_call>"},
    .call = {"%(<minimax:tool_call>%)%_<invoke name=\"%N\">%_%P</invoke>%.%_</minimax:tool_call>"},
    .parameter = "<parameter name=\"%K\">%V</parameter>%_",
    .ends_thought = true,
    .write = {{.before = "<minimax:tool_call>\n", .call = "<invoke name=\"%N\">\n%P</invoke>\n",
               .after = "</minimax:tool_call>",
               .parameter = "<parameter name=\"%K\">%V</parameter>\n"}},
};
