# SPDX-License-Identifier: Apache-2.0
"""Ollama's API, through its own client, over the fake engine and a real model."""
import json

import ollama
import pytest

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
TOOLS = [{'type': 'function', 'function': {'name': 'weather', 'parameters': {
    'type': 'object', 'properties': {'city': {'type': 'string'}}}}}]


def client_of(server):
    return ollama.Client(host=server.url)


def chat(server, text, **fields):
    return client_of(server).chat('fake', [{'role': 'user', 'content': text}], **fields)


def test_chat(fake):
    reply = chat(fake, 'hello')
    assert (reply.message.role, reply.message.content) == ('assistant', 'hello')
    assert (reply.model, reply.done, reply.done_reason) == ('fake', True, 'stop')
    assert (reply.prompt_eval_count, reply.eval_count) == (5, 5)
    assert reply.eval_duration == 5_000_000 and reply.total_duration > 0
    assert reply.created_at.endswith('Z')
    cut = chat(fake, 'hello', options={'num_predict': 2}, keep_alive='5m')
    assert (cut.message.content, cut.done_reason) == ('he', 'length')
    assert chat(fake, 'hello', options={'stop': ['lo'], 'num_ctx': 8}).message.content == 'hel'


@pytest.mark.parametrize('text, calls', [('hello', 0), ('think', 0), (CALL, 1),
                                         ('Hm. ' + CALL + CALL, 2)])
def test_streamed_equals_whole(fake, text, calls):
    whole = chat(fake, text, tools=TOOLS)
    parts = list(chat(fake, text, tools=TOOLS, stream=True))
    assert ''.join(p.message.content or '' for p in parts) == whole.message.content
    assert ''.join(p.message.thinking or '' for p in parts) == (whole.message.thinking or '')
    streamed = [c for p in parts for c in p.message.tool_calls or []]
    assert streamed == list(whole.message.tool_calls or []) and len(streamed) == calls
    assert all(c.function.arguments == {'city': 'Paris'} for c in streamed)
    assert [p.done for p in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].eval_count == whole.eval_count
    if text == 'think':
        assert (whole.message.thinking, whole.message.content) == ('hm', 'answer')


def test_streams_unless_told_otherwise(fake):
    for path, key in ('/api/chat', 'messages'), ('/api/generate', 'prompt'):
        body = {'model': 'x', key: 'ab' if key == 'prompt' else [{'role': 'user', 'content': 'ab'}]}
        reply = fake.ask('POST', path, body)
        assert reply.headers['Content-Type'] == 'application/x-ndjson'
        assert len([json.loads(l) for l in reply.body.splitlines()]) == 3


def test_generate(fake, start_fake):
    client = client_of(fake)
    reply = client.generate('fake', 'think')
    assert (reply.response, reply.thinking, reply.done_reason) == ('answer', 'hm', 'stop')
    raw = client.generate('fake', 'think', raw=True)
    assert raw.response == '<think>\nhm\n</think>\n\nanswer' and raw.thinking is None
    parts = list(client.generate('fake', 'think', stream=True))
    assert ''.join(p.response for p in parts) == 'answer'
    assert ''.join(p.thinking or '' for p in parts) == 'hm'
    server = start_fake('fim').wait_ready()
    assert client_of(server).generate('fim', 'a', suffix='b').response == '\x01a\x02b\x03'


def test_what_only_loads(fake):
    assert client_of(fake).generate('fake', '').done_reason == 'load'
    assert client_of(fake).generate('fake').done_reason == 'load'
    reply = fake.ask('POST', '/api/chat', {'model': 'fake', 'messages': []})
    assert reply.json['done_reason'] == 'load' and reply.json['message']['content'] == ''


def test_formats_reach_the_engine(fake):
    assert chat(fake, 'x', format='json').done
    assert chat(fake, 'x', format={'type': 'object'}).done
    assert chat(fake, 'x', format='').done
    with pytest.raises(ollama.ResponseError, match='^format#/type: '):
        chat(fake, 'x', format={'type': 'nonsense'})


def test_models(fake):
    client = client_of(fake)
    model, = client.list().models
    assert model.model == 'fake' and model.details.family == 'fake'
    assert client.ps().models[0].model == 'fake'
    shown = client.show('fake:latest')
    assert shown.modelinfo['fake.context_length'] == 4096
    assert set(shown.capabilities) == {'completion', 'embedding', 'tools'}
    with pytest.raises(ollama.ResponseError, match="model 'other' not found") as e:
        client.show('other')
    assert e.value.status_code == 404
    assert fake.ask('GET', '/api/version').json.keys() == {'version'}


def test_embed(fake):
    reply = client_of(fake).embed('fake', ['ab', 'c'])
    assert reply.embeddings == [[2, 97], [1, 99]] and reply.prompt_eval_count == 3
    assert client_of(fake).embed('fake', 'ab').embeddings == [[2, 97]]
    reply = fake.ask('POST', '/api/embed', {'model': 'fake', 'input': 1})
    assert (reply.status, reply.json['error'].split(':')[0]) == (400, 'input')


BAD = {
    'options': ['x', []], 'options.num_predict': ['x', -3, 0], 'options.stop': [1, ['']],
    'options.temperature': ['x', -1], 'options.top_k': [1.5], 'options.seed': ['x'],
    'options.repeat_last_n': [-2], 'format': ['yaml', 1, []], 'think': ['x', 1, []],
    'stream': [1, 'true'], 'model': [1], 'messages': ['x', 1],
    'messages[0]': [['x']], 'messages[0].role': [[{'content': 'x'}]],
    'messages[0].content': [[{'role': 'user', 'content': 1}]],
    'messages[0].images': [[{'role': 'user', 'content': 'x', 'images': ['x']}]],
    'messages[0].tool_calls': [[{'role': 'assistant', 'tool_calls': 'x'}],
                               [{'role': 'assistant', 'tool_calls': [{}]}]],
}


@pytest.mark.parametrize('field', BAD)
def test_bad_values_are_refused_by_name(fake, field):
    for value in BAD[field]:
        body = {'model': 'fake', 'messages': [{'role': 'user', 'content': 'x'}]}
        if field.startswith('options.'):
            body['options'] = {field.split('.')[1]: value}
        else:
            body[field.split('[')[0]] = value
        reply = fake.ask('POST', '/api/chat', body)
        assert reply.status == 400, value
        assert reply.json['error'].startswith(field + ': '), (value, reply.json)
    for key, value in [('images', ['x']), ('template', 'x'), ('raw', 1), ('system', 1)]:
        reply = fake.ask('POST', '/api/generate', {'prompt': 'x', key: value})
        assert (reply.status, reply.json['error'].split(':')[0]) == (400, key)


def test_errors(fake, start_fake):
    reply = fake.ask('POST', '/api/chat', b'{')
    assert reply.status == 400 and isinstance(reply.json['error'], str)
    with pytest.raises(ollama.ResponseError, match='the fake failed'):
        chat(fake, 'fail')
    with pytest.raises(ollama.ResponseError, match='the fake failed'):
        list(chat(fake, 'fail', stream=True))
    reply = start_fake('slow').ask('POST', '/api/chat', {})
    assert (reply.status, reply.json) == (503, {'error': 'the model is loading'})


def test_real(real):
    client, name = client_of(real), 'qwen2.5-coder-0.5b'
    fields = {'options': {'temperature': 0, 'num_predict': 40}}
    question = 'What is the capital of France? Answer with one word.'
    reply = client.chat(name, [{'role': 'user', 'content': question}], **fields)
    assert 'Paris' in reply.message.content
    assert client.generate(name, question, **fields).response == reply.message.content
    parts = client.generate(name, question, stream=True, **fields)
    assert ''.join(p.response for p in parts) == reply.message.content
    schema = {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city'],
              'additionalProperties': False}
    made = client.chat(name, [{'role': 'user', 'content': question}], format=schema, **fields)
    assert json.loads(made.message.content).keys() == {'city'}
    tool = {'type': 'function', 'function': {
        'name': 'get_weather', 'description': 'Get the weather of a city', 'parameters': {
            'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}}}
    messages = [{'role': 'user', 'content': 'What is the weather in Paris?'}]
    called = client.chat(name, messages, tools=[tool], **fields)
    assert called.message.tool_calls[0].function.arguments == {'city': 'Paris'}
    messages += [called.message, {'role': 'tool', 'tool_name': 'get_weather', 'content': 'sunny'}]
    again = client.chat(name, messages, tools=[tool], **fields)
    assert again.prompt_eval_count > called.prompt_eval_count + 20
