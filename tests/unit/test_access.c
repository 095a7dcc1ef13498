/* SPDX-License-Identifier: Apache-2.0
 *
 * test_access.c: who may ask a server: keys, hosts, origins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/access.h"

static struct access made(const char *keys, const char *lines, const char *origins) {
    struct access a;
    assert_int_equal(access_init(&a, keys, lines, origins, NULL), OB_OK);
    return a;
}

static void keys_are_read(void **state) {
    (void)state;
    struct access a = made("one, two", "# a comment\n\n three\r\nfour,4\n#", NULL);
    static const char *const want[] = {"one", "two", "three", "four,4"};
    assert_int_equal(a.keys, 4);
    for (int i = 0; i < 4; i++) assert_string_equal(a.key[i], want[i]);
    access_free(&a);
}

static void no_key_at_all_is_refused(void **state) {
    (void)state;
    struct access a;
    ob_error error;
    assert_int_equal(access_init(&a, " ,", NULL, NULL, &error), OB_ERR_ARGUMENT);
    assert_string_equal(error.where, "api-key");
    access_free(&a);
    assert_int_equal(access_init(&a, NULL, "# none\n", NULL, &error), OB_ERR_ARGUMENT);
    assert_string_equal(error.where, "api-key-file");
    access_free(&a);
}

static void a_key_is_needed_where_there_are_keys(void **state) {
    (void)state;
    struct access none = made(NULL, NULL, NULL), a = made("secret,other", NULL, NULL);
    assert_true(access_has_key(&none, NULL, NULL));
    assert_true(access_has_key(&a, "Bearer secret", NULL));
    assert_true(access_has_key(&a, "bearer  other ", NULL));
    assert_true(access_has_key(&a, NULL, "other"));
    assert_true(access_has_key(&a, "Bearer wrong", "secret"));
    static const char *const wrong[] = {"secret", "Bearer ", "Bearer", "Basic secret", "",
                                        "Bearer secre", "Bearer secrets", "Bearer secretsecret",
                                        "Bearer Secret", "Bearer secret,other"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(access_has_key(&a, wrong[i], NULL));
    assert_false(access_has_key(&a, NULL, NULL));
    assert_false(access_has_key(&a, NULL, ""));
    access_free(&a);
    access_free(&none);
}

static bool trusts(const struct access *a, const char *host, const char *origin) {
    return access_trusts_origin(a, &(struct http_request){.host = host, .origin = origin});
}

static void origins(void **state) {
    (void)state;
    struct access none = made(NULL, NULL, NULL), a = made(NULL, NULL, "https://a.org, http://b:1"),
                  all = made(NULL, NULL, "*");
    assert_true(trusts(&none, "127.0.0.1:80", "http://localhost:3000"));
    assert_true(trusts(&none, "me:80", "http://me:80"));
    assert_false(trusts(&none, "me:80", "http://me:81"));
    assert_false(trusts(&none, "me:80", "null"));
    assert_false(trusts(&none, "me:80", NULL));
    assert_true(trusts(&a, "me", "https://a.org"));
    assert_true(trusts(&a, "me", "http://b:1"));
    assert_false(trusts(&a, "me", "http://a.org"));
    assert_false(trusts(&a, "me", "https://a.org.evil"));
    assert_true(trusts(&all, "me", "https://x"));
    assert_true(trusts(&all, "me", "null"));
    access_free(&none);
    access_free(&a);
    access_free(&all);
}

static void hosts(void **state) {
    (void)state;
    struct access a = made(NULL, NULL, "https://a.org");
    struct http_request local = {.host = "127.0.0.1:8000"}, other = {.host = "evil.org"},
                        page = {.host = "localhost", .origin = "https://evil.org"},
                        friendly = {.host = "localhost", .origin = "https://a.org"};
    struct route open = {.for_all = true};
    assert_null(access_refuses(&a, &local, NULL, true));
    assert_non_null(access_refuses(&a, &other, NULL, true));
    assert_null(access_refuses(&a, &other, NULL, false));
    assert_non_null(access_refuses(&a, &page, NULL, false));
    assert_null(access_refuses(&a, &page, &open, false));
    assert_null(access_refuses(&a, &friendly, NULL, true));
    access_free(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_read),
        cmocka_unit_test(no_key_at_all_is_refused),
        cmocka_unit_test(a_key_is_needed_where_there_are_keys),
        cmocka_unit_test(origins),
        cmocka_unit_test(hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
