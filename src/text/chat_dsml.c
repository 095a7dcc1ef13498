/* SPDX-License-Identifier: Apache-2.0
 * chat_dsml.c: parameters as tags, which say whether a value is a string. */
#include "text/chat_parse_impl.h"

#define PARAMETER "<｜DSML｜parameter name=\"%K\" string=\"%T\">%V</｜DSML｜parameter>"

const struct chat_format chat_format_dsml = {
    .name = "dsml",
    .about = "DeepSeek V3.2, V4: <｜DSML｜invoke name=...>",
    /* the sources spell the marker with a variable */
    .source = {"｜DSML｜", "invoke"},
    .call = {"%(<｜DSML｜function_calls>%)%(<｜DSML｜tool_calls>%)%_<｜DSML｜invoke name=\"%N\">%_%P"
             "</｜DSML｜invoke>%.%_</｜DSML｜function_calls>%_</｜DSML｜tool_calls>"},
    .parameter = PARAMETER "%_",
    .ends_thought = true,
    .write = {{.source = "function_calls", .before = "<｜DSML｜function_calls>\n",
               .call = "<｜DSML｜invoke name=\"%N\">\n%P</｜DSML｜invoke>\n",
               .after = "</｜DSML｜function_calls>", .parameter = PARAMETER "\n"},
              {.before = "<｜DSML｜tool_calls>\n",
               .call = "<｜DSML｜invoke name=\"%N\">\n%P</｜DSML｜invoke>\n",
               .after = "</｜DSML｜tool_calls>", .parameter = PARAMETER "\n"}},
};
