/* SPDX-License-Identifier: Apache-2.0
 * test_base.c: arenas, buffers, UTF-8, the pool, errors. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

static void arena_aligns_and_zeroes(void **state) {
    (void)state;
    struct arena a = ARENA_INIT;
    for (size_t n = 0; n < 300000; n = n * 2 + 1) {
        unsigned char *p = arena_alloc(&a, n);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % (n >= 64 ? 64 : 16), 0);
        for (size_t i = 0; i < n; i++) assert_int_equal(p[i], 0);
        memset(p, 0xff, n);
    }
    assert_null(arena_array(&a, SIZE_MAX / 2, 3));
    assert_string_equal(arena_printf(&a, "%d-%s", 7, "x"), "7-x");
    arena_free(&a);
    assert_null(a.head);
}

static void buf_grows_and_fails_once(void **state) {
    (void)state;
    struct buf b = BUF_INIT;
    for (int i = 0; i < 1000; i++) buf_printf(&b, "%d,", i);
    assert_false(b.failed);
    assert_int_equal(b.n, 3890);
    assert_int_equal(b.p[b.n], 0);
    assert_false(buf_reserve(&b, SIZE_MAX / 2));
    buf_puts(&b, "lost");
    assert_int_equal(b.n, 3890);
    buf_free(&b);
}

static void utf8_follows_rfc3629(void **state) {
    (void)state;
    static const char *const bad[] = {"\x80",         "\xc0\x80",         "\xc1\xbf",
                                      "\xe0\x80\x80", "\xed\xa0\x80",     "\xf0\x80\x80\x80",
                                      "\xf4\x90\x80\x80", "\xf5", "\xff", "\xe2\x82"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint32_t c;
        assert_int_equal(utf8_decode(bad[i], strlen(bad[i]), &c), 1);
        assert_int_equal(c, UTF8_BAD);
    }
    for (uint32_t c = 0; c <= 0x10ffff; c += c < 0x3000 ? 1 : 257) {
        if (c >= 0xd800 && c <= 0xdfff) continue;
        char text[4];
        size_t n = utf8_encode(c, text);
        uint32_t back;
        assert_int_equal(utf8_decode(text, n, &back), n);
        assert_int_equal(back, c);
        assert_int_equal(utf8_whole(text, n), n);
        for (size_t cut = 1; cut < n; cut++) assert_int_equal(utf8_whole(text, cut), 0);
    }
    assert_int_equal(utf8_whole("a\xff", 2), 2);
    assert_int_equal(utf8_whole("a\xe0\x80", 3), 3); /* can never become a character */
}

static void count(void *arg, uint32_t chunk, uint32_t thread) {
    (void)thread;
    __atomic_fetch_add((uint32_t *)arg + chunk, 1, __ATOMIC_RELAXED);
}

/* Both threads are inside a chunk before either leaves its first. */
struct begin {
    atomic_uint inside;
    uint32_t first[2];
};
static void begin_chunk(void *arg, uint32_t chunk, uint32_t thread) {
    struct begin *b = arg;
    if (atomic_load(&b->inside) >= 2) return;
    b->first[thread] = chunk;
    atomic_fetch_add(&b->inside, 1);
    while (atomic_load(&b->inside) < 2) os_yield();
}
static void pool_gives_neighbouring_chunks(void **state) {
    (void)state;
    struct pool *pool = pool_new(2, NULL);
    assert_non_null(pool);
    for (uint32_t chunks = 2; chunks < 200; chunks++) {
        struct begin b = {0};
        pool_run(pool, chunks, begin_chunk, &b);
        assert_int_equal(b.first[0], 0);
        assert_int_equal(b.first[1], chunks / 2);
    }
    pool_free(&pool);
}

static void pool_runs_each_chunk_once(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 5; threads++) {
        struct pool *pool = pool_new(threads, NULL);
        assert_non_null(pool);
        assert_int_equal(pool_threads(pool), threads);
        for (uint32_t round = 0; round < 200; round++) {
            uint32_t hits[64] = {0}, chunks = round % 65;
            pool_run(pool, chunks, count, hits);
            for (uint32_t i = 0; i < 64; i++) assert_int_equal(hits[i], i < chunks);
        }
        pool_free(&pool);
        assert_null(pool);
    }
}

static void errors_keep_the_innermost_place(void **state) {
    (void)state;
    ob_error e;
    char line[256];
    assert_int_equal(error_set(&e, OB_ERR_FORMAT, "bad %d", 3), OB_ERR_FORMAT);
    error_at(&e, "f.gguf", "key\n", 12);
    error_at(&e, "outer", "other", 99);
    assert_string_equal(ob_error_line(&e, line, sizeof line), "f.gguf: key?: bad 3 (offset 12)");
    assert_int_equal(error_set(NULL, OB_ERR_IO, "x"), OB_ERR_IO);
}

static void missing_files_are_named(void **state) {
    (void)state;
    ob_error e;
    struct map map;
    assert_int_equal(map_open("/no/such/file", &map, &e), OB_ERR_NOT_FOUND);
    assert_string_equal(e.file, "/no/such/file");
    assert_int_equal(map_open("/", &map, &e), OB_ERR_IO);
    assert_non_null(strstr(e.message, "directory"));
    char fifo[] = "/tmp/1bit-test-XXXXXX", *text;
    size_t n;
    assert_int_not_equal(close(mkstemp(fifo)), -1);
    assert_int_equal(unlink(fifo), 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(map_open(fifo, &map, &e), OB_ERR_IO); /* nobody writes: must not wait */
    assert_int_equal(os_read_file(fifo, 100, &text, &n, &e), OB_ERR_IO);
    unlink(fifo);
}

static void add_bytes(void *user, size_t bytes) { *(size_t *)user += bytes; }

static void loaded_files_read_the_same(void **state) {
    (void)state;
    enum { SIZE = (40 << 20) + 123 }; /* more than two of map_load's pieces */
    char path[] = "/tmp/1bit-test-XXXXXX";
    int fd = mkstemp(path);
    uint8_t *want = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++) want[i] = (uint8_t)(i * 2654435761u >> 13);
    assert_int_equal(write(fd, want, SIZE), SIZE);
    for (int copy = 0; copy < 2; copy++) {
        size_t done = 0;
        struct map map;
        struct map_load load = {
            .copy = copy, .read_ahead = true, .progress = add_bytes, .user = &done};
        assert_int_equal(map_open(path, &map, NULL), OB_OK);
        const uint8_t *before = map.p;
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        assert_int_equal(map_load(&map, &load, NULL), OB_OK);
        assert_int_equal(done, SIZE);
        assert_ptr_equal(map.p, before);
        if (copy) assert_int_equal(ftruncate(fd, 1), 0); /* ours now: no fault */
        assert_memory_equal(map.p, want, SIZE);
        map_close(&map);
    }
    free(want);
    close(fd);
    unlink(path);
}

/* clang's address sanitizer makes mlock() a success that does nothing. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOCKS_NOTHING 1
#endif
#endif

/* In a process of its own, without the right to lock what it likes. */
static void a_refused_lock_is_said(void **state) {
    (void)state;
#ifdef LOCKS_NOTHING
    skip();
#endif
    ob_error error = {0};
    struct map map;
    assert_int_equal(map_open("/proc/self/exe", &map, NULL), OB_OK);
    pid_t child = fork();
    if (child == 0) {
        const struct map_load load = {.lock = true};
        const struct rlimit none = {0, 0};
        int wrong = setrlimit(RLIMIT_MEMLOCK, &none) || (getuid() == 0 && setuid(65534));
        wrong |= map_load(&map, &load, &error) != OB_ERR_LIMIT;
        wrong |= !strstr(error.message, "limit is 0 MiB") || !strcmp(error.file, "");
        _exit(wrong);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    map_close(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_aligns_and_zeroes),   cmocka_unit_test(buf_grows_and_fails_once),
        cmocka_unit_test(utf8_follows_rfc3629),      cmocka_unit_test(pool_runs_each_chunk_once),
        cmocka_unit_test(pool_gives_neighbouring_chunks),
        cmocka_unit_test(errors_keep_the_innermost_place),
        cmocka_unit_test(missing_files_are_named),   cmocka_unit_test(loaded_files_read_the_same),
        cmocka_unit_test(a_refused_lock_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
