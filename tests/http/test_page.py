# SPDX-License-Identifier: Apache-2.0
"""The chat page: its files over HTTP, and what it does in a real browser (Debian's chromium, driven
by playwright) over the fake engine, whose answer is the last message unless that begins with one of
its words. In every test of the browser any error, any breach of the page's own policy and any
request to elsewhere fails."""
import json
import os
import re
import shutil

import pytest

from harness import ROOT, wait_until

UI = ROOT / 'src/server/ui'
FILES = sorted(p.name for p in UI.iterdir() if p.suffix not in ('.h', '.md'))
TYPES = {'.html': 'text/html; charset=utf-8', '.css': 'text/css; charset=utf-8',
         '.js': 'text/javascript; charset=utf-8', '.svg': 'image/svg+xml'}
POLICY = ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'",
          "img-src 'self' data: blob:", "frame-ancestors 'none'", "base-uri 'none'",
          "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"]


# ---- the files -----------------------------------------------------------------------------------

@pytest.mark.parametrize('name', FILES)
def test_a_file_is_served_as_it_is(fake, name):
    reply = fake.ask('GET', f'/ui/{name}')
    assert reply.status == 200 and reply.body == (UI / name).read_bytes()
    assert reply.headers['Content-Type'] == TYPES[name[name.index('.'):]]
    assert reply.headers['Content-Security-Policy'].split('; ') == POLICY
    assert reply.headers['X-Content-Type-Options'] == 'nosniff'
    assert reply.headers['Referrer-Policy'] == 'no-referrer'
    assert reply.headers['Cache-Control'] == 'no-cache'


def test_the_page_is_the_index(fake):
    page, index = fake.ask('GET', '/'), fake.ask('GET', '/ui/index.html')
    assert (page.status, page.body) == (200, index.body)
    assert page.headers['Content-Type'] == 'text/html; charset=utf-8'


def test_a_kept_file_is_not_sent_again(fake):
    tag = fake.ask('GET', '/').headers['ETag']
    assert re.fullmatch(r'"[0-9a-f]{16}"', tag)
    for tags in tag, f'"other", W/{tag}', '*':
        reply = fake.ask('GET', '/', headers={'If-None-Match': tags})
        assert (reply.status, reply.body, reply.headers['ETag']) == (304, b'', tag)
    assert fake.ask('GET', '/', headers={'If-None-Match': '"other"'}).status == 200
    assert fake.ask('GET', '/ui/main.js').headers['ETag'] != tag


def test_head_and_other_methods(fake):
    size = (UI / 'index.html').stat().st_size
    reply = fake.ask('HEAD', '/')
    assert (reply.status, reply.body, reply.headers['Content-Length']) == (200, b'', str(size))
    reply = fake.ask('POST', '/', '{}')
    assert (reply.status, reply.headers['Allow']) == (405, 'GET')


@pytest.mark.parametrize('path', ['/ui/none.js', '/ui/', '/ui/../server.c', '/ui/files.h',
                                  '/ui/%2e%2e/server.c', '/index.html', '/ui'])
def test_no_other_file(fake, path):
    reply = fake.ask('GET', path)
    assert reply.status == 404 and reply.json['error']['type'] == 'not_found_error'


@pytest.mark.parametrize('name', FILES)
def test_nothing_is_asked_of_elsewhere(name):
    """No address but the name of SVG, no code in the markup, none made from text."""
    text = (UI / name).read_text().replace('http://www.w3.org/2000/svg', '')
    assert not re.search(r'["\'(=]\s*(https?:)?//[a-z]', text)
    assert not re.search(r'\b(innerHTML|outerHTML|insertAdjacentHTML|eval|document\.write)\b', text)
    if name.endswith('.html'):
        assert not re.search(r'\son\w+=|\sstyle=|<style|<script(?! [^>]*src="/ui/)', text)


def test_the_page_needs_no_key_and_the_api_does(start_fake):
    server = start_fake(keys='secret').wait_ready()
    for path in '/', '/ui/main.js', '/ui/style.css':
        assert server.ask('GET', path).status == 200
    for path in '/v1/models', '/ui', '/none':
        assert server.ask('GET', path).status == 401
    assert server.chat('x').status == 401
    strange = {'Origin': 'https://example.org'}
    assert server.ask('GET', '/', headers=strange).status == 403
    assert server.ask('GET', '/', headers={'Host': 'example.org'}).status == 403


def test_the_page_is_there_before_the_model(start_fake):
    server = start_fake('slow')
    assert server.ask('GET', '/').status == 200
    server.wait_ready()


# ---- the browser ---------------------------------------------------------------------------------

WATCH = 'addEventListener("securitypolicyviolation", e => console.error("policy", e.blockedURI))'
PHONE = {'viewport': {'width': 360, 'height': 640}, 'has_touch': True, 'is_mobile': True}


@pytest.fixture(scope='module')
def browser():
    chromium = shutil.which('chromium')
    if not chromium:
        pytest.skip('there is no chromium (scripts/deps --test installs it)')
    sync_api = pytest.importorskip('playwright.sync_api')
    with sync_api.sync_playwright() as playwright:
        options = ['--no-sandbox'] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        yield browser
        browser.close()


class Chat:
    """The page, and what a person does with it."""

    def __init__(self, browser, server, **options):
        self.errors, self.expected = [], 0
        self.url = server.url
        self.context = browser.new_context(accept_downloads=True, **options)
        self.context.set_default_timeout(10000)
        self.page = self.context.new_page()
        self.page.add_init_script(WATCH)
        self.page.on('console', self._on_console)
        self.page.on('pageerror', lambda e: self.errors.append(str(e)))
        self.page.on('request', self._on_request)

    def _on_console(self, message):
        if message.type not in ('error', 'warning'):
            return
        if self.expected and message.text.startswith('Failed to load resource'):
            return
        self.errors.append(message.text)

    def _on_request(self, request):
        if not request.url.startswith((self.url + '/', 'blob:')):
            self.errors.append(f'asks {request.url}')

    def open(self):
        self.page.goto(self.url)
        self.page.wait_for_selector('body[data-ready]')
        return self

    def find(self, selector):
        return self.page.locator(selector)

    def count(self, selector):
        return self.find(selector).count()

    def texts(self, selector):
        return self.find(selector).all_inner_texts()

    def wait(self):
        """Until no answer is being written."""
        self.page.wait_for_selector('#stop', state='hidden')

    def type(self, text):
        self.page.fill('#prompt', text)
        self.page.press('#prompt', 'Enter')

    def say(self, text):
        before = self.count('.assistant')
        self.type(text)
        self.until('n => document.querySelectorAll(".assistant").length > n', arg=before)
        self.wait()

    def until(self, condition, arg=None):
        """Not playwright's own way of waiting, which the page's policy forbids."""
        wait_until(lambda: self.page.evaluate(condition, arg), condition)

    @property
    def turns(self):
        """What was said, by turns."""
        return self.texts('.turn .body')

    @property
    def answer(self):
        return self.texts('.assistant > .body > .markdown')[-1]

    def press(self, name, last=True):
        found = self.page.get_by_role('button', name=name, exact=True)
        (found.last if last else found.first).click()

    def request_of(self, act):
        """The fields that the page sends to the API when `act` is done."""
        with self.page.expect_request('**/v1/chat/completions') as found:
            act()
        return found.value.post_data_json

    def set(self, **fields):
        self.page.click('#settings-open')
        for name, value in fields.items():
            field = self.find(f'dialog [name={name}]')
            field.select_option(value) if name == 'thinking' else field.fill(value)
        self.press('Save')
        self.page.wait_for_selector('dialog', state='detached')

    def import_file(self, text):
        self.page.set_input_files('#import-file', {
            'name': 'chats.json', 'mimeType': 'application/json', 'buffer': text.encode()})
        self.page.wait_for_selector('.note')
        note = self.texts('.note')[-1]
        self.press('Close')
        return note

    def export(self, press):
        with self.page.expect_download() as download:
            press()
        with open(download.value.path()) as file:
            return json.load(file)

    def is_too_wide(self):
        return self.page.evaluate(
            'document.documentElement.scrollWidth > innerWidth || '
            '[...document.querySelectorAll("main, header, #composer, #sidebar, dialog")]'
            '.some(e => e.scrollWidth > e.clientWidth + 1)')


@pytest.fixture
def make_chat(browser):
    made = []

    def make(server, **options):
        made.append(Chat(browser, server, **options))
        return made[-1].open()
    yield make
    for chat in made:
        chat.context.close()
        assert chat.errors == []


@pytest.fixture
def chat(make_chat, fake):
    return make_chat(fake)


@pytest.fixture(scope='module')
def shared(browser, fake):
    """A page for what leaves nothing behind."""
    chat = Chat(browser, fake).open()
    yield chat
    chat.context.close()
    assert chat.errors == []


def test_says_and_shows(chat):
    assert chat.texts('#model-name') == ['fake']
    chat.say('a **word**\nand a line')
    assert chat.turns == ['a **word**\nand a line', 'a word\nand a line']
    assert chat.count('.assistant strong') == 1 and chat.count('.user strong') == 0
    figures = chat.texts('.figures')[0]
    assert '21 tokens' in figures and 'tok/s' in figures and 'prompt 21' in figures
    assert chat.texts('#title') == ['a **word**']
    assert 'The answer is complete' in chat.find('#status').inner_text()
    chat.say('more')
    assert len(chat.turns) == 4


def test_streams_and_stops(chat):
    chat.type('endless')
    chat.until('document.querySelector(".assistant .markdown + * , .assistant") && '
               'document.querySelectorAll(".assistant .body > .markdown")[0].innerText.length > 5')
    assert chat.find('.assistant').get_attribute('aria-busy') == 'true'
    before = len(chat.answer)
    chat.until('n => document.querySelector(".assistant .body > .markdown").innerText.length > n',
               before)
    chat.page.keyboard.press('Escape')
    chat.wait()
    text = chat.answer
    assert set(text) == {'x'} and len(text) > before
    assert 'Stopped.' in chat.turns[-1]
    assert chat.find('.assistant').get_attribute('aria-busy') == 'false'
    chat.type('endless')
    chat.page.wait_for_selector('#stop')
    chat.page.click('#stop')
    chat.wait()
    assert len(chat.turns) == 4


def test_goes_on_with_what_was_stopped(chat):
    chat.set(max_tokens='4')
    chat.say('abcdefgh')
    assert chat.answer == 'abcd' and 'The limit of tokens was reached.' in chat.turns[-1]
    fields = chat.request_of(lambda: chat.press('Go on'))
    assert fields['continue_final_message'] is True
    assert fields['messages'][-1] == {'role': 'assistant', 'content': 'abcd'}
    chat.wait()
    assert chat.answer == 'abcdabcd' and len(chat.turns) == 2


def test_answers_again_and_keeps_both(chat):
    chat.say('hello')
    chat.press('Answer again')
    chat.until('document.querySelector(".versions")?.innerText === "2/2"')
    chat.wait()
    assert chat.turns == ['hello', 'hello']
    chat.say('after the second')
    chat.press('Version before')
    assert chat.texts('.versions') == ['1/2'] and len(chat.turns) == 2
    assert chat.page.evaluate('document.activeElement.title') == 'Next version'
    chat.page.keyboard.press('Enter')
    assert chat.texts('.versions') == ['2/2'] and len(chat.turns) == 4


def test_edits_and_branches(chat):
    chat.say('first')
    chat.say('second')
    chat.page.press('#prompt', 'ArrowUp')
    field = chat.find('.editor textarea')
    assert field.input_value() == 'second'
    field.press('Escape')
    assert chat.count('.editor') == 0 and len(chat.turns) == 4
    chat.press('Edit', last=False)
    chat.find('.editor textarea').fill('another')
    chat.find('.editor textarea').press('Enter')
    chat.until('document.querySelectorAll(".turn").length === 2')
    chat.wait()
    assert chat.turns == ['another', 'another']
    chat.press('Version before')
    assert chat.turns == ['first', 'first', 'second', 'second']
    chat.press('Edit answer')
    chat.find('.editor textarea').fill('what it should have said')
    chat.press('Save')
    assert chat.turns == ['first', 'first', 'second', 'what it should have said']
    fields = chat.request_of(lambda: chat.say('third'))
    assert [m['content'] for m in fields['messages']] == [
        'first', 'first', 'second', 'what it should have said', 'third']


def test_a_reload_keeps_conversations(chat):
    chat.say('one')
    chat.page.keyboard.press('Control+k')
    assert chat.turns == [] and chat.texts('#title') == ['New chat']
    chat.say('two')
    chat.page.reload()
    chat.page.wait_for_selector('body[data-ready]')
    assert chat.turns == ['two', 'two']
    assert chat.texts('#conversations .title') == ['two', 'one']
    chat.page.get_by_role('button', name='one', exact=True).click()
    assert chat.turns == ['one', 'one']
    other = chat.context.new_page()
    other.goto(chat.url)
    other.wait_for_selector('body[data-ready]')
    chat.say('seen elsewhere')
    other.get_by_role('button', name='one', exact=True).click()
    assert other.locator('.turn').count() == 4


def test_a_reload_in_the_middle_of_an_answer(chat):
    chat.type('endless')
    chat.until('document.querySelector(".assistant .body > .markdown")?.innerText.length > 5')
    chat.page.reload()
    chat.page.wait_for_selector('body[data-ready]')
    assert chat.turns[0] == 'endless' and 'Stopped.' in chat.turns[1]


def test_what_is_asked_is_kept_before_it_is_answered(chat):
    other = chat.context.new_page()
    other.goto(chat.url)
    other.wait_for_selector('body[data-ready]')
    chat.page.route('**/v1/chat/completions', lambda route: None)  # no answer comes
    chat.type('is anyone there?')
    wait_until(lambda: other.locator('#conversations .title').all_inner_texts() == [
        'is anyone there?'], 'the other tab hears of it')
    assert chat.count('.waiting:not([hidden])') == 1
    chat.page.click('#stop')
    chat.wait()


def test_renames_deletes_and_moves_as_a_file(chat):
    chat.say('first')
    chat.press('More of first')
    chat.find('dialog input').fill('A better name')
    chat.press('Rename')
    chat.page.wait_for_selector('dialog', state='detached')
    assert chat.texts('#conversations .title') == chat.texts('#title') == ['A better name']
    saved = chat.export(lambda: chat.press('Export'))
    assert [c['title'] for c in saved['conversations']] == ['A better name']
    chat.press('More of A better name')
    assert chat.export(lambda: chat.press('Save as a file')) == saved
    chat.press('More of A better name')
    chat.press('Delete…')
    chat.press('Delete')
    chat.until('document.querySelectorAll("#conversations li").length === 0')
    assert chat.turns == []
    assert chat.import_file(json.dumps(saved)).startswith('1 conversation added.')
    chat.press('A better name')
    assert chat.turns == ['first', 'first']
    chat.page.reload()
    assert chat.texts('#conversations .title') == ['A better name']


@pytest.mark.parametrize('change, complaint', [
    (lambda c: '{', 'it is no JSON'),
    (lambda c: '[]', 'its "format" is not'),
    (lambda c: json.dumps({**c, 'version': 2}), 'its "version" is not 1'),
    (lambda c: json.dumps({**c, 'conversations': [{'title': 'x'}]}), 'has no "nodes"'),
    (lambda c: json.dumps(c).replace('"user"', '"root"'), 'has no known "role"'),
    (lambda c: json.dumps(c).replace('"a1"', '"__proto__"'), 'turn "__proto__" is none'),
    (lambda c: json.dumps(c).replace('"children": []', '"children": ["a1"]'), 'not its own'),
])
def test_what_is_no_export_is_refused(shared, change, complaint):
    root = {'id': 'root', 'parent': None, 'children': ['a1'], 'chosen': 'a1'}
    turn = {'id': 'a1', 'parent': 'root', 'children': [], 'chosen': None, 'role': 'user',
            'content': 'x'}
    good = {'format': '1bit-conversations', 'version': 1, 'conversations': [
        {'title': 'x', 'nodes': {'root': root, 'a1': turn}}]}
    note = shared.import_file(change(good))
    assert note.startswith('chats.json cannot be imported: ') and complaint in note
    assert shared.count('#conversations li') == 0


HOSTILE = '''<img src=x onerror="hacked=1"> <script>hacked=1</script> <svg onload=hacked=1>

[a](javascript:hacked=1) [b](JaVaScRiPt:hacked=1) [c](data:text/html,<script>hacked=1</script>)
[d](<javascript:hacked=1>) <javascript:hacked=1> [e](&#106;avascript:hacked=1) [f](vbscript:x)
[g](//example.org) [h](/v1/models) [i](https://example.org/"onclick="hacked=1)
![p](https://example.org/p.png) ![q](javascript:hacked=1) https://example.org/<b>

<iframe src="javascript:hacked=1"></iframe><style>body{display:none}</style>

```html
</code></pre><script>hacked=1</script>
```
| <b>x</b> | y |
|---|---|
| `<i>` | [z](javascript:hacked=1) |
'''


def test_nothing_that_a_model_writes_runs(chat):
    chat.say(HOSTILE)
    assert chat.page.evaluate('typeof hacked') == 'undefined'
    inside = chat.page.evaluate(
        '[...document.querySelectorAll(".assistant .markdown *")].map(e => e.localName)')
    assert set(inside) <= {'p', 'br', 'a', 'figure', 'figcaption', 'span', 'button', 'svg', 'path',
                           'pre', 'code', 'div', 'table', 'thead', 'tbody', 'tr', 'th', 'td'}
    links = chat.page.evaluate('[...document.querySelectorAll(".assistant .markdown a")]'
                               '.map(a => [a.protocol, a.host, a.rel, a.target])')
    assert links == [['https:', 'example.org', 'noopener noreferrer nofollow', '_blank']] * 3
    for text in ('<img src=x onerror="hacked=1">', '<script>hacked=1</script>', '<svg onload',
                 '[a](javascript:hacked=1)', '<iframe src=', '</code></pre><script>', '<b>x</b>',
                 '[h](/v1/models)'):
        assert text in chat.answer, text
    for link in chat.find('.assistant .markdown a').all():
        assert not [name for name in link.evaluate('a => a.getAttributeNames()')
                    if name not in ('href', 'rel', 'target')]


MARKDOWN = [
    ('# One\n## Two #\n####### no', '<h3>One</h3><h4>Two</h4><p>####### no</p>'),
    ('*a* **b** ***c*** ~~d~~ _e_ a_b_c 2*3*4 * x *',
     '<p><em>a</em> <strong>b</strong> <em><strong>c</strong></em> <del>d</del> <em>e</em> a_b_c '
     '2<em>3</em>4 * x *</p>'),
    ('**a *b* c** *open **both', '<p><strong>a <em>b</em> c</strong> *open **both</p>'),
    ('`a*b*` ``c`d`` `open \\*e\\*', '<p><code>a*b*</code> <code>c`d</code> `open *e*</p>'),
    ('&lt;b&gt; &amp;amp; &#65; &none; &#0;', '<p>&lt;b&gt; &amp;amp; A &amp;none; \ufffd</p>'),
    ('see https://a.org/b_c_(d)). [*x*](http://a.org/ "t") <me@a.org>',
     '<p>see <a>https://a.org/b_c_(d)</a>). <a><em>x</em></a> <a>me@a.org</a></p>'),
    ('[a [b](https://a.org) c](https://b.org) [no](x)',
     '<p>[a <a>b</a> c](<a>https://b.org</a>) [no](x)</p>'),
    ('- a\n- b\n  1. c\n  2. d\n\n3. e\n\n   f',
     '<ul><li>a</li><li>b<ol><li>c</li><li>d</li></ol></li></ul>'
     '<ol><li><p>e</p><p>f</p></li></ol>'),
    ('- [ ] a\n- [x] b', '<ul><li><input>a</li><li><input>b</li></ul>'),
    ('- a\n\n      b\n\nafter', '<ul><li><p>a</p><p>b</p></li></ul><p>after</p>'),
    ('1. a\n   ```c\n   x\n\n     y\n   ```\n2. b',
     '<ol><li>a<code>x\n\n  y</code></li><li>b</li></ol>'),
    ('> a\n> > b\nlazy\n\nc', '<blockquote><p>a</p><blockquote><p>b\nlazy</p></blockquote>'
     '</blockquote><p>c</p>'),
    ('```py\n*x*\n~~~\n<b>', '<code>*x*\n~~~\n&lt;b&gt;</code>'),
    ('a\n***\nb\n---', '<p>a</p><hr><p>b</p><hr>'),
    ('| a | b |\n|:-:|--:|\n| `x\\|y` | **z** |\nend',
     '<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td><code>x|y</code></td>'
     '<td><strong>z</strong></td></tr><tr><td>end</td></tr></tbody></table>'),
    ('a | b\nno table', '<p>a | b\nno table</p>'),
]
# Markup without what is only for looks.
SHAPE = '''async text => {
  const {Markdown} = await import('/ui/markdown.js');
  const view = new Markdown();
  for (let n = 1; n < text.length; n += 3) view.set(text.slice(0, n));
  view.set(text);
  const once = new Markdown();
  once.set(text);
  if (once.element.outerHTML !== view.element.outerHTML) return 'another one when it has grown';
  const out = node => node.nodeType === 3
    ? node.data.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
    : inside(node);
  const inside = node => {
    const name = node.localName, text = [...node.childNodes].map(out).join('');
    if (name === 'figcaption') return '';
    if (name === 'br') return '\\n';
    if (['hr', 'input'].includes(name)) return `<${name}>`;
    return ['figure', 'pre', 'div'].includes(name) ? text : `<${name}>${text}</${name}>`;
  };
  return [...view.element.childNodes].map(out).join('');
}'''


@pytest.mark.parametrize('text, shape', MARKDOWN)
def test_markdown(shared, text, shape):
    assert shared.page.evaluate(SHAPE, text) == shape


N = 20000


@pytest.mark.parametrize('text', [
    '*a ' * N, '[' * N, '[a](' * N, '> ' * N + 'x', '- ' * N + 'x', '1. ' * N, '`a``' * N,
    '```' + ' ' * N + '`', '<http://a' * N, 'http://a' + ')' * N, 'http://a' + '.' * N + 'x',
    '| a ' * N + '\n' + '|-' * N, '*' * N + 'a' + '*' * N, '# ' + ' ' * N + '#x',
    '[](a' + ' ' * N, '\\' * N, '**a _b ' * N + '_ **' * N, '&' * N, '~~a ' * N,
    '[](a "' * N, '- a\n' * N], ids=lambda t: t[:8])
def test_markdown_of_ill_will_ends(shared, text):
    """Where the time grew with the square of the length, it would not within the test's limit."""
    assert shared.page.evaluate('''async text => {
      const {Markdown} = await import('/ui/markdown.js');
      const view = new Markdown();
      view.set(text);
      const depth = new Map([[view.element, 0]]);
      for (const e of view.element.querySelectorAll('*'))
        depth.set(e, depth.get(e.parentElement) + 1);
      return view.element.firstChild !== null && Math.max(...new Set(depth.values())) < 60;
    }''', text)


def test_code_can_be_copied(chat, fake):
    chat.context.grant_permissions(['clipboard-read', 'clipboard-write'], origin=fake.url)
    chat.say('so:\n```c\nint a;\n  b < c;\n```')
    chat.press('Copy code')
    chat.until('document.querySelector("#status").innerText.includes("Copied")')
    assert chat.page.evaluate('navigator.clipboard.readText()') == 'int a;\n  b < c;'
    chat.page.evaluate('Object.defineProperty(navigator, "clipboard", {value: undefined})')
    chat.press('Copy answer')
    chat.until('document.querySelectorAll("#status p").length && '
               'document.querySelector("#status").innerText.split("Copied").length === 3')


def test_thoughts_are_folded(chat):
    chat.say('think')
    assert chat.texts('.fold summary') == ['Thoughts'] and chat.answer == 'answer'
    assert not chat.find('.fold .markdown').is_visible()
    chat.find('.fold summary').press('Enter')
    assert chat.find('.fold .markdown').inner_text().strip() == 'hm'


def test_an_error_is_shown_and_can_be_tried_again(chat):
    chat.say('fail')
    assert chat.find('.error[role=alert] span').inner_text() == 'the fake failed (500)'
    chat.press('Retry')
    chat.until('document.querySelector(".versions")?.innerText === "2/2"')
    chat.wait()
    chat.expected = 1
    chat.set(repeat_penalty='0')
    chat.say('x')
    assert 'repeat_penalty' in chat.texts('.error span')[-1]
    assert '(400)' in chat.texts('.error span')[-1]
    chat.set(repeat_penalty='')
    chat.press('Retry')
    chat.until('document.querySelectorAll(".error").length === 1')
    chat.wait()
    assert chat.answer == 'x'


def test_a_server_that_is_gone(make_chat, start_fake):
    server = start_fake().wait_ready()
    chat = make_chat(server)
    chat.type('endless')
    chat.until('document.querySelector(".assistant .body > .markdown")?.innerText.length > 5')
    chat.expected = 1
    server.process.kill()
    server.process.wait()
    chat.wait()
    assert 'x' in chat.answer and chat.count('.error') == 1
    chat.say('anyone there?')
    assert chat.texts('.error span')[-1] == 'The server cannot be reached.'


def test_calls_are_shown_and_answered(chat):
    tools = '[{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]'
    chat.set(tools=tools)
    fields = chat.request_of(lambda: chat.say(
        '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": "<b>"}}\n</tool_call>'))
    assert fields['tools'] == json.loads(tools)
    assert chat.texts('.call summary') == ['Calls add']
    assert json.loads(chat.texts('.call pre')[0]) == {'a': 1, 'b': '<b>'}
    chat.find('.results textarea').fill('3')
    fields = chat.request_of(lambda: chat.press('Send results'))
    called, result = fields['messages'][1:]
    assert called['tool_calls'][0]['function']['name'] == 'add'
    assert (result['role'], result['content']) == ('tool', '3')
    assert result['tool_call_id'] == called['tool_calls'][0]['id']
    chat.until('document.querySelectorAll(".assistant").length === 2')
    chat.wait()
    assert chat.answer == '3' and chat.count('.results') == 0


def test_settings_are_a_conversations_own(chat):
    chat.set(system='Be brief.', temperature='0.5', top_p='0.9', top_k='7', min_p='0.05', seed='3',
             max_tokens='9', repeat_penalty='1.1', thinking='off')
    fields = chat.request_of(lambda: chat.say('x'))
    assert fields['messages'][0] == {'role': 'system', 'content': 'Be brief.'}
    wanted = {'temperature': 0.5, 'top_p': 0.9, 'top_k': 7, 'min_p': 0.05, 'seed': 3,
              'max_tokens': 9, 'repeat_penalty': 1.1, 'stream': True, 'model': 'fake',
              'chat_template_kwargs': {'enable_thinking': False}}
    assert {name: fields[name] for name in wanted} == wanted
    chat.page.keyboard.press('Control+k')
    assert set(chat.request_of(lambda: chat.say('x'))) == {
        'model', 'messages', 'stream', 'stream_options'}
    chat.page.click('#settings-open')
    chat.find('dialog [name=system]').fill('Always.')
    chat.find('dialog [name=later]').check()
    chat.press('Save')
    chat.page.keyboard.press('Control+k')
    assert chat.request_of(lambda: chat.say('x'))['messages'][0]['content'] == 'Always.'
    chat.page.click('#settings-open')
    chat.find('dialog [name=tools]').fill('{}')
    chat.press('Save')
    assert chat.count('dialog[open]') == 1  # the field says what is wrong
    chat.find('dialog [name=tools]').fill('')
    chat.press('Cancel')


def test_a_model_can_be_chosen(chat):
    reply = {'data': [{'id': 'a', 'device': 'none'}, {'id': 'b', 'device': 'none'}]}
    chat.page.route('**/v1/models', lambda route: route.fulfill(json=reply))
    chat.page.reload()
    chat.page.wait_for_selector('#model-label:not([hidden])')
    chat.page.select_option('#model', 'b')
    assert chat.request_of(lambda: chat.say('x'))['model'] == 'b'
    chat.page.keyboard.press('Control+k')
    assert chat.request_of(lambda: chat.say('x'))['model'] == 'a'


def test_files_go_with_a_message(chat):
    def file(name, data):
        return {'name': name, 'mimeType': 'text/plain', 'buffer': data}
    chat.page.set_input_files('#attach-file', [
        file('a.md', b'one\n```\ntwo\n```'), file('bad.bin', b'\xff\x00'), file('nul', b'a\0b'),
        file('long', b'a' * ((1 << 20) + 1))])
    chat.until('document.querySelectorAll(".note").length === 3')
    assert [t.split('\n')[0] for t in chat.texts('.note')] == [
        'bad.bin is no text in UTF-8', 'nul is no text', 'long is longer than 1 MiB']
    for _ in range(3):
        chat.press('Close')
    paste = '''text => {
      const data = new DataTransfer();
      data.setData('text/plain', text);
      return prompt.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true,
        cancelable: true}));
    }'''.replace('prompt.', 'document.getElementById("prompt").')
    assert chat.page.evaluate(paste, 'short') is True
    assert chat.page.evaluate(paste, 'long ' * 1000) is False
    drop = '''() => {
      const data = new DataTransfer();
      data.items.add(new File(['dropped'], 'd.txt', {type: 'text/plain'}));
      document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true}));
    }'''
    chat.page.evaluate(drop)
    chat.page.wait_for_selector('#files .chip:nth-child(3)')
    assert [t.split(' ')[0] for t in chat.texts('#files .name')] == ['a.md', 'pasted', 'd.txt']
    chat.press('Remove pasted text')
    content = chat.request_of(lambda: chat.say('read this'))['messages'][0]['content']
    assert content == ('a.md:\n````\none\n```\ntwo\n```\n````\n\nd.txt:\n```\ndropped\n```\n\n'
                       'read this')
    assert chat.count('#files .chip') == 0 and chat.count('.user .chip') == 2
    chat.find('.user .chip button').first.click()
    assert chat.find('dialog pre').inner_text() == 'one\n```\ntwo\n```'
    chat.page.keyboard.press('Escape')


def test_a_key_is_asked_for(make_chat, start_fake, browser):
    server = start_fake(keys='secret').wait_ready()
    chat = Chat(browser, server)
    chat.expected = 1
    chat.page.goto(server.url)
    chat.page.wait_for_selector('dialog #key')
    chat.page.fill('#key', 'wrong')
    chat.page.press('#key', 'Enter')
    chat.page.wait_for_selector('text=That is no key of this server')
    chat.page.fill('#key', 'secret')
    chat.page.press('#key', 'Enter')
    chat.until('document.querySelector("#model-name").innerText === "fake"')
    chat.say('x')
    assert chat.answer == 'x'
    assert chat.page.evaluate('[sessionStorage["1bit-key"], JSON.stringify(localStorage)]') == [
        'secret', '{}']
    chat.page.evaluate('sessionStorage.clear()')
    chat.page.reload()
    for _ in range(2):  # as it begins, and when something is asked
        chat.page.wait_for_selector('dialog #key')
        chat.press('Cancel')
        chat.page.wait_for_selector('dialog', state='detached')
        if chat.count('.user') == 1:
            chat.type('y')
    assert '(401)' in chat.texts('.error span')[-1]
    chat.context.close()
    assert chat.errors == []


def test_the_server_panel(chat):
    chat.expected = 1
    for path in '**/slots', '**/metrics':  # a server may have neither
        chat.page.route(path, lambda route: route.fulfill(status=404))
    chat.page.click('#panel-open')
    chat.until('document.querySelector("#panel dd").innerText === "ready"')
    assert not chat.find('#panel .slots li').count()
    chat.say('words')
    assert 'tok/s' in chat.texts('#panel .chart:not([hidden])')[0]
    assert chat.texts('#panel dl')[0].split('\n')[-1] == '0 of 5'
    chat.page.press('#panel button', 'Escape')
    assert not chat.find('#panel').is_visible()
    chat.page.reload()
    counts = iter(range(0, 10000, 100))
    chat.page.route('**/slots', lambda route: route.fulfill(json=[
        {'id': 0, 'is_processing': True}, {'id': 1, 'is_processing': False}]))
    chat.page.route('**/metrics', lambda route: route.fulfill(body=(
        '# HELP x y\nllamacpp:requests_deferred 3\nllamacpp:requests_processing 1\n'
        'llamacpp:tokens_predicted_total{model="a"} %d\nllamacpp:prompt_tokens_total 1e3\n'
        % next(counts))))
    chat.page.click('#panel-open')
    chat.until('document.querySelectorAll("#panel .slots li").length === 2')
    assert chat.texts('#panel .slots li') == ['0 busy', '1 idle']
    chat.until('/Written\\s+[1-9]/.test(document.querySelector("#panel").innerText)')
    assert '1,000' in chat.texts('#panel .numbers')[0]


def test_keyboard_and_colours(chat):
    assert chat.page.evaluate('document.activeElement.id') == 'prompt'
    chat.page.press('#prompt', 'Shift+Enter')
    assert chat.find('#prompt').input_value() == '\n' and chat.turns == []
    chat.page.fill('#prompt', '')
    assert chat.page.evaluate('document.querySelector("a, button, input").className') == 'skip'
    chat.page.focus('.skip')
    assert chat.find('.skip').bounding_box()['y'] >= 0
    chat.page.keyboard.press('Enter')
    chat.until('document.activeElement.id === "prompt"')

    def back():
        return chat.page.evaluate('getComputedStyle(document.body).backgroundColor')
    chat.page.emulate_media(color_scheme='dark', reduced_motion='reduce')
    dark = back()
    chat.page.emulate_media(color_scheme='light')
    light = back()
    assert dark != light
    chat.page.click('#theme')
    chat.page.click('#theme')
    assert back() == dark and chat.find('#theme').get_attribute('aria-label') == 'Colours: dark'
    chat.page.reload()
    assert back() == dark
    nameless = chat.page.evaluate('''[...document.querySelectorAll(
      'button, input:not([hidden]), textarea, select, nav, aside, main')].filter(e =>
      !(e.getAttribute('aria-label') || e.innerText.trim() || e.labels?.length)).map(e => e.id)''')
    assert nameless == []


def test_on_a_phone(make_chat, fake):
    chat = make_chat(fake, **PHONE)
    assert not chat.is_too_wide() and not chat.find('#sidebar').is_visible()
    chat.page.fill('#prompt', 'w' * 300 + '\n\n```\n' + 'c' * 300 + '\n```\n\n| ' + 't | ' * 60 +
                   '\n' + '|-' * 60 + '|\n')
    chat.page.press('#prompt', 'Enter')  # starts a line where there is no Shift
    assert chat.turns == []
    chat.page.tap('#send')
    chat.page.wait_for_selector('.figures')
    chat.wait()
    assert not chat.is_too_wide()
    for wide in '.code pre', '.table':  # they scroll by themselves
        assert chat.find(f'.assistant {wide}').evaluate(
            'e => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX === "auto"')
    small = chat.page.evaluate('''[...document.querySelectorAll('button')].filter(b => {
      const box = b.getBoundingClientRect();
      return box.width && (box.width < 44 || box.height < 44);
    }).map(b => b.title || b.innerText)''')
    assert small == []
    chat.page.tap('#menu')
    chat.page.wait_for_selector('#sidebar', state='visible')
    assert not chat.is_too_wide()
    chat.page.tap('#conversations .title')
    chat.page.wait_for_selector('#sidebar', state='hidden')
    chat.page.tap('#settings-open')
    assert not chat.is_too_wide()
    chat.press('Cancel')
