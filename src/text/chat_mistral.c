/* SPDX-License-Identifier: Apache-2.0
 * chat_mistral.c: an array (up to Nemo), or a name and JSON a marker each (later); ids have 9
 * letters. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_mistral = {
    .name = "mistral",
    .about = "Mistral, Ministral, Magistral, Devstral: [TOOL_CALLS]",
    .source = {"[TOOL_CALLS]"},
    .call = {"[TOOL_CALLS]%A%.", "[TOOL_CALLS]%N[ARGS]%_%J%.",
             "[TOOL_CALLS]%N[CALL_ID]%I[ARGS]%_%J%.", "[TOOL_CALLS]%_%N%_%J%."},
    .short_ids = true,
    .write = {{.source = "[CALL_ID]", .call = "[TOOL_CALLS]%N[CALL_ID]%I[ARGS]%J"},
              {.source = "[ARGS]", .call = "[TOOL_CALLS]%N[ARGS]%J"},
              {.before = "[TOOL_CALLS][",
               .call = "{\"name\": \"%N\", \"arguments\": %J, \"id\": \"%I\"}",
               .between = ", ", .after = "]"}},
};
