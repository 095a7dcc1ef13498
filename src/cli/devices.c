/* SPDX-License-Identifier: Apache-2.0
 * devices.c: `1bit devices`: where a model could run on this machine, or why not. */
#include <string.h>

#include "cli/cli.h"

static json_t *words(const char *list) {
    json_t *out = json_array();
    for (const char *p = list; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        json_array_append_new(out, json_stringn(p, n));
        p += n;
    }
    return out;
}

/* What --device calls it. */
static void name_of(const ob_device *device, char out[32]) {
    if (device->count > 1) snprintf(out, 32, "%s:%u", device->name, device->index);
    else snprintf(out, 32, "%s", device->name);
}

static int print_json(void) {
    ob_device device;
    json_t *list = json_array();
    for (size_t i = 0; ob_device_at(i, &device); i++)
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:i, s:s, s:o, s:I, s:I}", "name", device.name, "index",
                            (int)device.index, "count", (int)device.count, "description",
                            device.text, "isa", words(device.isa), "memory_total",
                            (json_int_t)device.memory_total, "memory_available",
                            (json_int_t)device.memory_available));
    return cli_print_json(json_pack("{s:o}", "devices", list));
}

static int run(const struct options *options) {
    ob_device device;
    if (options->json) return print_json();
    struct cli_style style = cli_style_for(stdout, options);
    for (size_t i = 0; ob_device_at(i, &device); i++) {
        char total[24], available[24], name[32];
        name_of(&device, name);
        printf("%s%-6s%s %s%s", style.bold, name, style.off, device.count ? "" : "none: ",
               device.text);
        cli_bytes(device.memory_total, total);
        cli_bytes(device.memory_available, available);
        if (device.count) printf("; %s of %s memory available", available, total);
        if (device.isa[0]) printf("; instruction sets: %s", device.isa);
        putchar('\n');
    }
    return EXIT_OK;
}

const struct command command_devices = {
    .name = "devices",
    .summary = "what models can run on here",
    .operands = "",
    .about =
        "Prints the devices of this machine on which a model can run; a name goes to --device. Of "
        "several GPUs each has a number: cuda:1.",
    .run = run,
};
