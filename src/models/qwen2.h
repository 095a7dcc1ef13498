/* SPDX-License-Identifier: Apache-2.0
 * qwen2.h: what Qwen2, Qwen3 and their mixtures of experts share. */
#ifndef MODELS_QWEN2_H
#define MODELS_QWEN2_H

#include "models/recipe.h"

/* One rope, and the windows of Qwen's configurations. */
ob_status qwen2_derive(struct build *b, ob_error *error);

#endif
