# SPDX-License-Identifier: Apache-2.0
"""llama.cpp reads what `1bit convert` writes: which miniatures (tests/golden/families) it can read,
and the library itself, through its C API.

    llama_cpp.py [--encoder|--scores] [--flash] LIBRARY MODEL.gguf OUT ID...    float32 into OUT

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
import tempfile

# ---- which miniatures ----------------------------------------------------------------------------

def change(keys=(), layers=None, without=None, cut=(), copies=()):
    """What is changed in a miniature before both engines get it: keys of config.json (of its
    text_config, if it has one), which of its layers in which order, which tensors it loses, and to
    how many rows and columns (0: all) tensors are cut, or grown by repeating each;
    copies: the names of new tensors, and which they are."""
    return {'keys': dict(keys), 'layers': layers, 'without': without, 'cut': dict(cut),
            'copies': dict(copies)}


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

# It rotates the heads of an indexer, of at least 64 features; the miniatures' have 16.
INDEXER = {r'indexer\.wk\.': (64, 0), r'indexer\.wq_b': (512, 0), r'indexer\.k_norm': (0, 64)}

def gemma3n(root):
    """Its sizes are constants: four streams, 20 layers with keys of their own, 10 whose MLPs cut
    off activations beyond 1.64 deviations (of n - 1 degrees of freedom; thus so wide here)."""
    layers, per_layer, ffn = 22, 256, 3072
    stream = root + 'altup_{}projections.{}.weight'
    return change(
        {'num_hidden_layers': layers, 'num_kv_shared_layers': 2, 'altup_num_inputs': 4,
         'laurel_rank': 64, 'hidden_size_per_layer_input': per_layer,
         'intermediate_size': [ffn] * layers, 'final_logit_softcapping': 30.0,
         'activation_sparsity_pattern': [0.95] * 10 + [0.0] * (layers - 10),
         'layer_types': ['sliding_attention', FULL] * 11},
        layers=[0, 1] * 10 + [2, 3],
        cut={r'embed_tokens_per_layer': (0, layers * per_layer),
             r'per_layer_model_projection': (layers * per_layer, 0),
             r'per_layer_projection_norm': (0, per_layer), r'input_gate': (per_layer, 0),
             r'per_layer_projection\.': (0, per_layer), r'mlp\.(gate|up)_proj': (ffn, 0),
             r'mlp\.down_proj': (0, ffn), r'linear_left': (64, 0), r'linear_right': (0, 64),
             r'correction_coefs': (4, 4), r'prediction_coefs': (16, 4),
             r'modality_router': (4, 0)},
        copies={stream.format(un, 2): stream.format(un, 0) for un in ('', 'unembed_')})


READS = {
    'afmoe': change({'layer_types': ['sliding_attention'] * 2}),
    'apertus': AS_IS,
    'arcee': change(YARN),
    'bert': AS_IS,
    'bert-classifier': AS_IS,
    'bitnet': change({'hidden_act': 'silu', 'tie_word_embeddings': True},  # it knows SiLU alone
                     without=r'lm_head'),
    'bloom': AS_IS,
    'camembert': AS_IS,
    'cohere': change({'use_qk_norm': False}, without=r'[qk]_norm'),
    'cohere2': change(TWO_HEADS | {'attention_bias': False}, without=r'bias$', cut=CUT_HEADS),
    'cohere2_moe': AS_IS,
    'data2vec-text': AS_IS,
    'dbrx': AS_IS,
    'deepseek_v2': change(YARN | LATENT_EPS | MSCALE | NO_GROUPS),
    'deepseek_v3': change(YARN | LATENT_EPS | MSCALE),
    'deepseek_v32': change(LATENT_EPS | {'index_head_dim': 64}, cut=INDEXER),
    'deepseek_v4': change(
        {'compress_rates.heavily_compressed_attention': 128, 'hc_mult': 4, 'index_head_dim': 64},
        cut={r'layers\.1\.attn\.compressor\.ape': (128, 0), r'hc_head\.hc_fn': (4, 128),
             r'hc_head\.hc_base': (0, 4), r'hc_(attn|ffn)_fn': (24, 128),
             r'hc_(attn|ffn)_base': (0, 24), r'indexer\.compressor\.ape': (0, 128),
             r'indexer\.compressor\.norm': (0, 64), r'indexer\.compressor\.w': (128, 0),
             r'indexer\.wq_b': (512, 0)}),
    'distilbert': AS_IS,
    'dots1': change(NO_WINDOW | {'layer_types': [FULL] * 2, 'attention_bias': False,
                                'num_attention_heads': 2, 'head_dim': 8},
                    without=r'proj\S*bias$',
                    cut={r'q_proj\.weight': (16, 0), r'o_proj\.weight': (0, 16)}),
    'emu3': AS_IS,
    'emu3_text': AS_IS,
    'ernie4_5': change({'use_bias': False}, without=r'bias$'),
    'ernie4_5_moe': change({'use_bias': False}, without=r'(proj|lm_head)\S*bias$'),
    'eurobert': change(TWO_HEADS | {'attention_bias': False, 'mlp_bias': False},
                       without=r'bias$', cut=CUT_HEADS),
    'exaone': AS_IS,
    'exaone4': change({'num_hidden_layers': 64,  # it knows windows by the number of layers
                       'layer_types': ['sliding_attention', FULL] * 32}, layers=[0, 1] * 32),
    'exaone_moe': AS_IS,
    'falcon': AS_IS,
    'falcon-mqa': AS_IS,
    'falcon_h1': AS_IS,
    'falcon_h1-norm': change({'mamba_norm_before_gate': False, 'mamba_proj_bias': False,
                              'projectors_bias': False, 'attention_bias': False},
                             without=r'mamba\.(in|out)_proj\.bias|self_attn\S*bias'),
    'falcon_mamba': AS_IS,
    'gemma': AS_IS,
    'gemma2': change({'query_pre_attn_scalar': 16}),
    'gemma3': change({'query_pre_attn_scalar': 16}),
    'gemma3-short': AS_IS,
    'gemma3_text': change({'query_pre_attn_scalar': 16}),
    'gemma3_text-embedding': change({'query_pre_attn_scalar': 16}),
    'gemma3n': gemma3n('model.language_model.'),
    'gemma3n_text': gemma3n('model.'),
    'gemma4': AS_IS,
    'gemma4_text': AS_IS,
    'gemma4_text-moe': change({'rms_norm_eps': 1e-6}),  # its router's
    'glm': change(TWO_HEADS, cut=CUT_HEADS),
    'glm4': AS_IS,
    'glm4_moe': AS_IS,
    'glm4_moe_lite': change(LATENT_EPS),
    'glm_moe_dsa': change(LATENT_EPS | {'index_head_dim': 64}, cut=INDEXER),
    'got_ocr2': change(NO_WINDOW | {'layer_types': [FULL] * 2}),
    'gpt-sw3': AS_IS,
    'gpt2': AS_IS,
    'gpt_bigcode': AS_IS,
    'gpt_bigcode-mha': change({'scale_attn_weights': True}),
    'gpt_neox': AS_IS,
    'gpt_oss': change(YARN | {'swiglu_limit': 7.0, 'rope_parameters.truncate': True}),
    'granite': AS_IS,
    'granite_swa': change(ONE_BASE),
    'granitemoe': AS_IS,
    'granitemoe_swa': change(ONE_BASE),
    'granitemoehybrid': AS_IS,
    'granitemoehybrid-dense': change({'mamba_proj_bias': False}, without=r'(in|out)_proj\.bias'),
    'granitemoeshared': AS_IS,
    'hrm_text': AS_IS,
    'hunyuan_v1_dense': AS_IS,
    'hunyuan_v1_moe': change({'attention_bias': False}, without=r'bias$'),
    'hy_v3': AS_IS,
    'internlm3': AS_IS,
    'internvl': AS_IS,
    'iquestcoder': AS_IS,
    'jais2': AS_IS,
    'jamba': AS_IS,
    'jina_embeddings_v3': AS_IS,
    'kimi_linear': change(LATENT_EPS),
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
    'llava-short': AS_IS,
    'mamba': AS_IS,
    'mamba2': AS_IS,
    'mellum': change({'rope_parameters.sliding_attention.rope_theta': 500000.0}),
    'mimo_v2_flash': AS_IS,
    'minicpm3': change(LATENT_EPS | {'scale_emb': 12, 'dim_model_base': 256}),
    'minimax': change(LATENT_EPS | {'full_attn_alpha_factor': 1.1, 'full_attn_beta_factor': 1.0,
                                    'linear_attn_alpha_factor': 1.1, 'linear_attn_beta_factor': 1.0,
                                    'mlp_beta_factor': 1.0}),
    'minimax_m2': AS_IS,
    'minimax_m3_vl_text': change({'swiglu_limit': 7.0}),
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
    'olmo3': change({'rope_parameters.sliding_attention.rope_theta': 10000.0,
                     'attention_bias': False}, without=r'bias$'),
    'olmoe': change({'num_key_value_heads': 4, 'clip_qkv': None},  # as many key heads as heads
                    cut={r'[kv]_proj\.weight': (32, 0), r'k_norm': (0, 32)}),
    'phi': change({'qk_layernorm': False}, without=r'[qk]_layernorm'),
    'phi3': AS_IS,
    'qwen2': change(NO_WINDOW | {'layer_types': [FULL] * 2}),
    'qwen2_5_vl': change({'rms_norm_eps': 1e-12}),  # it never reads the epsilon
    'qwen2_moe': change(NO_WINDOW | {'num_hidden_layers': 1, 'mlp_only_layers': [],
                                     'layer_types': [FULL]}, layers=[1]),
    'qwen2_vl': change({'rms_norm_eps': 1e-12}),
    'qwen3': change(YARN),
    'qwen3-classifier': AS_IS,
    'qwen3_5': AS_IS,
    'qwen3_5_moe': AS_IS,
    'qwen3_5_moe_text': AS_IS,
    'qwen3_5_text': AS_IS,
    'qwen3_moe': change({'num_hidden_layers': 1, 'mlp_only_layers': []}, layers=[1]),
    'qwen3_next': change({'num_hidden_layers': 2, 'mlp_only_layers': [],
                          'layer_types': ['linear_attention', FULL]}, layers=[0, 1]),
    'qwen3_vl': AS_IS,
    'roberta': AS_IS,
    'sarvam_mla': change(LATENT_EPS | {'num_hidden_layers': 27},  # where queries have no latent
                         layers=[0] + [1] * 26),
    'seed_oss': change({'attention_out_bias': False, 'mlp_bias': False},
                       without=r'(o|gate|up|down)_proj\.bias'),
    'seed_oss-output': change({'attention_out_bias': False}, without=r'bias$'),
    'smollm3': change({'no_rope_layers': [1, 1, 1]}),  # every fourth does not turn
    'smolvlm': AS_IS,
    'solar_open': AS_IS,
    'stablelm': change({'qk_layernorm': False}, without=r'[qk]_layernorm'),
    'stablelm-serial': AS_IS,
    'starcoder2': change(NO_WINDOW),
    'xlm-roberta': AS_IS,
    'xlm-roberta-classifier': AS_IS,
    'youtu': change(LATENT_EPS),
}

# Those whose classes it scores, and those that it says the softmax of.
SCORES = ['bert-classifier', 'modernbert-classifier', 'qwen3-classifier', 'xlm-roberta-classifier']
SOFTMAX = ['qwen3-classifier']

# Of these it chooses blocks of keys with flash attention alone, and attends to all without.
FLASH = ['minimax_m3_vl_text']

# Miniatures whose architecture llama.cpp has, and why no change makes them ones that it computes.
DIFFERS = {
    'bamba': "as a hybrid of Granite's, whose pairs are of whole heads; Bamba turns half of each",
    'bert-causal': 'no head that guesses words',
    'bitnet-packed': 'BitNet with SiLU, and products of activations that are not rounded',
    'dots3_note_text': 'its indexer turns halves where transformers turns pairs side by side',
    'eurobert-classifier': 'no head of classes in EuroBERT',
    'falcon-alibi': 'no ALiBi in Falcon',
    'hy_v4': 'turns pairs side by side where transformers turns halves',
    'jina_embeddings_v3-classifier': 'no head of classes in Jina v3',
    'llama-classifier': 'no head of classes in Llama',
    'phimoe': 'RMS norms and a softmax of all experts for layer norms and SparseMixer',
    'qwen4_exp_text': 'tables of n-grams among its keys, a form that is not written',
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


Log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


def declare(lib):
    pointer, floats = ctypes.c_void_p, ctypes.POINTER(ctypes.c_float)
    for name, result, arguments in (
            ('llama_log_set', None, [Log, pointer]),
            ('llama_model_default_params', ModelParams, []),
            ('llama_model_load_from_file', pointer, [ctypes.c_char_p, ModelParams]),
            ('llama_model_get_vocab', pointer, [pointer]),
            ('llama_model_n_embd', ctypes.c_int32, [pointer]),
            ('llama_model_n_cls_out', ctypes.c_uint32, [pointer]),
            ('llama_vocab_n_tokens', ctypes.c_int32, [pointer]),
            ('llama_context_default_params', ContextParams, []),
            ('llama_init_from_model', pointer, [pointer, ContextParams]),
            ('llama_set_embeddings', None, [pointer, ctypes.c_bool]),
            ('llama_batch_init', Batch, [ctypes.c_int32] * 3),
            ('llama_decode', ctypes.c_int32, [pointer, Batch]),
            ('llama_encode', ctypes.c_int32, [pointer, Batch]),
            ('llama_get_logits_ith', floats, [pointer, ctypes.c_int32]),
            ('llama_get_embeddings_ith', floats, [pointer, ctypes.c_int32]),
            ('llama_get_embeddings_seq', floats, [pointer, ctypes.c_int32])):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments


def known(path, names):
    """Those of these architectures that the library has: of a file with nothing but the name it
    says that it does not know the name, or what else is missing."""
    lib, said = ctypes.CDLL(path), []
    declare(lib)
    log = Log(lambda level, text, user: said.append(text))
    lib.llama_log_set(log, None)
    out = set()
    for name in sorted(names):
        with tempfile.NamedTemporaryFile(suffix='.gguf') as f:
            f.write(struct.pack('<4sIQQ', b'GGUF', 3, 0, 1))
            for word, kind in ((b'general.architecture', struct.pack('<I', 8)),
                               (name.encode(), b'')):
                f.write(struct.pack('<Q', len(word)) + word + kind)
            f.flush()
            said.clear()
            lib.llama_model_load_from_file(f.name.encode(), lib.llama_model_default_params())
        if not re.search(rb'un(known|supported) model architecture', b''.join(said)):
            out.add(name)
    lib.llama_log_set(Log(), None)
    return out


def open_context(lib, model, tokens, flags):
    params = lib.llama_context_default_params()
    if (params.n_batch, params.n_ubatch, params.type_k, params.type_v) != (2048, 512, 1, 1):
        sys.exit('llama_context_params is laid out otherwise in this library')
    params.n_ctx = 128  # as the miniatures' original contexts of 64 ask for
    params.n_batch = params.n_ubatch = tokens
    params.n_threads = params.n_threads_batch = 1
    params.flash_attn_type = int('--flash' in flags)
    params.type_k = params.type_v = 0  # F32
    if embeds := flags & {'--encoder', '--scores'}:
        params.pooling_type = 4 if '--scores' in flags else 0  # of classes; the states themselves
    context = lib.llama_init_from_model(model, params) or sys.exit('no context')
    lib.llama_set_embeddings(context, bool(embeds))
    return context


def run(path, model_path, ids, flags):
    """Rows of logits, or of an encoder's states, one after the other; or scores of classes."""
    lib = ctypes.CDLL(path)
    declare(lib)
    lib.llama_backend_init()
    model = lib.llama_model_load_from_file(model_path.encode(), lib.llama_model_default_params())
    if not model:
        sys.exit('the model does not load')
    context = open_context(lib, model, len(ids), flags)
    batch = lib.llama_batch_init(len(ids), 0, 1)
    batch.n_tokens = len(ids)
    for i, token in enumerate(ids):
        batch.token[i], batch.pos[i], batch.logits[i] = token, i, 1
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, 0
    encoder = '--encoder' in flags
    if (lib.llama_encode if encoder else lib.llama_decode)(context, batch):
        sys.exit('the sequence does not run')
    if '--scores' in flags:
        return array.array('f', lib.llama_get_embeddings_seq(context, 0)[
            :lib.llama_model_n_cls_out(model)])
    cols = (lib.llama_model_n_embd(model) if encoder
            else lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model)))
    row = lib.llama_get_embeddings_ith if encoder else lib.llama_get_logits_ith
    out = array.array('f')
    for i in range(len(ids)):
        out.extend(row(context, i)[:cols])
    return out


# ---- changed miniatures --------------------------------------------------------------------------

def cut_tensor(entry, data, rows, cols):
    """The first rows and columns of an F32 tensor, or all of them, each several times."""
    *outer, width = entry['shape']
    height = outer[0] if outer else 1
    rows, cols = rows or height, cols or width
    entry['shape'] = [rows, cols] if outer else [cols]
    row_of = [r * height // rows if rows > height else r for r in range(rows)]
    col_of = [c * width // cols if cols > width else c for c in range(cols)]
    values = array.array('f', data)
    return array.array('f', [values[width * r + c] for r in row_of for c in col_of]).tobytes()


def change_tensors(path, layers, without, cut, copies):
    """Rewrites model.safetensors."""
    data = path.read_bytes()
    size = struct.unpack('<Q', data[:8])[0]
    header, data = json.loads(data[8:8 + size]), data[8 + size:]
    header.pop('__metadata__', None)
    header |= {new: dict(header[old]) for new, old in copies.items()}
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
    body = bytearray()
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
    what = dict(what)
    config = json.loads((folder / 'config.json').read_text())
    for key, value in what.pop('keys').items():
        *path, last = key.split('.')
        at = config.get('text_config', config)
        for word in path:
            at = at[word]
        at[last] = value
    (folder / 'config.json').write_text(json.dumps(config))
    if any(what.values()):
        change_tensors(folder / 'model.safetensors', **what)


def main():
    flags = {a for a in sys.argv if a.startswith('--')}
    path, model, out, *ids = (a for a in sys.argv[1:] if a not in flags)
    rows = run(path, model, [int(i) for i in ids], flags)
    with open(out, 'wb') as f:
        rows.tofile(f)


if __name__ == '__main__':
    main()
