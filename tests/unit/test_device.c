/* SPDX-License-Identifier: Apache-2.0
 * test_device.c: opening devices with good and bad options, buffers, what they decline. (What they
 * compute is 1bit-check's business.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "devices/device.h"

static struct device *open_device(const char *name) {
    struct device *device = NULL;
    ob_error error = {0};
    const struct device_type *type = device_find(name);
    assert_non_null(type);
    assert_int_equal(type->open(&(struct device_options){.threads = 2}, &device, &error), OB_OK);
    assert_ptr_equal(device->type, type);
    return device;
}

static void the_list_is_searched_by_name(void **state) {
    (void)state;
    assert_int_equal(device_count, 3);
    for (size_t i = 0; i < device_count; i++) {
        ob_device found = {0};
        assert_ptr_equal(device_find(device_list[i]->name), device_list[i]);
        device_list[i]->enumerate(0, &found);
        if (found.count == 0) { /* a GPU that is not there, or that nothing was built for */
            assert_string_equal(device_list[i]->name, "cuda");
            assert_true(found.text[0] != 0);
            continue;
        }
        if (strcmp(device_list[i]->name, "cuda") == 0) continue;
        assert_int_equal(found.count, 1);
        assert_non_null(strstr(found.text, "core"));
        assert_true(found.memory_available > 0 && found.memory_available <= found.memory_total);
    }
    assert_null(device_find("CPU"));
    assert_null(device_find(""));
}

static void refuses(const char *name, struct device_options options, ob_status status,
                    const char *word) {
    struct device *device = (void *)1;
    ob_error error = {0};
    assert_int_equal(device_find(name)->open(&options, &device, &error), status);
    assert_null(device);
    assert_non_null(strstr(error.message, word));
}

static void bad_options_are_named(void **state) {
    (void)state;
    refuses("cpu", (struct device_options){.cpu_isa = "avx3"}, OB_ERR_ARGUMENT, "'avx3'");
    refuses("ref", (struct device_options){.cpu_isa = "scalar"}, OB_ERR_ARGUMENT, "'scalar'");
    refuses("cpu", (struct device_options){.index = 1}, OB_ERR_NOT_FOUND, "cpu");
    refuses("cpu", (struct device_options){.threads = 1000000}, OB_ERR_ARGUMENT, "1000000");
    for (int isa = 0; isa < CPU_ISAS; isa++) /* another architecture's at least */
        if (!cpu_has((enum cpu_isa)isa))
            refuses("cpu", (struct device_options){.cpu_isa = cpu_isa_name((enum cpu_isa)isa)},
                    OB_ERR_UNSUPPORTED, cpu_isa_name((enum cpu_isa)isa));
}

static void isa_is_described(void **state) {
    (void)state;
    struct device *device;
    char text[128];
    ob_error error = {0};
    struct device_options options = {.threads = 1, .cpu_isa = "scalar"};
    assert_int_equal(device_find("cpu")->open(&options, &device, &error), OB_OK);
    device->type->describe(device, text, sizeof text);
    assert_string_equal(text, "cpu (scalar), 1 thread");
    device->type->close(&device);
    assert_null(device);
    device_find("cpu")->close(&device); /* closing nothing */
}

static void buffers_are_zeroed_written_and_read(void **state) {
    (void)state;
    struct device *device = open_device("cpu");
    struct device_buffer *buffer;
    ob_error error = {0};
    char data[64], zero[64] = {0};
    assert_int_equal(device->type->alloc(device, 1 << 20, &buffer, &error), OB_OK);
    assert_int_equal(device->type->read(device, buffer, (1 << 20) - 64, data, 64, &error), OB_OK);
    assert_memory_equal(data, zero, 64);
    assert_int_equal(device->type->write(device, buffer, 100, "hello", 5, &error), OB_OK);
    assert_int_equal(device->type->read(device, buffer, 99, data, 7, &error), OB_OK);
    assert_memory_equal(data, "\0hello\0", 7);
    device->type->free(device, &buffer);
    assert_null(buffer);

    assert_int_equal(device->type->alloc(device, SIZE_MAX / 2, &buffer, &error), OB_ERR_MEMORY);
    assert_null(buffer);
    device->type->free(device, &buffer);

    uint64_t available = 0, total = 0;
    device->type->memory(device, &available, &total);
    assert_true(available > 0 && available <= total);
    device->type->close(&device);
}

static void a_node_is_declined_with_its_reason(void **state) {
    (void)state;
    struct device *device = open_device("cpu");
    struct arena arena = ARENA_INIT;
    struct graph g;
    graph_init(&g, &arena);
    float values[8] = {0};
    struct weight w = {.name = "w", .quant = quant_named("F32"), .rows = 2, .cols = 4,
                       .row_bytes = 16, .data = values};
    g.logits = graph_embed(&g, &w, 1);
    struct node odd = {.op = OP_attention};
    odd.u.attention.heads = 3;
    odd.u.attention.kv_heads = 2;
    char reason[128] = "";
    assert_true(device->type->supports(device, &g, &g.node[0], reason, sizeof reason));
    assert_false(device->type->supports(device, &g, &odd, reason, sizeof reason));
    assert_non_null(strstr(reason, "heads"));

    struct device_plan *plan = (void *)1;
    ob_error error = {0};
    g.node[0] = odd;
    assert_int_equal(
        device->type->prepare(device, &g, &(struct device_kv){0}, 1, 1, &plan, &error),
        OB_ERR_UNSUPPORTED);
    assert_null(plan);
    assert_non_null(strstr(error.message, "attention"));
    device->type->close(&device);
    arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_is_searched_by_name),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(isa_is_described),
        cmocka_unit_test(buffers_are_zeroed_written_and_read),
        cmocka_unit_test(a_node_is_declined_with_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
