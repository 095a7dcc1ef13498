/* SPDX-License-Identifier: Apache-2.0
 * kda.c: see kda.h. */
#include "models/blocks/kda.h"

#include "models/blocks/hybrid.h"
#include "models/blocks/mla.h"
#include "models/blocks/moe.h"

const struct key kda_keys[] = {
    {"{arch}.context_length", "max_position_embeddings|model_max_length", KEY_U32,
     offsetof(struct hparams, context), REQUIRED, 0, 1, 1 << 30, NULL},
    {0},
};

ob_status kda_derive(struct build *b, ob_error *error) {
    static const struct route_args router = {.score = ROUTE_SIGMOID,
                                             .group = ROUTE_GROUP_TOP2,
                                             .normalize = true,
                                             .normalize_eps = 1e-20f};
    struct hparams *hp = b->hp;
    ob_status s = hybrid_read(b, hybrid_is_recurrent, error);
    if (s == OB_OK) s = mla_derive(b, error); /* which gives each layer its key head */
    if (s == OB_OK) s = deltanet_sizes(b, error);
    for (uint32_t i = 0; s == OB_OK && i < hp->layers; i++)
        if (hp->recurrent[i]) hp->heads[i] = hp->kv_heads[i] = 0;
    return s == OB_OK ? moe_sizes(b, &router, error) : s;
}
