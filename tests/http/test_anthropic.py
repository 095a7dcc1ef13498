# SPDX-License-Identifier: Apache-2.0
"""Anthropic's messages, through its own client, over the fake engine and a real model."""
import anthropic
import pytest

TOOLS = [{'name': 'weather', 'description': 'of a city', 'input_schema': {
    'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}}]
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Paris"}}\n</tool_call>'
PATH = '/v1/messages'


def client_of(server):
    return anthropic.Anthropic(base_url=server.url, api_key='none', max_retries=0)


def ask(server, text, **fields):
    fields = {'max_tokens': 300, 'model': 'any', **fields}
    return client_of(server).messages.create(messages=[{'role': 'user', 'content': text}], **fields)


def kinds(server, text, **fields):
    """The streamed events' types, and the message that the client puts together."""
    fields = {'max_tokens': 300, 'model': 'any', **fields}
    types = []
    with client_of(server).messages.stream(
            messages=[{'role': 'user', 'content': text}], **fields) as stream:
        for event in stream:
            types.append(event.type)
        return types, stream.get_final_message()


def test_a_message(fake):
    reply = ask(fake, 'hello')
    assert (reply.type, reply.role, reply.model) == ('message', 'assistant', 'fake')
    assert [b.type for b in reply.content] == ['text'] and reply.content[0].text == 'hello'
    assert (reply.stop_reason, reply.stop_sequence) == ('end_turn', None)
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (5, 5)
    assert reply.usage.cache_read_input_tokens == 0 and reply.timings['predicted_n'] == 5
    assert reply.id.startswith('msg_')
    cut = ask(fake, 'hello', max_tokens=2)
    assert (cut.content[0].text, cut.stop_reason) == ('he', 'max_tokens')
    stopped = ask(fake, 'hello', stop_sequences=['zz', 'lo'])
    assert (stopped.content[0].text, stopped.stop_reason, stopped.stop_sequence) == (
        'hel', 'stop_sequence', 'lo')


@pytest.mark.parametrize('text, blocks, reason', [
    ('hello', ['text'], 'end_turn'), ('think', ['thinking', 'text'], 'end_turn'),
    (CALL, ['tool_use'], 'tool_use'), ('Hm. ' + CALL + CALL, ['text'] + ['tool_use'] * 2,
                                       'tool_use')])
def test_streamed_equals_whole(fake, text, blocks, reason):
    whole = ask(fake, text, tools=TOOLS)
    types, streamed = kinds(fake, text, tools=TOOLS)
    assert [b.type for b in whole.content] == blocks and whole.stop_reason == reason
    for a, b in zip(whole.content, streamed.content, strict=True):
        assert a.type == b.type
        for field in 'text', 'thinking', 'name', 'input':
            assert getattr(a, field, None) == getattr(b, field, None)
    assert streamed.stop_reason == reason and streamed.usage.output_tokens == (
        whole.usage.output_tokens)
    raw = fake.ask('POST', PATH, {'messages': [{'role': 'user', 'content': text}], 'tools': TOOLS,
                                  'max_tokens': 300, 'stream': True}).body.decode()
    names = [l.removeprefix('event: ') for l in raw.split('\n') if l.startswith('event: ')]
    assert names[:2] == ['message_start', 'ping']
    assert names[-2:] == ['message_delta', 'message_stop'] and '[DONE]' not in raw
    short = [n for i, n in enumerate(names) if n != names[i - 1]]
    assert short[2:-2] == ['content_block_start', 'content_block_delta',
                           'content_block_stop'] * len(blocks)


def test_tool_calls_and_results(fake):
    call = ask(fake, CALL, tools=TOOLS).content[0]
    assert (call.name, call.input) == ('weather', {'city': 'Paris'}) and call.id
    assert ask(fake, CALL, tools=TOOLS, tool_choice={'type': 'none'}).content[0].text == CALL
    two = ask(fake, CALL + CALL, tools=TOOLS,
              tool_choice={'type': 'auto', 'disable_parallel_tool_use': True})
    assert len(two.content) == 1


def test_silent_streams_ping(start_fake):
    server = start_fake('ping').wait_ready()
    text = server.ask('POST', PATH, {'messages': [{'role': 'user', 'content': 'nap'}],
                                     'max_tokens': 9, 'stream': True}).body.decode()
    assert text.count('event: ping\ndata: {"type":"ping"}\n\n') >= 3


USER = [{'role': 'user', 'content': 'x'}]
BAD = {
    'max_tokens': [None, 0, -1, 'x', 1.5, True], 'messages': [None, [], 'x', {}],
    'messages[0]': [['x']], 'messages[0].role': [[{'role': 'system', 'content': 'x'}]],
    'messages[0].content': [[{'role': 'user'}], [{'role': 'user', 'content': 1}]],
    'messages[0].content[0].type': [[{'role': 'user', 'content': [b]}] for b in (
        {'type': 'image', 'source': {}}, {'type': 1}, {},
        {'type': 'tool_use', 'id': 'a', 'name': 'b', 'input': {}})],
    'messages[0].content[0].text': [[{'role': 'user', 'content': [{'type': 'text'}]}]],
    'messages[0].content[0].tool_use_id': [[{'role': 'user', 'content': [
        {'type': 'tool_result', 'content': 'x'}]}]],
    'messages[0].content[0].input': [[{'role': 'assistant', 'content': [
        {'type': 'tool_use', 'id': 'a', 'name': 'b', 'input': 'x'}]}]],
    'system': [1, {}, [1], [{'type': 'image'}]], 'stop_sequences': ['x', [''], [1]],
    'temperature': ['x', -1], 'top_p': [2], 'stream': [1], 'tools': ['x', {}],
    'tools[0].name': [[{'input_schema': {}}]], 'tools[0].input_schema': [[{'name': 'x'}]],
    'tool_choice': ['auto', {}, {'type': 'x'}, {'type': 'tool'}],
    'thinking': ['x', {'type': 'x'}, {}],
    'thinking.budget_tokens': [{'type': 'enabled', 'budget_tokens': 'x'}],
}


@pytest.mark.parametrize('field', BAD)
def test_bad_values_are_refused_by_name(fake, field):
    key = field.split('[')[0].split('.')[0]
    for value in BAD[field]:
        for stream in False, True:
            body = {'messages': USER, 'max_tokens': 5, 'stream': stream, key: value}
            reply = fake.ask('POST', PATH, body)
            assert reply.status == 400, value
            assert reply.json['type'] == 'error'
            assert reply.json['error']['type'] == 'invalid_request_error'
            assert reply.json['error']['message'].startswith(field + ': '), value


def test_errors_have_their_shape(fake, start_fake):
    for body in b'{', b'[]':
        reply = fake.ask('POST', PATH, body)
        assert reply.status == 400 and reply.json['type'] == 'error'
    with pytest.raises(anthropic.InternalServerError) as e:
        ask(fake, 'fail')
    assert e.value.body['error'] == {'type': 'api_error', 'message': 'the fake failed'}
    with pytest.raises(anthropic.APIStatusError, match='the fake failed'):
        kinds(fake, 'fail')
    error = fake.ask('POST', PATH, {'messages': [{'role': 'user', 'content': 'x' * 5000}],
                                    'max_tokens': 1}).json['error']
    assert (error['n_prompt_tokens'], error['n_ctx']) == (5000, 4096)
    assert fake.ask('GET', PATH).json['type'] == 'error'
    reply = start_fake('slow').ask('POST', PATH, {})
    assert (reply.status, reply.json['error']['type']) == (503, 'overloaded_error')


def test_count_tokens(fake):
    count = client_of(fake).messages.count_tokens
    assert count(model='any', messages=[{'role': 'user', 'content': 'hello'}]).input_tokens == 5
    with pytest.raises(anthropic.BadRequestError, match=r'messages\[0\].role'):
        count(model='any', messages=[{'role': 'x', 'content': 'hello'}])


def test_real(real):
    """A conversation with tools through the model's template, its prefix found in the cache."""
    client = client_of(real)
    fields = dict(model='any', max_tokens=60, extra_body={'temperature': 0}, tools=[
        {'name': 'get_weather', 'description': 'Get the weather of a city', 'input_schema': {
            'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}}])
    messages = [{'role': 'user', 'content': [
        {'type': 'text', 'text': 'What is the weather in Paris?'}]}]
    first = client.messages.create(system='You are a helper.', messages=messages, **fields)
    call = first.content[-1]
    assert (first.stop_reason, call.name, call.input) == (
        'tool_use', 'get_weather', {'city': 'Paris'})
    messages += [{'role': 'assistant', 'content': [b.model_dump() for b in first.content]},
                 {'role': 'user', 'content': [
                     {'type': 'tool_result', 'tool_use_id': call.id, 'content': 'sunny, 21 C'},
                     {'type': 'text', 'text': 'Answer in one word: sunny or rainy?'}]}]
    second = client.messages.create(system='You are a helper.', messages=messages, **fields)
    counted = client.messages.count_tokens(
        model='any', system='You are a helper.', messages=messages, tools=fields['tools'])
    assert second.usage.cache_read_input_tokens > 100
    assert counted.input_tokens == (second.usage.input_tokens +
                                    second.usage.cache_read_input_tokens)
    assert 'unny' in second.content[0].text
    # What the assistant has begun goes on.
    begun = [{'role': 'user', 'content': 'Count to nine.'},
             {'role': 'assistant', 'content': '1, 2,'}]
    reply = client.messages.create(messages=begun, model='any', max_tokens=6,
                                   extra_body={'temperature': 0})
    assert reply.content[0].text.startswith(' 3')
