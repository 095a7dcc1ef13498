# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's vocabulary tests and chat templates (scripts/fetch-test-data brings them): the
tokenizers against the ids llama.cpp expects, the template engine against jinja2.

Without the data the tests are skipped, unless REQUIRE_TEST_DATA=1 (.ci/run) says that they must
run.
"""
import json
import os
import pathlib
import subprocess

import pytest

import compare_templates
import fetch_test_data

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('BUILD_DIR', ROOT / 'build')).resolve()
DATA = pathlib.Path(fetch_test_data.data_dir())
SEPARATOR = '\n__ggml_vocab_test__\n'

# What our tokenizers do with each vocabulary: the number of texts that must give llama.cpp's ids
# (0: it comes without texts and must open), or the reason for which it must be refused.
VOCABULARIES = {
    'aquila': 0,
    'baichuan': 0,
    'bert-bge': 46,
    'command-r': 46,
    'deepseek-coder': 46,
    'deepseek-llm': 46,
    'falcon': 46,
    'gemma-4': 46,
    'gpt-2': 46,
    'gpt-neox': 0,
    'llama-bpe': 46,
    'llama-spm': 46,
    'mpt': 46,
    'nomic-bert-moe': 0,
    'phi-3': 46,
    'qwen2': 46,
    'qwen35': 50,
    'refact': 46,
    'starcoder': 46,
}
TEMPLATES = 71


@pytest.fixture(scope='module')
def data():
    if not DATA.is_dir():
        reason = f'{DATA} is not there (scripts/fetch-test-data)'
        if os.environ.get('REQUIRE_TEST_DATA') == '1':
            pytest.fail(reason)
        pytest.skip(reason)
    return DATA


def tokenize(model, texts, tmp_path):
    """The ids of each text, or what our tokenizer says against the model."""
    file = tmp_path / 'texts.json'
    file.write_text(json.dumps(texts))
    run = subprocess.run([BUILD / 'tests/unit/tok_batch', model, file], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, timeout=60)
    return json.loads(run.stdout) if run.returncode == 0 else run.stderr.strip()


def texts_and_ids(model):
    """llama.cpp's format: texts with a separator after each, and a line of ids for each."""
    with open(f'{model}.inp', encoding='utf-8', newline='') as f:
        *texts, rest = f.read().split(SEPARATOR)
    with open(f'{model}.out', encoding='ascii') as f:
        ids = [[int(i) for i in line.split()] for line in f]
    return texts + [rest] * (rest != ''), ids


def test_every_vocabulary_has_an_expectation(data):
    names = {f.name.removeprefix('ggml-vocab-').removesuffix('.gguf')
             for f in data.glob('ggml-vocab-*.gguf')}
    assert names == set(VOCABULARIES)


@pytest.mark.parametrize('name', VOCABULARIES)
def test_vocabulary(data, name, tmp_path):
    model, want = data / f'ggml-vocab-{name}.gguf', VOCABULARIES[name]
    if isinstance(want, str):
        assert tokenize(model, [''], tmp_path).endswith(want)
        return
    if want == 0:
        assert tokenize(model, [''], tmp_path) == [[]]
        return
    texts, ids = texts_and_ids(model)
    assert len(texts) == len(ids) == want
    got = tokenize(model, texts, tmp_path)
    assert isinstance(got, list), got
    assert [(t, i) for t, i in zip(texts, got)] == list(zip(texts, ids))


def test_templates(data):
    """Each template over each conversation: the text, what it raises, or that both refuse it."""
    files, chats, rendered, refused, differ = compare_templates.differences(
        BUILD / 'tests/unit/jinja_render', data)
    assert files == TEMPLATES and chats >= 80
    assert rendered > 4 * refused  # they do render
    assert not differ, f'{len(differ)} of {rendered + refused} differ, first: {differ[0]}'
