/* SPDX-License-Identifier: Apache-2.0
 *
 * hf_defaults.h: what a key of config.json means that is not there, by model type: the defaults of
 * transformers' configuration classes (hf_defaults_table.h, generated). A row is an object with a
 * value for each key that has a default, and for those that read it:
 *
 *     "?"  keys that may be null, which means none (false); other keys with a default may not be
 *     ":"  keys that may be null, which means the default
 *     "="  other names of keys: an object of theirs to ours
 *     "text", "text_is"  of a model with a language model inside: the model type that text_config
 *          has, if it names none; whatever it names */
#ifndef FORMAT_HF_DEFAULTS_H
#define FORMAT_HF_DEFAULTS_H

#include "base/str.h"

/* The row, JSON but with ' for "; NULL: none. */
const char *hf_defaults_of(struct str model_type);

#endif
