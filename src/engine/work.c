/* SPDX-License-Identifier: Apache-2.0
 * work.c: what one token costs by the graph: bytes of weights read and multiply-adds; of experts
 * those that a token uses. */
#include "engine/engine.h"

struct engine_work engine_work(const struct engine *e) {
    const struct model *m = engine_model(e);
    struct engine_work work = {0};
    for (uint32_t i = 0; i < m->graph.nodes; i++) {
        const struct node *n = &m->graph.node[i];
        for (uint32_t k = 0; k < NODE_OUTPUTS; k++) {
            const struct weight *w = n->weight[k];
            const struct weight *bias = n->bias[k];
            uint64_t used = !w || !w->experts ? 1
                            : w->heads        ? w->experts
                                              : m->graph.value[n->out[k]].used;
            if (bias) work.token_bytes += (bias->experts ? used : 1) * bias->row_bytes;
            if (!w) continue;
            /* These read the token's row alone. */
            bool row = n->op == OP_embed || n->op == OP_embed_position;
            if (n->op == OP_embed_ngrams) {
                work.token_bytes += m->graph.value[n->out[k]].cols / w->cols * w->row_bytes;
                continue;
            }
            uint64_t bytes = used * (row ? w->row_bytes : weight_matrix_bytes(w));
            work.token_bytes += bytes;
            if (w->experts && !w->heads) work.expert_bytes += bytes;
            if (n->op != OP_linear && n->op != OP_linear_experts && n->op != OP_linear_heads)
                continue;
            bool logits = m->graph.value[n->out[k]].rows == ROWS_LOGITS;
            uint64_t products = used * w->rows * w->cols;
            *(logits ? &work.logits_products : &work.token_products) += products;
        }
    }
    return work;
}
