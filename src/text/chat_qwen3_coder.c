/* SPDX-License-Identifier: Apache-2.0
 * chat_qwen3_coder.c: parameters as tags, values on lines of their own; small models forget the
 * outer tag. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_qwen3_coder = {
    .name = "qwen3-coder",
    .about = "Qwen3-Coder, Qwen 3.5, Nemotron 3, StepFun: <function=NAME><parameter=KEY>",
    .source = {"<tool_call>", "<function=", "<parameter="},
    .call = {"<tool_call>%_<function=%N>%_%P</function>%.%_</tool_call>",
             "<function=%N>%_%P</function>%.%_</tool_call>",
             "<tool_call>%_%A%.%_</tool_call>"},
    .parameter = "<parameter=%K>%V</parameter>%_",
    .lines = true,
    .write = {{.call = "<tool_call>\n<function=%N>\n%P</function>\n</tool_call>", .between = "\n",
               .parameter = "<parameter=%K>\n%V\n</parameter>\n"}},
};
