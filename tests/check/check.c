/* SPDX-License-Identifier: Apache-2.0
 *
 * check.c: 1bit-check: options, the list of subjects, and rows run in children. The child writes
 * its outcome to shared memory; a row that outlives LIMIT seconds is killed and fails. */
#include "check_inside.h"

#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "base/str.h"

enum { LIMIT = 300 };

struct check {
    const char *tier; /* of the subject at hand */
    const char *func; /* pattern, NULL = all */
    const char *isa;  /* NULL = all */
    uint64_t seed;
    bool bench, list, verbose;
    double bandwidth; /* bytes a second, measured for --bench */
    struct outcome *outcome;
    uint32_t passed, failed;
};

const uint32_t check_size[CHECK_SIZES] = {1, 15, 16, 17, 48, 1009, 70000};

/* ---- subjects ---- */

static const struct subject { const char *tier, *name; check_subject *run; } subjects[] = {
#define CHECK(subject, tier) {#tier, #subject, check_##subject},
#include "checks.def"
#undef CHECK
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

/* ---- rows ---- */

static bool wanted(const struct check *check, const char *name) {
    if (!check->func || strstr(name, check->func)) return true;
    return fnmatch(check->func, name, 0) == 0;
}

bool check_isa(const struct check *check, enum cpu_isa isa) {
    return cpu_has(isa) && (!check->isa || strcmp(check->isa, cpu_isa_name(isa)) == 0);
}

bool check_bench(const struct check *check) { return check->bench; }

static void run_child(struct check *check, check_fn *fn, const void *arg, const char *name) {
    struct check_row row = {.outcome = check->outcome,
                            .stream = check->seed ^ str_hash(str_of(name)),
                            .bench = check->bench,
                            .bandwidth = check->bandwidth};
    alarm(LIMIT);
    fn(&row, arg);
    check_guards(&row);
    check->outcome->finished = true;
    fflush(NULL);
    _exit(0); /* not exit(): the parent's buffers are not ours to flush, nor its handlers to run */
}

static void print_row(const struct check *check, const char *name) {
    const struct outcome *o = check->outcome;
    if (o->failed) printf("FAIL %s: %s\n", name, o->message);
    else if (o->note[0]) printf("ok   %-56s %s\n", name, o->note);
    else if (check->verbose) printf("ok   %s\n", name);
}

void check_run(struct check *check, check_fn *fn, const void *arg, const char *format, ...) {
    char name[160];
    int n = snprintf(name, sizeof name, "%s.", check->tier);
    va_list args;
    va_start(args, format);
    vsnprintf(name + n, sizeof name - (size_t)n, format, args);
    va_end(args);
    if (!wanted(check, name)) return;
    if (check->list) {
        puts(name);
        return;
    }
    struct outcome *o = check->outcome;
    *o = (struct outcome){0};
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) run_child(check, fn, arg, name);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    if (child < 0) snprintf(o->message, sizeof o->message, "fork: %s", strerror(errno));
    else if (WIFSIGNALED(status))
        snprintf(o->message, sizeof o->message, "ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (!o->finished)
        snprintf(o->message, sizeof o->message, "exited with status %d", WEXITSTATUS(status));
    if (child < 0 || WIFSIGNALED(status) || !o->finished) o->failed = true;
    if (o->failed) check->failed++;
    else check->passed++;
    print_row(check, name);
}

/* ---- program ---- */

/* Reads a block far larger than any cache several times: what GB/s are compared with. */
static double measure_bandwidth(void) {
    enum { BYTES = 512 << 20, ROUNDS = 4 };
    uint64_t *p = os_reserve(BYTES), sum = 0;
    if (!p) return 0;
    memset(p, 1, BYTES);
    double best = 0;
    for (int round = 0; round < ROUNDS; round++) {
        double start = check_seconds();
        for (size_t i = 0; i < BYTES / sizeof *p; i += 4)
            sum += p[i] ^ p[i + 1] ^ p[i + 2] ^ p[i + 3];
        double speed = BYTES / (check_seconds() - start);
        if (speed > best) best = speed;
    }
    if (sum == 1) puts(""); /* keeps the loop */
    os_unreserve(p, BYTES);
    return best;
}

static int usage(int status) {
    fprintf(status ? stderr : stdout,
            "usage: 1bit-check [OPTION]... [TIER]...\n"
            "Compares every kernel and device with the definition of each op.\n"
            "  --func PATTERN  rows whose name contains or matches PATTERN\n"
            "  --isa NAME      only this instruction set\n"
            "  --seed N        of all random numbers (default: from the clock)\n"
            "  --bench         measure time, GB/s and the share of one core's memory bandwidth\n"
            "  --list          print the names of the rows\n"
            "  --verbose       print rows that pass, too\n");
    return status;
}

static bool parse(struct check *check, int argc, char **argv, const char **tiers, int *count) {
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        bool value = i + 1 < argc;
        if (strcmp(a, "--bench") == 0) check->bench = true;
        else if (strcmp(a, "--list") == 0) check->list = true;
        else if (strcmp(a, "--verbose") == 0) check->verbose = true;
        else if (strcmp(a, "--func") == 0 && value) check->func = argv[++i];
        else if (strcmp(a, "--isa") == 0 && value) check->isa = argv[++i];
        else if (strcmp(a, "--seed") == 0 && value) check->seed = strtoull(argv[++i], NULL, 0);
        else if (a[0] != '-') tiers[(*count)++] = a;
        else return false;
    }
    return true;
}

static bool known_tier(const char *name) {
    for (int i = 0; i < SUBJECTS; i++)
        if (strcmp(name, subjects[i].tier) == 0) return true;
    return false;
}

static bool tier_wanted(const char *tier, const char **tiers, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(tier, tiers[i]) == 0) return true;
    return count == 0;
}

static int run(int argc, char **argv, const char **tiers) {
    struct check check = {.seed = (uint64_t)(os_seconds() * 1e6)};
    if (argc == 2 && strcmp(argv[1], "--help") == 0) return usage(0);
    int count = 0;
    enum cpu_isa isa;
    if (!parse(&check, argc, argv, tiers, &count)) return usage(2);
    for (int i = 0; i < count; i++)
        if (!known_tier(tiers[i])) {
            fprintf(stderr, "1bit-check: no tier '%s'\n", tiers[i]);
            return 2;
        }
    if (check.isa && (!cpu_isa_find(check.isa, &isa) || !cpu_has(isa))) {
        fprintf(stderr, "1bit-check: this processor does not run '%s'\n", check.isa);
        return 2;
    }
    check.outcome = mmap(NULL, sizeof *check.outcome, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (check.outcome == MAP_FAILED) {
        fprintf(stderr, "1bit-check: no memory\n");
        return 2;
    }
    if (!check.list) printf("seed %llu\n", (unsigned long long)check.seed);
    if (check.bench && !check.list) {
        check.bandwidth = measure_bandwidth();
        printf("one core reads %.1f GB/s\n", check.bandwidth / 1e9);
    }
    for (int i = 0; i < SUBJECTS; i++) {
        check.tier = subjects[i].tier;
        if (tier_wanted(check.tier, tiers, count)) subjects[i].run(&check);
    }
    if (!check.list) printf("%u passed, %u failed\n", check.passed, check.failed);
    munmap(check.outcome, sizeof *check.outcome);
    return check.failed > 0 || (check.passed == 0 && !check.list);
}

int main(int argc, char **argv) {
    const char **tiers = calloc((size_t)argc + 1, sizeof *tiers);
    if (!tiers) return 2;
    int code = run(argc, argv, tiers);
    free(tiers);
    return code;
}
