/* SPDX-License-Identifier: Apache-2.0
 * main.c: the program 1bit. */
#include "base/map.h"
#include "base/os.h"
#include "cli/cli.h"

int main(int argc, char **argv) {
    map_guard();
    os_ignore_broken_pipe();
    return cli_main(argc, argv);
}
