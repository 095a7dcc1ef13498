/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu.h: what this processor can run, as the compiler's and the OS's state allow. The ISA levels
 * are the folders of kernels/: each contains the ones before it on its architecture. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdbool.h>
#include <stdint.h>

enum cpu_isa {
    CPU_SCALAR,
    CPU_AVX2,    /* AVX2 + FMA + F16C */
    CPU_AVXVNNI, /* with AVX-VNNI: Intel from Alder Lake, Zen 5 */
    CPU_AVX512,  /* F, BW, DQ, VL, VNNI, VBMI: Ice Lake, Zen 4 and later */
    CPU_AMX,     /* tiles of BF16, with AVX512-BF16: Sapphire Rapids; the system must let us */
    CPU_NEON,    /* Armv8.2 with dotprod and fp16 */
    CPU_I8MM,    /* with I8MM: Armv8.6, Neoverse V1 and N2, Apple M2 */
    CPU_ISAS
};

/* The best level of this machine. */
enum cpu_isa cpu_best(void);
bool cpu_has(enum cpu_isa isa);
/* Of a level that the processor has and the system or this build has not, the reason; or NULL. */
const char *cpu_refusal(enum cpu_isa isa);
const char *cpu_isa_name(enum cpu_isa isa);
/* What the lowest level above plain C of this architecture needs: "dotprod and fp16". */
const char *cpu_wants(void);
/* false if there is no such name. */
bool cpu_isa_find(const char *name, enum cpu_isa *out);

#endif
