/* SPDX-License-Identifier: Apache-2.0
 * names.c: the order in which a request wants its samplers. */
#include <ctype.h>
#include <string.h>

#include "base/error.h"
#include "base/str.h"
#include "sample/sampler.h"

static const struct sampler *const samplers[] = {
#define SAMPLER(name) &sampler_##name,
#include "sample/samplers.def"
#undef SAMPLER
};
enum { SAMPLERS = sizeof samplers / sizeof samplers[0] };
_Static_assert(SAMPLERS <= (size_t)SAMPLE_STEPS, "a chain holds every sampler");

/* Other names that people know them by; - is as good as _. */
static const struct {
    const char *name, *means;
} aliases[] = {{"nucleus", "top_p"},
               {"temp", "temperature"},
               {"typical", "typ_p"},
               {"typical_p", "typ_p"}};

static bool same(struct str name, const char *want) {
    if (name.n != strlen(want)) return false;
    for (size_t i = 0; i < name.n; i++)
        if (want[i] != (name.p[i] == '-' ? '_' : (char)tolower((unsigned char)name.p[i])))
            return false;
    return true;
}

static const struct sampler *find(struct str name) {
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (same(name, aliases[i].name)) name = str_of(aliases[i].means);
    for (size_t i = 0; i < SAMPLERS; i++)
        if (!samplers[i]->internal && same(name, samplers[i]->name)) return samplers[i];
    return NULL;
}

static ob_status refuse(ob_error *error, struct str name, const char *why) {
    char known[256] = "";
    for (size_t i = 0; i < SAMPLERS; i++) {
        if (samplers[i]->internal) continue;
        strncat(known, *known ? ", " : "", sizeof known - strlen(known) - 1);
        strncat(known, samplers[i]->name, sizeof known - strlen(known) - 1);
    }
    error_set(error, OB_ERR_ARGUMENT, "sampler \"%.*s\" %s (known: %s; separated by \";\")",
              STR_ARG(name), why, known);
    error_at(error, NULL, "order", OB_NO_OFFSET);
    return OB_ERR_ARGUMENT;
}

static void add(const struct sampler *sampler, struct sample_step *step, size_t *n) {
    step[*n] = (struct sample_step){.sampler = sampler};
    ++*n;
}

ob_status sample_read_order(const ob_sampling *settings, struct sample_step step[SAMPLE_STEPS],
                            size_t *n, ob_error *error) {
    const struct sampler *seen[SAMPLERS], *last = NULL;
    size_t names = 0;
    const char *order = settings->order ? settings->order : OB_SAMPLING_ORDER;
    *n = 0;
    if (sampler_logit_bias.active(settings)) add(&sampler_logit_bias, step, n);
    for (const char *p = order; *p;) {
        struct str name = {p, strcspn(p, ";")};
        const struct sampler *sampler = find(name);
        if (!sampler) return refuse(error, name, "is unknown");
        for (size_t i = 0; i < names; i++)
            if (seen[i] == sampler) return refuse(error, name, "is named twice");
        seen[names++] = sampler;
        p += name.n;
        if (p[0] == ';' && !p[1]) return refuse(error, STR_LIT(""), "is unknown");
        p += *p == ';';
        if (settings->mirostat || !sampler->active(settings)) continue;
        if (sampler->last) last = sampler;
        else add(sampler, step, n);
    }
    if (last) add(last, step, n);
    if (settings->mirostat) {
        if (sampler_temperature.active(settings)) add(&sampler_temperature, step, n);
        add(settings->mirostat == 1 ? &sampler_mirostat : &sampler_mirostat_v2, step, n);
    }
    return OB_OK;
}
