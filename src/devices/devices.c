/* SPDX-License-Identifier: Apache-2.0
 * devices.c: the list of devices, from devices.def. */
#include <string.h>

#include "devices/device.h"

#define DEVICE(name) extern const struct device_type device_##name;
#include "devices/devices.def"
#undef DEVICE

const struct device_type *const device_list[] = {
#define DEVICE(name) &device_##name,
#include "devices/devices.def"
#undef DEVICE
};
const size_t device_count = sizeof device_list / sizeof device_list[0];

const struct device_type *device_find(const char *name) {
    for (size_t i = 0; i < device_count; i++)
        if (strcmp(device_list[i]->name, name) == 0) return device_list[i];
    return NULL;
}

const struct device_type *device_find_at(const char *text, uint32_t *index) {
    enum { DIGITS = 9 };
    char name[32];
    size_t n = strcspn(text, ":");
    *index = 0;
    if (n >= sizeof name) return NULL;
    memcpy(name, text, n);
    name[n] = 0;
    if (text[n] == ':') {
        const char *number = text + n + 1;
        size_t digits = strspn(number, "0123456789");
        if (digits == 0 || digits > DIGITS || number[digits]) return NULL;
        for (size_t i = 0; i < digits; i++) *index = *index * 10 + (uint32_t)(number[i] - '0');
    }
    return device_find(name);
}
