/* SPDX-License-Identifier: Apache-2.0
 * fuzz_question.c: any bytes as a line of a multiple choice file; what is read is whole. */
#include <stdlib.h>
#include <string.h>

#include "eval/eval.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    struct eval_question q;
    ob_error error;
    if (eval_question_read((const char *)bytes, size, &q, &error) != OB_OK) {
        if (q.json || !error.message[0]) abort();
        return 0;
    }
    struct eval_score score = {0};
    if (q.choices < 2 || q.choices > EVAL_CHOICES || q.answer >= q.choices || !q.context) abort();
    if (q.ending && !*q.ending) abort();
    for (uint32_t i = 0; i < q.choices; i++) {
        if (!*q.choice[i]) abort();
        score.log[i] = -(double)strlen(q.choice[i]);
        score.tokens[i] = score.bytes[i] = (uint32_t)strlen(q.choice[i]);
    }
    for (enum eval_norm norm = 0; norm < EVAL_NORMS; norm++)
        if (eval_pick(&q, &score, norm) >= q.choices) abort();
    eval_question_free(&q);
    return 0;
}
