/* SPDX-License-Identifier: Apache-2.0
 * generate.h: one answer of the engine, streamed to the standard output. */
#ifndef CLI_GENERATE_H
#define CLI_GENERATE_H

#include "base/buf.h"
#include "cli/cli.h"

/* What a model is asked. */
struct prompt {
    ob_tokens ids;
    char *text; /* of a chat, malloc'd; NULL: the model continues what was typed */
    size_t text_n;
};
void prompt_free(struct prompt *prompt);

struct answer {
    struct buf text, thought;
    json_t *calls;   /* as "tool_calls" of a message; NULL: all of it is text */
    bool mid_line;   /* what was printed does not end with a line */
    ob_finish finish;
    ob_timings timings;
    uint64_t seed;
    int output_error; /* errno of the standard output, which takes no more */
};

/* Runs a prompt until it ends or Ctrl-C is pressed; text goes to stdout as it comes. */
ob_status generate(ob_engine *engine, const struct prompt *prompt, const struct options *options,
                   struct answer *out, ob_error *error);
void answer_free(struct answer *answer);
/* The context ended the answer, not its model, the user or --max-tokens. */
bool generate_context_full(const struct answer *answer, const struct options *options);
/* "prompt N tokens X tok/s, answer N tokens Y tok/s" on stderr. */
void generate_report(const struct answer *answer, const struct options *options);

#endif
