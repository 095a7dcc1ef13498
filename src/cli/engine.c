/* SPDX-License-Identifier: Apache-2.0
 * engine.c: opening the engine as the command line says. */
#include <stdlib.h>

#include "base/error.h"
#include "base/os.h"
#include "cli/cli.h"

ob_engine_options cli_engine_options(const struct options *options) {
    return (ob_engine_options){
        .device = options->device,
        .gpu_layers = options->gpu_layers,
        .cpu_isa = options->cpu_isa,
        .threads = (uint32_t)options->threads,
        .cpu_mask = options->cpu_mask,
        .numa = options->numa,
        .weights = options->weights,
        .context = (uint32_t)options->context,
        .kv_memory = options->kv_memory,
        .kv_type = options->kv_type,
        .kv_type_k = options->kv_type_k,
        .kv_type_v = options->kv_type_v,
        .no_graphs = options->no_graphs,
        .no_mmap = options->no_mmap,
        .mlock = options->mlock,
        .tool_format = options->tool_format,
    };
}

ob_status cli_check_kv_memory(const struct options *options, ob_error *error) {
    uint64_t most = os_memory_total();
    char asked[24], has[24];
    ob_device device;
    /* Devices are slow to ask: only where it matters. */
    for (size_t i = 0; options->kv_memory > most && ob_device_at(i, &device); i++)
        if (device.count && device.memory_total > most) most = device.memory_total;
    if (options->kv_memory <= most) return OB_OK;
    cli_bytes(options->kv_memory, asked);
    cli_bytes(most, has);
    error_set(error, OB_ERR_LIMIT, "%s are more than this machine has (%s)", asked, has);
    error_at(error, NULL, "kv_memory", OB_NO_OFFSET);
    return OB_ERR_LIMIT;
}

static void show_loading(void *user, uint64_t done, uint64_t total) {
    (void)user;
    cli_progress("loading", done, total);
}

ob_status cli_engine_open_with(const struct options *options, ob_engine_options engine,
                               ob_engine **out, ob_error *error) {
    char *path = NULL;
    struct buf template = BUF_INIT;
    *out = NULL;
    ob_status status = cli_check_kv_memory(options, error);
    if (status == OB_OK)
        status = cli_chat_template(options, &template, &engine.chat_template, error);
    if (status == OB_OK) status = cli_model_path(options->model, &path, error);
    if (status != OB_OK) {
        buf_free(&template);
        return status;
    }
    engine.model = path;
    engine.progress = show_loading;
    status = ob_engine_open(&engine, out, error);
    cli_progress("loading", 1, 1);
    buf_free(&template);
    free(path);
    return status;
}

void cli_say_context(const ob_engine *engine, const struct options *options) {
    ob_engine_info info;
    ob_engine_get_info(engine, &info);
    if (info.context < info.train_context && !options->context)
        cli_say("context %u tokens: as %s allows; the model was made for %u", info.context,
                options->kv_memory ? "--kv-memory" : "half of the free memory (see --kv-memory)",
                info.train_context);
    if (info.context > info.train_context)
        cli_say("context %u tokens: as --context says; the model was made for %u, what is beyond "
                "may be nonsense", info.context, info.train_context);
}

ob_status cli_engine_open(const struct options *options, uint32_t parallel, ob_engine **out,
                          ob_error *error) {
    ob_engine_options engine = cli_engine_options(options);
    engine.parallel = parallel;
    return cli_engine_open_with(options, engine, out, error);
}
