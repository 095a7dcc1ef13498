/* SPDX-License-Identifier: Apache-2.0
 * chat_zyphra.c: parameters as tags, values on lines of their own, or a JSON object, in a tag. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_zyphra = {
    .name = "zyphra",
    .about = "Zyphra ZAYA: <zyphra_tool_call>",
    .source = {"<zyphra_tool_call>"},
    .call = {"<zyphra_tool_call>%_<function=%N>%_%P</function>%.%_</zyphra_tool_call>",
             "<zyphra_tool_call>%_%A%.%_</zyphra_tool_call>"},
    .parameter = "<parameter=%K>%V</parameter>%_",
    .lines = true,
    .write = {{.call = "<zyphra_tool_call>\n<function=%N>\n%P</function>\n</zyphra_tool_call>",
               .between = "\n", .parameter = "<parameter=%K>\n%V\n</parameter>\n"}},
};
