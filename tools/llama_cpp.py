# SPDX-License-Identifier: Apache-2.0
"""llama.cpp reads what `1bit convert` writes: which miniatures (tests/golden/families) it can read,
and the library itself, through its C API.

    llama_cpp.py LIBRARY MODEL.gguf OUT ID...     float32 rows into OUT, without a header

runs one sequence; a process of its own, since llama.cpp ends it where a model breaks a rule.
tests/tools/test_llama_cpp.py compares; make_models_doc.py says what READS has."""
import array
import ctypes
import glob
import importlib.util
import json
import os
import re
import struct
import sys

# ---- which miniatures ----------------------------------------------------------------------------

def change(keys=(), layers=None, without=None, cut=()):
    """What is changed in a miniature before both engines get it: keys of config.json (of its
    text_config, if it has one), which of its layers in which order, which tensors it loses, and to
    how many rows and columns (0: all) tensors are cut."""
    return {'keys': dict(keys), 'layers': layers, 'without': without, 'cut': dict(cut)}


AS_IS = change()
# Constants of llama.cpp that a miniature contradicts.
YARN = {'rope_parameters.beta_fast': 32.0, 'rope_parameters.beta_slow': 1.0}
LATENT_EPS = {'rms_norm_eps': 1e-6}  # transformers' of latents, where llama.cpp has one for all
MSCALE = {'rope_parameters.mscale': 1.0}
NO_GROUPS = {'n_group': 1, 'topk_group': 1}  # it takes a group's best two, not its best
NO_WINDOW = {'sliding_window': None, 'use_sliding_window': False}
ONE_BASE = {'layer_rope_theta': [10000.0, 10000.0]}
FULL = 'full_attention'

# It has heads as wide, in all, as the stream: two of sixteen features.
TWO_HEADS = {'num_attention_heads': 2, 'num_key_value_heads': 1}
CUT_HEADS = {r'q_proj\.weight': (32, 0), r'[kv]_proj\.weight': (16, 0), r'q_proj\.bias': (0, 32),
             r'[kv]_proj\.bias': (0, 16), r'o_proj\.weight': (0, 32)}

READS = {
    'afmoe': change({'layer_types': ['sliding_attention'] * 2}),
    'apertus': AS_IS,
    'arcee': change(YARN),
    'bert': AS_IS,
    'bert-classifier': AS_IS,
    'bloom': AS_IS,
    'cohere': change({'use_qk_norm': False}, without=r'[qk]_norm'),
    'cohere2_moe': AS_IS,
    'dbrx': AS_IS,
    'deepseek_v2': change(YARN | LATENT_EPS | MSCALE | NO_GROUPS),
    'deepseek_v3': change(YARN | LATENT_EPS | MSCALE),
    'distilbert': AS_IS,
    'emu3': AS_IS,
    'emu3_text': AS_IS,
    'ernie4_5': change({'use_bias': False}, without=r'bias$'),
    'ernie4_5_moe': change({'use_bias': False}, without=r'(proj|lm_head)\S*bias$'),
    'exaone': AS_IS,
    'exaone_moe': AS_IS,
    'falcon': AS_IS,
    'falcon-mqa': AS_IS,
    'falcon_mamba': AS_IS,
    'gemma': AS_IS,
    'gemma2': change({'query_pre_attn_scalar': 16}),
    'gemma3': change({'query_pre_attn_scalar': 16}),
    'gemma3_text': change({'query_pre_attn_scalar': 16}),
    'gemma3_text-embedding': change({'query_pre_attn_scalar': 16}),
    'gemma4': AS_IS,
    'gemma4_text': AS_IS,
    'gemma4_text-moe': change({'rms_norm_eps': 1e-6}),  # its router's
    'glm': change(TWO_HEADS, cut=CUT_HEADS),
    'glm4': AS_IS,
    'glm4_moe': AS_IS,
    'glm4_moe_lite': change(LATENT_EPS),
    'got_ocr2': change(NO_WINDOW | {'layer_types': [FULL] * 2}),
    'gpt-sw3': AS_IS,
    'gpt2': AS_IS,
    'gpt_bigcode': AS_IS,
    'gpt_neox': AS_IS,
    'gpt_oss': change(YARN | {'swiglu_limit': 7.0, 'rope_parameters.truncate': True}),
    'granite': AS_IS,
    'granite_swa': change(ONE_BASE),
    'granitemoe': AS_IS,
    'granitemoe_swa': change(ONE_BASE),
    'granitemoehybrid': AS_IS,
    'granitemoeshared': AS_IS,
    'hrm_text': AS_IS,
    'hunyuan_v1_dense': AS_IS,
    'hy_v3': AS_IS,
    'internlm3': AS_IS,
    'internvl': AS_IS,
    'iquestcoder': AS_IS,
    'jais2': AS_IS,
    'jamba': AS_IS,
    'jina_embeddings_v3': AS_IS,
    'laguna': AS_IS,
    'lfm2': AS_IS,
    'lfm2_moe': AS_IS,
    'llama': AS_IS,
    'llama-bitnet': AS_IS,
    'llama4_text': change({'interleave_moe_layer_step': 2, 'moe_layers': [1, 3],
                           'num_hidden_layers': 4, 'no_rope_layers': [1, 1, 1, 0],
                           'layer_types': ['chunked_attention'] * 3 + [FULL],
                           'attention_chunk_size': 8192, 'floor_scale': 8192},
                          layers=[0, 1, 0, 1]),
    'llava': AS_IS,
    'mamba': AS_IS,
    'mamba2': AS_IS,
    'mellum': change({'rope_parameters.sliding_attention.rope_theta': 500000.0}),
    'mimo_v2_flash': AS_IS,
    'minimax_m2': AS_IS,
    'minimax_m3_vl_text': change({'swiglu_limit': 7.0, 'index_topk_blocks': 16}),
    'ministral3': AS_IS,
    'mistral': change(NO_WINDOW),
    'mistral3': AS_IS,
    'mistral4': change(YARN | LATENT_EPS),
    'mixtral': AS_IS,
    'modernbert': AS_IS,
    'modernbert-classifier': change(without=r'head\.dense\.bias'),
    'moss_transcribe_diarize': change(YARN),
    'mpt': AS_IS,
    'nemotron': change(TWO_HEADS, cut=CUT_HEADS),
    'nemotron_h': change({'num_hidden_layers': 3,
                          'layers_block_type': ['linear_attention', 'moe', FULL]},
                         layers=[0, 1, 2]),
    'nomic_bert': change({'num_attention_heads': 2},
                         cut={r'Wqkv': (96, 0), r'attn\.out_proj': (0, 32)}),
    'olmo': AS_IS,
    'olmo2': AS_IS,
    'phi': change({'qk_layernorm': False}, without=r'[qk]_layernorm'),
    'phi3': AS_IS,
    'qwen2': change(NO_WINDOW | {'layer_types': [FULL] * 2}),
    'qwen2_5_vl': change({'rms_norm_eps': 1e-12}),  # it never reads the epsilon
    'qwen2_moe': change(NO_WINDOW | {'num_hidden_layers': 1, 'mlp_only_layers': [],
                                     'layer_types': [FULL]}, layers=[1]),
    'qwen2_vl': change({'rms_norm_eps': 1e-12}),
    'qwen3': change(YARN),
    'qwen3_5': AS_IS,
    'qwen3_5_moe': AS_IS,
    'qwen3_5_moe_text': AS_IS,
    'qwen3_5_text': AS_IS,
    'qwen3_moe': change({'num_hidden_layers': 1, 'mlp_only_layers': []}, layers=[1]),
    'qwen3_next': change({'num_hidden_layers': 2, 'mlp_only_layers': [],
                          'layer_types': ['linear_attention', FULL]}, layers=[0, 1]),
    'qwen3_vl': AS_IS,
    'smollm3': change({'no_rope_layers': [1, 1, 1]}),  # every fourth does not turn
    'smolvlm': AS_IS,
    'solar_open': AS_IS,
    'stablelm': change({'qk_layernorm': False}, without=r'[qk]_layernorm'),
    'stablelm-serial': AS_IS,
    'starcoder2': change(NO_WINDOW),
    'youtu': change(LATENT_EPS),
}

# Miniatures whose architecture llama.cpp has, and why no change makes them ones that it computes.
DIFFERS = {
    'bert-causal': 'no head that guesses words',
    'deepseek_v4': 'compression by 4 and 128 alone',
    'deepseek_v32': "a rotation of the indexer's heads, of 64 features at least",
    'falcon-alibi': 'no ALiBi in Falcon',
    'gemma3n': 'its four streams and twenty layers with keys of their own are constants',
    'gemma3n_text': 'its four streams and twenty layers with keys of their own are constants',
    'glm_moe_dsa': "a rotation of the indexer's heads, of 64 features at least",
    'olmoe': 'as many key heads as heads',
    'sarvam_mla': "queries without a latent only in models of DeepSeek-V2-Lite's depths",
}


# ---- the library ---------------------------------------------------------------------------------

def library():
    """ONEBIT_LLAMA_LIB, or what the Python package xllamacpp has, which exports llama.cpp's C API;
    None: there is neither."""
    if path := os.environ.get('ONEBIT_LLAMA_LIB'):
        return path
    spec = importlib.util.find_spec('xllamacpp')
    found = spec and glob.glob(os.path.join(os.path.dirname(spec.origin), 'xllamacpp*.so'))
    return found[0] if found else None


class ModelParams(ctypes.Structure):
    """As large as any; nothing in it is changed."""
    _fields_ = [('bytes', ctypes.c_uint8 * 512)]


class ContextParams(ctypes.Structure):
    """The first fields of llama_context_params, and room for the rest."""
    _fields_ = [(name, ctypes.c_uint32) for name in (
        'n_ctx', 'n_batch', 'n_ubatch', 'n_seq_max', 'n_rs_seq', 'n_outputs_max',
        'n_outputs_max_per_seq', 'n_threads', 'n_threads_batch', 'ctx_type', 'rope_scaling_type',
        'pooling_type', 'attention_type', 'flash_attn_type')] + [
        (name, ctypes.c_float) for name in (
            'rope_freq_base', 'rope_freq_scale', 'yarn_ext_factor', 'yarn_attn_factor',
            'yarn_beta_fast', 'yarn_beta_slow')] + [
        ('yarn_orig_ctx', ctypes.c_uint32), ('defrag_thold', ctypes.c_float),
        ('cb_eval', ctypes.c_void_p), ('cb_eval_user_data', ctypes.c_void_p),
        ('type_k', ctypes.c_uint32), ('type_v', ctypes.c_uint32),
        ('rest', ctypes.c_uint8 * 512)]


class Batch(ctypes.Structure):
    _fields_ = [('n_tokens', ctypes.c_int32), ('token', ctypes.POINTER(ctypes.c_int32)),
                ('embd', ctypes.c_void_p), ('pos', ctypes.POINTER(ctypes.c_int32)),
                ('n_seq_id', ctypes.POINTER(ctypes.c_int32)),
                ('seq_id', ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
                ('logits', ctypes.POINTER(ctypes.c_int8))]


def declare(lib):
    pointer, floats = ctypes.c_void_p, ctypes.POINTER(ctypes.c_float)
    for name, result, arguments in (
            ('llama_model_default_params', ModelParams, []),
            ('llama_model_load_from_file', pointer, [ctypes.c_char_p, ModelParams]),
            ('llama_model_get_vocab', pointer, [pointer]),
            ('llama_model_n_embd', ctypes.c_int32, [pointer]),
            ('llama_vocab_n_tokens', ctypes.c_int32, [pointer]),
            ('llama_context_default_params', ContextParams, []),
            ('llama_init_from_model', pointer, [pointer, ContextParams]),
            ('llama_set_embeddings', None, [pointer, ctypes.c_bool]),
            ('llama_batch_init', Batch, [ctypes.c_int32] * 3),
            ('llama_decode', ctypes.c_int32, [pointer, Batch]),
            ('llama_encode', ctypes.c_int32, [pointer, Batch]),
            ('llama_get_logits_ith', floats, [pointer, ctypes.c_int32]),
            ('llama_get_embeddings_ith', floats, [pointer, ctypes.c_int32])):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments


def open_context(lib, model, tokens, encoder):
    params = lib.llama_context_default_params()
    if (params.n_batch, params.n_ubatch, params.type_k, params.type_v) != (2048, 512, 1, 1):
        sys.exit('llama_context_params is laid out otherwise in this library')
    params.n_ctx = 128  # as the miniatures' original contexts of 64 ask for
    params.n_batch = params.n_ubatch = tokens
    params.n_threads = params.n_threads_batch = 1
    params.flash_attn_type = params.type_k = params.type_v = 0  # none; F32
    if encoder:
        params.pooling_type = 0  # the states themselves
    context = lib.llama_init_from_model(model, params) or sys.exit('no context')
    lib.llama_set_embeddings(context, encoder)
    return context


def run(path, model_path, ids, encoder):
    """Rows of logits, or of an encoder's states, one after the other."""
    lib = ctypes.CDLL(path)
    declare(lib)
    lib.llama_backend_init()
    model = lib.llama_model_load_from_file(model_path.encode(), lib.llama_model_default_params())
    if not model:
        sys.exit('the model does not load')
    context = open_context(lib, model, len(ids), encoder)
    batch = lib.llama_batch_init(len(ids), 0, 1)
    batch.n_tokens = len(ids)
    for i, token in enumerate(ids):
        batch.token[i], batch.pos[i], batch.logits[i] = token, i, 1
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
    if (lib.llama_encode if encoder else lib.llama_decode)(context, batch):
        sys.exit('the sequence does not run')
    cols = (lib.llama_model_n_embd(model) if encoder
            else lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model)))
    row = lib.llama_get_embeddings_ith if encoder else lib.llama_get_logits_ith
    out = array.array('f')
    for i in range(len(ids)):
        out.extend(row(context, i)[:cols])
    return out


# ---- changed miniatures --------------------------------------------------------------------------

def cut_tensor(entry, data, rows, cols):
    """The first rows and columns of an F32 tensor."""
    *outer, width = entry['shape']
    height = outer[0] if outer else 1
    rows, cols = rows or height, cols or width
    entry['shape'] = [rows, cols] if outer else [cols]
    return b''.join(data[4 * width * r:4 * (width * r + cols)] for r in range(rows))


def change_tensors(path, layers, without, cut):
    """Rewrites model.safetensors."""
    data = path.read_bytes()
    size = struct.unpack('<Q', data[:8])[0]
    header, data = json.loads(data[8:8 + size]), data[8 + size:]
    header.pop('__metadata__', None)
    kept = {}
    for name, entry in header.items():
        if without and re.search(without, name):
            continue
        layer = re.search(r'(?<=layers\.)\d+', name)
        if not layers or not layer:
            kept[name] = entry
            continue
        for i in (i for i, was in enumerate(layers) if was == int(layer[0])):
            kept[name[:layer.start()] + str(i) + name[layer.end():]] = dict(entry)
    body = b''
    for name, entry in kept.items():
        piece = data[slice(*entry['data_offsets'])]
        for pattern, size in cut.items():
            if re.search(pattern, name):
                piece = cut_tensor(entry, piece, *size)
        entry['data_offsets'] = [len(body), len(body) + len(piece)]
        body += piece
    text = json.dumps(kept).encode()
    text += b' ' * (-len(text) % 8)
    path.write_bytes(struct.pack('<Q', len(text)) + text + body)


def apply(what, folder):
    """A change() to a model directory."""
    config = json.loads((folder / 'config.json').read_text())
    for key, value in what['keys'].items():
        *path, last = key.split('.')
        at = config.get('text_config', config)
        for word in path:
            at = at[word]
        at[last] = value
    (folder / 'config.json').write_text(json.dumps(config))
    if what['layers'] or what['without'] or what['cut']:
        change_tensors(folder / 'model.safetensors', what['layers'], what['without'], what['cut'])


def main():
    encoder = '--encoder' in sys.argv
    path, model, out, *ids = (a for a in sys.argv[1:] if a != '--encoder')
    with open(out, 'wb') as f:
        run(path, model, [int(i) for i in ids], encoder).tofile(f)


if __name__ == '__main__':
    main()
