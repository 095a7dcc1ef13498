/* SPDX-License-Identifier: Apache-2.0
 *
 * decoder.h: the layer most families share, its keys and tensors. What a file's tensors say needs
 * no argument: biases, norms before and after a sub-layer, norms of q and k, gates, sinks and
 * gated or plain MLPs are used where the recipe lists them and the file has them.
 *
 *     serial     x += post(attention(norm(x)));  x += post(mlp(norm(x)))
 *     parallel   x += attention(norm(x)) + mlp(norm(x) or norm2(x))
 *     post-norm  x = norm(x + attention(x));     x = norm(x + mlp(x))
 *
 * Tensors by role, in GGUF's names: attn_norm, ffn_norm before a sub-layer; post_attention_norm,
 * post_ffw_norm on its output; attn_output_norm, layer_output_norm on the sum. */
#ifndef MODELS_BLOCKS_DECODER_H
#define MODELS_BLOCKS_DECODER_H

#include "models/recipe.h"

/* Layers, width, heads, dims, epsilon, context; without numbers' other names. */
extern const struct key decoder_keys[];
/* attention_bias and mlp_bias of config.json: whether the tensors with a bias have one. */
extern const struct key decoder_bias_keys[];

extern const struct key decoder_window_keys[]; /* the window's size; not which layers have it */
/* The tokens a model writes, where it reads further ones, of images: see decoder_written. */
#define DECODER_WRITTEN(hf_) \
    WHOLE("written", "{arch}.output_vocab_size", hf_, OPTIONAL, 0, 0, 1 << 24)

/* Tables of tensors that carry Llama's names in Hugging Face form. */
extern const struct tensor decoder_ends[];          /* embedding, output, last norm */
extern const struct tensor decoder_wide_ends[];     /* the same, an embedding of "read" tokens */
extern const struct tensor decoder_norms[];         /* before attention and MLP */
extern const struct tensor decoder_norm_biases[];   /* of layer norms, of the last, too */
extern const struct tensor decoder_sandwich[];      /* before and after, as Gemma 2 names them */
extern const struct tensor decoder_after_norms[];   /* after alone, as OLMo 2 names them */
extern const struct tensor decoder_attention_tensors[]; /* q, k, v, output */
extern const struct tensor decoder_paired[];        /* the same, q and k in pairs in GGUF */
extern const struct tensor decoder_qkv_biases[];    /* required biases of q, k and v */
/* Where attention_bias says so. The number "by_config", which decoder_sizes sets, is 1 where the
 * keys are config.json's, which mean all of a kind, and 0 in GGUF, whose files may lack some. */
extern const struct tensor decoder_attention_biases[];
extern const struct tensor decoder_input_biases[];     /* the same without the output's */
extern const struct tensor decoder_paired_biases[];    /* of all, as decoder_paired */
extern const struct tensor decoder_mlp_biases[];       /* where mlp_bias says so */
extern const struct tensor decoder_plain_mlp_biases[]; /* the same without a gate */
extern const struct tensor decoder_qk_norms[];      /* of each head */
extern const struct tensor decoder_wide_qk_norms[]; /* of the whole projection */
extern const struct tensor decoder_mlp[];           /* gate, up, down */
extern const struct tensor decoder_fused_mlp[];     /* gate and up in one tensor, down */
extern const struct tensor decoder_plain_mlp[];     /* up, down */

/* Steps (recipe.h) for parts of fused tensors: [q; k; v], [gate; up]. */
#define QKV "heads*k_dim+kv_heads*k_dim+kv_heads*v_dim"
#define Q_OF_QKV "part(1," QKV ",0)"
#define K_OF_QKV "part(1," QKV ",heads*k_dim)"
#define V_OF_QKV "part(1," QKV ",heads*k_dim+kv_heads*k_dim)"
#define GATE_OF_TWO "part(1,2*ffn,0)"
#define UP_OF_TWO "part(1,2*ffn,ffn)"
/* Of [heads, 3, k_dim]: q, k and v of one head after the other. */
#define Q_OF_HEADS "part(heads,3*k_dim,0)"
#define K_OF_HEADS "part(kv_heads,3*k_dim,k_dim)"
#define V_OF_HEADS "part(kv_heads,3*k_dim,2*k_dim)"
/* Rows of the parts of a fused tensor of Hugging Face's; biases where attention_bias says so. */
#define FUSED_QKV(hf_, q_, k_, v_)                                                                 \
    MATRIX("blk.{i}.attn_q.weight", hf_ ".weight", "heads*k_dim", "width", REQUIRED,               \
           .from_hf = q_),                                                                         \
    MATRIX("blk.{i}.attn_k.weight", hf_ ".weight", "kv_heads*k_dim", "width", REQUIRED,            \
           .from_hf = k_),                                                                         \
    MATRIX("blk.{i}.attn_v.weight", hf_ ".weight", "kv_heads*v_dim", "width", REQUIRED,            \
           .from_hf = v_)
#define FUSED_QKV_BIASES(hf_, q_, k_, v_)                                                          \
    VECTOR("blk.{i}.attn_q.bias", hf_ ".bias", "attention_bias*heads*k_dim", REQUIRED,             \
           .from_hf = q_),                                                                         \
    VECTOR("blk.{i}.attn_k.bias", hf_ ".bias", "attention_bias*kv_heads*k_dim", REQUIRED,          \
           .from_hf = k_),                                                                         \
    VECTOR("blk.{i}.attn_v.bias", hf_ ".bias", "attention_bias*kv_heads*v_dim", REQUIRED,          \
           .from_hf = v_)
/* attn_qkv of GGUF files, weights and biases, where a family's rows name q, k and v apart. */
extern const struct tensor decoder_gguf_qkv[];

/* Defaults that depend on other keys (head size, attention scale), checks between keys, no windows.
 * Families with ropes of their own call it first. */
ob_status decoder_sizes(struct build *b, ob_error *error);
/* The same, and one rope for all layers. */
ob_status decoder_derive(struct build *b, ob_error *error);
/* The same with layer norms; with the window in every layer; with windows by layer_types. */
ob_status decoder_derive_layer_norms(struct build *b, ob_error *error);
ob_status decoder_derive_sliding(struct build *b, ob_error *error);
ob_status decoder_derive_types(struct build *b, ob_error *error);
/* Makes the vocabulary that of the tokens written, if the key says how many, and "read" what the
 * embedding has. */
ob_status decoder_written(struct build *b, ob_error *error);
/* Where no key says the width of a layer's MLP: so many times the model's. Before decoder_sizes. */
void decoder_ffn_times(struct build *b, uint32_t times);
/* Sets hp.window from config.json's layer_types or GGUF's list; false if it has none. */
bool decoder_layer_types(struct build *b);
/* The same, or by a period: the last layer of each, or the first, is full. */
void decoder_window_period(struct build *b, uint32_t period, bool full_first);
/* Layers that see all positions do not turn q and k. */
void decoder_rope_in_windows(struct build *b);
/* Whether config.json's layer_types (or layers_block_type) name the layer so. */
bool decoder_type_is(struct build *b, uint32_t layer, const char *type);

struct decoder_args {
    bool interleaved;    /* rotary pairs (2i, 2i+1) */
    bool turns_values;   /* the rope is of v, too */
    bool parallel;
    bool late_qk_norm;   /* norms of q and k follow the rope */
    bool wide_qk_norm;   /* over the whole projection, not each head */
    bool late_clamp;     /* q and k are cut after their norms */
    bool bare_qk_norm;   /* norms of q and k, of each head, have no weights */
    bool softplus_gate;  /* of attention's output; else a sigmoid */
    /* What happens to q last; NULL: nothing. */
    value_id (*query)(struct build *b, value_id q);
    /* The positions that attention sees, as index_select gives them; NULL: all. */
    value_id (*select)(struct build *b, value_id x);
    /* What takes attention's or the MLP's place; NULL: the usual. */
    value_id (*mixer)(struct build *b, value_id x, const struct decoder_args *args);
    value_id (*mlp)(struct build *b, value_id x, const struct decoder_args *args);
};
value_id decoder_layer(struct build *b, value_id x, const struct decoder_args *args);
value_id decoder_attention(struct build *b, value_id x, const struct decoder_args *args);
/* A mixture where the layer has experts, else a gated or plain MLP. */
value_id decoder_mlp_block(struct build *b, value_id x, const struct decoder_args *args);

/* ---- pieces for layers of a family's own ---- */

/* The family's kind of norm over the whole row; x itself where w is NULL, unless hp.bare_norms. */
value_id block_norm(struct build *b, value_id x, struct weight *w, struct weight *bias);
/* "attn_norm" of this layer. */
value_id block_norm_named(struct build *b, value_id x, const char *name);
/* The table of a rope of the family's own; of hp.rope and hp.rope_window, made once, below. */
value_id block_rope(struct build *b, const struct rope *rope);
/* The same of the positions so many before. */
value_id block_rope_back(struct build *b, const struct rope *rope, uint32_t back);
/* The rope table for full or for window layers, made once. */
value_id block_rope_table(struct build *b, bool window);
/* x W^T + bias by name: "attn_output"; the bias may be absent. */
value_id block_linear(struct build *b, value_id x, const char *name);
/* x + h, h times the family's scale of residuals. */
value_id block_residual(struct build *b, value_id x, value_id h);
/* Families of one line: the decoder's layer with no arguments, or with pairs. */
value_id decoder_plain_layer(struct build *b, value_id x);
value_id decoder_paired_layer(struct build *b, value_id x);

#endif
