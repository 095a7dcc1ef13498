# SPDX-License-Identifier: Apache-2.0
"""Small breakages that the tests must notice: name, file, what stands there once, what replaces it.

Take faults that are easy to make and hard to see: a wrong layout, an off-by-one, a dropped check. A
text that no longer stands exactly once in its file is an error, so the list follows the code.
"""
from typing import NamedTuple


class Breakage(NamedTuple):
    name: str
    file: str
    old: str
    new: str


BREAKAGES = [
    # Arithmetic
    Breakage('rope pairs neighbours instead of halves', 'src/kernels/ref/rope.c',
             'first = interleaved ? 2 * i : i', 'first = !interleaved ? 2 * i : i'),
    Breakage('rms norm forgets its epsilon', 'src/kernels/ref/norm.c',
             'write(x, 0, 1 / sqrt(sum / width + eps), w, b, y, width);',
             'write(x, 0, 1 / sqrt(sum / width), w, b, y, width);'),
    Breakage('softcap divides but does not multiply back', 'src/kernels/ref/attention.c',
             'job->softcap * tanh(s / job->softcap)', 'tanh(s / job->softcap)'),
    Breakage('Q4_K nibbles swapped in the definition', 'src/quant/q4_k.h',
             'shift = s % 2 * 4', 'shift = (1 - s % 2) * 4'),
    Breakage('nibbles swapped in the vector code', 'src/kernels/body/linear_unpack.h',
             'low_nibbles(lanes_u v) { return v & 0x0f0f0f0f; }',
             'low_nibbles(lanes_u v) { return v >> 4 & 0x0f0f0f0f; }'),
    Breakage('min of the last sub-blocks from the wrong nibble', 'src/kernels/body/linear_unpack.h',
             'put_min(to, s + 4, dmin * to_float((c >> 4 & 15) | (b >> 2 & 0x30)));',
             'put_min(to, s + 4, dmin * to_float((c & 15) | (b >> 2 & 0x30)));'),
    Breakage('Q4_K high scales lose their top bits', 'src/quant/q4_k.h',
             '*sc = (scales[8 + j] & 15u) | (scales[j] & 0xc0u) >> 2;',
             '*sc = scales[8 + j] & 15u;'),
    # Models
    Breakage('norm before the MLP skipped', 'src/models/blocks/decoder.c',
             'h = rms(b, x, "ffn_norm.weight", width);', 'h = x;'),
    Breakage('key norm skipped', 'src/models/blocks/decoder.c',
             'value_id k = rms(b, out[1], "attn_k_norm.weight", hp->k_dim);',
             'value_id k = out[1];'),
    Breakage('attention scaled by the head size, not its root', 'src/models/blocks/decoder.c',
             'hp->attention_scale = 1.0f / sqrtf((float)hp->k_dim);',
             'hp->attention_scale = 1.0f / (float)hp->k_dim;'),
    # Mixtures of experts
    Breakage('expert weights not made to sum to one', 'src/models/qwen3_moe.c',
             'sum_to_one ? ROUTE_SOFTMAX_CHOSEN', '!sum_to_one ? ROUTE_SOFTMAX_CHOSEN'),
    Breakage('of equal experts the later one is chosen', 'src/kernels/ref/route.c',
             'return a > b ||', 'return a >= b ||'),
    Breakage('rows go to the next expert\'s matrix', 'src/devices/cpu/experts.c',
             'w->expert[piece->expert]', 'w->expert[(piece->expert + 1) % w->experts]'),
    Breakage('every expert gets the tokens of the first', 'src/devices/cpu/experts.c',
             'groups.token + pair;', 'groups.token;'),
    Breakage('each second expert of a directory is its neighbour', 'src/models/tensors.c',
             'fill_name(t->hf, layer, e, name, sizeof name);',
             'fill_name(t->hf, layer, e / 2, name, sizeof name);'),
    # Attention over pages, batches
    Breakage('causal mask lets a token see the next', 'src/devices/cpu/attention.c',
             '.end = pos >= base ? pos - base + 1 : 0',
             '.end = pos + 1 >= base ? pos - base + 2 : 0'),
    Breakage('sliding window one position too wide', 'src/devices/cpu/attention.c',
             'pos >= window ? pos - window + 1 : 0', 'pos > window ? pos - window : 0'),
    Breakage('splits merged backwards where units are many', 'src/devices/cpu/attention.c',
             'for (uint32_t split = u.begin; split < u.end; split++) {',
             'for (uint32_t split = u.end; split-- > u.begin;) {'),
    Breakage('a position of a Q8_0 cache gets its neighbour\'s scale',
             'src/kernels/body/attention_kv.h',
             'scale[slot] = kv_quantize(x + d, code, kv);\n        if (kv == KV_q8_0)',
             'scale[slot ^ 1] = kv_quantize(x + d, code, kv);\n        if (kv == KV_q8_0)'),
    Breakage('queries of turned keys are not turned', 'src/kernels/body/attention_score.h',
             'kv_turn(q + b * KV_BLOCK, 1, x);', 'memcpy(x, q + b * KV_BLOCK, sizeof x);'),
    Breakage('nibbles of a cache are not taken less 8', 'src/kernels/body/attention_score.h',
             'vi_set1(-8 * q_sum)', 'vi_set1(0 * q_sum)'),
    Breakage('reused prefix keeps the first different token', 'src/decode/loop.c',
             'while (i < n && idle->token[i] == r->token[i]) i++;\n    return i;',
             'while (i < n && idle->token[i] == r->token[i]) i++;\n    return i < n ? i + 1 : i;'),
    # Text
    Breakage('BPE heap looks at one child only', 'src/text/tok_merge.c',
             'k < child + 4 && k < m->heap_n', 'k < child + 1 && k < m->heap_n'),
    Breakage('BPE bucket of one rank left unsorted', 'src/text/tok_merge.c',
             'if (run_end(m->open, 0, n) == n) return true;', 'if (n > 0) return true;'),
    Breakage('stop string forgets a shorter beginning', 'src/decode/stop.c',
             'p->matched = p->fail[p->matched - 1];', 'p->matched = 0;'),
    Breakage('top-p drops the candidate that reaches p', 'src/sample/top_p.c',
             '>= wanted) return i + 1;', '>= wanted) return i ? i : 1;'),
    # Files
    Breakage('GGUF tensor may end one byte past the file', 'src/format/gguf_part.c',
             't->bytes > room - t->offset', 't->bytes > room - t->offset + 1'),
    Breakage('GGUF dimension product unchecked', 'src/format/gguf_part.c',
             'fits = !__builtin_mul_overflow(bytes, t->dim[i], &bytes);',
             'bytes *= (size_t)t->dim[i];'),
]
