/* SPDX-License-Identifier: Apache-2.0
 * os_posix.c: os.h for Linux and other POSIX systems. */
#define _GNU_SOURCE
#include "base/os.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif
#include <time.h>
#include <unistd.h>

#include "base/error.h"

/* ---- threads ---- */
void os_mutex_init(os_mutex *m) { pthread_mutex_init(&m->h, NULL); }
void os_mutex_free(os_mutex *m) { pthread_mutex_destroy(&m->h); }
void os_lock(os_mutex *m) { pthread_mutex_lock(&m->h); }
void os_unlock(os_mutex *m) { pthread_mutex_unlock(&m->h); }

void os_cond_init(os_cond *c) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->h, &attr);
    pthread_condattr_destroy(&attr);
}
void os_cond_free(os_cond *c) { pthread_cond_destroy(&c->h); }
void os_wait(os_cond *c, os_mutex *m) { pthread_cond_wait(&c->h, &m->h); }

bool os_wait_for(os_cond *c, os_mutex *m, double seconds) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    long long ns = t.tv_nsec + (long long)(seconds * 1e9);
    t.tv_sec += (time_t)(ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    return pthread_cond_timedwait(&c->h, &m->h, &t) == 0;
}
void os_signal(os_cond *c) { pthread_cond_signal(&c->h); }
void os_broadcast(os_cond *c) { pthread_cond_broadcast(&c->h); }

bool os_thread_start(os_thread *t, void *(*fn)(void *), void *arg) {
    int rc = pthread_create(&t->h, NULL, fn, arg);
    if (rc) errno = rc;
    return rc == 0;
}
void os_thread_join(os_thread *t) { pthread_join(t->h, NULL); }
void os_call_once(os_once *once, void (*fn)(void)) { pthread_once(&once->h, fn); }
void os_yield(void) { sched_yield(); }

void os_relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* ---- time ---- */
double os_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double os_local_time(void) {
    struct tm local;
    time_t now = time(NULL);
    return (double)now + (localtime_r(&now, &local) ? (double)local.tm_gmtoff : 0);
}

/* ---- the end of a program that serves ---- */
static sem_t stop;

static void on_stop_signal(int signal_number) {
    (void)signal_number;
    int why = errno;
    sem_post(&stop);
    errno = why;
}

void os_stop_on_signals(void) {
    struct sigaction action = {.sa_handler = on_stop_signal, .sa_flags = SA_RESTART | SA_RESETHAND};
    sem_init(&stop, 0, 0);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}
void os_stop(void) { sem_post(&stop); }
void os_stop_wait(void) {
    while (sem_wait(&stop) != 0) continue; /* interrupted by another signal */
}

/* ---- machine ---- */
uint32_t os_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (uint32_t)n : 1;
}

static _Thread_local cpu_set_t unconfined;
static _Thread_local bool confined;

bool os_thread_confine(uint32_t cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
    if (!confined && sched_getaffinity(0, sizeof unconfined, &unconfined) != 0) return false;
    confined = sched_setaffinity(0, sizeof set, &set) == 0 || confined;
    return confined;
}

void os_thread_release(void) {
    if (confined) sched_setaffinity(0, sizeof unconfined, &unconfined);
    confined = false;
}

bool os_allow_tiles(void) {
#if defined(__linux__) && defined(__x86_64__)
    enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#else
    return false;
#endif
}
size_t os_page_size(void) { return (size_t)sysconf(_SC_PAGESIZE); }

uint64_t os_files_max(void) {
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? (uint64_t)limit.rlim_cur : 1024;
}

uint64_t os_memory_total(void) {
    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The number after `key` in a small text file, or `otherwise`. */
static uint64_t number_in(const char *path, const char *key, uint64_t otherwise) {
    FILE *f = fopen(path, "r");
    if (!f) return otherwise;
    char line[256];
    uint64_t out = otherwise;
    unsigned long long v;
    while (fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%llu", &v) == 1) {
            out = v;
            break;
        }
    fclose(f);
    return out;
}

uint64_t os_memory_available(void) {
    uint64_t kib = number_in("/proc/meminfo", "MemAvailable:", os_memory_total() / 2048);
    uint64_t bytes = kib * 1024;
    uint64_t max = number_in("/sys/fs/cgroup/memory.max", "", UINT64_MAX);
    if (max != UINT64_MAX) {
        uint64_t used = number_in("/sys/fs/cgroup/memory.current", "", 0);
        uint64_t left = max > used ? max - used : 0;
        if (left < bytes) bytes = left;
    }
    return bytes;
}

uint32_t os_cpu_quota(void) {
    unsigned long long quota, period;
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (!f) return UINT32_MAX;
    bool limited = fscanf(f, "%llu %llu", &quota, &period) == 2 && period > 0 && quota > 0;
    fclose(f);
    unsigned long long cpus = limited ? (quota - 1) / period + 1 : UINT32_MAX;
    return cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

/* ---- memory ---- */
void *os_reserve(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}
void os_unreserve(void *p, size_t bytes) {
    if (p) munmap(p, bytes);
}
void os_discard(void *p, size_t bytes) { madvise(p, bytes, MADV_DONTNEED); }

/* ---- files ---- */
bool os_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}
bool os_is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}
bool os_is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool os_name_taken(const char *path) {
    struct stat st;
    return lstat(path, &st) == 0;
}

bool os_truncate(const char *path, uint64_t size) { return truncate(path, (off_t)size) == 0; }
bool os_truncate_open(FILE *file, uint64_t size) {
    return ftruncate(fileno(file), (off_t)size) == 0;
}

/* Locks the file that the name stands for now: 1; 0 if it is another one by now, -1 and errno. */
static int lock_alone(int fd, const char *path) {
    struct stat opened, named;
    if (fstat(fd, &opened) != 0) return -1;
    if (!S_ISREG(opened.st_mode)) return errno = EEXIST, -1;
    /* File systems without locks leave it at what the caller reads in the file. */
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return -1;
    return lstat(path, &named) == 0 && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

FILE *os_open_alone(const char *path) {
    int fd, locked, tries = 8; /* some network file systems number a file anew each time */
    do { /* again when who had it has just renamed it */
        /* O_NONBLOCK: a FIFO is refused instead of waited for */
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (fd < 0) {
            if (errno == ELOOP || errno == EISDIR || errno == ENXIO) errno = EEXIST;
            return NULL;
        }
        locked = lock_alone(fd, path);
        if (locked == 0 && --tries) close(fd);
    } while (locked == 0 && tries);
    FILE *file = locked >= 0 ? fdopen(fd, "r+b") : NULL;
    if (!file) {
        int error = errno;
        close(fd);
        errno = error;
    }
    return file;
}

bool os_sync(FILE *file) {
    return fflush(file) == 0 && (fsync(fileno(file)) == 0 || errno == EINVAL || errno == ENOTSUP);
}

bool os_rename_new(const char *from, const char *to) {
#ifdef RENAME_NOREPLACE
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
#endif
    /* Where the system has no such call: the name is made ours first. */
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return false;
    close(fd);
    if (rename(from, to) == 0) return true;
    int error = errno;
    unlink(to);
    errno = error;
    return false;
}

bool os_mkdirs(const char *path) {
    char part[4096];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof part) return errno = ENAMETOOLONG, false;
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != 0) continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST) return false;
    }
    return os_is_dir(path);
}

ob_status os_read_file(const char *path, size_t limit, char **out, size_t *n, ob_error *error) {
    ob_status status = OB_ERR_IO;
    char *p = NULL;
    /* O_NONBLOCK: a FIFO is refused below instead of waited for */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 && errno == ENOENT && lstat(path, &st) == 0) {
        error_set(error, status, "is a link to a file that is not there");
        goto done;
    }
    if (fd < 0 || fstat(fd, &st) != 0) {
        error_set(error, status = errno == ENOENT ? OB_ERR_NOT_FOUND : OB_ERR_IO, "cannot open: %s",
                  strerror(errno));
        goto done;
    }
    if (!S_ISREG(st.st_mode)) {
        error_set(error, status, S_ISDIR(st.st_mode) ? "is a directory" : "not a regular file");
        goto done;
    }
    if ((uint64_t)st.st_size > limit) {
        error_set(error, status = OB_ERR_LIMIT, "%llu bytes, at most %zu are read",
                  (unsigned long long)st.st_size, limit);
        goto done;
    }
    size_t size = (size_t)st.st_size, at = 0;
    p = malloc(size + 1);
    if (!p) {
        status = error_memory(error, "a file", size + 1);
        goto done;
    }
    while (at < size) {
        ssize_t got = read(fd, p + at, size - at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            error_set(error, status, "cannot read: %s", strerror(errno));
            goto done;
        }
        if (got == 0) break;
        at += (size_t)got;
    }
    p[at] = 0;
    *out = p;
    *n = at;
    p = NULL;
    status = OB_OK;
done:
    if (status != OB_OK) error_at(error, path, NULL, OB_NO_OFFSET);
    if (fd >= 0) close(fd);
    free(p);
    return status;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void os_free_list(char **names, size_t n) {
    for (size_t i = 0; i < n; i++) free(names[i]);
    free(names);
}

ob_status os_list_dir(const char *path, char ***names, size_t *n, ob_error *error) {
    DIR *dir = opendir(path);
    if (!dir) {
        ob_status s = errno == ENOENT ? OB_ERR_NOT_FOUND : OB_ERR_IO;
        error_set(error, s, "cannot open directory: %s", strerror(errno));
        error_at(error, path, NULL, OB_NO_OFFSET);
        return s;
    }
    char **list = NULL;
    size_t count = 0, cap = 0;
    struct dirent *e;
    while ((e = readdir(dir))) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (count == cap) {
            cap = cap ? cap * 2 : 16;
            char **more = realloc(list, cap * sizeof *list);
            if (!more) goto oom;
            list = more;
        }
        if (!(list[count] = strdup(e->d_name))) goto oom;
        count++;
    }
    closedir(dir);
    if (count) qsort(list, count, sizeof *list, by_name);
    *names = list;
    *n = count;
    return OB_OK;
oom:
    closedir(dir);
    os_free_list(list, count);
    return error_memory(error, "a directory listing", cap * sizeof *list);
}

/* XDG base directories: an absolute path in the environment, else a folder in the home. */
static char *xdg_dir(const char *variable, const char *below_home, const char *ours) {
    const char *base = getenv(variable), *home = getenv("HOME");
    char *out = NULL;
    int n = base && base[0] == '/' ? asprintf(&out, "%s/%s", base, ours)
                                   : asprintf(&out, "%s/%s/%s", home ? home : "", below_home, ours);
    return n < 0 ? NULL : out;
}
char *os_models_dir(void) { return xdg_dir("XDG_DATA_HOME", ".local/share", "1bit/models"); }
char *os_state_dir(void) { return xdg_dir("XDG_STATE_HOME", ".local/state", "1bit"); }

/* ---- libraries opened at run time ---- */
void *os_library_open(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }
void *os_library_symbol(void *library, const char *name) { return dlsym(library, name); }

/* ---- terminal and signals ---- */
bool os_is_terminal(int fd) { return isatty(fd) == 1; }

bool os_terminal_colors(int fd) {
    const char *term = getenv("TERM");
    return os_is_terminal(fd) && term && term[0] && strcmp(term, "dumb") != 0;
}

void os_hold_standard_files(void) {
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            return;
}

void os_ignore_broken_pipe(void) { signal(SIGPIPE, SIG_IGN); }

static volatile sig_atomic_t interrupts;
static void count_interrupt(int signal_number) {
    (void)signal_number;
    interrupts++;
}
void os_count_interrupts(void) {
    struct sigaction action = {.sa_handler = count_interrupt}; /* no SA_RESTART: reads return */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

static volatile sig_atomic_t end;
static void count_end(int signal_number) {
    end = signal_number;
    interrupts++;
}
void os_count_ends(void) {
    struct sigaction action = {.sa_handler = count_end};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}
int os_end(void) { return end; }
unsigned os_interrupts(void) { return (unsigned)interrupts; }
bool os_input_waits(double seconds) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, (int)(seconds * 1000)) > 0;
}

/* ---- randomness ---- */
uint64_t os_random(void) {
    uint64_t out;
    if (getentropy(&out, sizeof out) == 0) return out;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000007u ^ (uint64_t)t.tv_nsec << 20 ^ (uint64_t)getpid();
}
