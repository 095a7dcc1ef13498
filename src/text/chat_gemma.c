/* SPDX-License-Identifier: Apache-2.0
 * chat_gemma.c: not trained on one format: Python or JSON in a code block or alone. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_gemma = {
    .name = "gemma",
    .about = "Gemma 2 and 3: ```tool_code and ```json",
    .source = {"<start_of_turn>"},
    .call = {"```tool_code%_%Y%.%_```", "```json%_%!%A%.%_```", "```tool_call%_%A%.%_```"},
    .bare = {"%!%A%.", "%!%Y%."},
    .write = {{.before = "```tool_code\n", .call = "%N%Y", .between = "\n", .after = "\n```"}},
};
