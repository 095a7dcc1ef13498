# SPDX-License-Identifier: Apache-2.0
"""llama-server's own routes, over the fake engine and a real model."""
import http.client
import json
import re

import pytest

from harness import wait_until


def events_of(reply):
    """The objects of a stream without [DONE]; comments are skipped."""
    blocks = [b for b in reply.body.decode().split('\n\n') if b and not b.startswith(':')]
    assert all(b.startswith('data: ') for b in blocks)
    return [json.loads(b[6:]) for b in blocks]


@pytest.mark.parametrize('path', ['/completion', '/completions'])
def test_completion(fake, path):
    whole = fake.ask('POST', path, {'prompt': 'hello', 'n_predict': 3, 'n_probs': 1}).json
    assert (whole['content'], whole['stop'], whole['stop_type']) == ('hel', True, 'limit')
    assert (whole['tokens_predicted'], whole['tokens_evaluated']) == (3, 5)
    assert whole['timings']['predicted_n'] == 3 and whole['model'] == 'fake'
    assert [p['token'] for p in whole['completion_probabilities']] == ['h', 'e', 'l']
    events = events_of(fake.ask('POST', path, {'prompt': 'hello', 'n_predict': 3, 'stream': True}))
    assert ''.join(e['content'] for e in events) == 'hel'
    assert [e['stop'] for e in events] == [False] * 3 + [True]
    assert events[-1]['timings'] == whole['timings'] and events[1]['tokens_predicted'] >= 2
    word = fake.ask('POST', path, {'prompt': 'hello', 'stop': ['zz', 'lo']}).json
    assert (word['content'], word['stop_type'], word['stopping_word']) == ('hel', 'word', 'lo')
    many = fake.ask('POST', path, {'prompt': ['a', [98, 'c']]}).json
    assert [(m['index'], m['content']) for m in many] == [(0, 'a'), (1, 'bc')]


@pytest.mark.parametrize('field, value', [
    ('return_tokens', True), ('n_predict', 'x'), ('prompt', 1), ('lora', [{}]), ('stop', [1]),
    ('image_data', [{}]), ('t_max_predict_ms', 5)])
def test_completion_refuses_by_name(fake, field, value):
    for stream in False, True:
        reply = fake.ask('POST', '/completion', {'prompt': 'x', 'stream': stream, field: value})
        assert (reply.status, reply.json['error']['param']) == (400, field)


def test_infill(fake, start_fake):
    body = {'input_prefix': 'a', 'input_suffix': 'b', 'prompt': 'c',
            'input_extra': [{'filename': 'f', 'text': 't'}]}
    reply = fake.ask('POST', '/infill', body)
    assert reply.status == 400 and 'no tokens' in reply.json['error']['message']
    server = start_fake('fim').wait_ready()
    assert server.ask('POST', '/infill', body).json['content'] == 'f\nt\n\x01a\x02b\x03c'
    for field, value in [('input_prefix', None), ('input_suffix', 1), ('prompt', []),
                         ('input_extra', {}), ('input_extra', [{}])]:
        reply = server.ask('POST', '/infill', {**body, field: value})
        assert (reply.status, reply.json['error']['param']) == (400, field)


def test_tokens_and_text(fake):
    assert fake.ask('POST', '/tokenize', {'content': 'aß'}).json == {'tokens': [97, 195, 159]}
    pieces = fake.ask('POST', '/tokenize', {'content': 'aß', 'with_pieces': True}).json['tokens']
    assert pieces == [{'id': 97, 'piece': 'a'}, {'id': 195, 'piece': [195]},
                      {'id': 159, 'piece': [159]}]
    assert fake.ask('POST', '/detokenize', {'tokens': [97, 195, 159]}).json == {'content': 'aß'}
    for path, field, value in [('/tokenize', 'content', None), ('/tokenize', 'content', 1),
                               ('/tokenize', 'with_pieces', 1), ('/detokenize', 'tokens', 'x'),
                               ('/detokenize', 'tokens', [256]), ('/detokenize', 'tokens', [-1])]:
        reply = fake.ask('POST', path, {'content': 'x', field: value})
        assert (reply.status, reply.json['error']['param']) == (400, field)


def test_apply_template(fake):
    messages = [{'role': 'user', 'content': 'hello'}]
    reply = fake.ask('POST', '/apply-template', {'messages': messages})
    assert reply.json == {'prompt': 'hello'}
    assert fake.ask('POST', '/apply-template', {'messages': []}).status == 400


def test_props_and_slots(fake):
    props = fake.ask('GET', '/props').json
    assert props['default_generation_settings']['n_ctx'] == 4096 and props['total_slots'] == 2
    assert props['model_alias'] == 'fake'
    slots = fake.ask('GET', '/slots').json
    assert [s['id'] for s in slots] == [0, 1] and not any(s['is_processing'] for s in slots)
    with fake.connect() as s:
        body = b'{"prompt": "endless", "stream": true}'
        s.sendall(b'POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s'
                  % (len(body), body))
        wait_until(lambda: fake.ask('GET', '/slots').json[0]['is_processing'], 'a busy slot')
        assert not fake.ask('GET', '/slots').json[1]['is_processing']
    wait_until(lambda: not fake.ask('GET', '/slots').json[0]['is_processing'], 'a free slot')


def metrics(server):
    reply = server.ask('GET', '/metrics')
    assert reply.headers['Content-Type'].startswith('text/plain; version=0.0.4')
    return {m[1]: float(m[2]) for m in re.finditer(r'^([a-z]+:\w+) (\S+)$', reply.body.decode(),
                                                   re.M)}


def test_metrics(start_fake):
    server = start_fake().wait_ready()
    assert not any(metrics(server).values())
    server.complete('hello', max_tokens=3)
    server.complete('fail')
    after = metrics(server)
    assert after['llamacpp:prompt_tokens_total'] == 9
    assert after['llamacpp:tokens_predicted_total'] == 6
    assert after['llamacpp:tokens_predicted_seconds_total'] == 0.006
    assert (after['onebit:requests_total'], after['onebit:requests_failed_total']) == (2, 1)
    assert after['llamacpp:requests_processing'] == 0


def test_silent_streams_say_that_they_live(start_fake):
    server = start_fake('ping').wait_ready()
    for path, body in [('/completion', {'prompt': 'nap'}), ('/v1/completions', {'prompt': 'nap'}),
                       ('/v1/chat/completions', {'messages': [{'role': 'user',
                                                               'content': 'nap'}]})]:
        text = server.ask('POST', path, {**body, 'stream': True}).body.decode()
        assert text.count(': ping\n\n') >= 3, path
    # The head is there long before the first token.
    connection = http.client.HTTPConnection('127.0.0.1', server.port)
    connection.request('POST', '/completion', '{"prompt": "nap", "stream": true}')
    reply = connection.getresponse()
    assert reply.status == 200 and reply.fp.readline() and reply.fp.readline() == b': ping\n'
    connection.close()


def test_while_it_loads(start_fake):
    server = start_fake('slow')
    for method, path in [('GET', '/props'), ('GET', '/slots'), ('GET', '/metrics'),
                         ('POST', '/completion'), ('POST', '/tokenize')]:
        assert server.ask(method, path).status == 503


def test_real(real):
    text = 'Hello, wörld!'
    tokens = real.ask('POST', '/tokenize', {'content': text}).json['tokens']
    assert real.ask('POST', '/detokenize', {'tokens': tokens}).json == {'content': text}
    messages = {'messages': [{'role': 'user', 'content': 'Hi'}]}
    prompt = real.ask('POST', '/apply-template', messages).json['prompt']
    assert prompt.endswith('<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n')
    body = {'prompt': '1, 2, 3, 4,', 'n_predict': 8, 'temperature': 0}
    whole = real.ask('POST', '/completion', body).json
    assert whole['content'].startswith(' 5, 6') and whole['timings']['predicted_n'] == 8
    filled = real.ask('POST', '/infill', {
        'input_prefix': 'def add(a, b):\n    return ', 'input_suffix': '\n\nadd(1, 2)\n',
        'n_predict': 4, 'temperature': 0}).json['content']
    assert filled.startswith('a + b')
