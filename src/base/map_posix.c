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
#include <sys/resource.h>
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
    *out = (struct map){.slot = -1, .fd = -1};
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
        out->fd = fd;
        fd = -1;
    }
    status = OB_OK;
done:
    if (status != OB_OK) error_at(error, path, NULL, OB_NO_OFFSET);
    if (fd >= 0) close(fd);
    return status;
}

static void guard_remove(struct map *map) {
    if (map->slot < 0) return;
    pthread_mutex_lock(&table_lock);
    atomic_store(&table[map->slot].p, NULL);
    pthread_mutex_unlock(&table_lock);
    map->slot = -1;
}

void map_close(struct map *map) {
    if (map->size) {
        guard_remove(map);
        munmap((void *)(uintptr_t)map->p, map->size);
        close(map->fd);
    }
    free(map->path);
    *map = (struct map){.slot = -1, .fd = -1};
}

/* ---- loading ---- */

enum { PIECE = 16 << 20, SMALLEST_PAGE = 4096 };

static ob_status fail(const struct map *map, ob_status status, const char *what, ob_error *error) {
    error_set(error, status, "%s: %s", what, strerror(errno));
    error_at(error, map->path, NULL, OB_NO_OFFSET);
    return status;
}

static void report(const struct map_load *load, size_t bytes) {
    if (load->progress) load->progress(load->user, bytes);
}

/* The copy takes the place of the mapping, so that pointers into it stay good. */
static ob_status copy(struct map *map, const struct map_load *load, ob_error *error) {
    uint8_t *p = mmap((void *)(uintptr_t)map->p, map->size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (p == MAP_FAILED) return fail(map, OB_ERR_LIMIT, "no memory for a copy", error);
    guard_remove(map);
    madvise(p, map->size, MADV_HUGEPAGE); /* a wish */
    for (size_t at = 0; at < map->size;) {
        size_t n = map->size - at < PIECE ? map->size - at : PIECE;
        ssize_t got = pread(map->fd, p + at, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail(map, OB_ERR_IO, "cannot read", error);
        if (got == 0) {
            error_set(error, OB_ERR_IO, "the file was truncated while it was read");
            error_at(error, map->path, NULL, at);
            return OB_ERR_IO;
        }
        at += (size_t)got;
        report(load, (size_t)got);
    }
    mprotect(p, map->size, PROT_READ);
    return OB_OK;
}

/* Waits for the pieces that are not in memory, the disk a few pieces ahead. The others cost
 * nothing: the threads that compute fault them in, several at once. */
static void read_ahead(const struct map *map, const struct map_load *load) {
    enum { AHEAD = 4 };
    unsigned char there[PIECE / SMALLEST_PAGE];
    size_t page = os_page_size(), asked = 0;
    uint8_t *p = (uint8_t *)(uintptr_t)map->p;
    for (size_t at = 0; at < map->size; at += PIECE) {
        size_t n = map->size - at < PIECE ? map->size - at : PIECE, missing = 0;
        size_t pages = (n + page - 1) / page;
        if (mincore(p + at, n, there) == 0)
            for (size_t i = 0; i < pages; i++) missing += !(there[i] & 1);
        if (missing) {
            size_t from = asked > at ? asked : at, end = at + (size_t)PIECE * AHEAD;
            if (end > map->size) end = map->size;
            if (from < end) madvise(p + from, end - from, MADV_WILLNEED);
            asked = end;
            for (size_t i = 0; i < n; i += page) (void)*(volatile const uint8_t *)(p + at + i);
        }
        report(load, n);
    }
}

static ob_status lock(const struct map *map, ob_error *error) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) { /* as much as we may ask for */
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_MEMLOCK, &limit);
    }
    if (mlock(map->p, map->size) == 0) return OB_OK;
    if (errno != ENOMEM && errno != EPERM)
        return fail(map, OB_ERR_LIMIT, "cannot lock it in memory", error);
    error_set(error, OB_ERR_LIMIT,
              "cannot lock its %zu MiB in memory: the limit is %llu MiB (ulimit -l, or "
              "LimitMEMLOCK of a service)",
              map->size >> 20, (unsigned long long)limit.rlim_cur >> 20);
    error_at(error, map->path, NULL, OB_NO_OFFSET);
    return OB_ERR_LIMIT;
}

ob_status map_load(struct map *map, const struct map_load *load, ob_error *error) {
    ob_status status = OB_OK;
    if (map->size == 0) return OB_OK;
    if (load->copy) status = copy(map, load, error);
    else if (load->read_ahead || load->lock) read_ahead(map, load);
    return status == OB_OK && load->lock ? lock(map, error) : status;
}

/* FNV-1a, 64 bit. */
static uint64_t mix(uint64_t hash, const void *data, size_t n) {
    const uint8_t *p = data;
    for (size_t i = 0; i < n; i++) hash = (hash ^ p[i]) * 1099511628211u;
    return hash;
}

uint64_t map_identity(const struct map *map, uint64_t hash) {
    enum { SAMPLE = 64 << 10 };
    struct stat st;
    hash = mix(hash, &map->size, sizeof map->size);
    if (map->size == 0) return hash;
    if (fstat(map->fd, &st) == 0) {
        hash = mix(hash, &st.st_mtim.tv_sec, sizeof st.st_mtim.tv_sec);
        hash = mix(hash, &st.st_mtim.tv_nsec, sizeof st.st_mtim.tv_nsec);
    }
    size_t n = map->size < SAMPLE ? map->size : SAMPLE;
    hash = mix(hash, map->p, n);
    hash = mix(hash, map->p + (map->size - n) / 2, n);
    return mix(hash, map->p + map->size - n, n);
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
