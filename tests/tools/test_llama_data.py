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


# How each template's model writes tool calls and reasoning, and how many calls of two the template
# writes that must be read back (0: it writes none, not with our arguments, or in a format that is
# not read: MiniMax-M3's nested tags, muse-glimmer).
CALLS = {
    'Apertus-8B-Instruct': ('apertus', 'think', 2),
    'Apriel-1.6-15b-Thinker-fixed': ('tool-calls', 'apriel', 2),
    'Bielik-11B-v3.0-Instruct': ('hermes', 'think', 2),
    'ByteDance-Seed-OSS': ('seed', 'seed', 2),
    'Cohere2MoE': ('command-r', 'command-r', 2),
    'CohereForAI-c4ai-command-r-plus-tool_use': ('command-r', 'think', 0),
    'CohereForAI-c4ai-command-r7b-12-2024-tool_use': ('command-r', 'command-r', 2),
    'GLM-4.6': ('glm4', 'think', 2),
    'GLM-4.7-Flash': ('glm4', 'think', 2),
    'GigaChat3-10B-A1.8B': ('gigachat', 'think', 2),
    'GigaChat3.1-10B-A1.8B': ('gigachat', 'think', 2),
    'HuggingFaceTB-SmolLM3-3B': ('generic', 'think', 0),
    'Kimi-K2-Instruct': ('kimi-k2', 'think', 0),
    'Kimi-K2-Thinking': ('kimi-k2', 'think', 0),
    'Kimi-K3': ('kimi-k3', 'kimi-k3', 2),
    'LFM2-8B-A1B': ('lfm2', 'think', 0),
    'LFM2.5-8B-A1B': ('lfm2', 'think', 2),
    'LFM2.5-Instruct': ('lfm2', 'think', 0),
    'MiMo-VL': ('hermes', 'think', 2),
    'MiniMax-M1': ('tool-calls', 'think', 2),
    'MiniMax-M2': ('minimax-m2', 'think', 2),
    'MiniMax-M3': ('hermes', 'minimax', 0),
    'Mistral-Small-3.2-24B-Instruct-2506': ('mistral', 'think', 2),
    'NVIDIA-Nemotron-3-Nano-30B-A3B-BF16': ('qwen3-coder', 'think', 2),
    'NVIDIA-Nemotron-Nano-v2': ('nemotron', 'think', 2),
    'NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use': ('hermes', 'think', 2),
    'NousResearch-Hermes-3-Llama-3.1-8B-tool_use': ('hermes', 'think', 2),
    'Qwen-QwQ-32B': ('hermes', 'think', 2),
    'Qwen-Qwen2.5-7B-Instruct': ('hermes', 'think', 2),
    'Qwen-Qwen3-0.6B': ('hermes', 'think', 2),
    'Qwen3-Coder': ('qwen3-coder', 'think', 2),
    'Qwen3.5-4B': ('qwen3-coder', 'think', 2),
    'Reka-Edge': ('hermes', 'think', 2),
    'Spark2.5': ('glm4', 'think', 2),
    'StepFun3.5-Flash': ('qwen3-coder', 'think', 2),
    'deepseek-ai-DeepSeek-R1-Distill-Llama-8B': ('deepseek', 'think', 2),
    'deepseek-ai-DeepSeek-R1-Distill-Qwen-32B': ('deepseek', 'think', 2),
    'deepseek-ai-DeepSeek-V3.1': ('deepseek', 'think', 2),
    'deepseek-ai-DeepSeek-V3.2': ('dsml', 'think', 2),
    'deepseek-ai-DeepSeek-V4': ('dsml', 'think', 2),
    'deepseek-ai-DeepSeek-V4-Flash-0731': ('dsml', 'think', 2),
    'fireworks-ai-llama-3-firefunction-v2': ('llama3', 'think', 0),
    'google-gemma-2-2b-it': ('gemma', 'think', 0),
    'google-gemma-4-31B-it': ('gemma4', 'gemma4', 2),
    'google-gemma-4-31B-it-interleaved': ('gemma4', 'gemma4', 2),
    'ibm-granite-granite-3.3-2B-Instruct': ('granite', 'think', 0),
    'ibm-granite-granite-4.0': ('hermes', 'think', 2),
    'ibm-granite-granite-4.1': ('hermes', 'think', 2),
    'inclusionai-ling-3.0-flash': ('glm4', 'think', 2),
    'llama-cpp-deepseek-r1': ('deepseek', 'think', 0),
    'llama-cpp-rwkv-world': ('generic', 'think', 0),
    'llm-jp-llm-jp-4.1-8b-thinking': ('harmony', 'harmony', 2),
    'meetkai-functionary-medium-v3.1': ('functionary', 'think', 0),
    'meetkai-functionary-medium-v3.2': ('functionary-v3.2', 'think', 0),
    'meta-llama-Llama-3.1-8B-Instruct': ('llama3', 'think', 1),
    'meta-llama-Llama-3.2-3B-Instruct': ('llama3', 'think', 1),
    'meta-llama-Llama-3.3-70B-Instruct': ('llama3', 'think', 1),
    'microsoft-Phi-3.5-mini-instruct': ('generic', 'think', 0),
    'mistralai-Ministral-3-14B-Reasoning-2512': ('mistral', 'magistral', 2),
    'mistralai-Mistral-Nemo-Instruct-2407': ('mistral', 'think', 2),
    'moonshotai-Kimi-K2': ('kimi-k2', 'think', 2),
    'muse-glimmer': ('generic', 'think', 0),
    'openai-gpt-oss-120b': ('harmony', 'harmony', 2),
    'openbmb-MiniCPM5-1B': ('minicpm5', 'think', 2),
    'poolside-Laguna-S-2.1': ('glm4', 'think', 2),
    'poolside-Laguna-XS-2.1': ('glm4', 'think', 2),
    'poolside-Laguna-XS.2': ('glm4', 'think', 2),
    'tencent-Hy3': ('hunyuan', 'hunyuan', 2),
    'unsloth-Apriel-1.5': ('tool-calls', 'think', 2),
    'unsloth-mistral-Devstral-Small-2507': ('mistral', 'think', 2),
    'upstage-Solar-Open-100B': ('solar', 'solar', 2),
}
MARK = 'the-question-ends'
TOOLS = [{'type': 'function', 'function': {
    'name': name, 'description': 'd', 'parameters': {'type': 'object', 'properties': {
        'city': {'type': 'string', 'description': 'c'},
        'n': {'type': 'integer', 'description': 'n'},
        'o': {'type': 'object', 'description': 'o'}}, 'required': ['city']}}}
    for name in ('get_weather', 'add_two')]
ARGUMENTS = [{'city': 'Paris', 'n': 3, 'o': {'a': [1, 'x']}}, {'city': 'a "b"\nc'}]


def conversation(calls, content):
    answer = {'role': 'assistant', 'content': content, 'reasoning_content': 'THOUGHT',
              'tool_calls': [{'id': f'call{i}0000', 'type': 'function', 'function': {
                  'name': TOOLS[i]['function']['name'], 'arguments': json.dumps(ARGUMENTS[i])}}
                  for i in range(calls)]}
    asks = {'messages': [{'role': 'user', 'content': MARK}], 'tools': TOOLS}
    return asks, {**asks, 'messages': asks['messages'] + [answer], 'add_generation_prompt': False}


def read_back(template):
    """What chat_calls says of the first of some conversations that the template shows whole."""
    lines = []
    for calls, content in (2, 'CONTENT'), (2, ''), (2, None), (1, 'CONTENT'), (1, ''):
        asks, request = conversation(calls, content)
        lines.append(json.dumps({'template': template, 'request': request, 'asks': asks,
                                 'behind': MARK}))
    run = subprocess.run([BUILD / 'tests/unit/chat_calls', ROOT / 'tests/golden/tiny.gguf'],
                         input='\n'.join(lines) + '\n', stdout=subprocess.PIPE, text=True,
                         check=True, timeout=60)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    return next((a for a in answers if 'Paris' in a.get('text', '')), answers[-1])


def test_every_template_has_its_tool_format(data):
    assert {f.stem for f in data.glob('*.jinja')} == set(CALLS)


@pytest.mark.parametrize('name', CALLS)
def test_calls_are_read_back(data, name):
    told = read_back((data / f'{name}.jinja').read_text(encoding='utf-8'))
    tool_format, reasoning, calls = CALLS[name]
    assert (told['format'], told['reasoning']) == (tool_format, reasoning)
    if not calls:
        return
    calls = min(calls, 2 if 'add_two' in told['text'] else 1)  # some write the first alone
    assert [(c['name'], json.loads(c['arguments'])) for c in told['calls']] == [
        (TOOLS[i]['function']['name'], ARGUMENTS[i]) for i in range(calls)]
    assert 'Paris' not in told['content'] and 'add_two' not in told['content']
