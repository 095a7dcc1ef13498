/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.h: every class that can be loaded, those of models.def and then those of wrappers.def,
 * for `1bit info --architectures` and what is generated from it. What a class has is derived from
 * the tables of its recipe; nothing here is a list of its own. Constant. */
#ifndef MODELS_REGISTRY_H
#define MODELS_REGISTRY_H

#include <stddef.h>

struct registered {
    const char *hf_class, *model_type;
    const char *also_type; /* further model_types of the class, separated by '|'; NULL = none */
    const char *when;      /* config.json's flag by which it is told from another class of its type;
                              NULL = none */
    const char *gguf;      /* general.architecture by which llama.cpp reads the class, perhaps that
                              of several; NULL: only we write and read such files */
    const char *family;    /* NULL: a wrapper; its language model's recipe has all of this */
};

size_t registry_count(void);
struct registered registry_at(size_t i);

/* Feature n of class i: "mixture of experts"; NULL = no more. The recipe has tensors or keys for
 * it: whether a file uses it, its configuration says. */
const char *registry_feature(size_t i, size_t n);

#endif
