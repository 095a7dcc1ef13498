# SPDX-License-Identifier: Apache-2.0
"""The components of tokenizer.json against the `tokenizers` package, in small; the whole is
tools/fuzz_tok_diff.py."""
import random

import fuzz_tok_diff
import pytest

CASES = {case[0]: case for case in fuzz_tok_diff.cases()}
TEXTS = fuzz_tok_diff.texts(random.Random(3), 150)


@pytest.mark.parametrize('name', CASES)
def test_tokenizer(name, tmp_path, capsys):
    tokenizer = fuzz_tok_diff.make(CASES[name])
    differ = fuzz_tok_diff.compare(name, tokenizer, TEXTS, tmp_path / 'model')
    assert differ == 0, capsys.readouterr().out
