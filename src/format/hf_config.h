/* SPDX-License-Identifier: Apache-2.0
 *
 * hf_config.h: config.json of a Hugging Face directory, asked by dotted path
 * ("rope_parameters.full_attention.rope_theta"). A path is looked for under "text_config", where
 * models that also see or hear keep their language part, and, if absent or null there, at the top;
 * "/model_type" at the top alone. A key that is absent has the default of its model type, if there
 * is one (hf_defaults.h). Immutable after open, so thread safe. */
#ifndef FORMAT_HF_CONFIG_H
#define FORMAT_HF_CONFIG_H

#include "base/str.h"
#include "onebit.h"

struct hf_config;

/* `path` is for errors only. */
ob_status hf_config_open(const char *text, size_t n, const char *path, struct hf_config **out,
                         ob_error *error);
void hf_config_close(struct hf_config **config);

/* Adds the text of a config.json with Python's bare Infinity, -Infinity and NaN, which JSON has
 * not, as objects {"__float__": "Infinity"}, as newer files have them. */
struct buf;
void hf_config_spell(const char *text, size_t n, struct buf *out);

/* A scalar is element 0 of 1; null counts as absent. The conversions give false when the element is
 * absent or of another kind: whole numbers may be written as 8.0, infinities as Python does. */
bool hf_config_has(const struct hf_config *config, const char *path);
/* As source_says, source_wrong_null and source_text_type. */
bool hf_config_says(const struct hf_config *config, const char *path);
const char *hf_config_wrong_null(const struct hf_config *config);
struct str hf_config_text_type(const struct hf_config *config);
bool hf_config_null(const struct hf_config *config, const char *path); /* there, and null */
/* As source_blocked. */
size_t hf_config_blocked(const struct hf_config *config, const char *path);
uint64_t hf_config_count(const struct hf_config *config, const char *path);
bool hf_config_u64(const struct hf_config *config, const char *path, uint64_t i, uint64_t *out);
bool hf_config_f64(const struct hf_config *config, const char *path, uint64_t i, double *out);
bool hf_config_bool(const struct hf_config *config, const char *path, uint64_t i, bool *out);
bool hf_config_str(const struct hf_config *config, const char *path, uint64_t i, struct str *out);
/* As source_each_key. */
void hf_config_each(const struct hf_config *config, void (*fn)(void *user, struct str path),
                    void *user);

#endif
