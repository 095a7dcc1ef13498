/* SPDX-License-Identifier: Apache-2.0
 * budget.c: see budget.h. */
#include "decode/budget.h"

#include <stdlib.h>

#include "base/error.h"

struct budget {
    struct chat_parser *parser; /* tells whether the model thinks */
    uint32_t left;
    ob_tokens end; /* what ends the reasoning */
    size_t put;    /* of them; 0: not yet */
};

static void ignore(void *user, const struct chat_event *event) { (void)user, (void)event; }

ob_status budget_open(const struct tok *tok, const struct chat_thought *style, uint32_t tokens,
                      bool open, struct budget **out, ob_error *error) {
    struct budget *b = calloc(1, sizeof *b);
    struct str end = chat_thought_end(style);
    *out = b;
    if (!b) return error_memory(error, "a budget", sizeof *b);
    b->left = tokens;
    b->parser = chat_parser_new(&(struct chat_parser_options){
        .style = style, .begin = open ? CHAT_BEGIN_REASONING : CHAT_BEGIN_ANSWER, .on = ignore});
    ob_status s = b->parser ? tok_encode(tok, end.p, end.n, NULL, true, false, &b->end, error)
                            : error_memory(error, "a budget", sizeof *b);
    if (s != OB_OK) budget_close(out);
    return s;
}

void budget_close(struct budget **budget) {
    if (!*budget) return;
    chat_parser_free(&(*budget)->parser);
    free((*budget)->end.id);
    free(*budget);
    *budget = NULL;
}

int32_t budget_take(struct budget *b, int32_t drawn) {
    bool ending = b->put > 0 && b->put < b->end.n;
    if (!ending && !chat_parser_is_thinking(b->parser)) return drawn;
    if (!ending && b->left > 0) return b->left--, drawn;
    if (b->put == b->end.n) b->put = 0; /* it thinks again */
    return b->end.n ? b->end.id[b->put++] : drawn;
}

void budget_add(struct budget *b, struct str text) { chat_parser_add(b->parser, text); }
