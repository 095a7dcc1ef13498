/* SPDX-License-Identifier: Apache-2.0
 * chat_functiongemma.c: arguments as Gemma 4 spells them, strings between <escape>. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_functiongemma = {
    .name = "functiongemma",
    .about = "FunctionGemma: <start_function_call>call:NAME{...}",
    .source = {"<start_of_turn>", "<start_function_call>"},
    .call = {"<start_function_call>call:%N%G%.<end_function_call>"},
    .skip = {"<start_function_response>"},
    .quote = "<escape>",
    .write = {{.call = "<start_function_call>call:%N%G<end_function_call>"}},
};
