/* SPDX-License-Identifier: Apache-2.0
 * logprobs.c: log probabilities of a list's candidates: of all at first, or of those at the end of
 * the chain. */
#include <math.h>

#include "sample/logprobs.h"

float logprobs_of_list(struct sample_list *list, int32_t id, ob_logprob *top, size_t n,
                       size_t *top_n) {
    double best = (double)sample_list_best(list).logit;
    double norm = best + log(list->whole ? sample_passes()->exp_sum(list->logit, list->n,
                                                                     (float)best, NULL)
                                         : sample_list_weigh(list));
    float of_id = -INFINITY;
    if (list->whole) of_id = (float)((double)list->logit[id] - norm);
    else
        for (uint32_t i = 0; i < list->n; i++)
            if (list->item[i].id == id) of_id = (float)((double)list->item[i].logit - norm);
    if (n) sample_list_top(list, (uint32_t)n);
    if (n) sample_list_sort(list, (uint32_t)n);
    for (*top_n = 0; *top_n < n && *top_n < list->n; ++*top_n) {
        struct sample_item item = list->item[*top_n];
        top[*top_n] = (ob_logprob){item.id, (float)((double)item.logit - norm)};
    }
    return of_id;
}
