/* SPDX-License-Identifier: Apache-2.0
 *
 * hf_modules.h: how a sentence-transformers directory makes one vector of a text. modules.json
 * lists what follows the model: a pooling, dense layers, a norm to length 1; each has a folder with
 * a config.json, a dense layer also with weights. */
#ifndef FORMAT_HF_MODULES_H
#define FORMAT_HF_MODULES_H

#include "base/kinds.h"
#include "format/source.h"

enum { HF_DENSE_MAX = 2, HF_FOLDER = 128, HF_POOLINGS = 160 };

struct hf_modules {
    uint32_t pools;                   /* 0: no pooling is named; several stand side by side */
    enum pool_kind pool[POOL_KINDS];
    uint32_t denses;                  /* y = act(x W^T + bias), in order */
    struct hf_dense {
        char folder[HF_FOLDER];       /* below the directory; "" is the directory itself */
        uint32_t in, out;
        bool bias;
        enum act_kind act;
    } dense[HF_DENSE_MAX];
    bool unit;                        /* then the vector is brought to length 1 */
    char pooling[HF_FOLDER];          /* its folder */
    uint32_t pooled;                  /* numbers of a state, as it says; 0: it does not */
};

/* A module, an order of them or a way of pooling that is not known is OB_ERR_UNSUPPORTED, by its
 * name. A GGUF has none. */
ob_status hf_modules_read(const struct source *source, struct hf_modules *out, ob_error *error);

/* The files, as text: modules.json, whose folders lie in the directory; then each config.json. */
ob_status hf_modules_parse(struct str text, struct hf_modules *out, ob_error *error);
ob_status hf_pooling_parse(struct str text, struct hf_modules *out, ob_error *error);
ob_status hf_dense_parse(struct str text, struct hf_dense *out, ob_error *error);

/* "cls+mean", as sentence-transformers names them, and back. */
void hf_poolings_text(const struct hf_modules *modules, char out[HF_POOLINGS]);
bool hf_poolings_of(struct str text, struct hf_modules *out);
/* "Tanh", as PyTorch does, and back. */
const char *hf_act_text(enum act_kind act);
bool hf_act_of(struct str text, enum act_kind *out);

#endif
