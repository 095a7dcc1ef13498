/* SPDX-License-Identifier: Apache-2.0
 *
 * shared_kv.h: last layers that have no keys and values of their own: each reads those of the last
 * layer before them that has, and that is of its kind, full or with a window. Their kv_heads are 0;
 * hp.shared_from is the layer read. */
#ifndef MODELS_BLOCKS_SHARED_KV_H
#define MODELS_BLOCKS_SHARED_KV_H

#include "models/recipe.h"

/* How many layers share: "shared_kv". */
extern const struct key shared_kv_keys[];
/* k, their norm and v of layers that have them: others' are known and not used. Comes last. */
extern const struct tensor shared_kv_unused[];

/* Once windows are known. */
ob_status shared_kv_sizes(struct build *b, ob_error *error);
/* By hp.attention_scale; k and v NO_VALUE in layers that share. */
value_id shared_kv_attention(struct build *b, value_id q, value_id k, value_id v);

#endif
