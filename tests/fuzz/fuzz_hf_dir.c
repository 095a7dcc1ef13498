/* SPDX-License-Identifier: Apache-2.0
 * fuzz_hf_dir.c: a Hugging Face directory: config.json (which is generation_config.json too), an
 * index and one shard, cut from the input at lines of "--". */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "format/sampling.h"
#include "format/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static char dir[] = "/dev/shm/1bit-fuzz-XXXXXX"; /* memory: three files a run */
static const char *const name[] = {"config.json", "model.safetensors.index.json", "a.safetensors",
                                   "generation_config.json"};

static const char *path_of(int i) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name[i]);
    return path;
}

static void clean_up(void) {
    for (int i = 0; i < 4; i++) unlink(path_of(i));
    rmdir(dir);
}

static void write_file(int i, const uint8_t *bytes, size_t n) {
    FILE *f = fopen(path_of(i), "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0) abort();
}

static void write_files(const uint8_t *bytes, size_t size) {
    for (int i = 0; i < 3; i++) {
        const uint8_t *end = i < 2 ? memmem(bytes, size, "\n--\n", 4) : NULL;
        size_t n = end ? (size_t)(end - bytes) : size, used = end ? n + 4 : size;
        write_file(i, bytes, n);
        if (i == 0) write_file(3, bytes, n);
        bytes += used;
        size -= used;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static bool made;
    if (!made) {
        if (!mkdtemp(dir)) abort();
        atexit(clean_up);
        made = true;
    }
    write_files(bytes, size);
    static const char *const key[] = {"a", "list", "rope.b", "text_config.a", "model_type", ""};
    struct source *s;
    ob_error error;
    if (source_open(dir, &s, &error) != OB_OK) {
        if (s || !error.message[0]) abort();
        return 0;
    }
    struct source_sampling sampling = {.settings = {.top_k = 1}};
    error.message[0] = 0;
    if (source_sampling_read(s, &sampling, &error) != OB_OK && !error.message[0]) abort();
    for (size_t i = 0; i < sizeof key / sizeof key[0]; i++) {
        uint64_t u, n = source_count(s, key[i]);
        double f;
        bool b;
        struct str text;
        for (uint64_t k = 0; k <= n; k++)
            if ((source_u64(s, key[i], k, &u) || source_f64(s, key[i], k, &f) ||
                 source_bool(s, key[i], k, &b) || source_str(s, key[i], k, &text)) && k == n)
                abort();
    }
    for (size_t i = 0; i < source_tensor_count(s); i++)
        if (source_tensor_find(s, source_tensor_at(s, i)->name) != source_tensor_at(s, i)) abort();
    source_close(&s);
    return 0;
}
