/* SPDX-License-Identifier: Apache-2.0
 * bert.h: classes of characters of BERT's tokenizers, as the reference has them (its tables are of
 * several Unicode versions: tools/make_bert_table.py). Any value is a valid argument. */
#ifndef TEXT_BERT_H
#define TEXT_BERT_H

#include <stdbool.h>
#include <stdint.h>

bool bert_is_removed(uint32_t code);     /* controls and the like */
bool bert_is_chinese(uint32_t code);     /* a word of its own */
bool bert_is_mark(uint32_t code);        /* dropped with the accents */
bool bert_is_whole(uint32_t code);       /* not taken apart, although Unicode does */
bool bert_is_whole_compat(uint32_t code); /* the same of compatibility decompositions */
bool bert_is_combining(uint32_t code);   /* dropped by the normalizer StripAccents */
bool bert_is_punctuation(uint32_t code); /* a word of its own */
/* But U+0130, which becomes two characters. */
uint32_t bert_lower(uint32_t code);

#endif
