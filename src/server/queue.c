/* SPDX-License-Identifier: Apache-2.0
 * queue.c: see queue.h. First in, first out. */
#include "server/queue.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/os.h"

struct queue {
    os_mutex lock;
    os_cond work;
    struct job *first, **last;
    bool closing;
    uint32_t threads;
    os_thread thread[];
};

static void *queue_main(void *arg) {
    struct queue *queue = arg;
    os_lock(&queue->lock);
    for (;;) {
        struct job *job = queue->first;
        if (!job) {
            if (queue->closing) break;
            os_wait(&queue->work, &queue->lock);
            continue;
        }
        queue->first = job->next;
        if (!queue->first) queue->last = &queue->first;
        os_unlock(&queue->lock);
        job->run(job);
        os_lock(&queue->lock);
    }
    os_unlock(&queue->lock);
    return NULL;
}

ob_status queue_open(uint32_t threads, struct queue **out, ob_error *error) {
    *out = NULL;
    struct queue *queue = calloc(1, sizeof *queue + threads * sizeof queue->thread[0]);
    if (!queue) return error_memory(error, "worker threads", threads);
    queue->last = &queue->first;
    os_mutex_init(&queue->lock);
    os_cond_init(&queue->work);
    while (queue->threads < threads &&
           os_thread_start(&queue->thread[queue->threads], queue_main, queue))
        queue->threads++;
    *out = queue;
    if (queue->threads == threads) return OB_OK;
    queue_close(out);
    return error_set(error, OB_ERR_MEMORY, "cannot start a worker thread");
}

void queue_close(struct queue **p) {
    struct queue *queue = *p;
    if (!queue) return;
    os_lock(&queue->lock);
    queue->closing = true;
    os_broadcast(&queue->work);
    os_unlock(&queue->lock);
    for (uint32_t i = 0; i < queue->threads; i++) os_thread_join(&queue->thread[i]);
    os_cond_free(&queue->work);
    os_mutex_free(&queue->lock);
    free(queue);
    *p = NULL;
}

void queue_push(struct queue *queue, struct job *job) {
    job->next = NULL;
    os_lock(&queue->lock);
    *queue->last = job;
    queue->last = &job->next;
    os_signal(&queue->work);
    os_unlock(&queue->lock);
}
