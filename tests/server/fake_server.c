/* SPDX-License-Identifier: Apache-2.0
 * fake_server.c: the server over fake_engine.c:
 * fake_server MODEL [HOST [PORT [KEYS [ORIGINS]]]]; see there what MODEL means. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/server.h"

static void notice(void *user, const char *line) {
    (void)user;
    fprintf(stderr, "fake_server: %s\n", line);
}

int main(int argc, char **argv) {
    ob_error error;
    char line[1024];
    struct server_options options = {.host = argc > 2 ? argv[2] : NULL,
                                     .port = argc > 3 ? (uint16_t)atoi(argv[3]) : 0,
                                     .keys = argc > 4 && argv[4][0] ? argv[4] : NULL,
                                     .origins = argc > 5 && argv[5][0] ? argv[5] : NULL,
                                     .engine = {.model = argc > 1 ? argv[1] : NULL},
                                     .ping_seconds =
                                         argc > 1 && strstr(argv[1], "ping") ? 0.05 : 0,
                                     .notice = notice};
    if (server_run(&options, &error) == OB_OK) return 0;
    fprintf(stderr, "fake_server: %s\n", ob_error_line(&error, line, sizeof line));
    return 1;
}
