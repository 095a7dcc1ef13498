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
    Breakage('rope pairs neighbours instead of halves', 'src/kernels/ref/rope.c',
             'first = interleaved ? 2 * i : i', 'first = !interleaved ? 2 * i : i'),
    Breakage('rms norm forgets its epsilon', 'src/kernels/ref/norm.c',
             'write(x, 0, 1 / sqrt(sum / width + eps), w, b, y, width);',
             'write(x, 0, 1 / sqrt(sum / width), w, b, y, width);'),
    Breakage('attention part misses its last position', 'src/kernels/ref/attention.c',
             'for (uint32_t i = row->begin; i < end; i++) sum +=',
             'for (uint32_t i = row->begin; i + 1 < end; i++) sum +='),
    Breakage('softcap divides but does not multiply back', 'src/kernels/ref/attention.c',
             'job->softcap * tanh(s / job->softcap)', 'tanh(s / job->softcap)'),
    Breakage('Q4_K nibbles swapped', 'src/quant/q4_k.h',
             'shift = s % 2 * 4', 'shift = (1 - s % 2) * 4'),
    Breakage('Q4_K high scales lose their top bits', 'src/quant/q4_k.h',
             '*sc = (scales[8 + j] & 15u) | (scales[j] & 0xc0u) >> 2;',
             '*sc = scales[8 + j] & 15u;'),
    Breakage('GGUF tensor may end one byte past the file', 'src/format/gguf_part.c',
             't->bytes > room - t->offset', 't->bytes > room - t->offset + 1'),
    Breakage('GGUF dimension product unchecked', 'src/format/gguf_part.c',
             'fits = t->dim[i] <= SIZE_MAX / bytes;', 'fits = true;'),
]
