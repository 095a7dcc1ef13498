/* SPDX-License-Identifier: Apache-2.0
 * chat_calls.c: calls as a grammar for a chat template's model and its tokenizer; see chat.h. */
#include "text/chat.h"

static int32_t control(const void *user, struct str text, bool *ends) {
    int32_t id = tok_find(user, text);
    if (id < 0 || !tok_is_control(user, id)) return -1;
    *ends = tok_is_end(user, id);
    return id;
}

ob_status chat_calls(const struct chat *chat, const struct tok *tok, const json_t *request,
                     struct str prompt, bool thinks, bool compact, bool open,
                     struct grammar **out, ob_error *error) {
    struct chat_choice choice;
    struct chat_tokens tokens = {tok, control};
    *out = NULL;
    ob_status s = chat_choice_read(request, &choice, error);
    if (s != OB_OK || !chat_choice_binds(&choice)) return s;
    return chat_grammar(&(struct chat_grammar_options){
        .format = chat_tool_format(chat), .style = thinks ? chat_thought_style(chat) : NULL,
        .source = chat_tools_source(chat), .prompt = prompt,
        .tools = json_object_get(request, "tools"), .choice = choice, .tokens = &tokens,
        .compact = compact, .open = open}, out, error);
}
