/* SPDX-License-Identifier: Apache-2.0
 * script.c: see script.h: sorted runs, halved. */
#include "text/script.h"

#include <stddef.h>

struct run {
    uint32_t first, last;
    int script;
};

#include "text/script_table.h"

int script_of(uint32_t code) {
    size_t low = 0, high = sizeof runs / sizeof runs[0];
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (code < runs[mid].first) high = mid;
        else if (code > runs[mid].last) low = mid + 1;
        else return runs[mid].script;
    }
    return SCRIPT_ANY;
}
