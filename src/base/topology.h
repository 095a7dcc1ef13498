/* SPDX-License-Identifier: Apache-2.0
 *
 * topology.h: on which processors of the machine threads run, by its cores, their hardware threads,
 * NUMA nodes and kinds of cores (hwloc reads them). Immutable after open, so thread safe. */
#ifndef BASE_TOPOLOGY_H
#define BASE_TOPOLOGY_H

#include <stdint.h>

#include "onebit.h"

struct topology;

/* What this process may use of this machine; for tests: hwloc's description of another
 * ("numa:2 core:4 pu:2"), of which the processors in the list `slow` (or NULL) are slow cores. */
ob_status topology_open(const char *description, const char *slow, struct topology **out,
                        ob_error *error);
void topology_close(struct topology **topology);

struct topology_want {
    uint32_t threads;     /* 0: see below */
    const char *cpu_mask; /* "0-3,8" or "0xff": these processors alone; NULL: all */
    const char *numa;     /* "none" or NULL; "distribute": in turn over the nodes; "isolate": only
                           * the node that this thread runs on */
};
struct topology_choice {
    uint32_t threads;
    uint32_t *cpu; /* [threads], malloc'd: thread i runs on cpu[i] alone; NULL: where it likes */
};
/* Without a number of threads: one a processor of the mask; without a mask one a fast core, but no
 * more than the processor time that the system grants (cgroup). Cores are used before second
 * hardware threads, fast ones before slow ones. Threads are bound only if a mask or a NUMA policy
 * is given; then there may not be more of them than processors.
 * OB_ERR_ARGUMENT names the field of `want`. */
ob_status topology_choose(const struct topology *topology, const struct topology_want *want,
                          struct topology_choice *out, ob_error *error);

#endif
