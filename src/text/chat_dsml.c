/* SPDX-License-Identifier: Apache-2.0
 * chat_dsml.c: parameters as tags, which say whether a value is a string. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_dsml = {
    .name = "dsml",
    .about = "DeepSeek V3.2, V4: <｜DSML｜invoke name=...>",
    /* the sources spell the marker with a variable */
    .source = {"｜DSML｜", "invoke"},
    .call = {"%(<｜DSML｜function_calls>%)%(<｜DSML｜tool_calls>%)%_<｜DSML｜invoke name=\"%N\">%_%P"
             "</｜DSML｜invoke>%.%_</｜DSML｜function_calls>%_</｜DSML｜tool_calls>"},
    .parameter = "<｜DSML｜parameter name=\"%K\" string=\"%T\">%V</｜DSML｜parameter>%_",
    .ends_thought = true,
};
