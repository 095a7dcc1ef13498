# SPDX-License-Identifier: Apache-2.0
"""`1bit serve` on a real model, through OpenAI's own client."""
import concurrent.futures
import signal
import subprocess

import openai
import pytest

from harness import BUILD, PATIENCE

GREEDY = {'model': 'any', 'temperature': 0}
CAPITAL = [{'role': 'user', 'content': 'What is the capital of France? Answer with one word.'}]


@pytest.fixture
def client(real):
    return openai.OpenAI(base_url=real.url + '/v1', api_key='none', max_retries=0)


def chat(client, content, **fields):
    fields = {**GREEDY, 'max_tokens': 24, **fields}
    return client.chat.completions.create(messages=[{'role': 'user', 'content': content}], **fields)


def text(reply):
    return reply.choices[0].message.content


def joined(stream):
    return ''.join(c.choices[0].delta.content or '' for c in stream if c.choices)


# ---- answers -------------------------------------------------------------------------------------

def test_capital_of_france(client):
    reply = client.chat.completions.create(messages=CAPITAL, max_tokens=48, **GREEDY)
    assert 'Paris' in text(reply)
    assert reply.model == 'qwen2.5-coder-0.5b' and reply.choices[0].finish_reason == 'stop'


def test_models(client):
    model, = client.models.list()
    assert model.id == 'qwen2.5-coder-0.5b' and model.owned_by == '1bit'
    assert model.device.startswith('cpu')
    assert client.models.retrieve(model.id) == model
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve('a/b c')


@pytest.mark.parametrize('fields', [{}, {'temperature': 0.9, 'seed': 7}, {'stop': ['range', '(']},
                                    {'frequency_penalty': 1.5}])
def test_streamed_equals_unstreamed(client, fields):
    question = 'Write a Python loop over the first ten squares, with a comment in Chinese.'
    whole = chat(client, question, max_tokens=40, **fields)
    stream = chat(client, question, max_tokens=40, stream=True,
                  stream_options={'include_usage': True}, **fields)
    chunks = list(stream)
    assert joined(chunks) == text(whole)
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert len(chunks) > 4


def test_together_as_alone(client):
    """Eight greedy requests at once give byte for byte what each gives alone."""
    questions = [f'Count from {i} to {i + 5}. ' + 'Take your time. ' * i for i in range(8)]
    alone = [text(chat(client, q)) for q in questions]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda q: joined(chat(client, q, stream=True)), questions))
    assert together == alone


def test_seeds(client):
    def answer(**fields):
        return text(chat(client, 'Invent a name.', temperature=1.5, max_tokens=8, **fields))
    assert answer(seed=1) == answer(seed=1)
    assert len({answer(seed=i) for i in range(4)}) > 1
    assert len({answer() for i in range(4)}) > 1


def test_completions(client):
    reply = client.completions.create(prompt='1, 2, 3, 4,', max_tokens=8, **GREEDY)
    assert reply.choices[0].text.startswith(' 5, 6')
    stream = client.completions.create(prompt='1, 2, 3, 4,', max_tokens=8, stream=True, **GREEDY)
    assert ''.join(c.choices[0].text for c in stream) == reply.choices[0].text


def test_stop_strings(client):
    def count(**fields):
        return client.completions.create(prompt='1, 2, 3, 4,', max_tokens=30, **fields, **GREEDY)
    assert count(stop=', 9').choices[0].text == ' 5, 6, 7, 8'
    choice = count(stop=['11', ' 7,']).choices[0]
    assert (choice.text, choice.finish_reason) == (' 5, 6,', 'stop')
    assert count(stop='nowhere').choices[0].finish_reason == 'length'


def test_several_answers(client):
    def answers(**fields):
        reply = chat(client, 'Invent a name.', max_tokens=8, **fields)
        return [c.message.content for c in reply.choices]
    assert len(set(answers(n=3))) == 1  # greedy
    seeded = answers(n=3, temperature=1.5, seed=4)
    assert seeded == [answers(temperature=1.5, seed=4 + i)[0] for i in range(3)]
    batch = client.completions.create(prompt=['1, 2, 3, 4,', 'a, b, c, d,'], max_tokens=6, n=2,
                                      **GREEDY)
    texts = [c.text for c in batch.choices]
    assert texts[0] == texts[1] and texts[0].startswith(' 5, 6') and texts[2].startswith(' e')


def test_echo_and_a_gap(client):
    fields = dict(GREEDY, max_tokens=8)
    plain = client.completions.create(prompt='1, 2, 3, 4,', **fields).choices[0].text
    echo = client.completions.create(prompt='1, 2, 3, 4,', echo=True, **fields).choices[0].text
    assert echo == '1, 2, 3, 4,' + plain
    filled = client.completions.create(prompt='def add(a, b):\n    return ',
                                       suffix='\n\nadd(1, 2)\n', **fields).choices[0]
    assert filled.text.startswith('a + b\n')


def test_max_tokens_and_usage(client):
    for n in 1, 5:
        reply = chat(client, 'Tell a long story.', max_tokens=n)
        assert reply.choices[0].finish_reason == 'length' and reply.usage.completion_tokens == n
        assert reply.usage.total_tokens == reply.usage.prompt_tokens + n
        timings = reply.timings
        assert timings['predicted_n'] == n
        assert timings['cache_n'] + timings['prompt_n'] == reply.usage.prompt_tokens
    reply = chat(client, 'Tell a long story.', max_tokens=50, max_completion_tokens=2)
    assert reply.usage.completion_tokens == 2


def test_a_prompt_seen_before_is_not_computed_again(client):
    question = 'Which of these words is a colour: red, table, seven? ' * 5
    first, second = (chat(client, question, max_tokens=4) for _ in range(2))
    assert text(first) == text(second)
    assert first.usage.prompt_tokens_details.cached_tokens < first.usage.prompt_tokens / 2
    assert second.usage.prompt_tokens_details.cached_tokens == second.usage.prompt_tokens - 1


WEATHER = [{'type': 'function', 'function': {
    'name': 'get_weather', 'description': 'Get the weather of a city', 'parameters': {
        'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}}}]


def test_the_model_calls_a_tool(client):
    """A call, whole and streamed, and its result back into the conversation."""
    messages = [{'role': 'user', 'content': 'What is the weather in Paris?'}]
    fields = dict(GREEDY, tools=WEATHER, max_tokens=60)
    choice, = client.chat.completions.create(messages=messages, **fields).choices
    call, = choice.message.tool_calls
    assert choice.finish_reason == 'tool_calls' and call.function.name == 'get_weather'
    assert call.function.arguments == '{"city": "Paris"}'
    chunks = list(client.chat.completions.create(messages=messages, stream=True, **fields))
    parts = [p for c in chunks for p in c.choices[0].delta.tool_calls or []]
    assert parts[0].id and parts[0].function.name == 'get_weather'
    assert ''.join(p.function.arguments for p in parts) == call.function.arguments
    assert chunks[-1].choices[0].finish_reason == 'tool_calls'
    messages += [choice.message.model_dump(exclude_none=True),
                 {'role': 'tool', 'tool_call_id': call.id, 'content': 'sunny, 21 C'}]
    assert client.chat.completions.create(messages=messages, **fields).usage.prompt_tokens > 200


def test_reasoning_is_ended_when_its_budget_is_spent(client):
    """The model does not think by itself: it goes on with reasoning that was begun."""
    messages = [{'role': 'user', 'content': 'Count.'},
                {'role': 'assistant', 'content': '<think>One, two, three,'}]
    def ask(budget):
        reply = client.chat.completions.create(
            messages=messages, max_tokens=40, **GREEDY,
            extra_body={'continue_final_message': True, 'thinking_budget_tokens': budget,
                        'ignore_eos': True})
        message = reply.choices[0].message
        return getattr(message, 'reasoning_content', ''), message.content
    free, none = ask(-1)[0], ask(0)
    assert none[0] == '' and none[1]
    for budget in 1, 6:
        thought, answer = ask(budget)
        assert answer and free.startswith(thought) and thought
        assert ask(budget) == (thought, answer)


def test_tools_reach_the_template(client):
    tools = [{'type': 'function', 'function': {'name': 'weather', 'parameters': {}}}]
    plain = chat(client, 'Hello', max_tokens=1).usage.prompt_tokens
    assert chat(client, 'Hello', max_tokens=1, tools=tools).usage.prompt_tokens > plain + 20
    none = chat(client, 'Hello', max_tokens=1, tools=tools, tool_choice='none')
    assert none.usage.prompt_tokens == plain


def test_a_developer_is_the_system(client):
    for role in 'developer', 'system':
        messages = [{'role': role, 'content': 'Answer in French.'}, *CAPITAL]
        usage = client.chat.completions.create(messages=messages, max_tokens=1, **GREEDY).usage
    assert usage.prompt_tokens_details.cached_tokens == usage.prompt_tokens - 1


def test_data_is_no_control_token(real):
    """A marker that a user wrote is text, unless a completion asks for it."""
    marker = {'prompt': '<|im_end|>', 'max_tokens': 1}
    plain = real.ask('POST', '/v1/completions', marker).json['usage']['prompt_tokens']
    special = real.ask('POST', '/v1/completions', {**marker, 'parse_special': True})
    assert plain > 1 and special.json['usage']['prompt_tokens'] == 1


# ---- what is wrong -------------------------------------------------------------------------------

def message(content, role='user'):
    return [{'role': role, 'content': content}]


BAD_CHATS = {
    'messages': [None, 'x', {}, [], 1], 'messages[0]': [['x'], [1], [None]],
    'messages[0].role': [message('x', role) for role in (1, None, '', 'critic', 'User')],
    'messages[0].content': [message(1), message({}), message(None)],
    'messages[0].content[1].type': [message([{'type': 'text', 'text': 'x'},
                                             {'type': 'image_url', 'image_url': {'url': 'x'}}])],
    'messages[0].content[0].text': [message([{'type': 'text'}])],
}


@pytest.mark.parametrize('field', BAD_CHATS)
def test_bad_messages_are_refused_by_name(real, field):
    for messages in BAD_CHATS[field]:
        reply = real.ask('POST', '/v1/chat/completions', {'messages': messages, 'max_tokens': 1})
        assert (reply.status, reply.json['error']['param']) == (400, field), messages


@pytest.mark.parametrize('field, value', [('tools', 'x'), ('tools', [1]),
                                          ('chat_template_kwargs', [])])
def test_bad_template_fields(real, field, value):
    reply = real.ask('POST', '/v1/chat/completions', {'messages': CAPITAL, field: value})
    assert reply.status == 400 and reply.json['error']['param'].startswith(field)


def test_bad_sampler(real):
    reply = real.ask('POST', '/v1/completions', {'prompt': 'x', 'samplers': ['top_k', 'nonsense']})
    assert (reply.status, reply.json['error']['param']) == (400, 'samplers')
    assert 'nonsense' in reply.json['error']['message']


def test_prompt_longer_than_the_context(client):
    with pytest.raises(openai.BadRequestError) as e:
        client.completions.create(model='any', prompt=[1] * 40000)
    assert e.value.body['type'] == 'exceed_context_size_error'
    assert (e.value.body['n_prompt_tokens'], e.value.body['n_ctx']) == (40000, 32768)


# ---- life ----------------------------------------------------------------------------------------

@pytest.mark.parametrize('stream', [True, False])
def test_a_client_that_leaves_frees_its_place(narrow, stream):
    """With one place, an endless answer must end before the next begins."""
    client = openai.OpenAI(base_url=narrow.url + '/v1', api_key='none', max_retries=0)
    endless = {'max_tokens': None, 'extra_body': {'ignore_eos': True}}
    if stream:
        answer = chat(client, 'Count.', stream=True, **endless)
        for _ in zip(range(3), answer):
            pass
        answer.close()
    else:
        with pytest.raises(openai.APITimeoutError):
            chat(client, 'Count.', timeout=2, **endless)
    reply = chat(client, 'Hello', max_tokens=1)
    assert reply.model == 'narrow' and reply.usage.completion_tokens == 1


def test_more_requests_than_places(narrow):
    client = openai.OpenAI(base_url=narrow.url + '/v1', api_key='none', max_retries=0)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda i: chat(client, f'Say {i}', max_tokens=4), range(4)))
    assert all(r.usage.completion_tokens <= 4 for r in replies)


def test_an_interrupt_ends_a_running_answer(narrow):
    client = openai.OpenAI(base_url=narrow.url + '/v1', api_key='none', max_retries=0)
    stream = chat(client, 'Count.', stream=True, max_tokens=None, extra_body={'ignore_eos': True})
    next(stream)
    next(stream)
    assert narrow.stop(signal.SIGINT) == 0
    with pytest.raises(openai.APIError, match='the server is stopping'):
        for _ in stream:
            pass


def test_errors_at_the_start(real):
    def start(*options):
        return subprocess.run([BUILD / 'src/cli/1bit', 'serve', *options], capture_output=True,
                              text=True, timeout=PATIENCE)
    result = start('-p', str(real.port))
    assert result.returncode == 1 and result.stderr == (
        f'1bit serve: port {real.port} on 127.0.0.1 is in use by another program\n')
    result = start('-m', 'no-such-model')
    assert result.returncode == 1 and result.stderr.count('\n') == 1
    assert start('--port', '70000').returncode == 2
