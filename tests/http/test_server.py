# SPDX-License-Identifier: Apache-2.0
"""The server over a fake engine: its life, HTTP, fields, clients that leave or do not read."""
import contextlib
import http.client
import json
import signal
import socket
import threading
import time

import pytest

from harness import PATIENCE, wait_until

CHAT = '/v1/chat/completions'


def head(n):
    return (b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n' % n)


def text_of(reply):
    return ''.join(c['choices'][0]['text'] for c in reply.events if c['choices'])


# ---- life ----------------------------------------------------------------------------------------

def test_serves_before_the_model_is_there(start_fake):
    server = start_fake('models/slow.gguf')
    for path in '/health', '/v1/health':
        reply = server.ask('GET', path)
        assert (reply.status, reply.json) == (503, {'status': 'loading'})
    reply = server.complete('x')
    assert reply.status == 503 and reply.headers['Retry-After']
    assert reply.json['error']['type'] == 'unavailable_error'
    model = server.ask('GET', '/v1/models').json['data'][0]
    assert model['id'] == 'slow' and 'device' not in model
    server.wait_ready()
    assert server.ask('GET', '/health').json == {'status': 'ok'}
    assert server.ask('GET', '/v1/models').json['data'][0]['device'] == 'none'
    assert server.complete('x').status == 200
    assert server.stop() == 0
    said = [line for line in server.lines if line.startswith('fake_server: ')]
    assert [line.split(' on ')[0] for line in said] == [
        'fake_server: listening', 'fake_server: ready', 'fake_server: stopping']


def test_a_model_that_does_not_load_ends_the_server(start_fake):
    server = start_fake('bad')
    assert server.process.wait(PATIENCE) == 1
    server.listener.join()
    assert server.lines[1:] == ['fake_server: bad: key: the fake is bad (offset 7)']


@pytest.mark.parametrize('how', [signal.SIGINT, signal.SIGTERM])
def test_stops_while_loading(start_fake, how):
    assert start_fake('slow').stop(how) == 0


def test_port_in_use(start_fake):
    port = start_fake().port
    second = start_fake(port=port)
    assert second.process.wait(PATIENCE) == 1
    second.listener.join()
    assert second.lines == [f'fake_server: port {port} on 127.0.0.1 is in use by another program']


def test_no_such_host(start_fake):
    server = start_fake(host='no.such.host.invalid')
    assert server.process.wait(PATIENCE) == 1
    server.listener.join()
    assert len(server.lines) == 1 and 'no.such.host.invalid' in server.lines[0]


def test_stopping_ends_what_runs(start_fake):
    server = start_fake().wait_ready()
    replies = {}

    def ask(stream):
        replies[stream] = server.complete('endless', stream=stream)
    threads = [threading.Thread(target=ask, args=[stream]) for stream in (False, True)]
    calm = server.threads
    for t in threads:
        t.start()
    wait_until(lambda: server.threads == calm + 2, 'two generations')
    assert server.stop() == 0
    for t in threads:
        t.join()
    assert replies[False].status == 503
    last = replies[True].body.decode().split('\n\n')[-2]
    assert json.loads(last.removeprefix('data: '))['error']['type'] == 'unavailable_error'


# ---- answers -------------------------------------------------------------------------------------

TEXTS = ['plain', 'ß → 🙂\n\t"\\', 'broken', 'think', '   ', '<th', '</think>x']


@pytest.mark.parametrize('text', TEXTS)
@pytest.mark.parametrize('form', ['auto', 'none'])
def test_streamed_equals_unstreamed(fake, text, form):
    whole = fake.chat(text, reasoning_format=form).json['choices'][0]
    events = fake.chat(text, reasoning_format=form, stream=True).events
    assert events[0]['choices'][0]['delta'] == {'role': 'assistant', 'content': ''}
    joined = {'content': '', 'reasoning_content': ''}
    for event in events[1:]:
        for field, piece in event['choices'][0]['delta'].items():
            joined[field] += piece
    assert joined['content'] == whole['message']['content']
    assert joined['reasoning_content'] == whole['message'].get('reasoning_content', '')
    assert events[-1]['choices'][0]['finish_reason'] == whole['finish_reason'] == 'stop'
    whole = fake.complete(text).json['choices'][0]
    assert text_of(fake.complete(text, stream=True)) == whole['text']


def test_thought_is_told_from_the_answer(fake):
    message = fake.chat('think').json['choices'][0]['message']
    assert (message['reasoning_content'], message['content']) == ('hm', 'answer')
    message = fake.chat('think', reasoning_format='none').json['choices'][0]['message']
    assert message == {'role': 'assistant', 'content': '<think>\nhm\n</think>\n\nanswer'}
    message = fake.chat('go <think>').json['choices'][0]['message']  # opened by the prompt
    assert message['content'] == '' and message['reasoning_content'] == 'go <think>'


# The fake says what it is asked: here, what a model with Hermes' tool format would.
WEATHER = [{'type': 'function', 'function': {'name': 'weather', 'parameters': {
    'type': 'object', 'properties': {'city': {'type': 'string'}}}}}]
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'


def joined_calls(events):
    """The calls, the content and the finish of a stream, put together as clients do."""
    calls, content = [], ''
    for choice in (e['choices'][0] for e in events):
        content += choice['delta'].get('content') or ''
        for part in choice['delta'].get('tool_calls', []):
            if 'id' in part:
                assert part['index'] == len(calls) and part['type'] == 'function'
                calls.append({'name': part['function']['name'], 'arguments': ''})
            calls[part['index']]['arguments'] += part['function']['arguments']
    return calls, content, choice['finish_reason']


@pytest.mark.parametrize('text, names, content', [
    (CALL, ['weather'], None), ('Hm.\n' + CALL + '\n' + CALL, ['weather'] * 2, 'Hm.'),
    (CALL.replace('weather', 'unknown'), ['unknown'], None),
    ('<think>so</think>' + CALL, ['weather'], None), ('no call', [], 'no call'),
    ('<tool_call>{"name": 1}</tool_call>', [], '<tool_call>{"name": 1}</tool_call>')])
def test_tool_calls(fake, text, names, content):
    choice = fake.chat(text, tools=WEATHER).json['choices'][0]
    calls = choice['message'].get('tool_calls', [])
    assert [c['function']['name'] for c in calls] == names
    assert all(json.loads(c['function']['arguments']) == {'city': 'Paris'} for c in calls)
    assert len({c['id'] for c in calls}) == len(calls) and all(c['id'] for c in calls)
    assert choice['message']['content'] == content
    assert choice['finish_reason'] == ('tool_calls' if names else 'stop')
    streamed, said, finish = joined_calls(fake.chat(text, tools=WEATHER, stream=True).events)
    assert streamed == [c['function'] for c in calls]
    assert (said, finish) == (content or '', choice['finish_reason'])


def test_arguments_come_in_pieces(fake):
    events = fake.chat(CALL, tools=WEATHER, stream=True).events
    parts = [p for e in events for p in e['choices'][0]['delta'].get('tool_calls', [])]
    assert len(parts) > 5 and 'id' in parts[0] and not any('id' in p for p in parts[1:])


def test_calls_that_nobody_wants_are_content(fake):
    for fields in {}, {'tools': []}, {'tools': WEATHER, 'tool_choice': 'none'}:
        choice = fake.chat(CALL, **fields).json['choices'][0]
        assert choice['message']['content'] == CALL and choice['finish_reason'] == 'stop'
        assert 'tool_calls' not in choice['message']
    one = fake.chat(CALL + CALL, tools=WEATHER, parallel_tool_calls=False).json['choices'][0]
    assert len(one['message']['tool_calls']) == 1 and one['message']['content'] is None
    cut = fake.chat(CALL, tools=WEATHER, max_tokens=40).json['choices'][0]
    assert (cut['message']['content'], cut['finish_reason']) == (CALL[:40], 'length')


def test_legacy_keeps_the_thought_in_the_content(fake):
    for stream in False, True:
        reply = fake.chat('think', reasoning_format='deepseek-legacy', stream=stream)
        pieces = ([e['choices'][0]['delta'] for e in reply.events] if stream
                  else [reply.json['choices'][0]['message']])
        assert ''.join(p.get('content') or '' for p in pieces) == '<think>hm</think>answer'
        assert ''.join(p.get('reasoning_content', '') for p in pieces) == 'hm'


def test_malformed_text_becomes_replacement_characters(fake):
    text = fake.complete('broken').json['choices'][0]['text']
    assert text == 'a\ufffd\ufffd(b\ufffd\ufffd'


def test_shape(fake):
    whole = fake.chat('hello').json
    assert whole['object'] == 'chat.completion' and whole['model'] == 'fake'
    assert whole['usage'] == {'prompt_tokens': 5, 'completion_tokens': 5, 'total_tokens': 10,
                              'prompt_tokens_details': {'cached_tokens': 0}}
    assert whole['timings'] == {
        'cache_n': 0, 'prompt_n': 5, 'prompt_ms': 1.0, 'prompt_per_token_ms': 0.2,
        'prompt_per_second': 5000.0, 'predicted_n': 5, 'predicted_ms': 5.0,
        'predicted_per_token_ms': 1.0, 'predicted_per_second': 1000.0}
    events = fake.chat('hello', stream=True, stream_options={'include_usage': True}).events
    assert len({e['id'] for e in events}) == 1 and len(events) == 1 + 5 + 2
    assert {e['object'] for e in events} == {'chat.completion.chunk'}
    assert events[-1]['choices'] == [] and events[-1]['usage'] == whole['usage']
    assert events[-2]['timings'] == whole['timings'] and 'usage' not in events[-2]
    assert fake.complete('hello', max_tokens=2).json['choices'] == [
        {'index': 0, 'text': 'he', 'logprobs': None, 'finish_reason': 'length'}]


def test_an_engine_that_fails(fake):
    reply = fake.complete('fail')
    assert reply.status == 500 and reply.json['error']['message'] == 'the fake failed'
    streamed = fake.complete('fail', stream=True).body.decode().split('\n\n')
    assert len(streamed) == 5 and json.loads(streamed[3][6:]) == reply.json


def test_failures_are_logged(start_fake):
    """Without -v nothing else is; a loading server is no failure where that is the question."""
    server = start_fake('slow')
    assert server.ask('GET', '/health').status == 503
    assert server.complete('x').status == 503
    server.wait_ready()
    server.complete('x')
    server.chat('x', n=0)
    server.complete('fail')
    server.complete('fail', stream=True)
    wait_until(lambda: len(server.lines) >= 5, 'five lines')
    assert server.stop() == 0
    logged = [line for line in server.lines if line.startswith('1bit: ')]
    start = '1bit: warning: POST /v1/completions 50'
    end = 'prompt 4 tokens (0 cached), answer 3 tokens'
    assert len(logged) == 3 and all(line.startswith(start) for line in logged)
    assert ' 503 ' in logged[0] and logged[0].endswith(' ms')
    assert all(' 500 ' in line and line.endswith(end) for line in logged[1:])


def test_prompt_of_tokens(fake):
    assert fake.complete(list(b'abc')).json['choices'][0]['text'] == 'abc'
    assert fake.complete(['abc']).json['choices'][0]['text'] == 'abc'


def test_several_answers(fake):
    whole = fake.chat('think', n=3).json
    assert [c['index'] for c in whole['choices']] == [0, 1, 2]
    assert all(c['message']['content'] == 'answer' for c in whole['choices'])
    assert whole['usage']['prompt_tokens'] == 5  # once
    assert whole['usage']['completion_tokens'] == 3 * len('<think>\nhm\n</think>\n\nanswer')
    events = fake.chat('think', n=3, stream=True).events
    said, ends = {}, []
    for choice in (e['choices'][0] for e in events):
        said.setdefault(choice['index'], '')
        said[choice['index']] += choice['delta'].get('content') or ''
        ends += [choice['index']] if choice['finish_reason'] else []
    assert said == {i: 'answer' for i in range(3)} and sorted(ends) == [0, 1, 2]
    assert events[-1]['usage'] == whole['usage'] and events[-1]['timings'] == whole['timings']
    # One that fails takes the others with it.
    assert fake.complete(['endless', 'fail']).status == 500


def test_batches_of_prompts(fake):
    batch = fake.complete(['ab', 'cde'], n=2, logprobs=1).json
    assert [c['text'] for c in batch['choices']] == ['ab', 'ab', 'cde', 'cde']
    assert [c['index'] for c in batch['choices']] == [0, 1, 2, 3]
    assert [c['logprobs']['tokens'] for c in batch['choices']][2] == ['c', 'd', 'e']
    assert batch['usage']['prompt_tokens'] == 5 and batch['usage']['completion_tokens'] == 10
    for prompt in [list(b'ab'), list(b'cde')], ['ab', list(b'cde')]:
        assert [c['text'] for c in fake.complete(prompt).json['choices']] == ['ab', 'cde']
    assert fake.complete([97, 'bc', 100]).json['choices'][0]['text'] == 'abcd'  # one prompt
    said = {}
    for event in fake.complete(['ab', 'cde'], stream=True, logprobs=0).events:
        choice = event['choices'][0]
        said.setdefault(choice['index'], []).extend((choice['logprobs'] or {}).get('tokens', []))
    assert said == {0: ['a', 'b'], 1: ['c', 'd', 'e']}
    assert fake.complete(['x'] * 65, n=2).json['error']['param'] == 'n'


def test_echo(fake):
    for prompt in 'ab', list(b'ab'):
        for stream in False, True:
            reply = fake.complete(prompt, echo=True, stream=stream)
            assert (text_of(reply) if stream else reply.json['choices'][0]['text']) == 'abab'
    error = fake.complete('ab', echo=True, logprobs=1).json['error']
    assert error['param'] == 'echo'


def test_a_gap_is_filled_by_the_models_own_tokens(fake, start_fake):
    assert fake.complete('a', suffix='b').json['error']['param'] == 'suffix'
    server = start_fake('fim').wait_ready()
    assert server.complete('a', suffix='b').json['choices'][0]['text'] == '\x01a\x02b\x03'
    assert server.complete([97], suffix='b').json['error']['param'] == 'prompt'


def test_prompt_longer_than_the_context(fake):
    error = fake.complete('x' * 5000).json['error']
    assert error['type'] == 'exceed_context_size_error' and error['code'] == 400
    assert (error['n_prompt_tokens'], error['n_ctx']) == (5000, 4096)


def test_many_at_once(fake):
    replies = {}

    def ask(i):
        replies[i] = fake.complete(f'number {i} ' * 20, stream=i % 2 == 0)
    threads = [threading.Thread(target=ask, args=[i]) for i in range(100)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, reply in replies.items():
        text = text_of(reply) if i % 2 == 0 else reply.json['choices'][0]['text']
        assert text == f'number {i} ' * 20


# ---- fields --------------------------------------------------------------------------------------

NOT_NUMBER = ['1', [], {}, True]
NOT_INTEGER = NOT_NUMBER + [1.5]
NOT_FLAG = [1, 'true', [], {}]
NOT_STRING = [1, 1.5, True, [], {}]
NOT_OBJECT = [1, 'x', True, []]
BAD = {
    'temperature': NOT_NUMBER + [-1, 1e30], 'top_p': NOT_NUMBER + [-0.1, 1.1],
    'min_p': NOT_NUMBER + [-0.1, 1.1], 'top_k': NOT_INTEGER + [-2, 2**40],
    'repeat_penalty': NOT_NUMBER + [0, -1], 'frequency_penalty': NOT_NUMBER + [1e9],
    'presence_penalty': NOT_NUMBER + [-1e9], 'repeat_last_n': NOT_INTEGER + [-2],
    'penalty_last_n': NOT_INTEGER + [-2], 'seed': NOT_INTEGER,
    'max_tokens': NOT_INTEGER + [0, -2], 'max_completion_tokens': NOT_INTEGER + [0],
    'n_predict': NOT_INTEGER + [0], 'stream': NOT_FLAG, 'ignore_eos': NOT_FLAG,
    'parse_special': NOT_FLAG, 'stream_options': NOT_OBJECT, 'model': NOT_STRING,
    'stop': [1, {}, True, '', [''], ['a', 1], ['x'] * 17],
    'samplers': [1, {}, [1], [None], ['x'], 'top_k;top_k', ['mirostat']],
    'reasoning_format': NOT_STRING + ['x', ''], 'parallel_tool_calls': NOT_FLAG,
    'thinking_budget_tokens': NOT_INTEGER + [-2, 2**31], 'reasoning': NOT_OBJECT,
    'tool_choice': NOT_STRING + ['required', '', {'type': 'function'}],
    'n': NOT_INTEGER + [0, 129, ''], 'best_of': NOT_INTEGER + [2],
    'echo': NOT_FLAG + [''], 'suffix': NOT_STRING,
    'logprobs': ['true', [], {}, 1.5, -1, 101, ''], 'top_logprobs': NOT_INTEGER + [1, False, -1],
    'n_probs': NOT_INTEGER + [-1, 101], 'post_sampling_probs': NOT_FLAG,
    'logit_bias': [1, 'x', True, {'1': '2'}, {'1': True}, {'1': 1e7}, {'': 1}, {'2147483648': 1},
                   [1], [[1]], [[1, 2, 3]], [[1.5, 1]], [[-1, 1]], [[2**31, 1]], [[None, 1]]],
    'grammar': NOT_STRING + ['root'], 'json_schema': [1, 'x', []],
    'guided_regex': NOT_STRING + ['('], 'json_compact': NOT_FLAG,
    'structured_outputs': NOT_OBJECT + [{'x': 1}],
    'response_format': NOT_OBJECT + [{}, {'type': 'x'}, {'type': 1}],
    'functions': [1, 'x', True, {}, [{}]],
    'min_tokens': NOT_INTEGER + [4], 'mirostat': NOT_INTEGER + [-1, 3],
    'mirostat_tau': NOT_NUMBER + [-1], 'mirostat_eta': NOT_NUMBER + [-1],
    'typical_p': NOT_NUMBER + [-0.1, 1.1], 'top_n_sigma': NOT_NUMBER + [-2],
    'xtc_probability': NOT_NUMBER + [-0.1, 1.1], 'xtc_threshold': NOT_NUMBER + [-0.1, 1.1],
    'dynatemp_range': NOT_NUMBER + [-1], 'dynatemp_exponent': NOT_NUMBER + [-1],
    'dry_multiplier': NOT_NUMBER + [-1], 'dry_base': NOT_NUMBER + [-1],
    'dry_allowed_length': NOT_INTEGER + [-1], 'dry_penalty_last_n': NOT_INTEGER + [-2],
    'dry_sequence_breakers': [1, 'x', {}, [1], [''], ['x' * 41], ['x'] * 65],
    'adaptive_target': NOT_NUMBER + [-2, 2], 'adaptive_decay': NOT_NUMBER + [-1, 1],
    'min_keep': NOT_INTEGER + [-1], 'repetition_penalty': NOT_NUMBER + [0],
}
GOOD = {
    'temperature': [0, 1, 0.5], 'top_p': [0, 1], 'top_k': [-1, 0, 40], 'seed': [-1, 0, 2**62, -5],
    'max_tokens': [-1, 7, 2**40], 'stop': ['x', ['x', 'y'], []],
    'samplers': [['top_k'], 'top_k', []], 'n': [1, 3], 'best_of': [1], 'echo': [False, True],
    'suffix': [''], 'metadata': [{'a': 'b'}], 'user': ['me'], 'store': [True, False],
    'logprobs': [False, True, 0, 5], 'top_logprobs': [0], 'n_probs': [0, 3],
    'logit_bias': [{}, [], {'1': 2, 'a': -1.5, ' b': False}, [[1, 2], ['1', False]]],
    'dry_sequence_breakers': [[], ['x', '\n']], 'dry_multiplier': [0, 0.8], 'min_keep': [0, 5],
    'grammar': ['', 'root ::= "x"'], 'json_schema': [{}, {'type': 'object'}],
    'response_format': [{'type': 'text'}, {'type': 'json_object'}], 'tool_choice': ['auto', 'none'],
    'reasoning_format': ['auto', 'none', 'deepseek', 'deepseek-legacy'],
    'reasoning': [{}, {'max_tokens': 5}, {'max_tokens': None, 'effort': 'low'}],
    'thinking_budget_tokens': [-1, 0, 7], 'reasoning_budget_tokens': [3],
    'parallel_tool_calls': [True, False], 'nobody_knows': [{'x': [1]}],
    'stream_options': [{}, {'include_usage': None}], 'typical_p': [1, 1.0, 0.5],
    'mirostat': [0, 1, 2],
}


@pytest.mark.parametrize('field', BAD)
def test_bad_values_are_refused_by_name(fake, field):
    for value in BAD[field]:
        for reply in fake.complete('x', **{field: value}), fake.chat('x', **{field: value}):
            assert reply.status == 400, (field, value)
            error = reply.json['error']
            assert error['param'] == field and error['message'].startswith(field + ': '), value
            assert (error['type'], error['code']) == ('invalid_request_error', 400)


@pytest.mark.parametrize('field', sorted(GOOD | BAD))
def test_good_values_and_null_are_taken(fake, field):
    for value in GOOD.get(field, []) + [None]:
        reply = fake.complete('answer', **{field: value})
        assert reply.status == 200, (field, value, reply.body)


def test_logprobs_of_a_chat(fake):
    for stream in False, True:
        reply = fake.chat('hi', logprobs=True, top_logprobs=2, stream=stream)
        choices = ([e['choices'][0] for e in reply.events if e['choices']] if stream
                   else [reply.json['choices'][0]])
        content = [t for c in choices if c['logprobs'] for t in c['logprobs']['content']]
        assert [t['token'] for t in content] == ['h', 'i']
        assert content[0] == {
            'id': ord('h'), 'token': 'h', 'bytes': [ord('h')], 'logprob': -1, 'top_logprobs': [
                {'id': ord('h'), 'token': 'h', 'bytes': [ord('h')], 'logprob': -1},
                {'id': ord('i'), 'token': 'i', 'bytes': [ord('i')], 'logprob': -2}]}
    plain = fake.chat('hi').json['choices'][0]
    assert plain['logprobs'] is None
    after = fake.chat('hi', n_probs=1, post_sampling_probs=True).json['choices'][0]['logprobs']
    assert after['content'][0]['prob'] == pytest.approx(0.3679, abs=1e-4)
    assert len(after['content'][0]['top_probs']) == 1


def test_logprobs_of_a_completion(fake):
    for stream in False, True:
        reply = fake.complete('abc', logprobs=2, stream=stream)
        choices = ([e['choices'][0] for e in reply.events if e['choices']] if stream
                   else [reply.json['choices'][0]])
        parts = [c['logprobs'] for c in choices if c['logprobs']]
        assert sum((p['tokens'] for p in parts), []) == ['a', 'b', 'c']
        assert sum((p['token_logprobs'] for p in parts), []) == [-1, -1, -1]
        assert sum((p['text_offset'] for p in parts), []) == [0, 1, 2]
        assert parts[0]['top_logprobs'][0] == {'a': -1, 'b': -2}


def test_nested_field(fake):
    error = fake.complete('x', stream_options={'include_usage': 1}).json['error']
    assert error['param'] == 'stream_options.include_usage'


@pytest.mark.parametrize('prompt', [None, 1, {}, '', [], [-1], [256], ['a', ''], [[1], {}],
                                    [[1], []], [[256]], [1, None], ['x'] * 129])
def test_bad_prompts(fake, prompt):
    reply = fake.complete(prompt)
    assert reply.status == 400 and reply.json['error']['param'] == 'prompt'


NOT_JSON = [b'', b'{', b'nonsense', b'{"prompt": "x"} x', b'{"prompt": "x", "prompt": "y"}',
            b'{"prompt": "\xff"}', b'{"prompt": "\\u0000"}', b'{"prompt": "\\ud800"}',
            b'{"seed": 99999999999999999999}', b'{"temperature": 1e999}', b'[]', b'"x"', b'null',
            b'[' * 100000, b'{"a":' * 3000]


@pytest.mark.parametrize('body', NOT_JSON, ids=lambda b: repr(b[:20]))
def test_what_is_no_json_object(fake, body):
    reply = fake.ask('POST', '/v1/completions', body)
    assert reply.status == 400 and reply.json['error']['param'] is None


# ---- HTTP ----------------------------------------------------------------------------------------

def test_unknown_routes_and_methods(fake):
    reply = fake.ask('GET', '/v1/nothing')
    assert reply.status == 404 and reply.json['error']['type'] == 'not_found_error'
    for method, path, allowed in ('GET', CHAT, 'POST'), ('POST', '/health', 'GET'):
        reply = fake.ask(method, path)
        assert (reply.status, reply.headers['Allow']) == (405, allowed)
        assert reply.json['error']['code'] == 405
    assert fake.ask('HEAD', '/health').status == 200
    assert fake.ask('GET', '/health?verbose=1').status == 200
    assert fake.ask('GET', '/he%61lth?x=%00').status == 200
    assert fake.ask('GET', '/health%00').status == 404


@pytest.mark.parametrize('name, path', [
    ('fake', 'fake'), ('a b', 'a%20b'), ('50%', '50%25'), ('ü?', '%C3%BC%3f'), ('%00', '%2500'),
    ('a+b', 'a+b'),
])
def test_one_model(start_fake, name, path):
    server = start_fake(f'models/{name}.gguf').wait_ready()
    model, = server.ask('GET', '/v1/models').json['data']
    assert model['id'] == name
    assert server.ask('GET', f'/v1/models/{path}').json == model


@pytest.mark.parametrize('path', ['x', 'fake%2F', 'fake/', 'fak', '%C3', '%0a', 'x' * 1000, 'FAKE'])
def test_no_such_model(fake, path):
    reply = fake.ask('GET', f'/v1/models/{path}')
    assert reply.status == reply.json['error']['code'] == 404
    assert reply.json['error']['type'] == 'not_found_error'
    assert reply.json['error']['param'] == 'model'
    assert reply.json['error']['message'].startswith('there is no model "')
    assert fake.ask('POST', f'/v1/models/{path}').status == 405
    assert fake.ask('GET', '/v1/models/').json['error']['param'] is None


def test_connections_are_kept(fake):
    connection = http.client.HTTPConnection('127.0.0.1', fake.port, timeout=PATIENCE)
    connection.connect()
    used = connection.sock
    for stream in (True, False) * 5:
        connection.request('POST', '/v1/completions',
                           json.dumps({'prompt': 'hello', 'stream': stream}))
        assert b'"finish_reason":"stop"' in connection.getresponse().read()
        assert connection.sock is used
    connection.request('POST', CHAT, '{')
    assert connection.getresponse().read() and connection.sock is used


def test_requests_sent_ahead(fake):
    """The second request waits in the socket while the first is answered."""
    body = b'{"prompt": "%s"}'
    with fake.connect() as s:
        for prompt in b'first' * 20, b'second':
            b = body % prompt
            s.sendall(head(len(b)) + b)
        got = b''
        while b'"second"' not in got:
            piece = s.recv(65536)
            assert piece
            got += piece
    assert got.index(b'firstfirst') < got.index(b'"second"')


def test_body_in_chunks(fake):
    body = json.dumps({'prompt': 'hello'}).encode()
    reply = fake.ask('POST', '/v1/completions', iter([body[:5], body[5:]]))
    assert reply.json['choices'][0]['text'] == 'hello'


def test_body_too_long(fake):
    reply = fake.ask('POST', '/v1/completions', b'x' * (32 << 20) + b'x')
    assert reply.status == 413 and reply.json['error']['code'] == 413
    assert fake.complete('hello').status == 200


POST = b'POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n'


@pytest.mark.parametrize('lines, text', [
    (b'Host: localhost\r\n', 'more than one Host'),
    (b'Content-Length: 5\r\nContent-Length: 6\r\n', 'more than one Content-Length'),
    (b'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', 'more than one Content-Length'),
    (b'Transfer-Encoding: gzip\r\n', 'a Transfer-Encoding other than chunked'),
])
def test_heads_that_mean_two_things(fake, lines, text):
    with fake.connect() as s:
        s.sendall(POST + lines + b'\r\n')
        reply = http.client.HTTPResponse(s)
        reply.begin()
        error = json.loads(reply.read())['error']
        assert reply.status == error['code'] == 400 and error['message'].startswith(text)


@pytest.mark.parametrize('request_bytes', [
    b'\x00\xff\xfe\r\n\r\n', b'GET\r\n\r\n', b'GET / HTTP/9.9\r\n\r\n', b'\r\n' * 1000,
    b'GET /health HTTP/1.1\r\nHost: localhost\r\nX: ' + b'y' * 100000 + b'\r\n\r\n',
    b'GET /' + b'a' * 100000 + b' HTTP/1.1\r\nHost: localhost\r\n\r\n',
    head(-5) + b'hello', head(2**64), head(100) + b'{"prompt"',
    b'POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
], ids=lambda b: repr(b[:30]))
def test_malformed_http(fake, request_bytes):
    with fake.connect() as s:
        s.settimeout(0.2)
        try:
            s.sendall(request_bytes)
            reply = s.recv(65536)
        except (ConnectionResetError, BrokenPipeError, TimeoutError):  # the last: waits for more
            reply = b''
    assert reply == b'' or reply.startswith((b'HTTP/1.1 4', b'HTTP/1.1 5')), reply
    assert fake.complete('hello').status == 200


# ---- who may ask ---------------------------------------------------------------------------------

HOSTS = {'localhost': 200, 'LOCALHOST:1': 200, '127.0.0.1': 200, '127.9.8.7:80': 200, '[::1]': 200,
         '[::1]:80': 200, 'example.org': 403, '127.example.org': 403, '127.0.0.1.nip.io': 403,
         'localhost.example.org': 403, '10.0.0.1': 403, '127.0.0.256': 403, '127.0.0': 403, '': 403,
         '[::1].example.org': 403}


@pytest.mark.parametrize('host', HOSTS)
def test_host(fake, host):
    with fake.connect() as s:
        s.sendall(f'GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n'.encode())
        assert s.makefile().readline().split()[1] == str(HOSTS[host])


ORIGINS = {'http://localhost:3000': 200, 'https://127.0.0.1': 200, 'http://[::1]:80': 200,
           'http://example.org': 403, 'null': 403, 'http://localhost.example.org': 403,
           'http://127.0.0.1.nip.io': 403, 'nonsense': 403}


@pytest.mark.parametrize('origin', ORIGINS)
def test_origin(fake, origin):
    headers = {'Origin': origin}
    reply = fake.ask('POST', '/v1/completions', {'prompt': 'x'}, headers)
    assert reply.status == ORIGINS[origin]
    trusted = origin if reply.status == 200 else None
    assert reply.headers['Access-Control-Allow-Origin'] == trusted
    reply = fake.ask('GET', '/health', headers=headers)
    assert (reply.status, reply.headers['Access-Control-Allow-Origin']) == (200, trusted)
    for method in 'GET', 'HEAD':
        assert fake.ask(method, '/v1/models', headers=headers).status == ORIGINS[origin]
    assert fake.ask('GET', '/v1/nothing', headers=headers).status == (404 if trusted else 403)
    reply = fake.ask('OPTIONS', CHAT, headers={
        **headers, 'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'x-a'})
    assert reply.status == (204 if trusted else 403)
    if trusted:
        assert 'POST' in reply.headers['Access-Control-Allow-Methods']
        assert reply.headers['Access-Control-Allow-Headers'] == 'x-a'


def test_every_host_may_be_named_on_an_open_address(start_fake):
    server = start_fake(host='0.0.0.0').wait_ready()
    assert server.ask('GET', '/health', headers={'Host': 'example.org'}).status == 200
    headers = {'Host': 'example.org:80', 'Origin': 'http://example.org:80'}
    assert server.ask('POST', '/v1/completions', {'prompt': 'x'}, headers).status == 200
    headers['Origin'] = 'http://example.com'
    assert server.ask('POST', '/v1/completions', {'prompt': 'x'}, headers).status == 403


def test_keys(start_fake):
    server = start_fake(keys='one,two').wait_ready()
    ask = {'prompt': 'x'}
    for headers in {}, {'Authorization': 'Bearer three'}, {'X-Api-Key': ''}:
        for method, path in ('POST', '/v1/completions'), ('GET', '/v1/models'), ('GET', '/no'):
            reply = server.ask(method, path, ask if method == 'POST' else None, headers)
            assert (reply.status, reply.headers['WWW-Authenticate']) == (401, 'Bearer')
            assert reply.json['error']['type'] == 'authentication_error'
        assert server.ask('GET', '/health', headers=headers).status == 200
    for headers in {'Authorization': 'Bearer one'}, {'X-Api-Key': 'two'}:
        assert server.ask('POST', '/v1/completions', ask, headers).status == 200
    # A page asks before it sends its key.
    reply = server.ask('OPTIONS', CHAT, headers={'Origin': 'http://localhost'})
    assert reply.status == 204


def test_other_origins_that_are_allowed(start_fake):
    server = start_fake(origins='https://a.org').wait_ready()
    for origin, status in {'https://a.org': 200, 'https://b.org': 403}.items():
        reply = server.ask('POST', '/v1/completions', {'prompt': 'x'}, {'Origin': origin})
        assert reply.status == status
        assert reply.headers['Access-Control-Allow-Origin'] == (origin if status == 200 else None)


# ---- clients that leave, or do not read ----------------------------------------------------------

def post(server, body, **options):
    s = server.connect(**options)
    body = json.dumps(body).encode()
    s.sendall(head(len(body)) + body)
    return s


@pytest.mark.parametrize('stream', [False, True])
def test_a_client_that_leaves_is_noticed(start_fake, stream):
    server = start_fake().wait_ready()
    calm = server.threads
    clients = [post(server, {'prompt': 'endless', 'stream': stream}) for _ in range(5)]
    wait_until(lambda: server.threads == calm + 5, 'five generations')
    for s in clients:
        s.close()
    wait_until(lambda: server.threads == calm, 'the end of the generations')
    assert server.complete('hello').status == 200


def test_a_client_that_closes_its_side_is_told(fake):
    with post(fake, {'prompt': 'endless'}) as s:
        s.shutdown(socket.SHUT_WR)
        reply = http.client.HTTPResponse(s)
        reply.begin()
        assert reply.status == 400 and b'the client closed its side' in reply.read()


def test_a_client_that_does_not_read(start_fake):
    server = start_fake().wait_ready()
    calm, resident = server.threads, server.resident
    with post(server, {'prompt': 'flood', 'stream': True}) as s:
        assert s.recv(12) == b'HTTP/1.1 200'
        assert server.complete('open').status == 200
        wait_until(lambda: server.threads == calm, 'the end of the generation')
        assert server.resident < resident + (64 << 20)
        assert server.complete('hello').status == 200
        with pytest.raises(ConnectionResetError):  # what was sent, then a cut: no proper end
            while s.recv(1 << 20):
                pass
            raise ConnectionResetError


@pytest.mark.parametrize('start', [b'', b'GET /he', head(100) + b'{'])
def test_clients_that_never_ask_keep_nobody_out(start_fake, start):
    server = start_fake().wait_ready()
    calm = server.threads
    body = {'prompt': 'endless', 'stream': True}
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(post(server, body)) for _ in range(20)]
        wait_until(lambda: server.threads == calm + 20, 'twenty generations')
        for i in range(900):
            s = stack.enter_context(server.connect())
            s.sendall(start)
            if i % 100 == 99:
                before = time.monotonic()
                assert server.complete('hello').status == 200
                assert time.monotonic() < before + 10  # seconds that such clients may wait
        assert server.threads == calm + 20  # nobody's answer was cut
        for s in streams:
            s.recv(1 << 20)
            assert s.recv(1 << 20)


def test_a_client_that_sends_slowly(fake):
    body = b'{"prompt": "hello"}'
    with fake.connect() as s:
        for byte in head(len(body)) + body:
            s.sendall(bytes([byte]))
        assert b' 200 ' in s.recv(65536)


def test_a_client_that_reads_slowly_gets_everything(fake):
    text = 'word ' * 700
    with post(fake, {'prompt': text, 'stream': True}) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        got = b''
        while not got.endswith(b'0\r\n\r\n'):
            got += s.recv(20000)
            time.sleep(0.001)
    assert got.count(b'"text":"w"') == 700 and b'data: [DONE]' in got
