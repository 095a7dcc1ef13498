/* SPDX-License-Identifier: Apache-2.0
 * passes_scalar.c: see pass_body.h. */
#define PASSES sample_passes_scalar
#include "sample/pass_body.h"
