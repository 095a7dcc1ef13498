/* SPDX-License-Identifier: Apache-2.0
 * map_posix.c: see map.h. The guard's table is fixed and written under a lock; the handler only
 * reads it, calls write() and _exit(). */
#define _GNU_SOURCE
#include "base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os.h"

enum { SLOTS = 1024 };
static struct { _Atomic(const uint8_t *) p; size_t size; const char *path; } table[SLOTS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static int guard_add(const struct map *map) {
    int slot = -1;
    pthread_mutex_lock(&table_lock);
    for (int i = 0; i < SLOTS && slot < 0; i++)
        if (!table[i].p) {
            table[i].size = map->size;
            table[i].path = map->path;
            atomic_store(&table[i].p, map->p);
            slot = i;
        }
    pthread_mutex_unlock(&table_lock);
    return slot;
}

ob_status map_open(const char *path, struct map *out, ob_error *error) {
    *out = (struct map){.slot = -1};
    /* O_NONBLOCK: a FIFO is refused below instead of waited for */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    ob_status status = OB_ERR_IO;
    if (fd < 0 || fstat(fd, &st) != 0) {
        status = errno == ENOENT ? OB_ERR_NOT_FOUND : OB_ERR_IO;
        error_set(error, status, "cannot open: %s", strerror(errno));
        goto done;
    }
    if (!S_ISREG(st.st_mode)) {
        error_set(error, status, S_ISDIR(st.st_mode) ? "is a directory" : "not a regular file");
        goto done;
    }
    out->path = strdup(path);
    if (!out->path) {
        status = error_memory(error, "a path", strlen(path));
        goto done;
    }
    out->size = (size_t)st.st_size;
    out->p = (const uint8_t *)"";
    if (out->size) {
        void *p = mmap(NULL, out->size, PROT_READ, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED) {
            error_set(error, status, "cannot map: %s", strerror(errno));
            out->size = 0;
            map_close(out);
            goto done;
        }
        out->p = p;
        out->slot = guard_add(out);
    }
    status = OB_OK;
done:
    if (status != OB_OK) error_at(error, path, NULL, OB_NO_OFFSET);
    if (fd >= 0) close(fd);
    return status;
}

void map_close(struct map *map) {
    if (map->slot >= 0 && map->p && map->size) {
        pthread_mutex_lock(&table_lock);
        atomic_store(&table[map->slot].p, NULL);
        pthread_mutex_unlock(&table_lock);
    }
    if (map->size) munmap((void *)(uintptr_t)map->p, map->size);
    free(map->path);
    *map = (struct map){.slot = -1};
}

static const char *guard_who;

/* Appends to a line of one write; names come from outside: control characters become "?". */
static size_t add(char *line, size_t n, size_t size, const char *text) {
    for (; *text && n < size; text++)
        line[n++] = (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text;
    return n;
}

static void on_bus(int signal_number, siginfo_t *info, void *context) {
    (void)context;
    const uint8_t *at = info->si_addr;
    for (int i = 0; i < SLOTS; i++) {
        const uint8_t *p = atomic_load(&table[i].p);
        if (!p || at < p || at >= p + table[i].size) continue;
        char line[1024];
        size_t n = add(line, 0, 100, guard_who);
        n = add(line, n, n + 2, ": ");
        n = add(line, n, 900, table[i].path);
        n = add(line, n, 1000, ": the file was truncated while in use");
        line[n++] = '\n';
        ssize_t ignored = write(2, line, n);
        (void)ignored;
        _exit(1);
    }
    signal(signal_number, SIG_DFL); /* not ours: die as usual */
    raise(signal_number);
}

void map_guard(const char *who) {
    guard_who = who;
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
