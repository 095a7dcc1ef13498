/* SPDX-License-Identifier: Apache-2.0
 * models.h: face of models/. */
#ifndef MODELS_MODELS_H
#define MODELS_MODELS_H
#include "models/model.h"
#endif
