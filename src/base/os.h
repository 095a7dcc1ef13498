/* SPDX-License-Identifier: Apache-2.0
 *
 * os.h: every operating-system call of the engine, so that a port is one file (os_posix.c).
 * Functions returning bool or a pointer leave errno set on failure unless they say otherwise. */
#ifndef BASE_OS_H
#define BASE_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "onebit.h"

/* ---- threads ---- */
typedef struct os_mutex { pthread_mutex_t h; } os_mutex;
typedef struct os_cond { pthread_cond_t h; } os_cond;
typedef struct os_thread { pthread_t h; } os_thread;

void os_mutex_init(os_mutex *m);
void os_mutex_free(os_mutex *m);
void os_lock(os_mutex *m);
void os_unlock(os_mutex *m);
void os_cond_init(os_cond *c);
void os_cond_free(os_cond *c);
void os_wait(os_cond *c, os_mutex *m);
/* false when `seconds` passed without a signal. */
bool os_wait_for(os_cond *c, os_mutex *m, double seconds);
void os_signal(os_cond *c);
void os_broadcast(os_cond *c);
bool os_thread_start(os_thread *t, void *(*fn)(void *), void *arg);
void os_thread_join(os_thread *t);
/* The calling thread runs on this processor alone, as do threads it starts from then on; false if
 * the system refuses. os_thread_release: where it ran before the first confinement. */
bool os_thread_confine(uint32_t cpu);
void os_thread_release(void);
/* Calls fn the first time; who comes meanwhile waits for its end. */
typedef struct os_once { pthread_once_t h; } os_once;
#define OS_ONCE_INIT {PTHREAD_ONCE_INIT}
void os_call_once(os_once *once, void (*fn)(void));
void os_yield(void);
void os_relax(void); /* spin-loop hint */

/* ---- time ---- */
double os_seconds(void); /* monotonic */
/* What a clock on the wall here shows, as seconds since 1970 began there. */
double os_local_time(void);

/* ---- the end of a program that serves ---- */
/* From now on the first SIGINT or SIGTERM only makes os_stop_wait() return; a second one ends the
 * program at once. */
void os_stop_on_signals(void);
void os_stop(void); /* as such a signal; any thread */
void os_stop_wait(void);

/* ---- machine ---- */
uint32_t os_cores(void);          /* cores this process may use */
uint32_t os_cpu_quota(void);      /* processors' time this process is granted (cgroup), rounded up;
                                   * UINT32_MAX: all */
uint64_t os_memory_total(void);
uint64_t os_memory_available(void); /* without swapping, also within a cgroup limit */
size_t os_page_size(void);
bool os_allow_tiles(void);        /* asks, for the whole process, for the registers of AMX; false
                                   * where there are none or the system keeps them */
uint64_t os_files_max(void);      /* files and sockets this process may have open */

/* ---- memory ---- */
/* Zeroed, page aligned, committed when first touched; NULL on failure. */
void *os_reserve(size_t bytes);
void os_unreserve(void *p, size_t bytes);
/* Gives the pages back; they read as zero afterwards. Page aligned. */
void os_discard(void *p, size_t bytes);

/* ---- files ---- */
bool os_exists(const char *path); /* also if it is a pipe or a device */
bool os_is_dir(const char *path);
bool os_is_file(const char *path);
bool os_name_taken(const char *path); /* also by a link to nothing */
bool os_mkdirs(const char *path); /* like mkdir -p */
bool os_truncate(const char *path, uint64_t size);
bool os_truncate_open(FILE *file, uint64_t size);
/* For reading and writing, as it is or new and empty, and no other process's until it is closed.
 * NULL: EEXIST if it is a link or no regular file, EWOULDBLOCK if another process has it so. */
FILE *os_open_alone(const char *path);
/* What was written is flushed, to the disk, too. */
bool os_sync(FILE *file);
/* Like rename, but EEXIST if `to` is there in any form. */
bool os_rename_new(const char *from, const char *to);
/* The whole file, terminated, malloc'd; fails over `limit` bytes. */
ob_status os_read_file(const char *path, size_t limit, char **out, size_t *n, ob_error *error);
/* Names in a directory, sorted, without . and ..; malloc'd array and strings: os_free_list. */
ob_status os_list_dir(const char *path, char ***names, size_t *n, ob_error *error);
void os_free_list(char **names, size_t n);
/* XDG data directory + "/1bit/models", malloc'd; never NULL but when out of memory. */
char *os_models_dir(void);
/* XDG state directory + "/1bit" (history), in the same way. */
char *os_state_dir(void);

/* ---- libraries opened at run time ---- */
/* NULL if there is none of that name; never closed. */
void *os_library_open(const char *name);
void *os_library_symbol(void *library, const char *name);

/* ---- terminal and signals: for the program, never for a library user ---- */
bool os_is_terminal(int fd);
bool os_terminal_colors(int fd); /* a terminal, and not a dumb one */
/* Where the standard input, output or error is closed, no file or socket may take its number: then
 * messages would go there. Using them fails with EBADF as before. */
void os_hold_standard_files(void);
/* Writes to a closed pipe fail with EPIPE instead of ending the program. */
void os_ignore_broken_pipe(void);
/* From now on Ctrl-C only counts: os_interrupts() is how often it was pressed. A blocked read
 * returns EINTR. */
void os_count_interrupts(void);
unsigned os_interrupts(void);
/* From now on SIGTERM and SIGHUP count as a Ctrl-C and are remembered: the number of the last, 0 if
 * there was none. */
void os_count_ends(void);
int os_end(void);
/* Whether the standard input can be read (or is at its end), waiting for at most `seconds`. */
bool os_input_waits(double seconds);

/* ---- randomness ---- */
uint64_t os_random(void); /* not for secrets if the system has none */

#endif
