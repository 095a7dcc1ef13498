/* SPDX-License-Identifier: Apache-2.0
 * chat_glm4.c: a name, then keys and values as tags. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_glm4 = {
    .name = "glm4",
    .about = "GLM 4.5 and later, Ling 3, Laguna, Spark: <arg_key>, <arg_value>",
    .source = {"<tool_call>", "<arg_key>", "<arg_value>"},
    .call = {"<tool_call>%_%N%_%P</tool_call>%."},
    .parameter = "<arg_key>%K</arg_key>%_<arg_value>%V</arg_value>%_",
    .write = {{.call = "<tool_call>%N\n%P</tool_call>", .between = "\n",
               .parameter = "<arg_key>%K</arg_key>\n<arg_value>%V</arg_value>\n"}},
};
