/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_ends.c: which tokens end a generation: those the files name by key, and those known by their
 * text, for the files that do not: ends of text, of a turn, of a fill-in-the-middle (the names are
 * those llama.cpp looks for). By its text only a control token counts: Gemma has an added "</s>"
 * that is HTML. */
#include "text/tok_impl.h"

static const char *const ends[] = {
    "</s>",
    "<EOT>",
    "<PAD>",
    "<REPO>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<eos>",
    "<fim-pad>",
    "<fim_pad>",
    "<fim-repo>",
    "<reponame>",
    "<turn|>",
    "<|call|>",
    "<|calls|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|file_sep|>",
    "<|flush|>",
    "<|fim_pad|>",
    "<|fim_repo|>",
    "<|im_end|>",
    "<|repo_name|>",
    "<|return|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[EOS]",
    "[EOT]",
    "_<EOT>",
};

void tok_mark_end(struct tok *tok, int32_t id) {
    if (id < 0) return;
    tok->vocab.end[id] = true;
    if (tok->vocab.kind[id] != TOK_ADDED) return;
    tok->vocab.kind[id] = TOK_CONTROL;
    added_set_control(&tok->raw, id);
    added_set_control(&tok->normalized, id);
}

/* Where a turn ends with a token of its own ("<|return|>", "<|call|>"; or "<|flush|>",
 * "<|calls|>"), "<|end|>" ends a part of the answer: behind the reasoning comes more. */
static bool goes_on(const struct tok *tok, const char *end) {
    static const char *const pairs[][2] = {{"<|call|>", "<|return|>"}, {"<|calls|>", "<|flush|>"}};
    if (strcmp(end, "<|end|>") != 0) return false;
    for (size_t i = 0; i < 2; i++)
        if (vocab_find(&tok->vocab, str_of(pairs[i][0])) >= 0 &&
            vocab_find(&tok->vocab, str_of(pairs[i][1])) >= 0)
            return true;
    return false;
}

void tok_find_ends(struct tok *tok) {
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        int32_t id = vocab_find(&tok->vocab, str_of(ends[i]));
        if (id >= 0 && tok->vocab.kind[id] == TOK_CONTROL && !goes_on(tok, ends[i]))
            tok_mark_end(tok, id);
    }
}
