/* SPDX-License-Identifier: Apache-2.0
 * chat_nemotron.c: an array in a tag. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_nemotron = {
    .name = "nemotron",
    .about = "Nemotron Nano v2: <TOOLCALL>[...]",
    .source = {"<TOOLCALL>"},
    .call = {"<TOOLCALL>%_%A%.%_</TOOLCALL>"},
    .ends_thought = true,
    .write = {{.before = "<TOOLCALL>[", .call = "{\"name\": \"%N\", \"arguments\": %J}",
               .between = ", ", .after = "]</TOOLCALL>"}},
};
