/* SPDX-License-Identifier: Apache-2.0
 *
 * state.c: where a text stands in a grammar: the faces of grammar.h but for masks (mask.c). */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "sample/grammar/array.h"
#include "sample/grammar/state.h"
#include "sample/grammar/vocab.h"

/* ---- opened, copied, closed ------------------------------------------------------------------ */

ob_status grammar_state_open(struct grammar *grammar, struct grammar_vocab *vocab,
                             struct grammar_state **out, ob_error *error) {
    struct grammar_state *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return error_memory(error, "a grammar's state", sizeof *s);
    s->grammar = grammar_keep(grammar);
    s->vocab = vocab;
    bool room = !vocab || (s->binding = vocab_bind(vocab, grammar));
    if (room && runner_init(&s->run, grammar))
        places_add(&s->run, &s->at, 0, grammar->rule[0].start);
    else s->run.status = OB_ERR_MEMORY;
    if (!s->run.status) *out = s;
    else grammar_state_close(&s);
    return *out ? OB_OK : error_memory(error, "a grammar's state", sizeof *s);
}

ob_status grammar_state_copy(const struct grammar_state *from, struct grammar_state **out,
                             ob_error *error) {
    struct grammar_state *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return error_memory(error, "a grammar's state", sizeof *s);
    s->grammar = grammar_keep(from->grammar);
    s->vocab = from->vocab;
    s->ended = from->ended;
    s->run = (struct runner){.g = from->grammar, .status = from->run.status, .why = from->run.why};
    bool room = !s->vocab || (s->binding = vocab_bind(s->vocab, s->grammar));
    room = room && ARRAY_ROOM(s->at.p, s->at.cap, from->at.n + (size_t)1);
    if (room && from->at.n) memcpy(s->at.p, from->at.p, from->at.n * sizeof *s->at.p);
    s->at.n = from->at.n;
    if (room && stacks_copy(&from->run.stacks, s->at.p, s->at.n, &s->run.stacks)) {
        *out = s;
        return OB_OK;
    }
    grammar_state_close(&s);
    return error_memory(error, "a grammar's state", from->run.stacks.n * sizeof(struct frame));
}

void grammar_state_close(struct grammar_state **state) {
    struct grammar_state *s = *state;
    *state = NULL;
    if (!s) return;
    if (s->vocab) vocab_unbind(s->vocab, &s->binding);
    grammar_drop(&s->grammar);
    runner_free(&s->run);
    places_free(&s->at);
    places_free(&s->next);
    places_free(&s->before);
    places_free(&s->other);
    free(s);
}

/* ---- goes on --------------------------------------------------------------------------------- */

static void swap(struct places *a, struct places *b) {
    struct places other = *a;
    *a = *b;
    *b = other;
}

size_t grammar_accept_bytes(struct grammar_state *state, struct str bytes) {
    struct runner *r = &state->run;
    size_t n = 0;
    for (; n < bytes.n && !state->ended && !r->status; n++) {
        r->steps = RUNNER_MAX_STEPS;
        runner_step(r, state->at.p, state->at.n, (uint8_t)bytes.p[n], &state->next);
        if (r->status || !state->next.n) break;
        swap(&state->at, &state->next);
        stacks_keep(&r->stacks, state->at.p, state->at.n);
    }
    return n;
}

bool grammar_is_whole(const struct grammar_state *state) {
    struct grammar_state *s = (struct grammar_state *)state; /* what `beside` changes is scratch */
    if (s->ended || s->run.status) return s->ended;
    s->run.steps = RUNNER_MAX_STEPS;
    runner_beside(&s->run, s->at.p, s->at.n);
    return s->run.bottom && !s->run.status;
}

bool grammar_is_over(const struct grammar_state *state) {
    struct grammar_state *s = (struct grammar_state *)state;
    bool token;
    if (s->ended || s->run.status) return s->ended;
    if (!grammar_is_whole(s)) return false;
    struct grammar_bytes first = runner_first(&s->run, &token);
    return !bytes_any(&first) && !token;
}

void grammar_forced(const struct grammar_state *state, size_t most, struct buf *out) {
    struct grammar_state *s;
    bool token;
    if (state->ended || state->run.status || grammar_state_copy(state, &s, NULL)) return;
    for (size_t n = 0; n < most && !grammar_is_whole(s) && !s->run.status; n++) {
        struct grammar_bytes first = runner_first(&s->run, &token); /* of what is_whole left */
        int set = 0;
        char byte = 0;
        for (int i = 0; i < 4; i++) {
            set += __builtin_popcountll(first.word[i]);
            if (first.word[i]) byte = (char)(i * 64 + __builtin_ctzll(first.word[i]));
        }
        if (set != 1 || token || !grammar_accept_bytes(s, (struct str){&byte, 1})) break;
        buf_putc(out, byte);
    }
    grammar_state_close(&s);
}
