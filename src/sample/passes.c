/* SPDX-License-Identifier: Apache-2.0
 * passes.c: which of the passes this machine runs. */
#include "sample/passes.h"

#include <stdatomic.h>

#include "base/cpu.h"

static const struct sample_passes *find(void) {
#if defined __x86_64__
    if (cpu_has(CPU_AVX512)) return &sample_passes_avx512;
    if (cpu_has(CPU_AVX2)) return &sample_passes_avx2;
#endif
    return &sample_passes_scalar;
}

/* To ask the processor takes some 20 microseconds in a virtual machine: once. */
const struct sample_passes *sample_passes(void) {
    static _Atomic(const struct sample_passes *) best;
    const struct sample_passes *passes = atomic_load_explicit(&best, memory_order_relaxed);
    if (passes) return passes;
    passes = find();
    atomic_store_explicit(&best, passes, memory_order_relaxed);
    return passes;
}
