# SPDX-License-Identifier: Apache-2.0
"""The program from outside: words, messages, exit codes, output, and a chat on a terminal.

Uses build/src/cli/1bit (another one: ONEBIT_PROGRAM) and, where a real model is needed, the default
model in the models folder (scripts/fetch-model qwen2.5-coder-0.5b).
"""
import json
import os
import pathlib
import pty
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import time

import pytest

from harness import unpack

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = os.environ.get('ONEBIT_PROGRAM', str(ROOT / 'build/src/cli/1bit'))
TINY = ROOT / 'tests/golden/tiny.gguf'
COMMANDS = ['run', 'serve', 'embed', 'info', 'convert', 'devices', 'bench', 'eval', 'tokenize',
            'detokenize', 'template', 'version', 'help']
REPORT = re.compile(r'prompt (?:1 token|(?!1 )\d+ tokens)( [\d.]+ tok/s)?( \(and \d+ cached\))?, '
                    r'answer (1(?= token\b)|(?!1 )\d+(?= tokens)) tokens?( [\d.]+ tok/s)?'
                    r'(, seed (\d+))?\n')


def call(*words, stdin='', env=None, timeout=120):
    clean = {k: v for k, v in os.environ.items() if not k.startswith('ONEBIT_') and k != 'NO_COLOR'}
    return subprocess.run([PROGRAM, *map(str, words)], input=stdin, capture_output=True,
                          encoding='utf-8', env=clean | (env or {}), timeout=timeout)


def fails(result, code, command, text):
    """One line on stderr, nothing on stdout."""
    assert result.returncode == code, result
    assert result.stdout == ''
    assert result.stderr.startswith(f'1bit {command}: ' if command else '1bit: '), result.stderr
    assert result.stderr.count('\n') == 1 and result.stderr.endswith('\n')
    assert text in result.stderr, result.stderr


@pytest.fixture(scope='session')
def model():
    data = os.environ.get('XDG_DATA_HOME') or os.path.expanduser('~/.local/share')
    path = pathlib.Path(data) / '1bit/models/qwen2.5-coder-0.5b.gguf'
    assert path.exists(), 'run scripts/fetch-model qwen2.5-coder-0.5b first'
    return path


# ---- words and messages --------------------------------------------------------------------------

def test_without_a_command():
    result = call()
    assert result.returncode == 2 and result.stdout == ''
    assert result.stderr.startswith('Usage: 1bit COMMAND')


def test_help_lists_the_commands():
    result = call('help')
    assert result.returncode == 0 and result.stderr == ''
    assert re.findall(r'^  (\w+) ', result.stdout, re.M) == COMMANDS
    assert call('--help').stdout == call('-h').stdout == result.stdout


@pytest.mark.parametrize('command', COMMANDS)
def test_help_of_each_command(command):
    result = call(command, '--help')
    assert result.returncode == 0 and result.stderr == ''
    assert result.stdout.startswith(f'Usage: 1bit {command} ')
    assert '--help ' in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 79
    assert call(command, '-h').stdout == call('help', command).stdout == result.stdout


def test_version():
    version = re.search(r"version: '([^']+)'", (ROOT / 'meson.build').read_text())[1]
    assert call('version').stdout == call('--version').stdout == f'1bit {version}\n'


@pytest.mark.parametrize('words, command, text', [
    (['bogus'], '', 'unknown command "bogus"'),
    (['--bogus'], '', 'unknown option "--bogus"'),
    (['run', '--tmep', '1'], 'run', '--tmep: unknown option (see 1bit run --help)'),
    (['run', '--verify'], 'run', '--verify: not an option of this command'),
    (['run', '-p'], 'run', '-p: needs a value'),
    (['run', '--temp', 'hot', '-p', 'x'], 'run', '--temp: "hot" is not a number'),
    (['run', '--temp', '-1', '-p', 'x'], 'run', '--temp: -1 is not from 0'),
    (['run', '--top-p=1.5', '-p', 'x'], 'run', '--top-p: 1.5 is not from 0 to 1'),
    (['run', '-n', 'many', '-p', 'x'], 'run', '-n: "many" is not a whole number'),
    (['run', '--kv-type', 'f8', '-p', 'x'], 'run',
     '--kv-type: "f8" is none of f16|bf16|f32|q8_0|q4_0'),
    (['run', '--kv-memory', '5X', '-p', 'x'], 'run', '--kv-memory: "5X" is not a number of bytes'),
    (['run', '-p', 'x', '-f', 'y'], 'run', '--prompt and --file exclude each other'),
    (['run', 'hello'], 'run', 'unexpected argument "hello"'),
    (['info'], 'info', 'MODEL is missing'),
    (['info', '--architectures', 'x'], 'info', '--architectures takes no MODEL'),
    (['tokenize', 'x', '-f', 'y'], 'tokenize', 'exclude each other'),
    (['bench', '-p', '12,x'], 'bench', '--prompt-tokens: "12,x" is no list of lengths'),
    (['help', 'bogus'], 'help', 'there is no command "bogus"'),
    (['help', 'run', '--man'], 'help', 'exclude each other'),
    (['help', '--man', '--completion', 'bash'], 'help', 'exclude each other'),
    (['run', '-é'], 'run', '-é: unknown option'),
    (['run', '--seed', '-1'], 'run', '--seed: -1 is not from 0 to 9000000000000000000 '),
])
def test_wrong_words(words, command, text):
    fails(call(*words), 2, command, text)


def test_a_wrong_environment_is_named():
    fails(call('run', '-p', 'x', env={'ONEBIT_THREADS': 'all'}), 2, 'run', 'ONEBIT_THREADS: "all"')
    fails(call('bench', env={'ONEBIT_THREADS': 'all'}), 2, 'bench', 'ONEBIT_THREADS: "all" is no')


@pytest.mark.parametrize('text', ['', '\n', '# none\n'])
def test_a_file_without_keys_opens_no_server(tmp_path, text):
    (tmp_path / 'keys').write_text(text)
    result = call('serve', '-p', '0', '-m', TINY, '--api-key-file', tmp_path / 'keys')
    fails(result, 1, 'serve', 'api-key-file: there is no key in it')


@pytest.mark.parametrize('command', [['run', '-p', 'x', '-m'], ['info'], ['tokenize', 'x', '-m'],
                                     ['bench', '-m']])
def test_a_model_that_is_not_there(command, tmp_path):
    models = tmp_path / '1bit/models'
    (models / 'folder').mkdir(parents=True)
    (models / 'folder/config.json').write_text('{}')
    (models / 'one.gguf').touch()
    (models / 'part.download').touch()
    env = {'XDG_DATA_HOME': str(tmp_path)}
    result = call(*command, 'nosuch', env=env)
    fails(result, 1, command[0], 'nosuch: no such file or model; give a path, or a name that is '
                                 f'in {models} (folder, one); from the source tree, scripts/')
    fails(call(*command, './nosuch', env=env), 1, command[0], './nosuch: no such file or directory')
    fails(call(*command, 'one', env=env), 1, command[0], f'{models}/one.gguf')  # found, but empty


@pytest.mark.parametrize('content', [b'', b'GGUF', b'GGUF\3\0\0\0' + b'\xff' * 16, b'\0' * 100])
def test_a_file_that_is_no_model(content, tmp_path):
    path = tmp_path / 'new\nline.gguf'
    path.write_bytes(content)
    fails(call('info', path), 1, 'info', 'new?line.gguf')
    fails(call('run', '-m', path, '-p', 'x'), 1, 'run', 'new?line.gguf')


def test_an_empty_prompt(tmp_path):
    fails(call('run'), 1, 'run', 'the prompt is empty')
    (tmp_path / 'empty').touch()
    fails(call('run', '-f', tmp_path / 'empty'), 1, 'run', 'the prompt is empty')
    fails(call('run', '-f', tmp_path / 'nosuch'), 1, 'run', 'nosuch: cannot open')


# ---- output that fails ---------------------------------------------------------------------------

@pytest.mark.parametrize('words', [['help'], ['help', '--man'], ['info', '--json', 'LLAMA'],
                                   ['info', 'LLAMA'], ['devices']])
def test_a_full_disk(words, llama):
    words = [llama if word == 'LLAMA' else word for word in words]
    with open('/dev/full', 'w') as full:
        result = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 1
    assert result.stderr == (f'1bit {words[0]}: cannot write to the standard output: '
                             'No space left on device\n')


def test_a_reader_that_goes_away():
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run([PROGRAM, 'help', '--man'], stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert (result.returncode, result.stderr) == (1, b'')


# ---- documents -----------------------------------------------------------------------------------

@pytest.mark.parametrize('shell', ['bash', 'fish', 'zsh'])
def test_completion_scripts(shell, tmp_path):
    result = call('help', '--completion', shell)
    assert result.returncode == 0
    if shutil.which(shell):
        script = tmp_path / 'script'
        script.write_text(result.stdout)
        subprocess.run([shell, '-n', script], check=True)


def complete(*words, env=None):
    script = '''source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _1bit
                printf '%s\\n' "${COMPREPLY[@]}"'''
    file = ROOT / 'build/complete.bash'
    file.write_text(call('help', '--completion', 'bash').stdout)
    run = subprocess.run(['bash', '-c', script, '-', file, *words], capture_output=True, text=True,
                         check=True, cwd=ROOT, env=os.environ | (env or {}))
    return run.stdout.split('\n')[:-1]


def test_bash_evaluates_no_name(tmp_path):
    folder = tmp_path / '1bit/models'
    folder.mkdir(parents=True)
    for name in ['my model', '$(touch oops)', '`touch oops`']:
        (folder / f'{name}.gguf').touch()
    env = {'XDG_DATA_HOME': str(tmp_path)}
    assert complete('1bit', 'run', '-m', 'my', env=env) == ['my model']
    assert complete('1bit', 'info', '$', env=env) == ['$(touch oops)']
    assert '`touch oops`' in complete('1bit', 'run', '-m', '', env=env)
    assert not (ROOT / 'oops').exists()


def test_bash_completes():
    assert complete('1bit', '--h') == ['--help']
    assert complete('1bit', 'run', '--device', 'r') == ['ref']
    assert complete('1bit', 'bench', '--kv-type', 'f16,q8') == ['f16,q8_0']
    assert complete('1bit', 'de') == ['devices', 'detokenize']
    assert complete('1bit', 'run', '--kv-') == ['--kv-type', '--kv-type-k', '--kv-type-v',
                                                '--kv-memory']
    assert complete('1bit', 'run', '--kv-type', '') == ['f16', 'bf16', 'f32', 'q8_0', 'q4_0']
    assert complete('1bit', 'run', '-f', 'READ') == [p.name for p in ROOT.glob('READ*')]
    assert complete('1bit', 'help', 'ver') == ['version']
    assert complete('1bit', 'eval', '') == ['perplexity', 'kld', 'choice']
    assert complete('1bit', 'bench', '--kv-') == ['--kv-memory', '--kv-type']


def test_man_page():
    page = call('help', '--man').stdout
    assert page.startswith('.TH 1BIT 1')
    for command in COMMANDS:
        assert f'\n.SS 1bit {command} ' in page
    for variable in ['ONEBIT_MODEL', 'ONEBIT_DEVICE', 'ONEBIT_THREADS', 'NO_COLOR']:
        assert page.count(f'\n.B {variable}\n') == 1
    for file in ['~/.local/share/1bit/models', '~/.local/state/1bit/history']:
        assert file in page
    assert 'but 0 if it ended\n.BR "1bit serve"' in page
    if shutil.which('mandoc'):
        lint = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning'], input=page, text=True,
                              capture_output=True)
        assert [line for line in lint.stdout.splitlines() if 'missing date' not in line] == []


# ---- devices and info ----------------------------------------------------------------------------

def test_devices():
    names = [d['name'] for d in json.loads(call('devices', '--json').stdout)['devices']]
    assert names[0] == 'cpu' and 'ref' in names
    assert call('devices').stdout.startswith('cpu ')


def test_info_of_a_directory(llama):
    result = call('info', '--json', llama)
    assert result.returncode == 0 and result.stderr == ''
    info = json.loads(result.stdout)
    config = json.loads((llama / 'config.json').read_text())
    assert info['metadata'] == config
    assert info['engine']['family'] == 'llama'
    assert info['engine']['context'] == config['max_position_embeddings']
    assert {'name': 'lm_head.weight', 'type': 'F32', 'bytes': 256 * 64 * 4,
            'shape': [256, 64]} in info['tensors']
    text = call('info', llama).stdout
    assert 'family        llama' in text and 'lm_head.weight ' in text and '\033' not in text


def rows(name, macro):
    return re.findall(rf'^{macro}\((\w+)', (ROOT / 'src/models' / name).read_text(), flags=re.M)


def test_info_lists_what_can_be_loaded():
    listed = json.loads(call('info', '--architectures', '--json').stdout)['architectures']
    wrappers = [r['model_types'][0] for r in listed if r['wrapper']]
    assert wrappers == rows('wrappers.def', 'WRAPPER')
    assert len(listed) - len(wrappers) == len(rows('models.def', 'MODEL'))
    by_type = {t: r for r in listed if not r['when'] for t in r['model_types']}
    told = {(t, r['when']): r['class'] for r in listed if r['when'] for t in r['model_types']}
    assert told['bert', 'is_decoder'] == 'BertLMHeadModel'
    assert by_type['sarvam_mla']['class'] == 'DeepseekV3ForCausalLM'
    assert by_type['sarvam_mla']['gguf'] == 'deepseek2' and by_type['gptj']['gguf'] == 'own'
    assert by_type['cohere']['gguf'] == 'command-r'
    for type_, features in {
            'arcee': [], 'bert': ['encoder'], 'deepseek_v2': ['latent attention'],
            'lfm2': ['recurrent'],
            'gpt_oss': ['mixture of experts', 'window', 'sinks'],
            'gemma2': ['soft cap of scores', 'norms after sub-layers']}.items():
        assert set(features) <= set(by_type[type_]['features']), type_
    assert by_type['arcee']['features'] == by_type['llava']['features'] == []
    text = call('info', '--architectures').stdout.splitlines()
    assert len(text) == len(listed) + 1
    assert re.fullmatch(r'GptOssForCausalLM +gpt_oss +gpt-oss +mixture of experts, window, sinks',
                        next(l for l in text if 'gpt_oss' in l))


def test_info_of_a_gguf(model):
    info = json.loads(call('info', '--json', '-c', 1000, '--kv-memory', '1G', model).stdout)
    assert info['file']['kind'] == 'GGUF' and info['file']['version'] == 3
    assert info['metadata']['general.architecture'] == 'qwen2'
    assert info['metadata']['tokenizer.ggml.tokens']['count'] == 151936
    assert sum(f['tensors'] for f in info['formats']) == len(info['tensors']) == 291
    engine = info['engine']
    # 24 layers, 2 heads of 64 for keys and for values, F16, whole pages of 64 tokens
    assert engine['kv_bytes_1000_tokens'] == 1024 * 24 * 2 * (64 + 64) * 2
    assert engine['tokens_that_fit'] == (1 << 30) // (24 * 2 * 128 * 2) // 64 * 64
    assert engine['context'] == 1000 and engine['train_context'] == 32768
    assert info['tokenizer']['tokens'] == 151936 and info['tokenizer']['chat_template_bytes'] > 0


def test_placement_names_the_kernel_of_each_weight(model, llama):
    def kernels(*words):
        rows = json.loads(call('info', '--json', '--placement', *words).stdout)['placement']
        assert {row['device'] for row in rows} == {'cpu'}
        return [(row['tensor'], row['type'], row['kernel']) for row in rows]

    rows = kernels(model, '--cpu-isa', 'scalar')
    assert rows[0] == ('token_embd.weight', 'Q5_0', 'embed (scalar)')
    assert ('blk.3.ffn_up.weight', 'Q5_0', 'linear (scalar, int8 inputs)') in rows
    assert ('blk.3.attn_q.bias', 'F32', 'linear (scalar, int8 inputs)') in rows
    assert ('output_norm.weight', 'F32', 'norm (scalar)') in rows
    assert rows[-1][2] == 'linear (scalar, int8 inputs)'
    devices = json.loads(call('devices', '--json').stdout)
    levels = next(d for d in devices['devices'] if d['name'] == 'cpu')['isa']
    best = [isa for isa in levels if isa != 'amx'][-1]  # amx is for F16 and BF16
    assert {kernel for _, _, kernel in kernels(model) if kernel.startswith('linear')} == {
        f'linear ({best}, int8 inputs)'}
    assert kernels(llama, '--cpu-isa', 'scalar')[-1][2] == 'linear (scalar)'
    text = call('info', '--placement', '--cpu-isa', 'scalar', llama).stdout
    assert 'placement (in the order of use)' in text and 'cpu linear (scalar)' in text
    fails(call('info', '--placement', '--device', 'tpu', llama), 1, 'info', 'tpu')


def test_processors_that_are_not_there(model):
    ask = ['run', '-m', model, '--raw', '-p', 'x', '-n', 1]
    assert call(*ask, '--cpu-mask', min(os.sched_getaffinity(0))).returncode == 0
    fails(call(*ask, '--cpu-mask', '4000'), 1, 'run', '--cpu-mask: this process may use the')
    fails(call(*ask, '--cpu-mask', 'one'), 1, 'run', '--cpu-mask: "one" is no list (0-3,8) or mask')
    fails(call(*ask, '--numa', 'isolate', '-t', 1000), 1, 'run', '--threads: 1000 threads, but')
    fails(call(*ask, '--numa', 'all'), 2, 'run', '--numa')


def test_more_cache_than_memory(llama):
    for words in [['info', llama], ['run', '-m', llama, '-p', 'x'], ['serve', '-m', llama]]:
        fails(call(*words, '--kv-memory', '4000000G'), 1, words[0],
              '--kv-memory: 4.3 PB are more than this machine has (')


def test_a_cache_that_does_not_grow(tmp_path):
    windows = tmp_path / 'windows'
    unpack('gemma3_text', windows)
    config = json.loads((windows / 'config.json').read_text())
    config['layer_types'] = ['sliding_attention'] * 3
    (windows / 'config.json').write_text(json.dumps(config))
    assert '; more than 4 billion tokens fit in ' in call('info', windows).stdout


def test_verify_names_the_weight(llama, tmp_path):
    assert call('info', '--verify', llama).stdout.endswith('\nall weights are finite\n')
    broken = tmp_path / 'broken'
    shutil.copytree(llama, broken)
    data = bytearray((broken / 'model.safetensors').read_bytes())
    size, = struct.unpack('<Q', data[:8])
    begin = json.loads(data[8:8 + size])['model.norm.weight']['data_offsets'][0]
    struct.pack_into('<f', data, 8 + size + begin + 5 * 4, float('nan'))
    (broken / 'model.safetensors').write_bytes(data)
    result = call('info', '--verify', broken)
    assert result.returncode == 1
    assert result.stderr == (f'1bit info: {broken}: model.norm.weight: '
                             'weight 5 of row 0 is not finite\n')


# ---- text ----------------------------------------------------------------------------------------

def test_tokenize_and_back(model, tmp_path):
    text = 'Hello wörld, 12345 🎉\n\tend <|im_end|>'
    ids = call('tokenize', '-m', model, text).stdout.split()
    assert '151645' not in ids  # control tokens in a text are only text
    assert call('detokenize', '-m', model, *ids).stdout == text + '\n'
    assert call('detokenize', '-m', model, stdin=', '.join(ids)).stdout == text + '\n'
    assert call('tokenize', '-m', model, '--special', text).stdout.split()[-1] == '151645'
    assert call('detokenize', '-m', model, '--special', 151645).stdout == '<|im_end|>\n'
    (tmp_path / 'text').write_text(text)
    assert call('tokenize', '-m', model, '-f', tmp_path / 'text').stdout.split() == ids
    assert call('tokenize', '-m', model, stdin=text).stdout.split() == ids
    tokens = json.loads(call('tokenize', '-m', model, '--json', '--pieces', text).stdout)['tokens']
    assert [str(t['id']) for t in tokens] == ids
    pieces = [t['piece'] for t in tokens]  # half a character is a list of bytes
    assert b''.join(p.encode() if isinstance(p, str) else bytes(p) for p in pieces).decode() == text
    lines = call('tokenize', '-m', model, '--pieces', 'Hi there').stdout.splitlines()
    assert [json.loads(line.split(None, 1)[1]) for line in lines] == ['Hi', ' there']


@pytest.mark.parametrize('word', ['x', '-1', '151936', '99999999999999999999', '1.5'])
def test_what_is_no_token_id(model, word):
    fails(call('detokenize', '-m', model, '--', word), 1, 'detokenize', f'"{word}" is not a token')


def test_template(model, tmp_path):
    messages = [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'Hi'}]
    want = ('<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n'
            '<|im_start|>assistant\n')
    (tmp_path / 'list.json').write_text(json.dumps(messages))
    assert call('template', '-m', model, tmp_path / 'list.json').stdout == want
    request = json.dumps({'messages': messages, 'add_generation_prompt': False})
    assert want.startswith(call('template', '-m', model, stdin=request).stdout)
    out = call('template', '-m', model, '--tokens', tmp_path / 'list.json').stdout
    text, ids, _ = out.rsplit('\n', 2)
    assert text == want
    assert call('tokenize', '-m', model, '--special', want).stdout.strip() == ids
    fails(call('template', '-m', model, stdin='[{'), 1, 'template', '-: not JSON: ')
    twice = '[{"role": "user", "role": "user", "content": "x"}]'
    fails(call('template', '-m', model, stdin=twice), 1, 'template', '-: not JSON: duplicate')
    fails(call('template', '-m', model, stdin='{"messages": 1}'), 1, 'template', 'messages')


# ---- run -----------------------------------------------------------------------------------------

def test_an_answer(model):
    result = call('run', '-m', model, '--temp', 0, '-n', 24, '-p', 'What is the capital of France?')
    assert result.returncode == 0, result.stderr
    assert 'Paris' in result.stdout and result.stdout.endswith('\n')
    assert REPORT.fullmatch(result.stderr) and 'seed' not in result.stderr
    again = call('run', '-m', model, '--temp', 0, '-n', 24, stdin='What is the capital of France?')
    assert again.stdout == result.stdout


@pytest.mark.parametrize('words', (['--no-mmap'], ['--mlock'], ['--no-mmap', '--mlock']))
def test_weights_in_memory(model, words):
    """The same answer; what of the file is mapped and what is locked, while it comes."""
    size = model.stat().st_size
    most = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    if '--mlock' in words and os.geteuid() and 0 <= most < size:
        pytest.skip('no right to lock that much')
    ask = ['run', '-m', model, '--temp', 0, '-n', 40, '-p', 'Count to a hundred.']
    with subprocess.Popen([PROGRAM, *map(str, ask), *words], stdout=subprocess.PIPE) as process:
        answer = process.stdout.read(1)
        status = pathlib.Path(f'/proc/{process.pid}/status').read_text()
        answer += process.stdout.read()
    mapped, locked = (int(re.search(rf'{name}:\s*(\d+) kB', status)[1]) << 10
                      for name in ('RssFile', 'VmLck'))
    assert (mapped < size / 2) == ('--no-mmap' in words)
    assert (locked >= size) == ('--mlock' in words)
    assert answer.decode() == call(*ask).stdout


def test_seeds_and_lengths(model):
    words = ['run', '-m', model, '-n', 12, '--temp', 1.2, '-p', 'Write a poem.']
    first = call(*words)
    report = REPORT.fullmatch(first.stderr)
    assert int(report[3]) <= 12
    assert call(*words, '--seed', report[6]).stdout == first.stdout
    assert call(*words, '--seed', 1).stdout != call(*words, '--seed', 2).stdout


def test_raw_continues_the_text(model):
    result = call('run', '-m', model, '--raw', '--temp', 0, '-n', 8,
                  '-p', 'def add(a, b):\n    return')
    assert result.stdout.startswith(' a + b')


def test_settings_that_the_engine_refuses(model):
    fails(call('run', '-m', model, '--samplers', 'top_k;beam', '-p', 'x'), 2, 'run', '"beam" is')
    words = ['run', '-m', model, '-p', 'x']
    env = {'ONEBIT_DEVICE': 'nope'}
    fails(call(*words, env=env), 1, 'run', 'ONEBIT_DEVICE: unknown device "nope"')
    fails(call(*words, '--device', 'no', env=env), 1, 'run', '--device: unknown device "no"')
    fails(call('run', '-m', model, '-c', 64, '-p', 'word ' * 200), 1, 'run', 'context')


@pytest.mark.parametrize('most', [[], ['-n', 200]])
def test_the_context_fills_up(model, most):
    words = ['run', '-m', model, '-c', 64, '--raw', '--temp', 0, '-p', '1 2 3 4 5 6 7 8 9']
    result = call(*words, *most)
    assert result.returncode == 0
    assert result.stderr.endswith('1bit run: the context is full: the answer is cut\n')


def test_a_short_answer_has_no_speed(model):
    words = ['run', '-m', model, '--raw', '--temp', 0, '-p', '1 2 3 4 5 6 7 8 9']
    one = REPORT.fullmatch(call(*words, '-n', 1).stderr)
    assert one[3] == '1' and not one[4]  # its time is the prompt's
    two = REPORT.fullmatch(call(*words, '-n', 2).stderr)
    assert two[3] == '2' and two[4]


def test_control_c_ends_an_answer(model):
    process = subprocess.Popen([PROGRAM, 'run', '-m', model, '--raw', '-p', '1 2 3 4 5 6 7 8 9'],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and REPORT.fullmatch(err)


def test_an_answer_to_a_reader_that_goes_away(model):
    process = subprocess.Popen([PROGRAM, 'run', '-m', model, '--raw', '-p', '1 2 3 4 5 6 7 8 9'],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.wait(timeout=120) == 1
    assert process.stderr.read() == ''
    process.stderr.close()


def test_bench(model):
    out = json.loads(call('bench', '-m', model, '-p', '8,16', '-n', '4', '-r', 2, '--json').stdout)
    assert [(r['test'], r['tokens']) for r in out['results']] == [('pp', 8), ('pp', 16), ('tg', 4)]
    assert all(len(r['runs']) == 2 and r['mean'] > 0 for r in out['results'])
    assert out['family'] == 'qwen2'
    table = call('bench', '-m', model, '-p', '0', '-n', '2', '-r', 1).stdout
    assert 'tg2 ' in table and 'pp' not in table


# ---- the chat ------------------------------------------------------------------------------------

class Terminal:
    """The program on a pseudo terminal."""

    def __init__(self, words, state, **env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(PROGRAM, [PROGRAM, *words],
                      os.environ | {'XDG_STATE_HOME': str(state), 'TERM': 'xterm'} | env)
        self.seen = ''

    def wait_for(self, text, seconds=60):
        """Output from the last call up to and with `text`."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            left = end - time.monotonic()
            assert left > 0, f'no {text!r} in {self.seen!r}'
            if select.select([self.fd], [], [], left)[0]:
                self.seen += os.read(self.fd, 4096).decode(errors='replace')
        before, self.seen = self.seen.split(text, 1)
        return before + text

    def type(self, text):
        os.write(self.fd, text.encode())

    def hang_up(self):
        if self.fd is None:
            return
        os.close(self.fd)
        os.waitpid(self.pid, 0)

    def end(self, seconds=60):
        end = time.monotonic() + seconds
        while True:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                os.kill(self.pid, signal.SIGKILL)
                self.hang_up()
                pytest.fail('the program did not end')
            try:
                if not os.read(self.fd, 4096):
                    break
            except OSError:
                break
        os.close(self.fd)
        self.fd = None
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_chat(model, tmp_path):
    t = Terminal(['run', '-m', str(model), '--temp', '0', '-n', '400'], tmp_path)
    t.wait_for('/help lists commands')
    t.wait_for('> ')
    t.type('/help\r')
    assert '/reset' in t.wait_for('repeat-penalty')
    t.type('/set temp x\r')
    t.wait_for('temp: "x" is not a number')
    t.type('/set tempo 1\r')
    t.wait_for('there is no option "tempo" to set')
    t.type('/bogus\r')
    t.wait_for('unknown command /bogus')
    t.type('My name is Ada. Say only \\\rmy name.\r')
    t.wait_for('| ')
    assert 'Ada' in t.wait_for('tok/s')
    t.wait_for('> ')
    t.type('What is my name?\r')  # the conversation goes on
    assert 'Ada' in t.wait_for(' cached)').replace('What is my name?', '')
    t.wait_for('> ')
    t.type('Count from 1 to 1000, one number a line.\r')
    t.wait_for('17')
    t.type('\x03')  # stops the answer, not the program
    t.wait_for('tok/s')
    t.wait_for('> ')
    t.type('half a line\x03')
    t.wait_for('^C')
    t.type('/reset\r')
    t.type('/quit\r')
    assert t.end() == 0
    history = (tmp_path / '1bit/history').read_text()
    assert 'What\\040is\\040my\\040name?' in history and 'half' not in history

    t = Terminal(['run', '-m', str(model)], tmp_path)
    t.wait_for('> ')
    t.type('\x1b[A')  # the history is there again
    t.wait_for('/quit')
    t.type('\r')
    assert t.end() == 0


def test_settings_of_the_chat(model, tmp_path):
    t = Terminal(['run', '-m', str(model), '--temp', '0', '-n', '1'], tmp_path)

    def say(line, *answers):
        assert ', answer ' not in t.wait_for('> ')
        t.type(line + '\r')
        for answer in answers:
            t.wait_for(answer)
    say('   /help', '/unset NAME')
    say('   ')  # no message, and so no answer
    say('/set temp 1.5')
    say('/unset temp')
    say('/set temp', 'temp               0.8')
    say('/set seed 7')
    say('/set seed', 'seed               7')
    say('/unset seed')
    say('/set seed', 'seed               none')
    say('/set system Be brief.')
    say('/unset system')
    say('/set system', 'system             none')
    say('/set samplers top_k;beam', ' run: samplers: sampler "beam"')
    say('/set samplers', 'samplers           penalties;')
    say('/unset', '/unset needs a NAME')
    say('/unset tempo', 'no option "tempo"')
    say('/quit')
    assert t.end() == 0


def test_colours_only_where_wanted(tmp_path):
    for env, wanted in [({}, True), ({'NO_COLOR': '1'}, False), ({'TERM': 'dumb'}, False)]:
        t = Terminal(['devices'], tmp_path, **env)
        assert ('\033[' in t.wait_for('comparison')) == wanted
        t.end()
    assert '\033' not in call('devices').stdout


def test_control_d_ends_the_chat(model, tmp_path):
    t = Terminal(['run', '-m', str(model)], tmp_path)
    t.wait_for('> ')
    t.type('\x04')
    assert t.end() == 0


def test_memory_is_the_file_and_the_cache(model):
    """Weights are used where they are mapped: no second copy of them, in whatever form."""
    words = [PROGRAM, 'run', '-m', str(model), '--raw', '-c', '4096', '-p', 'word ' * 1500,
             '-n', '1']
    with open(os.devnull, 'wb') as null:
        process = subprocess.Popen(words, stdout=null, stderr=null)
        _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    layers, heads, dim, f16 = 24, 2, 64, 2
    cache = 4096 * layers * heads * 2 * dim * f16
    assert usage.ru_maxrss * 1024 <= 1.15 * model.stat().st_size + cache
