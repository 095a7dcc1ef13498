# SPDX-License-Identifier: Apache-2.0
"""The checks of `make lint` on small trees: a good one passes, each kind of fault is refused."""
import pytest

import check_layers
import check_lists

SPDX = '/* SPDX-License-Identifier: Apache-2.0 */\n'
GOOD = {
    'include/onebit.h': SPDX,
    'src/base/README.md': '# base\n',
    'src/base/base.h': SPDX + '#include "onebit.h"\n',
    'src/base/os_posix.c': SPDX + 'char *x(void) { return getenv("HOME"); }\n',
    'src/quant/README.md': '# quant\n',
    'src/quant/quants.def': SPDX + '/* alphabetical */\nQUANT(f16)\nQUANT(f32)\n',
    'src/quant/f16.c': SPDX + '#include "base/base.h"\nconst struct quant quant_f16 = {0};\n',
    'src/quant/f32.c': SPDX + 'const struct quant quant_f32 = {0};\n',
    'src/devices/README.md': '# devices\n',
    'src/devices/cpu/run.c': SPDX + '#include "kernels/kernels.h"\n',
    'src/kernels/README.md': '# kernels\n',
    'src/kernels/kernels.h': SPDX,
    'src/text/README.md': '# text\n',
    'src/text/jinja/lex.c': SPDX + '#include "text/jinja/jinja.h"\n#include "format/format.h"\n',
    'src/text/jinja/jinja.h': SPDX,
    'src/format/README.md': '# format\n',
    'src/format/format.h': SPDX,
    'src/graph/README.md': '# graph\n',
    'src/graph/graph.h': SPDX,
    'src/models/README.md': '# models\n',
    'src/models/qwen2.c': SPDX + '#include "graph/graph.h"\n',
    'src/cli/README.md': '# cli\n',
    'src/cli/main.c': SPDX + 'int main(void) { printf("hello"); exit(0); }\n',
}


@pytest.fixture
def tree(tmp_path):
    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    for path, text in GOOD.items():
        write(path, text)
    return Tree(tmp_path, write)


class Tree:
    def __init__(self, root, write):
        self.root = root
        self.write = write

    def layers(self):
        return '\n'.join(check_layers.check(self.root))

    def lists(self):
        return '\n'.join(check_lists.check(self.root))


def test_good_tree_passes(tree):
    assert tree.layers() == ''
    assert tree.lists() == ''


@pytest.mark.parametrize('path, included', [
    ('src/base/bad.c', 'graph/graph.h'),            # upwards
    ('src/models/bad.c', 'kernels/kernels.h'),      # a recipe does not know where it runs
    ('src/kernels/bad.c', 'graph/graph.h'),         # kernels know no graph
    ('src/cli/bad.c', 'graph/graph.h'),             # nothing above engine sees tensors
    ('src/devices/cuda/bad.c', 'kernels/kernels.h'),
    ('src/devices/vulkan/bad.c', 'devices/cpu/run.h'),
    ('src/text/jinja/bad.c', 'graph/graph.h'),      # a subfolder counts as its folder
    ('src/graph/bad.c', 'missing/missing.h'),
    ('src/graph/bad.c', '../base/base.h'),          # paths are from src/
    ('src/novel/bad.c', 'base/base.h'),             # a folder the rule does not know
])
def test_forbidden_include_is_named(tree, path, included):
    tree.write('src/devices/cpu/run.h', SPDX)
    tree.write(path, SPDX + f'#include "{included}"\n')
    assert path in tree.layers()


@pytest.mark.parametrize('path, text, said', [
    ('src/quant/quants.def', SPDX + '/* alphabetical */\nQUANT(f32)\nQUANT(f16)\n',
     'not alphabetical at f32'),
    ('src/quant/quants.def', SPDX + 'QUANT(f16)\nQUANT(f32)\nQUANT(f32)\n',
     'listed twice: QUANT(f32)'),
    ('src/quant/quants.def', SPDX + 'QUANT(f16)\nQUANT(f32)\nQUANT(q8_0)\n',
     'q8_0 has no src/quant/q8_0.c'),
    ('src/quant/quants.def', SPDX + 'QUANT(f16)\n', 'quant_f32 has no row'),
    ('src/quant/f32.c', SPDX, 'nothing in src/quant defines quant_f32'),
    ('src/quant/novel.def', SPDX, 'a list without a row in tools/check_lists.py'),
    ('src/quant/f32.c', GOOD['src/quant/f32.c'][len(SPDX):], 'no SPDX-License-Identifier'),
    ('src/quant/f32.c', GOOD['src/quant/f32.c'] + '/*' + 'x' * 97 + '*/\n', '101 columns'),
    ('src/quant/f32.c', GOOD['src/quant/f32.c'] + '\n' * 1000, '1002 lines, at most 1000'),
    ('src/quant/f32.c', GOOD['src/quant/f32.c'] + '\nint x; \n', 'blanks at the end'),
    ('src/quant/f32.c', GOOD['src/quant/f32.c'] + '/* TO' 'DO */\n', 'unfinished work'),
    ('src/quant/f32.c', GOOD['src/quant/f32.c'] + 'void *x = getenv("X");\n', 'getenv() only in'),
    ('src/quant/f32.c', GOOD['src/quant/f32.c'] + 'void f(void) { abort(); }\n',
     'f32.c:3: abort() only in'),
    ('src/quant/f32.c', GOOD['src/quant/f32.c'] + 'void f(void) { printf("x"); }\n',
     'printf() only in'),
    ('src/quant/f32.c', GOOD['src/quant/f32.c'] + 'typedef struct {\n    int x;\n} block_t;\n',
     'type block_t'),
    ('src/quant/README.md', 'x\n' * 41, '41 lines, at most 40'),
])
def test_fault_is_named(tree, path, text, said):
    tree.write(path, text)
    assert said in tree.lists()


def test_missing_readme_is_named(tree):
    (tree.root / 'src/graph/README.md').unlink()
    assert 'src/graph/README.md: missing' in tree.lists()


def test_comments_and_strings_are_no_calls(tree):
    tree.write('src/quant/f32.c', GOOD['src/quant/f32.c'] +
               '/* abort() */ // exit()\nconst char *x = "printf(";\nint y = snprintf(0, 0, "");\n')
    assert tree.lists() == ''


def test_generated_tables_may_be_long(tree):
    tree.write('src/quant/table.c', SPDX + '/* Generated by tools/make_x.py. */\n' + '\n' * 2000)
    assert tree.lists() == ''
