/* SPDX-License-Identifier: Apache-2.0
 * base.h: face of base/, the layer everything stands on. */
#ifndef BASE_BASE_H
#define BASE_BASE_H
#include "base/arena.h"
#include "base/buf.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/log.h"
#include "base/map.h"
#include "base/net.h"
#include "base/os.h"
#include "base/pool.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/utf8.h"
#endif
