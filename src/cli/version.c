/* SPDX-License-Identifier: Apache-2.0
 * version.c: `1bit version`. */
#include "cli/cli.h"

static int run(const struct options *options) {
    (void)options;
    puts("1bit " OB_VERSION);
    return EXIT_OK;
}

const struct command command_version = {
    .name = "version",
    .summary = "print the version",
    .operands = "",
    .about = "Prints the version.",
    .run = run,
};
