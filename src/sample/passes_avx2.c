/* SPDX-License-Identifier: Apache-2.0
 * passes_avx2.c: see pass_body.h. */
#define PASSES sample_passes_avx2
#include "sample/pass_body.h"
