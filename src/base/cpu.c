/* SPDX-License-Identifier: Apache-2.0
 * cpu.c: see cpu.h. */
#include "base/cpu.h"

#include <string.h>

#include "base/os.h"
#if defined(__aarch64__)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const names[CPU_ISAS] = {"scalar", "avx2", "avxvnni", "avx512",
                                             "amx",    "neon", "i8mm"};

#if defined(__x86_64__)
/* clang 14's __builtin_cpu_supports does not know "f16c". That the system saves the registers is
 * covered by "avx2". */
static bool has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
/* Nor "avxvnni". */
static bool has_avxvnni(void) {
    enum { AVX_VNNI = 1 << 4 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & AVX_VNNI);
}
static bool has_amx(void) {
    enum { AVX512_BF16 = 1 << 5, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned a, b, c, d, more;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX_BF16) && (d & AMX_TILE) &&
           __get_cpuid_count(7, 1, &more, &b, &c, &d) && (more & AVX512_BF16);
}
#endif

bool cpu_has(enum cpu_isa isa) {
    switch (isa) {
        case CPU_SCALAR: return true;
#if defined(__x86_64__)
        case CPU_AVX2:
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
        case CPU_AVXVNNI: return cpu_has(CPU_AVX2) && has_avxvnni();
        case CPU_AVX512:
            return cpu_has(CPU_AVX2) && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni") &&
                   __builtin_cpu_supports("avx512vbmi");
#if defined(OB_AMX)
        case CPU_AMX: return cpu_has(CPU_AVX512) && has_amx() && os_allow_tiles();
#endif
#elif defined(__aarch64__)
        case CPU_NEON: {
            enum { ASIMDHP = 1 << 10, ASIMDDP = 1 << 20 };
            unsigned long caps = getauxval(AT_HWCAP);
            return (caps & ASIMDHP) && (caps & ASIMDDP);
        }
        case CPU_I8MM: {
            enum { I8MM = 1 << 13 };
            return cpu_has(CPU_NEON) && (getauxval(AT_HWCAP2) & I8MM);
        }
#endif
        default: return false;
    }
}

const char *cpu_refusal(enum cpu_isa isa) {
#if defined(__x86_64__)
    if (isa == CPU_AMX && !cpu_has(isa) && cpu_has(CPU_AVX512) && has_amx())
        return os_allow_tiles() ? "this build has no amx kernels"
                                : "the system does not let this program use amx";
#endif
    (void)isa;
    return NULL;
}

enum cpu_isa cpu_best(void) {
    for (int i = CPU_ISAS - 1; i > CPU_SCALAR; i--)
        if (cpu_has((enum cpu_isa)i)) return (enum cpu_isa)i;
    return CPU_SCALAR;
}

const char *cpu_wants(void) {
#if defined(__x86_64__)
    return "AVX2, FMA and F16C";
#elif defined(__aarch64__)
    return "dotprod and fp16";
#else
    return "kernels for this architecture";
#endif
}

const char *cpu_isa_name(enum cpu_isa isa) { return names[isa]; }

bool cpu_isa_find(const char *name, enum cpu_isa *out) {
    for (int i = 0; i < CPU_ISAS; i++)
        if (strcmp(name, names[i]) == 0) return *out = (enum cpu_isa)i, true;
    return false;
}
