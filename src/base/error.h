/* SPDX-License-Identifier: Apache-2.0
 * error.h: filling the caller's ob_error. All functions accept error == NULL. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "onebit.h"

/* Sets status and message, clears file, where and offset; returns status. */
ob_status error_set(ob_error *error, ob_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds the place to an error already set; NULL or OB_NO_OFFSET leave a field as it is. A field
 * already filled is kept: the innermost caller knows best. */
void error_at(ob_error *error, const char *file, const char *where, uint64_t offset);

/* error_set(OB_ERR_MEMORY) naming what was wanted. */
ob_status error_memory(ob_error *error, const char *what, size_t bytes);

#endif
