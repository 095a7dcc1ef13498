/* SPDX-License-Identifier: Apache-2.0
 * chat_minicpm5.c: parameters as tags; values may be CDATA. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_minicpm5 = {
    .name = "minicpm5",
    .about = "MiniCPM 5: <function name=...><param name=...>",
    .source = {"<function name=", "<param name="},
    .call = {"<function name=\"%N\">%_%P</function>%."},
    .parameter = "<param name=\"%K\">%V</param>%_",
    .write = {{.call = "<function name=\"%N\">%P</function>", .between = "\n",
               .parameter = "<param name=\"%K\">%V</param>"}},
};
