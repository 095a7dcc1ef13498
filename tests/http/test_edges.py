# SPDX-License-Identifier: Apache-2.0
"""Bad input from outside, on a tiny model (tests/golden/tiny.gguf, random weights): one clear line
that says what is wrong and where, or an error of the API; never silence."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import threading

import pytest

from harness import PATIENCE, ROOT, Server, wait_until
from test_cli import PROGRAM, Terminal, call, fails

TINY = ROOT / 'tests/golden/tiny.gguf'
RUN = ['run', '-m', TINY, '-n', '3', '--temp', '0']
BYTES = os.fsdecode(b'a\xff')  # no UTF-8


def with_template(path, text):
    """The tiny model with another template, padded to the length of its own."""
    data = TINY.read_bytes()
    at = data.index(b'{% for m')
    size, = struct.unpack('<Q', data[at - 8:at])
    path.write_bytes(data[:at] + text.encode().ljust(size) + data[at + size:])
    return path


def with_number(path, key, number):
    data = bytearray(TINY.read_bytes())
    struct.pack_into('<I', data, data.index(key.encode()) + len(key) + 4, number)
    path.write_bytes(data)
    return path


def answer(*words, stdin=b''):
    """Bytes of an answer (random weights write no UTF-8), and the report."""
    result = subprocess.run([PROGRAM, *RUN, *words], input=stdin, capture_output=True,
                            timeout=PATIENCE)
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr.decode()


@contextlib.contextmanager
def serve(*words):
    server = Server(PROGRAM, 'serve', '-p', '0', '-m', *words)
    yield server
    if server.process.poll() is None:
        assert server.stop() == 0, server.lines


# ---- options -------------------------------------------------------------------------------------

@pytest.mark.parametrize('words, code, text', [
    (['--system', BYTES], 2, '--system: is not UTF-8'),
    (['-p', BYTES], 1, 'the prompt is not UTF-8'),
    (['--raw', '--system', 'x'], 2, '--system exclude each other'),
    (['--special'], 2, '--special is for --raw'),
    (['--samplers', 'top_k;beam'], 2, '--samplers: sampler "beam" is unknown (known: '),
    (['--kv-memory', '1'], 1, '--kv-memory: 1 bytes hold no page of 64 tokens'),
    (['-c', '1000', '--kv-memory', '64K'], 1, '--context: 1000 tokens do not fit'),
    (['--device', 'abacus'], 1,
     '--device: unknown device "abacus"; there are: auto, cpu, cuda, ref'),
    (['-t', '1025'], 2, '-t: 1025 is not from 0 to 1024 '),
    (['--temp', '1000001'], 2, '--temp: 1000001 is not from 0 to 1000000 '),
    (['--top-k', '9999999999'], 2, '--top-k: 9999999999 is not from -1 to 2147483647 '),
])
def test_options_are_named_as_typed(words, code, text):
    fails(call(*RUN, '-p', 'x', *words), code, 'run', text)


def test_settings_are_checked_before_the_model_is_looked_for():
    fails(call('run', '-m', '/no/such', '-p', 'x', '--samplers', 'beam'), 2, 'run', '"beam"')


@pytest.mark.parametrize('words, text', [
    (['--kv-memory', '1'], '--kv-memory: 1 bytes'), (['--device', 'abacus'], '"abacus"'),
    (['-c', '99', '--kv-memory', '64K'], '--context: 99 tokens'), (['-a', BYTES], '--alias: '),
])
def test_a_server_says_one_line(words, text):
    fails(call('serve', '-p', '0', '-m', TINY, *words), 1, 'serve', text)


@pytest.mark.parametrize('key, number, text', [
    ('qwen2.attention.head_count', 3, 'qwen2.attention.head_count: is no multiple'),
    ('qwen2.attention.head_count', 256, 'qwen2.rope.dimension_count: 1 rotary'),
    ('qwen2.context_length', 0, 'qwen2.context_length: 0 is '),
    ('qwen2.block_count', 2**32 - 1, 'qwen2.block_count: 4294967295 is not in 1 to 4096'),
])
def test_keys_are_named_in_full(tmp_path, key, number, text):
    path = with_number(tmp_path / 'm.gguf', key, number)
    for command in ['run', '-p', 'x'], ['serve', '-p', '0']:
        fails(call(*command, '-m', path), 1, command[0], f'{path}: {text}')


# ---- prompts and models from odd places ----------------------------------------------------------

def test_a_prompt_from_a_pipe(tmp_path):
    want, _ = answer('-p', 'hello')
    fifo = tmp_path / 'fifo'
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_text, args=['hello'])
    writer.start()
    assert answer('-f', fifo)[0] == want
    writer.join()
    assert answer('-f', '-', stdin=b'hello')[0] == want
    bash = subprocess.run(['bash', '-c', '"$@" -f <(printf hello)', '-', PROGRAM, *RUN],
                          capture_output=True, timeout=PATIENCE)
    assert bash.stdout == want, bash.stderr


def test_a_zero_byte_is_text():
    assert 'answer 3 tokens' in answer(stdin=b'hi\0there')[1]


@pytest.mark.parametrize('path, text', [
    ('/dev/zero', '/dev/zero: more than 268435456 bytes'), ('/', '/: cannot read: Is a directory'),
    ('/no/such', '/no/such: cannot open: No such file'), ('', 'cannot open'),
])
def test_a_prompt_that_cannot_be_read(path, text):
    fails(call(*RUN, '-f', path), 1, 'run', text)


def test_a_closed_standard_input():
    result = subprocess.run(['bash', '-c', '"$@" <&-', '-', PROGRAM, *RUN], capture_output=True,
                            text=True, timeout=PATIENCE)
    assert result.returncode == 1
    assert result.stderr == '1bit run: standard input: cannot read: Bad file descriptor\n'


@pytest.mark.parametrize('command', [['run', '-p', 'x', '-m'], ['info'], ['serve', '-p', '0', '-m'],
                                     ['tokenize', 'x', '-m'], ['bench', '-m']])
def test_what_cannot_be_a_model(command, tmp_path):
    fifo = tmp_path / 'fifo'
    os.mkfifo(fifo)
    for path in '/dev/zero', '/dev/null', fifo:
        fails(call(*command, path), 1, command[0], f'{path}: not a regular file')
    fails(call(*command, TINY / 'x'), 1, command[0], f'{TINY}/x: Not a directory')
    fails(call(*command, ''), 1, command[0], 'the name of the model is empty')


def test_a_folder_where_a_file_should_be(llama, tmp_path):
    model = tmp_path / 'model'
    shutil.copytree(llama, model)
    fails(call('tokenize', '-m', model, 'x'), 1, 'tokenize',
          f'{model}: the directory has no tokenizer.json')
    (model / 'tokenizer.json').mkdir()
    fails(call('tokenize', '-m', model, 'x'), 1, 'tokenize',
          f'{model}/tokenizer.json: is a directory')


def test_a_file_that_shrinks(tmp_path):
    path = tmp_path / 'm.gguf'
    shutil.copy(TINY, path)
    with serve(path) as server:
        server.wait_ready()
        os.truncate(path, 8192)
        with contextlib.suppress(OSError):
            server.complete('hello')
        assert server.process.wait(PATIENCE) == 1
        server.listener.join(PATIENCE)
        assert server.lines[2:] == [f'1bit serve: {path}: the file was truncated while in use']


def test_closed_standard_files_stay_closed():
    """No socket takes the number of one: messages would go to a client."""
    process = subprocess.Popen(['bash', '-c', 'exec "$@" <&- >&- 2>&-', '-', PROGRAM, 'serve', '-p',
                                '0', '-m', TINY])
    files = pathlib.Path(f'/proc/{process.pid}/fd')

    def open_files():
        names = []
        for file in files.iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                names.append((int(file.name), os.readlink(file)))
        return sorted(names)
    wait_until(lambda: 'socket:' in str(open_files()), 'a listener')
    assert open_files()[:3] == [(fd, '/dev/null') for fd in range(3)]
    process.terminate()
    assert process.wait(PATIENCE) == 0


def test_few_files():
    """Connections that never ask cannot take every file that the server may open."""
    start = 'ulimit -n 100; exec "$@"'
    server = Server('bash', '-c', start, '-', PROGRAM, 'serve', '-p', '0', '-m', TINY)
    with contextlib.ExitStack() as stack:
        server.wait_ready()
        for i in range(200):
            stack.enter_context(server.connect()).sendall(b'GET /he')
        assert server.ask('GET', '/health').status == 200
        assert server.complete('hello', max_tokens=1).status == 200
    assert server.stop() == 0
    assert len(server.lines) == 3


# ---- the context ---------------------------------------------------------------------------------

@pytest.mark.parametrize('words, text', [
    (['--kv-memory', '64K'],
     r'context \d+ tokens: as --kv-memory allows; the model was made for 2048'),
    (['-c', '4096'], 'context 4096 tokens: as --context says; the model was made for 2048, .*'),
    (['-c', '64', '--kv-memory', '64K'], None), (['-c', '2048'], None), ([], None),
])
def test_another_context_than_the_models_is_said(words, text):
    with serve(TINY, *words) as server:
        n = server.wait_ready().ask('GET', '/v1/models').json['data'][0]['meta']['n_ctx']
        wait_until(lambda: 'ready on' in server.lines[-1], 'ready')
    said = [line for line in server.lines if ' tokens: ' in line]
    ran = [line for line in answer('-p', 'x', *words)[1].splitlines() if ' tokens: ' in line]
    assert ran == [line.replace('serve', 'run') for line in said]
    assert len(said) == (text is not None)
    for line in said:
        assert re.fullmatch('1bit serve: ' + text, line) and f' {n} tokens' in line


# ---- the log -------------------------------------------------------------------------------------

def test_a_server_logs_what_it_is_told_to():
    """With -v every request in one line, with nothing of what was asked or answered."""
    with serve(TINY, '-v') as server:
        server.wait_ready()
        server.complete('secret', max_tokens=2, ignore_eos=True)
        server.complete('secret', max_tokens=3, ignore_eos=True, stream=True)
        server.chat('secret', max_tokens='secret')
        server.ask('GET', '/v1/models/%0a%1b%C3%25?secret=1')
        n = server.complete('secret', max_tokens=1).json['usage']['prompt_tokens']
    lines = [re.sub(r' \d+ ms', ' T ms', line) for line in server.lines]
    assert '1bit: GET /health 200 T ms' in lines
    start = '1bit: POST /v1/completions 200 T ms, prompt'
    assert sorted(line for line in lines if '1bit: ' in line and '/health' not in line) == [
        '1bit: GET /v1/models/%0A%1B%C3%25 404 T ms', '1bit: POST /v1/chat/completions 400 T ms',
        f'{start} {n} tokens (0 cached), answer 2 tokens',
        f'{start} {n} tokens ({n - 1} cached), answer 1 tokens',
        f'{start} {n} tokens ({n - 1} cached), answer 3 tokens']


# ---- templates -----------------------------------------------------------------------------------

def test_a_broken_template(tmp_path):
    path = with_template(tmp_path / 'm.gguf', '\n{% for m in %}')
    where = f'{path}: chat template line 2: expected an expression'
    (tmp_path / 'm.json').write_text('[{"role": "user", "content": "x"}]')
    assert ', broken: chat template line 2: expected an' in call('info', path).stdout
    fails(call('run', '-m', path, '-p', 'x'), 1, 'run', where)
    fails(call('template', '-m', path, tmp_path / 'm.json'), 1, 'template', where)
    with serve(path) as server:
        server.wait_ready()
        wait_until(lambda: len(server.lines) == 3, 'three lines')
        assert server.lines[1].startswith('1bit serve: no chat, only completions: ' + where)
        reply = server.chat('x')
        assert reply.status == 500 and reply.json['error']['message'].startswith(where)
        assert reply.json['error']['param'] is None
        assert server.complete('x', max_tokens=1).status == 200


def test_a_template_that_refuses(tmp_path):
    path = with_template(tmp_path / 'm.gguf', '{{ raise_exception("no way") }}')
    where = f'{path}: chat template line 1: no way'
    fails(call('run', '-m', path, '-p', 'x'), 1, 'run', where)
    with serve(path) as server:
        reply = server.wait_ready().chat('x')
        assert reply.status == 400 and reply.json['error']['param'] is None
        assert reply.json['error']['message'] == where


def test_no_template(tmp_path):
    path = tmp_path / 'm.gguf'
    data = TINY.read_bytes()
    path.write_bytes(data.replace(b'tokenizer.chat_template', b'tokenizer.chat_templatX'))
    with serve(path) as server:
        reply = server.wait_ready().chat('x')
        assert server.lines[1].endswith(f': {path}: the model has no chat template '
                                        '(--chat-template gives it one)')
        assert reply.status == 400 and 'no chat template' in reply.json['error']['message']
    result = call('template', '-m', path, stdin='[]')
    fails(result, 1, 'template', f'{path}: the model has no chat template')


def test_a_template_for_a_model_without(tmp_path):
    path, other = tmp_path / 'm.gguf', tmp_path / 'own.jinja'
    data = TINY.read_bytes()
    path.write_bytes(data.replace(b'tokenizer.chat_template', b'tokenizer.chat_templatX'))
    other.write_text('{% for m in messages %}{{ m.role }}!{% endfor %}')
    ask = '[{"role": "user", "content": "x"}]'
    for name, text in [('chatml', '<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n'),
                       (other, 'user!')]:
        result = call('template', '-m', path, '--chat-template', name, stdin=ask)
        assert (result.returncode, result.stdout) == (0, text)
    with serve(path, '--chat-template', 'chatml') as server:
        assert server.wait_ready().chat('x', max_tokens=1).status == 200
    assert 'zephyr: ' in call('template', '--help').stdout
    for command in ['run', '-p', 'x'], ['serve'], ['template']:
        result = call(*command, '-m', path, '--chat-template', 'chatm', stdin='[]')
        fails(result, 1, command[0], '--chat-template: no chat template is called "chatm"')
        other.write_text('x\n{% if %}')
        result = call(*command, '-m', path, '--chat-template', other, stdin='[]')
        fails(result, 1, command[0], f'{other}: chat template line 2: expected an expression')
        other.write_text('x')
        fails(call(*command, '-m', path, '--chat-template', other, stdin='[]'), 1, command[0],
              f'{other}: not a chat template: it has no tags')


def test_the_last_message_is_continued(tmp_path):
    each = '{% for m in messages %}<{{ m.content }}>{% endfor %}'
    path = with_template(tmp_path / 'm.gguf', each)
    messages = [{'role': 'user', 'content': 'x'}, {'role': 'assistant', 'content': 'yz '}]
    body = {'messages': messages, 'continue_final_message': True}
    assert call('template', '-m', path, stdin=json.dumps(body)).stdout == '<x><yz '
    with serve(path) as server:
        server.wait_ready()
        reply = server.ask('POST', '/v1/chat/completions', body | {'max_tokens': 1})
        assert reply.status == 200
        body['messages'] = messages[:1]
        reply = server.ask('POST', '/v1/chat/completions', body)
        assert (reply.status, reply.json['error']['param']) == (400, 'messages[0].role')
        reply = server.complete('x', continue_final_message=True)
        assert (reply.status, reply.json['error']['param']) == (400, 'continue_final_message')


# ---- devices -------------------------------------------------------------------------------------

def test_devices_tell_what_they_have():
    devices = json.loads(call('devices', '--json').stdout)['devices']
    assert [d['name'] for d in devices] == ['cpu', 'cuda', 'ref']
    for d in devices[::2]:
        assert d['count'] == 1 and 'core' in d['description']
        assert 0 < d['memory_available'] <= d['memory_total']
    assert devices[1]['description'], 'the GPU, or why there is none'
    assert devices[0]['isa'][0] in ('scalar', 'neon') and devices[1]['isa'] == []
    assert devices[0]['isa'][-1] in devices[0]['description']
    text = call('devices').stdout.splitlines()
    assert len(text) == 3 and devices[0]['description'] in text[0]
    plan = json.loads(call('info', '--json', TINY).stdout)['engine']['devices']
    assert [d['name'] for d in plan] == ['cpu', 'ref']


# ---- the chat ------------------------------------------------------------------------------------

@pytest.fixture
def chat(tmp_path):
    with contextlib.ExitStack() as stack:
        def start(*words, **env):
            t = Terminal([*map(str, RUN), *words], tmp_path, **env)
            stack.callback(t.hang_up)  # unless it has ended
            t.wait_for('/help lists commands')
            t.wait_for('> ')
            return t
        yield start


@pytest.mark.parametrize('locale', ['C', 'POSIX', 'C.UTF-8', 'no_SUCH'])
def test_the_chat_takes_every_character(chat, locale):
    t = chat(LC_ALL=locale)
    t.type('é→🙂\r')
    report = t.wait_for(' tokens').splitlines()[-1]
    assert report.endswith(answer('-p', 'é→🙂')[1].split(' tokens')[0] + ' tokens')


def test_malformed_input_is_shown(chat):
    t = chat()
    os.write(t.fd, b'a\xffb\xc3(\r')
    t.wait_for('a\ufffdb\ufffd(')


def test_set_shows_and_checks(chat):
    t = chat()
    t.type('/set\r')
    shown = t.wait_for('seed ')
    assert 'temp               0\r\n' in shown and 'top-k              40\r\n' in shown
    t.type('/set top-p 0.5\r')
    t.wait_for('> ')
    t.type('/set top-p\r')
    t.wait_for('top-p              0.5')
    t.type('/set samplers beam\r')
    t.wait_for(' samplers: sampler "beam" is unknown')
    t.type('/set samplers\r')
    t.wait_for('penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature')


def test_an_interrupt_of_nothing_starts_a_line(chat):
    t = chat()
    for _ in range(3):
        t.type('\x03')
        # the terminal may have shown one before the editor told it not to
        assert t.wait_for('> ').replace('^C^C', '^C') == '^C\r\n> '


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize('words, wait', [([], '> '), (['-n', '0', '--temp', '1'], 'tell')])
def test_a_signal_ends_the_chat_in_order(chat, tmp_path, number, words, wait):
    t = chat(*words)
    t.type('/set top-p 1\r')
    t.wait_for('> ')
    if wait == 'tell':
        t.type('tell\r')
        t.wait_for('tell\r\n')
    os.kill(t.pid, number)
    assert t.end() == 128 + number
    assert '/set\\040top-p' in (tmp_path / '1bit/history').read_text()


def test_a_raw_chat_has_no_system_message(chat):
    t = chat('--raw')
    t.type('/set system x\r')
    t.wait_for(' system: there is no chat template')
