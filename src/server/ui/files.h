/* SPDX-License-Identifier: Apache-2.0
 * files.h: the files of the chat page, as tools/embed_files.py has put them into the program. The
 * list of them is in meson.build. */
#ifndef SERVER_UI_FILES_H
#define SERVER_UI_FILES_H

#include <stddef.h>

struct ui_file {
    const char *name, *type;
    const char *tag; /* with its quotes, as the header ETag wants it; another for other bytes */
    const unsigned char *bytes;
    size_t n;
};

extern const struct ui_file ui_files[];
extern const size_t ui_files_n;

#endif
