/* SPDX-License-Identifier: Apache-2.0
 * family.h: a family of the goldens as a model directory, in the test program's own directory
 * (tempdir.h). */
#ifndef TESTS_FAMILY_H
#define TESTS_FAMILY_H

#include "golden.h"

/* `into`, which replaces a family that is already there. */
static inline const char *family_unpack(const char *name, const char *into) {
    char folder[256], line[1024];
    struct golden *golden;
    ob_error error;
    snprintf(folder, sizeof folder, "tests/golden/families/%s", name);
    ob_status s = golden_open(folder, &golden, &error);
    if (s == OB_OK) {
        s = golden_unpack(golden, "config.json", into, &error);
        golden_close(&golden);
    }
    if (s != OB_OK) fail_msg("%s", ob_error_line(&error, line, sizeof line));
    return into;
}

#endif
