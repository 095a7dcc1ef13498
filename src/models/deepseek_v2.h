/* SPDX-License-Identifier: Apache-2.0
 * deepseek_v2.h: what the line of DeepSeek-V3 shares. */
#ifndef MODELS_DEEPSEEK_V2_H
#define MODELS_DEEPSEEK_V2_H

#include "models/blocks/mla.h"

extern const struct route_args deepseek_v3_router;
/* Latent attention, and a mixture with that router. */
ob_status deepseek_v3_derive(struct build *b, ob_error *error);

#endif
