/* SPDX-License-Identifier: Apache-2.0
 * main.c: the program 1bit. */
#include "base/os.h"
#include "cli/cli.h"

int main(int argc, char **argv) {
    os_hold_standard_files();
    os_ignore_broken_pipe();
    return cli_main(argc, argv);
}
