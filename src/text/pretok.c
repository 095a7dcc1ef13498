/* SPDX-License-Identifier: Apache-2.0
 * pretok.c: finding a pre-tokenizer by what a file calls it. */
#include "text/pretok.h"

#define PRETOK(name) &pretok_##name,
static const struct pretok *const pretoks[] = {
#include "text/pretok.def"
};
#undef PRETOK

enum { COUNT = sizeof pretoks / sizeof pretoks[0] };

const struct pretok *pretok_for_gguf(struct str pre) {
    for (size_t i = 0; i < COUNT; i++)
        for (const char *const *name = pretoks[i]->gguf; *name; name++)
            if (str_is(pre, *name)) return pretoks[i];
    return NULL;
}

const struct pretok *pretok_for_regex(struct str regex) {
    for (size_t i = 0; i < COUNT; i++)
        if (str_is(regex, pretoks[i]->regex)) return pretoks[i];
    return NULL;
}
