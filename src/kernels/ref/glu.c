/* SPDX-License-Identifier: Apache-2.0
 * glu.c: y[i] = act(gate[i / run]) * up[i] (Shazeer, arXiv 2002.05202); the activations: act.c. */
#include "kernels/ref/ref.h"

#define GLU(name, kind)                                                                      \
    void glu_##name##_ref(const float *gate, const float *up, float *y, size_t n, size_t run) { \
        for (size_t i = 0; i < n; i++)                                                       \
            y[i] = (float)(act_value(kind, (double)gate[i / run]) * (double)up[i]);          \
    }
REF_ACTS(GLU)
