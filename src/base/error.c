/* SPDX-License-Identifier: Apache-2.0
 * error.c: see error.h; also the public status texts of onebit.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *ob_status_text(ob_status status) {
    static const char *const text[] = {
#define ERROR_CODE(name, string) [OB_##name] = (string),
#include "onebit_errors.def"
#undef ERROR_CODE
    };
    size_t i = (size_t)status;
    return i < sizeof text / sizeof text[0] ? text[i] : "unknown error";
}

static void copy(char *out, size_t size, const char *in) {
    if (in && !out[0]) snprintf(out, size, "%s", in);
}

const char *ob_error_line(const ob_error *error, char *out, size_t size) {
    char at[40] = "";
    if (error->offset != OB_NO_OFFSET)
        snprintf(at, sizeof at, " (offset %llu)", (unsigned long long)error->offset);
    snprintf(out, size, "%s%s%s%s%s%s", error->file, error->file[0] ? ": " : "", error->where,
             error->where[0] ? ": " : "",
             error->message[0] ? error->message : ob_status_text(error->status), at);
    for (char *p = out; *p; p++)  /* names come from files: keep it one printable line */
        if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = '?';
    return out;
}

ob_status error_set(ob_error *error, ob_status status, const char *format, ...) {
    if (!error) return status;
    memset(error, 0, sizeof *error);
    error->status = status;
    error->offset = OB_NO_OFFSET;
    va_list args;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    return status;
}

void error_at(ob_error *error, const char *file, const char *where, uint64_t offset) {
    if (!error) return;
    copy(error->file, sizeof error->file, file);
    copy(error->where, sizeof error->where, where);
    if (offset != OB_NO_OFFSET && error->offset == OB_NO_OFFSET) error->offset = offset;
}

ob_status error_memory(ob_error *error, const char *what, size_t bytes) {
    return error_set(error, OB_ERR_MEMORY, "out of memory: %zu bytes for %s", bytes, what);
}
