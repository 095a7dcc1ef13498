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
#include "devices/device.h"

enum { LIMIT = 600 };
#define FIXTURES "../shared/fixtures/models"

struct check {
    const char *tier; /* of the subject at hand */
    const char *func; /* pattern, NULL = all */
    const char *isa;  /* NULL = all */
    const char *device; /* other than cpu and ref; NULL = none */
    uint64_t seed;
    const char *golden, *fixtures; /* folders; fixtures may be NULL */
    bool bench, quick, rows, verbose;
    double bandwidth; /* bytes a second, measured for --bench */
    struct outcome *outcome;
    uint32_t named, passed, failed, skipped;
    FILE *failures; /* their lines, which are printed again behind thousands that passed */
    uint64_t values; /* compared in this tier */
};

const uint32_t check_size[CHECK_SIZES] = {1, 15, 16, 17, 48, 1009, 70000};

/* ---- tiers and subjects ---- */

static struct tier { const char *name, *about; bool wanted; } tiers[] = {
#define TIER(name, about) {#name, about, false},
#include "tiers.def"
#undef TIER
};
enum { TIERS = sizeof tiers / sizeof tiers[0] };

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
    if (check->device) return false;
    if (check->quick && isa != cpu_best()) { /* plain C runs as what the others are compared with */
        if (isa == CPU_SCALAR || strcmp(check->tier, "kernels") != 0) return false;
    }
    return cpu_has(isa) && (!check->isa || strcmp(check->isa, cpu_isa_name(isa)) == 0);
}

bool check_bench(const struct check *check) { return check->bench; }
bool check_quick(const struct check *check) { return check->quick || check->device; }
const char *check_device(const struct check *check) { return check->device; }
const char *check_goldens(const struct check *check) { return check->golden; }
const char *check_fixtures(const struct check *check) { return check->fixtures; }

static void run_child(struct check *check, check_fn *fn, const void *arg, const char *name) {
    struct check_row row = {.outcome = check->outcome,
                            .golden = check->golden,
                            .stream = check->seed ^ str_hash(str_of(name)),
                            .bench = check->bench,
                            .bandwidth = check->bandwidth};
    alarm(LIMIT);
    fn(&row, arg);
    check_finish(&row);
}

static void print_row(const struct check *check, const char *name) {
    const struct outcome *o = check->outcome;
    if (o->failed) {
        printf("FAIL %s: %s\n", name, o->message);
        fprintf(check->failures, "FAIL %s: %s\n", name, o->message);
    } else if (o->skipped) printf("skip %s: %s\n", name, o->message);
    else if (o->note[0]) printf("ok   %-56s %s\n", name, o->note);
    else if (check->verbose)
        printf("ok   %-56s %llu values, largest difference %.2g\n", name,
               (unsigned long long)o->values, o->worst);
}

void check_run(struct check *check, check_fn *fn, const void *arg, const char *format, ...) {
    char name[160];
    int n = snprintf(name, sizeof name, "%s.", check->tier);
    va_list args;
    va_start(args, format);
    vsnprintf(name + n, sizeof name - (size_t)n, format, args);
    va_end(args);
    if (!wanted(check, name)) return;
    check->named++;
    if (check->rows) {
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
    else if (o->skipped) check->skipped++;
    else check->passed++;
    check->values += o->values;
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
    FILE *f = status ? stderr : stdout;
    fprintf(f,
            "usage: 1bit-check [OPTION]...\n"
            "Compares what every list of the engine names with what it must be.\n"
            "  --list          print the tiers\n"
            "  --tier NAME     only this tier (may be repeated)\n"
            "  --func PATTERN  rows whose name contains PATTERN anywhere, or matches it whole as\n"
            "                  a shell's pattern (gemma is gemma2, too; *.gemma.* is gemma alone)\n"
            "  --device NAME   only rows of this device, such as cuda\n"
            "  --isa NAME      only this instruction set\n"
            "  --quick         beyond kernels the best instruction set alone, no plain C\n"
            "  --seed N        of all random numbers (default: from the clock)\n"
            "  --golden DIR    folder of the goldens (default: tests/golden)\n"
            "  --fixtures DIR  a folder of more families (default: " FIXTURES ", if there)\n"
            "  --bench         measure time, GB/s and the share of one core's memory bandwidth\n"
            "  --rows          print the names of the rows\n"
            "  --verbose       print rows that pass, too\n");
    return status;
}

static bool has_subject(const struct tier *tier) {
    for (int i = 0; i < SUBJECTS; i++)
        if (strcmp(tier->name, subjects[i].tier) == 0) return true;
    return false;
}

static int list_tiers(void) {
    for (int i = 0; i < TIERS; i++)
        if (has_subject(&tiers[i])) printf("%-8s %s\n", tiers[i].name, tiers[i].about);
    return 0;
}

static struct tier *find_tier(const char *name) {
    for (int i = 0; i < TIERS; i++)
        if (strcmp(name, tiers[i].name) == 0 && has_subject(&tiers[i])) return &tiers[i];
    return NULL;
}

static int bad(const char *what, const char *value) {
    fprintf(stderr, "1bit-check: %s '%s'\n", what, value);
    return 2;
}

/* An exit status to end with, or -1. */
static bool *flag_of(struct check *check, const char *a) {
    if (strcmp(a, "--bench") == 0) return &check->bench;
    if (strcmp(a, "--quick") == 0) return &check->quick;
    if (strcmp(a, "--rows") == 0) return &check->rows;
    return strcmp(a, "--verbose") == 0 ? &check->verbose : NULL;
}

static int parse(struct check *check, int argc, char **argv) {
    bool some = false;
    enum cpu_isa isa;
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(a, "--help") == 0) return usage(0);
        if (strcmp(a, "--list") == 0) return list_tiers();
        bool *flag = flag_of(check, a);
        if (flag) {
            *flag = true;
            continue;
        }
        if (!value) return usage(2);
        if (strcmp(a, "--func") == 0) check->func = argv[++i];
        else if (strcmp(a, "--isa") == 0) check->isa = argv[++i];
        else if (strcmp(a, "--device") == 0) check->device = argv[++i];
        else if (strcmp(a, "--golden") == 0) check->golden = argv[++i];
        else if (strcmp(a, "--fixtures") == 0) check->fixtures = argv[++i];
        else if (strcmp(a, "--seed") == 0) check->seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(a, "--tier") == 0) {
            struct tier *tier = find_tier(argv[++i]);
            if (!tier) return bad("there is no tier", value);
            tier->wanted = some = true;
        } else return usage(2);
    }
    for (int i = 0; i < TIERS && !some; i++) tiers[i].wanted = has_subject(&tiers[i]);
    if (check->isa && (!cpu_isa_find(check->isa, &isa) || !cpu_has(isa)))
        return bad("this processor does not run", check->isa);
    if (check->device && !device_find(check->device))
        return bad("there is no device", check->device);
    return -1;
}

static void run_tier(struct check *check, const struct tier *tier) {
    uint32_t before = check->passed + check->failed + check->skipped;
    check->tier = tier->name;
    check->values = 0;
    for (int i = 0; i < SUBJECTS; i++)
        if (strcmp(tier->name, subjects[i].tier) == 0) subjects[i].run(check);
    uint32_t rows = check->passed + check->failed + check->skipped - before;
    if (rows > 0)
        printf("%s: %u rows, %llu values compared\n", tier->name, rows,
               (unsigned long long)check->values);
}

int main(int argc, char **argv) {
    struct check check = {.seed = (uint64_t)(os_seconds() * 1e6),
                          .golden = "tests/golden",
                          .fixtures = os_is_dir(FIXTURES) ? FIXTURES : NULL};
    int status = parse(&check, argc, argv);
    if (status >= 0) return status;
    check.outcome = mmap(NULL, sizeof *check.outcome, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (check.outcome == MAP_FAILED) return bad("no memory for", "the rows' outcomes");
    char *failures = NULL;
    size_t length = 0;
    check.failures = open_memstream(&failures, &length);
    if (!check.failures) return bad("no memory for", "the rows that fail");
    if (!check.rows) printf("seed %llu\n", (unsigned long long)check.seed);
    if (check.bench && !check.rows) {
        check.bandwidth = measure_bandwidth();
        printf("one core reads %.1f GB/s\n", check.bandwidth / 1e9);
    }
    for (int i = 0; i < TIERS; i++)
        if (tiers[i].wanted) run_tier(&check, &tiers[i]);
    munmap(check.outcome, sizeof *check.outcome);
    fclose(check.failures);
    if (check.failed > 1 || check.passed > 100) fputs(failures, stdout);
    free(failures);
    if (check.named == 0 && check.func)
        return bad("no row's name contains or matches", check.func);
    if (check.rows) return 0;
    printf("%u passed, %u failed, %u skipped\n", check.passed, check.failed, check.skipped);
    return check.failed > 0 || check.passed + check.skipped == 0;
}
