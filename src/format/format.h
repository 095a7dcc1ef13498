/* SPDX-License-Identifier: Apache-2.0
 * format.h: face of format/: bytes on disk to bounds-checked views. */
#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H
#include "format/gguf.h"
#include "format/gguf_write.h"
#include "format/json_pull.h"
#include "format/safetensors.h"
#include "format/source.h"
#endif
