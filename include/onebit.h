/* SPDX-License-Identifier: Apache-2.0
 *
 * onebit.h: the public C API of 1bit engine.
 *
 * An engine is one loaded model on one device. Requests are submitted to it from any thread; one
 * owner thread inside the engine runs them together (continuous batching) and reports through a
 * callback. Everything is opaque; strings are UTF-8; sizes are in bytes, counts in tokens.
 *
 * Errors: functions that can fail return ob_status and fill a caller-owned ob_error (may be NULL).
 * Thread safety: an ob_engine may be used by many threads at once; an ob_request by one at a time.
 */
#ifndef ONEBIT_H
#define ONEBIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OB_VERSION "0.1.0"

/* ---- errors ---------------------------------------------------------------------------------- */

typedef enum ob_status {
#define ERROR_CODE(name, text) OB_##name,
#include "onebit_errors.def"
#undef ERROR_CODE
} ob_status;

#define OB_NO_OFFSET UINT64_MAX

/* What went wrong and where. `file`, `where` and `offset` are empty / OB_NO_OFFSET if unknown. */
typedef struct ob_error {
    ob_status status;
    uint64_t offset;    /* byte offset in `file` */
    char file[256];     /* path as the caller gave it */
    char where[128];    /* the key, tensor, flag or field */
    char message[512];  /* one line, no trailing period or newline */
} ob_error;

/* The fixed text of a status ("out of memory"). Never NULL. */
const char *ob_status_text(ob_status status);

/* Writes "file: where: message (offset N)" into out (always terminated); returns out. */
const char *ob_error_line(const ob_error *error, char *out, size_t size);

/* ---- devices --------------------------------------------------------------------------------- */

typedef struct ob_device {
    const char *name;   /* for ob_engine_options.device */
    uint32_t count;     /* how many of it this machine has; 0: `text` says why */
    uint32_t index;     /* this one's number of them: "name:index" names it; "name" is number 0 */
    uint64_t memory_total, memory_available; /* bytes */
    char text[160];     /* "8 cores, avx512" */
    char isa[64];       /* what cpu_isa may name here, best last: "scalar avx2"; "" = no choice */
} ob_device;

/* The i-th device, in the order in which "auto" tries them, each of several by itself; false past
 * the last. */
bool ob_device_at(size_t i, ob_device *out);

/* ---- engine ---------------------------------------------------------------------------------- */

typedef struct ob_engine ob_engine;
typedef struct ob_request ob_request;

/* Zero means "the default" in every field. */
typedef struct ob_engine_options {
    const char *model;      /* path of a GGUF file or a Hugging Face directory; required */
    const char *device;     /* a name of ob_device_at, or with a number, "cuda:1"; or "auto";
                               NULL = auto */
    const char *gpu_layers; /* how many of the last layers, the output counted as one, run on the
                               device, those before on the CPU: a number, or "auto": as many as
                               its free memory holds; NULL = all */
    const char *cpu_isa;    /* as `1bit devices` lists them ("avx2"); NULL = the best */
    uint32_t threads;       /* 0 = one a fast core, or one a processor of cpu_mask */
    const char *cpu_mask;   /* "0-3,8" or "0xff": the threads run on these alone; NULL = anywhere */
    const char *numa;       /* "distribute": pinned, in turn over the NUMA nodes; "isolate": on the
                               node that the caller runs on; NULL or "none": where the system
                               puts them */
    const char *weights;    /* "q8_0": matrices of floats (F32, F16, BF16) become it while loading;
                               NULL = as the files have them. Norms, biases and routers stay */
    uint32_t context;       /* tokens a sequence may hold; 0 = the model's own */
    uint64_t kv_memory;     /* bytes of KV cache; 0 = half of the memory free after loading */
    const char *kv_type;    /* "f16" (default), "bf16", "f32", "q8_0", "q4_0"; encoders: "f32" */
    const char *kv_type_k;  /* of the keys alone, of the values alone; NULL = kv_type */
    const char *kv_type_v;
    bool no_graphs;         /* cuda: each kernel is launched by itself, as profilers want it */
    bool no_mmap;           /* read the weights into memory instead of mapping their files */
    bool mlock;             /* keep them in memory: never swapped out or dropped */
    const char *chat_template; /* in place of the model's: a built-in's name ("chatml", ...; see
                               docs/templates.md) or Jinja source; NULL = the model's own */
    const char *tool_format; /* how the model writes tool calls, a name of docs/tools.md; NULL =
                               what its chat template tells */
    uint32_t parallel;      /* sequences running at once; 0 = 8 */
    uint32_t step_tokens;   /* tokens a step may hold at most; 0 = 512 */
    uint32_t step_logits;   /* rows of logits a step may give at most; 0 = 128 */
    uint32_t queue;         /* requests that may wait while `parallel` run: ob_submit refuses more
                               with OB_ERR_BUSY; 0 = any number */
    uint32_t max_gap;       /* milliseconds: prompts are cut into such steps that running answers
                               get their next token within about that; 0 = no limit */
    /* Called while loading with bytes of the files done and total; may be NULL. */
    void (*progress)(void *user, uint64_t done, uint64_t total);
    void *progress_user;
} ob_engine_options;

typedef struct ob_engine_info {
    const char *name;         /* general.name or the file's stem */
    const char *family;       /* recipe name, "qwen2" */
    const char *device;       /* "cpu", with the ISA: "cpu (avx512)" */
    uint64_t parameters;      /* weights counted */
    uint64_t active_parameters; /* those a token uses: not the experts it is not routed to */
    uint64_t weight_bytes;
    uint64_t token_bytes;     /* of weights read for one token with its logits */
    uint64_t expert_bytes;    /* the part of token_bytes that depends on the token's experts */
    uint64_t token_products;  /* multiply-adds of a token's matrix products, logits apart */
    uint64_t logits_products; /* those of one row of logits */
    const char *kv_type;      /* "q8_0"; keys and values if they differ: "q8_0+q4_0" */
    uint64_t kv_bytes_token;  /* KV cache bytes a token */
    uint64_t kv_capacity;     /* tokens that fit in the KV memory */
    uint32_t context;         /* tokens a sequence may hold */
    uint32_t train_context;
    uint32_t vocab;
    uint32_t embedding;       /* numbers of the vector that ob_embed makes of a text; 0: none */
    bool encoder;             /* reads texts and writes none: ob_submit refuses */
    uint32_t experts;         /* of a layer, 0: none */
    uint32_t experts_used;    /* of a token */
    uint32_t threads;
    uint32_t parallel;
    const char *tool_format;  /* how the model writes tool calls, and how it marks its reasoning: */
    const char *reasoning_style; /* names of docs/tools.md; NULL: there is no chat template */
    const ob_error *chat_error; /* NULL, or why ob_chat_prompt fails for every request: there is no
                                 * chat template (OB_ERR_NOT_FOUND), or a broken one */
} ob_engine_info;

ob_status ob_engine_open(const ob_engine_options *options, ob_engine **out, ob_error *error);
/* Looks for what would make ob_engine_open fail in the options and in the model's metadata, without
 * touching the weights: fast, for who wants to know before taking a port or a screen. */
ob_status ob_engine_check(const ob_engine_options *options, ob_error *error);

/* One weight of a model, and what would run it. Strings live as long as the call. */
typedef struct ob_placement {
    const char *tensor; /* as in the file */
    const char *format; /* "Q4_K" */
    uint64_t bytes;
    const char *device; /* "cpu" */
    const char *kernel; /* "linear (avx512, int8 inputs)" */
} ob_placement;
/* Calls `row` for each weight in the order in which a token meets them (one used twice, twice).
 * Like ob_engine_check it touches no weight. */
ob_status ob_engine_placement(const ob_engine_options *options,
                              void (*row)(void *user, const ob_placement *place), void *user,
                              ob_error *error);
/* Cancels what runs, waits for the owner thread, frees all and nulls *engine. */
void ob_engine_close(ob_engine **engine);
/* Strings live as long as the engine. */
void ob_engine_get_info(const ob_engine *engine, ob_engine_info *info);
/* Bytes of KV cache that a sequence of so many tokens holds, and its next token reads. */
uint64_t ob_engine_kv_bytes(const ob_engine *engine, uint32_t tokens);

/* ---- text ------------------------------------------------------------------------------------ */

typedef struct ob_tokens {
    int32_t *id;  /* malloc'd; free with ob_tokens_free */
    size_t n;
} ob_tokens;
void ob_tokens_free(ob_tokens *tokens);

/* add_special: the tokenizer's own BOS/EOS rules; parse_special: control tokens in the text are
 * recognised (never do this with text a user gave). */
ob_status ob_tokenize(const ob_engine *engine, const char *text, size_t n, bool add_special,
                      bool parse_special, ob_tokens *out, ob_error *error);
/* *out is malloc'd and terminated; *n excludes the terminator. Control tokens print as "" unless
 * `special`. Bytes that are no UTF-8 are kept. */
ob_status ob_detokenize(const ob_engine *engine, const int32_t *id, size_t count, bool special,
                        char **out, size_t *n, ob_error *error);
/* Renders a chat request (JSON object with "messages", optional "tools",
 * "chat_template_kwargs", "add_generation_prompt", "continue_final_message", ...; see
 * docs/templates.md) with the model's template and tokenizes it: bytes that came from the messages
 * never become control tokens. text/text_n may be NULL. */
ob_status ob_chat_prompt(const ob_engine *engine, const char *request_json, size_t n,
                         ob_tokens *out, char **text, size_t *text_n, ob_error *error);
/* The same for a request that is parsed: a json_t of jansson, which is not changed. */
struct json_t;
ob_status ob_chat_prompt_json(const ob_engine *engine, const struct json_t *request,
                              ob_tokens *out, char **text, size_t *text_n, ob_error *error);

/* ---- generation ------------------------------------------------------------------------------ */

/* Added to a token's logit before all samplers. */
typedef struct ob_logit_bias {
    int32_t id;       /* of the vocabulary; if `text` is NULL */
    const char *text; /* every token of this text, tokenized alone, gets it */
    float bias;       /* finite, or -INFINITY: the token is never drawn */
} ob_logit_bias;

/* Start from ob_sampling_default() or ob_engine_sampling(): zero in a field means zero here. Ranges
 * are those of onebit_sampling.def; docs/sampling.md says what each sampler does. */
typedef struct ob_sampling {
    float temperature;        /* 0 = the most likely token that the other samplers leave */
    float dynatemp_range;     /* temperature +- this, by the entropy; 0 = off */
    float dynatemp_exponent;
    int32_t top_k;            /* <= 0 = off */
    float top_p;              /* 1 = off */
    float min_p;              /* 0 = off */
    float typical_p;          /* 1 = off */
    float top_n_sigma;        /* <= 0 = off */
    float xtc_probability;    /* 0 = off */
    float xtc_threshold;      /* above 0.5 = off */
    float repeat_penalty;     /* 1 = off */
    float frequency_penalty;  /* 0 = off */
    float presence_penalty;   /* 0 = off */
    int32_t penalty_last_n;   /* tokens the three look back; -1 = all, 0 = off */
    float dry_multiplier;     /* 0 = off */
    float dry_base;           /* below 1 = off */
    int32_t dry_allowed_length; /* tokens that may repeat without penalty */
    int32_t dry_penalty_last_n; /* tokens it looks back; -1 = all, 0 = off */
    const char *const *dry_breakers; /* texts of 1 to 40 bytes that end a repetition; NULL =
                                      * newline, ":", double quote and "*" */
    size_t dry_breakers_n;
    int32_t mirostat;         /* 1 or 2: that version behind the temperature instead of `order`;
                               * 0 = off */
    float mirostat_tau, mirostat_eta; /* wanted surprise in bits, learning rate */
    float adaptive_target;    /* wanted probability, of "adaptive_p" in `order`; negative = off */
    float adaptive_decay;
    int32_t min_keep;         /* tokens that top_p, min_p, typ_p and xtc leave at least */
    const ob_logit_bias *logit_bias;
    size_t logit_bias_n;
    uint64_t seed;
    const char *order;        /* names separated by ";"; one not named does not run; NULL =
                               * OB_SAMPLING_ORDER */
} ob_sampling;

#define OB_SAMPLING_ORDER \
    "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"

/* The defaults of onebit_sampling.def: temperature 0.8, top_k 40, top_p 0.95, min_p 0.05, the rest
 * off; seed 0. */
ob_sampling ob_sampling_default(void);
/* Those with what the model's files say instead: general.sampling.* of a GGUF,
 * generation_config.json of a directory. `order` lives as long as the engine. */
ob_sampling ob_engine_sampling(const ob_engine *engine);
/* Whether ob_submit would take it, but for the ids of logit_bias; the error names the member in
 * `where`. */
ob_status ob_sampling_check(const ob_sampling *sampling, ob_error *error);

/* What a request's answer may be: docs/structured.md. Made once, used by any number of requests of
 * the same engine, from any thread; requests keep what they need of it. Errors are OB_ERR_ARGUMENT
 * (line and column, or in `where` a JSON pointer) and OB_ERR_LIMIT. */
typedef struct ob_grammar ob_grammar;
enum {
    OB_JSON_COMPACT = 1, /* no white space between tokens */
    OB_JSON_OPEN = 2,    /* objects may have members that "properties" does not list */
};
/* GBNF, as llama.cpp has it: texts of the rule "root". */
ob_status ob_grammar_gbnf(const ob_engine *engine, const char *text, size_t n, ob_grammar **out,
                          ob_error *error);
/* The whole answer matches the regular expression (ECMA-262). */
ob_status ob_grammar_regex(const ob_engine *engine, const char *text, size_t n, ob_grammar **out,
                           ob_error *error);
/* JSON that is valid for a schema; `flags` of OB_JSON_. */
ob_status ob_grammar_json_schema(const ob_engine *engine, const char *schema, size_t n,
                                 unsigned flags, ob_grammar **out, ob_error *error);
/* The same for a schema that is parsed: a json_t of jansson, which is not changed or kept. */
ob_status ob_grammar_json_schema_json(const ob_engine *engine, const struct json_t *schema,
                                      unsigned flags, ob_grammar **out, ob_error *error);
void ob_grammar_free(ob_grammar **grammar);

typedef enum ob_finish {
    OB_FINISH_NONE,
    OB_FINISH_STOP,    /* an end-of-generation token or a stop string */
    OB_FINISH_LENGTH,  /* max_tokens or the context is full */
    OB_FINISH_CANCEL,
    OB_FINISH_ERROR,   /* see ob_event.error */
} ob_finish;

typedef struct ob_timings {
    uint32_t cache_n;       /* prompt tokens found in the cache */
    uint32_t prompt_n;      /* prompt tokens computed */
    double prompt_ms;
    uint32_t predicted_n;
    double predicted_ms;
} ob_timings;

typedef struct ob_logprob {
    int32_t id;
    float logprob; /* natural log */
} ob_logprob;

enum { OB_TOP_LOGPROBS = 100 }; /* at most */

typedef struct ob_event {
    const char *text;  /* whole UTF-8 characters, text_n bytes; not terminated; may be empty */
    size_t text_n;
    int32_t id;        /* the token, -1 for text flushed at the end */
    float logprob;     /* of that token, natural log; 0 unless the request wants it */
    const ob_logprob *top; /* top_n of the most likely tokens, most likely first; they live as long
                            * as the call */
    size_t top_n;
    ob_finish finish;  /* != NONE: the last event of the request */
    const char *stop;  /* the stop string that ended it, as long as the call; NULL: none did */
    ob_timings timings;     /* of the request so far */
    const ob_error *error;  /* when finish is OB_FINISH_ERROR */
} ob_event;

typedef struct ob_request_options {
    const int32_t *prompt;  /* copied; at least one token */
    size_t prompt_n;
    uint32_t max_tokens;    /* 0 = to the end of the context */
    int32_t priority;       /* lower ones are served first; equals as they come */
    ob_sampling sampling;
    const char *const *stop;  /* stop strings, copied; output is cut before the match */
    size_t stop_n;
    const ob_grammar *grammar; /* of the answer; NULL = any text. The request ends when the answer
                                * is whole and nothing may follow, whatever ignore_eos says */
    const char *grammar_after; /* copied; the grammar begins behind the first such text of the
                                * answer ("</think>") and blanks; NULL = at once */
    bool markers;           /* control tokens that the model's tool format or its reasoning needs
                             * are text; else no control token is */
    bool limit_reasoning;   /* behind reasoning_tokens of reasoning what ends it is put in, as if */
    uint32_t reasoning_tokens; /* it had been drawn */
    bool reasoning_open;    /* the prompt has opened the reasoning */
    bool ignore_eos;
    bool logprobs;          /* events have them: of the model's own distribution */
    bool logprobs_after;    /* of the one that the samplers left and the token was drawn from;
                             * implies logprobs */
    uint32_t top_logprobs;  /* that many of the most likely tokens, with either of the two */
    /* Called on the engine's owner thread: must not block and must not call ob_ functions other
     * than ob_cancel on this request. */
    void (*on_event)(void *user, const ob_event *event);
    void *user;
} ob_request_options;

ob_status ob_submit(ob_engine *engine, const ob_request_options *options, ob_request **out,
                    ob_error *error);
/* Asks for the end; the last event says OB_FINISH_CANCEL. Any thread. */
void ob_cancel(ob_request *request);
/* Waits for the last event to have been delivered, frees, nulls. */
void ob_release(ob_request **request);

/* The vectors of n tokenized texts, rows [n, info.embedding] of float into `out`, pooled as the
 * model's files say and, if they say so, of length 1. Waits; any thread. OB_ERR_LIMIT: a text is
 * longer than the context; OB_ERR_UNSUPPORTED: the model does not embed. */
ob_status ob_embed(const ob_engine *engine, const ob_tokens *text, size_t n, float *out,
                   ob_error *error);

/* Logits for n tokens from an empty sequence, rows [n, vocab] of float into `logits` (NULL: none
 * wanted); `chunk` tokens a step (0 = all at once, as step_tokens allows). For bench and eval; the
 * engine must be idle. *seconds (may be NULL) is the time inside the steps. */
ob_status ob_eval(ob_engine *engine, const int32_t *id, size_t n, uint32_t chunk, float *logits,
                  double *seconds, ob_error *error);

/* Sequences advanced by hand, several in a step: for bench and eval. Nothing is sampled. The engine
 * must be idle: OB_ERR_BUSY while requests run. A batch is used by one thread at a time and closed
 * before its engine. */
typedef struct ob_batch ob_batch;

/* Sequences 0..sequences-1, all empty; at most the engine's `parallel`. */
ob_status ob_batch_open(ob_engine *engine, uint32_t sequences, ob_batch **out, ob_error *error);
void ob_batch_close(ob_batch **batch);

/* Tokens to append to a sequence; rows of logits are wanted for the last `logits` of them. */
typedef struct ob_batch_part {
    uint32_t sequence;
    const int32_t *id;
    size_t n, logits;
} ob_batch_part;

/* Gets n rows [n, vocab] of a part: its wanted rows first, first + 1, ... On the engine's owner
 * thread: must not call ob_ functions. Anything but OB_OK ends the run with that status. */
typedef ob_status (*ob_batch_rows)(void *user, uint32_t part, size_t first, size_t n,
                                   const float *logits, ob_error *error);

/* Computes all parts, at most one a sequence, in as few steps as the engine's limits allow; `chunk`
 * tokens of a part a step at most (0 = as many as fit; 1 = as a model writes). on_rows may be NULL.
 * *seconds (may be NULL) is the time inside the steps. After an error some parts may have been
 * appended in part. */
ob_status ob_batch_run(ob_batch *batch, const ob_batch_part *part, uint32_t parts, uint32_t chunk,
                       ob_batch_rows on_rows, void *user, double *seconds, ob_error *error);
/* Cuts a sequence back to its first n tokens; returns how many it holds then: all it had if that is
 * less; 0 if a window cache no longer holds what position n would see; with recurrent layers, whose
 * state cannot be cut, the nearest length at or before n of which a copy was kept, or 0. Tokens
 * from there on are appended again. */
uint32_t ob_batch_keep(ob_batch *batch, uint32_t sequence, uint32_t n);

#ifdef __cplusplus
}
#endif
#endif
