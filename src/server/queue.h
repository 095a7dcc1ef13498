/* SPDX-License-Identifier: Apache-2.0
 * queue.h: jobs for a few worker threads: what takes too long for an I/O thread (parsing and
 * tokenizing a long prompt) or would block it or the engine's thread (releasing a request). */
#ifndef SERVER_QUEUE_H
#define SERVER_QUEUE_H

#include "onebit.h"

struct queue;

/* The caller's memory, left alone from push until run is called. */
struct job {
    void (*run)(struct job *job);
    struct job *next;
};

ob_status queue_open(uint32_t threads, struct queue **out, ob_error *error);
/* Runs what was pushed, then ends the threads. */
void queue_close(struct queue **queue);
void queue_push(struct queue *queue, struct job *job); /* any thread; does not block */

#endif
