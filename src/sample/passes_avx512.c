/* SPDX-License-Identifier: Apache-2.0
 * passes_avx512.c: see pass_body.h. */
#define PASSES sample_passes_avx512
#include "sample/pass_body.h"
