/* SPDX-License-Identifier: Apache-2.0
 * golden_unpack.c: a tool, not a test: writes a family of the goldens, or a fixture, as a model
 * directory, for those who want to run something else on it. */
#include <stdio.h>

#include "base/os.h"
#include "golden.h"

int main(int argc, char **argv) {
    struct golden *golden;
    char folder[1024], line[1024];
    ob_error error;
    if (argc != 3) {
        fprintf(stderr, "usage: golden_unpack NAME|FOLDER DIR\n");
        return 2;
    }
    snprintf(folder, sizeof folder, "tests/golden/families/%s", argv[1]);
    ob_status s = golden_open(os_is_dir(folder) ? folder : argv[1], &golden, &error);
    if (s == OB_OK) {
        if (os_mkdirs(argv[2])) s = golden_unpack(golden, "config.json", argv[2], &error);
        else s = OB_ERR_IO, snprintf(error.message, sizeof error.message, "cannot be made");
        golden_close(&golden);
    }
    if (s == OB_OK) return 0;
    fprintf(stderr, "golden_unpack: %s\n", ob_error_line(&error, line, sizeof line));
    return 1;
}
