/* SPDX-License-Identifier: Apache-2.0
 * script.h: the script of a code point, as the reference's pre-tokenizer UnicodeScripts tells them
 * apart (tools/make_script.py). Numbers without names: only whether two are the same matters. */
#ifndef TEXT_SCRIPT_H
#define TEXT_SCRIPT_H

#include <stdint.h>

enum { SCRIPT_ANY = 0 }; /* goes with any other: the space, and what is unassigned */
int script_of(uint32_t code);

#endif
