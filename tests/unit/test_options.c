/* SPDX-License-Identifier: Apache-2.0
 * test_options.c: the option list is sound, words are read as documented, and what is made from the
 * lists (help, man page, completions) has every row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli.h"

static struct options options;
static char message[OPTION_MESSAGE];

/* Parses the words of one command line, separated by spaces; the copy lives until the next. */
static bool parse(enum command_index command, const char *line) {
    static char copy[1024];
    static char *word[64];
    int n = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *p = strtok(copy, " "); p; p = strtok(NULL, " ")) word[n++] = p;
    message[0] = 0;
    return options_parse(command, n, word, &options, message);
}

static void the_list_is_sound(void **state) {
    (void)state;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        const struct option *a = &option_list[i];
        assert_true(a->commands != 0);
        assert_true(a->help[strlen(a->help) - 1] == '.');
        assert_true((a->kind == OPTION_flag) == (a->value == NULL));
        assert_true(a->min <= a->max);
        for (size_t j = 0; j < i; j++) {
            const struct option *b = &option_list[j];
            if (!(a->commands & b->commands)) continue;
            assert_string_not_equal(a->flag, b->flag);
            assert_true(!a->letter || a->letter != b->letter);
        }
    }
    for (int c = 0; c < COMMAND_COUNT; c++)
        if (!parse((enum command_index)c, "")) fail_msg("%s: %s", command_list[c]->name, message);
}

static void sampling_defaults_are_the_engine_s(void **state) {
    (void)state;
    ob_sampling want = ob_sampling_default();
    assert_true(parse(COMMAND_run, ""));
#define KIND_real(member) assert_true((float)options.member == want.member);
#define KIND_integer(member) assert_int_equal(options.member, want.member);
#define OB_SETTING(member, kind, otherwise, low, high, ...)                  \
    KIND_##kind(member);                                                     \
    assert_true(option_list[OPTION_INDEX_##member].min == (double)(low));    \
    assert_true(option_list[OPTION_INDEX_##member].max == (double)(high));
#include "onebit_sampling.def"
#undef OB_SETTING
    assert_null(options.samplers); /* the engine's order */
}

static void words_are_read_in_every_form(void **state) {
    (void)state;
    assert_true(parse(COMMAND_run, "--temp 0.5 --top-k=7 -n12 -c 99 --raw -p --raw -v"));
    assert_true(options.temperature == 0.5);
    assert_int_equal(options.top_k, 7);
    assert_int_equal(options.max_tokens, 12);
    assert_int_equal(options.context, 99);
    assert_true(options.raw && options.verbose && !options.help);
    assert_string_equal(options.prompt, "--raw");
    assert_true(options.given[OPTION_INDEX_temperature]);
    assert_false(options.given[OPTION_INDEX_top_p]);
    assert_true(options.top_p == 0.95); /* its default */

    assert_true(parse(COMMAND_run, "-vn 3 --temp 1 --temp 2")); /* joined letters, the last wins */
    assert_true(options.verbose && options.max_tokens == 3 && options.temperature == 2);
    assert_true(parse(COMMAND_run, "--system="));
    assert_string_equal(options.system, "");

    assert_true(parse(COMMAND_detokenize, "1 --special 2 -- --special -3 -"));
    assert_true(options.special);
    assert_int_equal(options.operands, 5);
    assert_string_equal(options.operand[1], "2");
    assert_string_equal(options.operand[2], "--special");
    assert_string_equal(options.operand[4], "-");

    assert_true(parse(COMMAND_run, "--help --nonsense")); /* help ends the reading */
    assert_true(options.help);
    assert_true(parse(COMMAND_bench, "-p 1,2 -n 3")); /* letters mean what the command says */
    assert_string_equal(options.bench_prompt, "1,2");
}

static void numbers_are_strict(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},           {"4096", 4096},    {"1k", 1024},        {"1.5K", 1536},
        {"8G", 8ull << 30}, {"2MiB", 2 << 20}, {"3GB", 3ull << 30}, {"1T", 1ull << 40},
        {"7B", 7},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "--kv-memory %s", good[i].text);
        assert_true(parse(COMMAND_run, line));
        assert_true(options.kv_memory == good[i].bytes);
    }
    static const char *const bad[] = {
        "--kv-memory -1",
        "--kv-memory 5X",
        "--kv-memory 1KK",
        "--kv-memory K",
        "--kv-memory 1e3",
        "--kv-memory 99999999999T",
        "--temp nan",
        "--temp inf",
        "--temp 0x1p3",
        "--temp 1e999",
        "--temp -0.1",
        "--temp 1,5",
        "--temp=",
        "--top-p 1.01",
        "--top-k 1.5",
        "--top-k -2",
        "--top-k 99999999999999999999",
        "-n -1",
        "-n 4294967296",
        "--seed -1",
        "-t 5000",
        "--repeat-penalty 0",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (parse(COMMAND_run, bad[i])) fail_msg("%s was taken", bad[i]);
        assert_memory_equal(message, bad[i], strcspn(bad[i], " ="));
    }
    assert_true(parse(COMMAND_run, "--seed 9007199254740993"));
    assert_true(options.seed == 9007199254740993);
    assert_true(parse(COMMAND_run, "--temp 1e-3 --frequency-penalty -.5"));
    assert_true(options.frequency_penalty == -0.5);
}

static void errors_name_the_word(void **state) {
    (void)state;
    static const struct {
        const char *line, *message;
    } row[] = {
        {"--tmep 1", "--tmep: unknown option"},
        {"--verify", "--verify: not an option of this command"},
        {"-z", "-z: unknown option"},
        {"-vz", "-z: unknown option"},
        {"-p", "-p: needs a value (PROMPT)"},
        {"--temp", "--temp: needs a value (T)"},
        {"--raw=1", "--raw: takes no value"},
        {"--temp abc", "--temp: \"abc\" is not a number"},
        {"--top-k x", "--top-k: \"x\" is not a whole number"},
        {"--top-p 2", "--top-p: 2 is not from 0 to 1"},
        {"--kv-type f8", "--kv-type: \"f8\" is none of f16|bf16|f32|q8_0|q4_0"},
        {"--kv-type f1", "--kv-type: \"f1\" is none of f16|bf16|f32|q8_0|q4_0"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        assert_false(parse(COMMAND_run, row[i].line));
        assert_string_equal(message, row[i].message);
    }
}

static void values_are_shown_as_typed(void **state) {
    (void)state;
    static const struct {
        const char *flag, *value;
    } row[] = {
        {"temp", "0.25"}, {"top-k", "2147483647"}, {"frequency-penalty", "1000000"},
        {"raw", "on"},    {"kv-memory", "2048"},   {"kv-type", "f32"},
        {"system", "x"},  {"seed", ""},            {"samplers", "top_k"},
    };
    assert_true(parse(COMMAND_run, "--temp .25 --top-k 2147483647 --frequency-penalty 1e6 --raw "
                                   "--kv-memory 2K --kv-type f32 --system x --samplers top_k"));
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct buf value = BUF_INIT;
        const struct option *option = option_find(COMMAND_run, row[i].flag, strlen(row[i].flag));
        option_value(option, &options, &value);
        assert_string_equal(value.p ? value.p : "", row[i].value);
        buf_free(&value);
    }
}

static void options_go_back_to_their_defaults(void **state) {
    (void)state;
    static const char *const flags[] = {"temp", "seed", "system", "raw", "kv-memory", "cpu-isa"};
    assert_true(parse(COMMAND_run, "--temp 2 --seed 5 --system x --raw --kv-memory 2K "
                                   "--cpu-isa scalar"));
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        const struct option *option = option_find(COMMAND_run, flags[i], strlen(flags[i]));
        option_reset(option, &options);
        assert_false(options.given[option - option_list]);
    }
    assert_true(options.temperature == 0.8);
    assert_int_equal(options.seed, 0);
    assert_null(options.system);
    assert_false(options.raw);
    assert_true(options.kv_memory == 0);
    assert_null(options.cpu_isa);
}

static void the_environment_comes_before_the_command_line(void **state) {
    (void)state;
    setenv("ONEBIT_THREADS", "3", 1);
    assert_true(parse(COMMAND_run, ""));
    assert_int_equal(options.threads, 3);
    assert_true(options.given[OPTION_INDEX_threads]);
    assert_true(options.from_environment[OPTION_INDEX_threads]);
    assert_true(parse(COMMAND_run, "-t 5"));
    assert_int_equal(options.threads, 5);
    assert_false(options.from_environment[OPTION_INDEX_threads]);
    setenv("ONEBIT_THREADS", "many", 1);
    assert_false(parse(COMMAND_run, "-t 5"));
    assert_string_equal(message, "ONEBIT_THREADS: \"many\" is not a whole number");
    assert_true(parse(COMMAND_version, "")); /* not an option of it */
    setenv("ONEBIT_THREADS", "", 1);
    assert_true(parse(COMMAND_run, ""));
    assert_int_equal(options.threads, 0);
    unsetenv("ONEBIT_THREADS");
    unsetenv("NO_COLOR");
    assert_true(parse(COMMAND_run, ""));
    assert_false(options.no_color);
    setenv("NO_COLOR", "1", 1);
    assert_true(parse(COMMAND_run, ""));
    assert_true(options.no_color);
    unsetenv("NO_COLOR");
}

static void documents_have_every_row(void **state) {
    (void)state;
    static const char *const shells[] = {"bash", "fish", "zsh"};
    struct buf manual = BUF_INIT, text = BUF_INIT;
    manual_write(&manual);
    usage_program(&text);
    for (int c = 0; c < COMMAND_COUNT; c++) {
        char line[80];
        snprintf(line, sizeof line, "\n  %s ", command_list[c]->name);
        assert_non_null(strstr(text.p, line));
        snprintf(line, sizeof line, "\n.SS 1bit %s ", command_list[c]->name);
        assert_non_null(strstr(manual.p, line));
    }
    for (int c = 0; c < COMMAND_COUNT; c++) {
        buf_clear(&text);
        usage_command((enum command_index)c, &text);
        for (size_t i = 0; i < OPTION_COUNT; i++) {
            char line[80];
            snprintf(line, sizeof line, " --%s%s", option_list[i].flag,
                     option_list[i].value ? " " : "");
            bool has = strstr(text.p, line) != NULL;
            if (option_is_for(&option_list[i], (enum command_index)c)) assert_true(has);
        }
        for (const char *p = text.p, *end; (end = strchr(p, '\n')); p = end + 1)
            assert_true(*p == ' ' || end - p <= 79);
    }
    for (size_t s = 0; s < 3; s++) {
        buf_clear(&text);
        completion_write(shells[s], &text);
        for (size_t i = 0; i < OPTION_COUNT; i++)
            assert_non_null(strstr(text.p, option_list[i].flag));
        for (int c = 0; c < COMMAND_COUNT; c++)
            assert_non_null(strstr(text.p, command_list[c]->name));
    }
    buf_free(&manual);
    buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_is_sound),
        cmocka_unit_test(sampling_defaults_are_the_engine_s),
        cmocka_unit_test(words_are_read_in_every_form),
        cmocka_unit_test(numbers_are_strict),
        cmocka_unit_test(errors_name_the_word),
        cmocka_unit_test(values_are_shown_as_typed),
        cmocka_unit_test(options_go_back_to_their_defaults),
        cmocka_unit_test(the_environment_comes_before_the_command_line),
        cmocka_unit_test(documents_have_every_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
