/* SPDX-License-Identifier: Apache-2.0
 * chat_command_r.c: tool_name and parameters in an array, behind a marker (R7B and later) or
 * Action: (R, R+). */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_command_r = {
    .name = "command-r",
    .about = "Command-R, R+, R7B, A: <|START_ACTION|>[{\"tool_name\": ...}], Action: ```json",
    .source = {"<|START_OF_TURN_TOKEN|>"},
    .call = {"<|START_ACTION|>%A%.%_<|END_ACTION|>", "Action:%_```json%_%A%.%_```"},
    .skip = {"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"},
    .ends_thought = true,
    .write = {{.source = "<|START_ACTION|>", .before = "<|START_ACTION|>[\n    ",
               .call = "{\"tool_call_id\": \"%#\", \"tool_name\": \"%N\", \"parameters\": %J}",
               .between = ",\n    ", .after = "\n]<|END_ACTION|>"},
              {.before = "Action: ```json\n[\n    ",
               .call = "{\n        \"tool_name\": \"%N\",\n        \"parameters\": %J\n    }",
               .between = ",\n    ", .after = "\n]```"}},
};
