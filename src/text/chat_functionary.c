/* SPDX-License-Identifier: Apache-2.0
 * chat_functionary.c: a tag with the name around a JSON object. */
#include "text/chat_parse_impl.h"

const struct chat_format chat_format_functionary = {
    .name = "functionary",
    .about = "Functionary v3.1: <function=NAME>{...}</function>",
    .source = {"<|start_header_id|>", "<function=", "</function>"},
    .call = {"<function=%N>%_%J%.%_</function>", "<|python_tag|>%A%.", "<|python_tag|>%Y%."},
    .write = {{.call = "<function=%N>%J</function>"}},
};
