/* SPDX-License-Identifier: Apache-2.0
 * text.h: face of text/: tokenizers, chat templates. */
#ifndef TEXT_TEXT_H
#define TEXT_TEXT_H
#include "text/chat.h"
#include "text/jinja/jinja.h"
#include "text/tok.h"
#endif
