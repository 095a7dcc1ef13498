/* SPDX-License-Identifier: Apache-2.0
 *
 * linear_experts.c: y[pair] = W[expert of the pair] x[token of the pair] (arXiv 1701.06538). The
 * product is linear's; this gives the pairs and their order, for every table. */
#include <string.h>

#include "kernels/kernels.h"

void experts_group(const float *route, uint32_t tokens, uint32_t experts, uint32_t used,
                   uint32_t *first, uint32_t *token, uint32_t *pair) {
    memset(first, 0, ((size_t)experts + 1) * sizeof *first);
    for (uint32_t t = 0; t < tokens; t++) {
        const float *expert = route + (2 * (size_t)t + 1) * used;
        for (uint32_t i = 0; i < used; i++) first[(uint32_t)expert[i] + 1]++;
    }
    for (uint32_t e = 0; e < experts; e++) first[e + 1] += first[e];
    for (uint32_t t = 0; t < tokens; t++) {
        const float *expert = route + (2 * (size_t)t + 1) * used;
        for (uint32_t i = 0; i < used; i++) {
            uint32_t at = first[(uint32_t)expert[i]]++;
            token[at] = t;
            pair[(size_t)t * used + i] = at;
        }
    }
    for (uint32_t e = experts; e > 0; e--) first[e] = first[e - 1]; /* ends to beginnings */
    first[0] = 0;
}
