/* SPDX-License-Identifier: Apache-2.0
 * devices.c: `1bit devices`: where a model could run on this machine, or why not. */
#include "base/cpu.h"
#include "base/os.h"
#include "cli/cli.h"

static int print_json(void) {
    json_t *isas = json_array();
    for (int isa = 0; isa < CPU_ISAS; isa++)
        if (cpu_has((enum cpu_isa)isa))
            json_array_append_new(isas, json_string(cpu_isa_name((enum cpu_isa)isa)));
    return cli_print_json(json_pack("{s:[{s:s, s:i, s:o, s:s, s:I, s:I}, {s:s}]}", "devices",
                                    "name", "cpu", "cores", (int)os_cores(), "isa", isas,
                                    "best_isa", cpu_isa_name(cpu_best()), "memory_total",
                                    (json_int_t)os_memory_total(), "memory_available",
                                    (json_int_t)os_memory_available(), "name", "ref"));
}

static int run(const struct options *options) {
    if (options->json) return print_json();
    struct cli_style style = cli_style_for(stdout, options);
    char total[24], available[24];
    cli_bytes(os_memory_total(), total);
    cli_bytes(os_memory_available(), available);
    printf("%scpu%s   %u cores, instruction sets", style.bold, style.off, os_cores());
    for (int isa = 0; isa < CPU_ISAS; isa++)
        if (cpu_has((enum cpu_isa)isa)) printf(" %s", cpu_isa_name((enum cpu_isa)isa));
    printf("; %s of %s memory available\n", available, total);
    printf("%sref%s   the plain definition of every operation, slow, for comparison\n", style.bold,
           style.off);
    return EXIT_OK;
}

const struct command command_devices = {
    .name = "devices",
    .summary = "what models can run on here",
    .operands = "",
    .about =
        "Prints the devices of this machine on which a model can run; a name goes to --device.",
    .run = run,
};
