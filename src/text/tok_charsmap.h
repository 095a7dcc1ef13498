/* SPDX-License-Identifier: Apache-2.0
 *
 * tok_charsmap.h: SentencePiece's compiled normalization rules (`precompiled_charsmap`): a double
 * array of byte strings (darts-clone's units), each with the place of what replaces it. Immutable
 * after opening. The layout: u32 bytes of the array, the array, the replacements, NUL at each end.
 *
 *   unit   bits 0-7 label, 8 has a leaf, 9 offset is << 8, 10-30 offset; a leaf's unit has bit 31
 *          clear in its label and bits 0-30 are the value */
#ifndef TEXT_TOK_CHARSMAP_H
#define TEXT_TOK_CHARSMAP_H

#include "base/arena.h"
#include "base/str.h"
#include "onebit.h"

struct charsmap;

/* clusters: applied as the reference does, by grapheme clusters, shortest match; else as
 * SentencePiece does, the longest match at each place. An empty map changes nothing. */
ob_status charsmap_open(struct str bytes, bool clusters, struct arena *arena,
                        struct charsmap **out, ob_error *error);
ob_status charsmap_base64(struct str text, bool clusters, struct arena *arena,
                          struct charsmap **out, ob_error *error);

#endif
