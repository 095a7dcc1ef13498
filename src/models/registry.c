/* SPDX-License-Identifier: Apache-2.0
 * registry.c: see registry.h. */
#include "models/registry.h"

#include <string.h>

#include "models/blocks/encoder.h"

static const struct {
    const char *model_type, *hf_class;
} wrapper[] = {
#define WRAPPER(model_type, hf_class) {#model_type, #hf_class},
#include "models/wrappers.def"
#undef WRAPPER
};

/* How a feature shows: in a tensor's name, in a key that fills a field of hparams, or in a table of
 * keys. A feature may show in several ways, one row each, side by side. */
#define TENSOR(name_, part) {.name = (name_), .tensor = (part)}
#define FIELD(name_, of) {.name = (name_), .field = offsetof(struct hparams, of)}
#define TABLE(name_, keys_) {.name = (name_), .keys = (keys_)}
static const struct feature {
    const char *name, *tensor;
    const struct key *keys;
    size_t field;
} feature[] = {
    TABLE("encoder", encoder_keys),
    TENSOR("mixture of experts", "ffn_up_exps.weight"),
    TENSOR("shared experts", "ffn_up_shexp.weight"),
    TENSOR("bias of choice", "exp_probs_b"),
    TENSOR("experts of attention", "attn_q_exps.weight"),
    TENSOR("latent attention", "_kv_a_mqa.weight"),
    TENSOR("sparse attention", ".indexer."),
    TENSOR("recurrent", ".ssm_"),
    TENSOR("recurrent", ".shortconv."),
    TENSOR("recurrent", ".lru_"),
    TENSOR("recurrent", ".lstm_"),
    TENSOR("recurrent", ".time_decay"),
    TENSOR("recurrent", ".light_norm.weight"),
    FIELD("window", window_size),
    TENSOR("sinks", "_sinks.weight"),
    TENSOR("norms of q and k", ".attn_q_norm.weight"),
    TENSOR("norms after sub-layers", ".post_attention_norm.weight"),
    TENSOR("norms after sub-layers", ".attn_output_norm.weight"),
    TENSOR("learned positions", "position_embd.weight"),
    TENSOR("residual streams", "hc_head.weight"),
    TENSOR("residual streams", "hc_output_norm.weight"),
    TENSOR("memory of n-grams", "ngram_embd.weight"),
    FIELD("soft cap of scores", attention_softcap),
    FIELD("soft cap of logits", logit_softcap),
};
enum { FEATURES = sizeof feature / sizeof feature[0] };

size_t registry_count(void) { return recipe_count + sizeof wrapper / sizeof wrapper[0]; }

struct registered registry_at(size_t i) {
    if (i >= recipe_count)
        return (struct registered){.hf_class = wrapper[i - recipe_count].hf_class,
                                   .model_type = wrapper[i - recipe_count].model_type};
    const struct recipe *r = recipe_list[i];
    return (struct registered){.hf_class = r->hf_class,
                               .model_type = r->model_type,
                               .also_type = r->also_type,
                               .when = r->when,
                               .gguf = r->gguf ? r->gguf : r->written_as,
                               .family = r->family};
}

static bool shows(const struct recipe *r, const struct feature *f) {
    if (f->tensor) {
        for (const struct tensor *const *table = r->tensors; *table; table++)
            for (const struct tensor *t = *table; t->name; t++)
                if (t->need != UNUSED && strstr(t->name, f->tensor)) return true;
        return false;
    }
    for (const struct key *const *table = r->keys; *table; table++)
        for (const struct key *k = *table; k->gguf || k->hf; k++)
            if (f->keys ? *table == f->keys : !k->name && k->field == f->field) return true;
    return false;
}

const char *registry_feature(size_t i, size_t n) {
    const char *last = NULL;
    for (size_t f = 0; i < recipe_count && f < FEATURES; f++) {
        if (!shows(recipe_list[i], &feature[f])) continue;
        if (last && strcmp(last, feature[f].name) == 0) continue;
        last = feature[f].name;
        if (n-- == 0) return last;
    }
    return NULL;
}
