// SPDX-License-Identifier: Apache-2.0
// main.js: the page: which conversations there are, which one is seen, what its buttons and keys
// do. Answers go on while another conversation is looked at.
import {request} from './answer.js';
import {$} from './dom.js';
import {Files} from './files.js';
import {Reader, note, say} from './notes.js';
import {Panel} from './panel.js';
import {ServerInfo} from './server.js';
import * as settings from './settings.js';
import {Sidebar} from './sidebar.js';
import * as store from './store.js';
import {Stream} from './stream.js';
import * as transfer from './transfer.js';
import * as tree from './tree.js';
import {TurnView} from './turns.js';

const NEAR_END = 80; // pixels: who is that near to the end follows it

const conversations = new Map();
const streams = new Map();   // by the conversation's id
const drafts = new Map();
let current = null;          // a new one is not in the list until something is asked
let views = new Map();       // by the turn's id

const panel = new Panel();
const files = new Files();
const server = new ServerInfo(model => change(c => {
  c.settings.model = model;
}));
const sidebar = new Sidebar({open, remove, save: c => transfer.save([c], 'conversation.json'),
  rename: (c, title) => {
    c.title = title;
    c.named = true;
    keep(c);
    showFrame();
  }});

// ---- keeping ------------------------------------------------------------------------------------

async function keep(c) {
  try {
    if (conversations.has(c.id)) await store.put(c);
  } catch (error) {
    note(`The conversation could not be kept: ${error.message}`);
  }
}

function change(f) {
  f(current);
  keep(current);
  showFrame();
}

async function remove(c) {
  streams.get(c.id)?.stop();
  conversations.delete(c.id);
  if (c === current) start();
  else showFrame();
  await store.remove(c.id);
}

/** Another tab has changed or deleted it. What is being written here is newer. */
async function reload(id) {
  if (streams.has(id)) return;
  const c = await store.get(id);
  if (c) conversations.set(id, c);
  else conversations.delete(id);
  if (current.id !== id) showFrame();
  else if (c) open(c);
  else start();
}

// ---- what is seen -------------------------------------------------------------------------------

function atEnd() {
  const {scrollHeight, scrollTop, clientHeight} = $('scroll');
  return scrollHeight - scrollTop - clientHeight < NEAR_END;
}

function toEnd() {
  $('scroll').scrollTop = $('scroll').scrollHeight;
}

function showFrame() {
  const running = streams.has(current.id), known = conversations.has(current.id);
  $('title').textContent = current.title;
  document.title = known ? `${current.title} – 1bit` : '1bit';
  $('empty').hidden = tree.path(current).length > 0;
  $('send').hidden = running;
  $('stop').hidden = !running;
  history.replaceState(null, '', known ? `#${current.id}` : location.pathname);
  server.show(current);
  sidebar.show(conversations.values(), current, c => streams.has(c.id));
}

function showTurns() {
  const old = views, turns = tree.path(current);
  const active = streams.get(current.id)?.turn;
  views = new Map(turns.map(turn =>
    [turn.id, old.get(turn.id) ?? new TurnView(current, turn, actions)]));
  for (const view of views.values()) view.show(view.turn === active);
  $('turns').replaceChildren(...[...views.values()].map(view => view.element));
  showFrame();
}

function open(c) {
  drafts.set(current?.id, $('prompt').value);
  current = c;
  views = new Map();
  $('prompt').value = drafts.get(c.id) ?? '';
  grow();
  showTurns();
  toEnd();
}

function start() {
  open(tree.newConversation(settings.first()));
  $('prompt').focus();
}

// ---- asking -------------------------------------------------------------------------------------

/** Has `turn` written, the answer to what stands before it; `extra`: more fields of the request. */
async function write(c, turn, last, extra) {
  const reader = new Reader();
  const stream = new Stream(turn, {save: () => keep(c), show: text => {
    const follow = atEnd();
    if (text) reader.add(text);
    if (c === current) views.get(turn.id)?.show(true);
    if (c === current && follow) toEnd();
  }});
  streams.set(c.id, stream);
  c.updated = Date.now();
  keep(c); // what was asked is not lost, whatever comes
  if (c === current) {
    showTurns();
    toEnd();
  }
  say('The answer is being written');
  let asked;
  try {
    asked = request(c, last, server.of(c));
  } catch (error) {
    turn.error = {message: error.message, status: 0};
  }
  if (asked) await stream.run({...asked, ...extra});
  streams.delete(c.id);
  panel.add(turn);
  const {error} = turn;
  reader.end(error ? '' : turn.finish === 'stopped' ? 'Stopped' : 'The answer is complete');
  if (c === current) {
    const follow = atEnd();
    showTurns();
    if (follow) toEnd();
  } else {
    showFrame();
  }
  if (error?.status === 401 && await server.askKey()) {
    server.load();
    actions.retry(turn, c);
  }
}

function answer(c, parent) {
  return write(c, tree.add(c, parent, {role: 'assistant'}), parent);
}

/** The first words, without signs of Markdown before them. */
function titleOf(content) {
  return content.split('\n').map(line => line.replace(/^[#>*\s-]+/, '').trim())
    .find(Boolean)?.slice(0, 60) ?? '';
}

function ask(content, attached) {
  const c = current, turns = tree.path(c), first = !turns.length;
  if (streams.has(c.id) || (!content.trim() && !attached.length)) return false;
  const turn = tree.add(c, turns.at(-1)?.id ?? tree.ROOT, {role: 'user', content, files: attached});
  if (first && !c.named)
    c.title = titleOf(content) || attached[0]?.name || 'Chat';
  conversations.set(c.id, c);
  answer(c, turn.id);
  return true;
}

const actions = {
  edit(turn) {
    const c = current;
    if (streams.has(c.id)) return;
    views.get(turn.id)?.edit(text => {
      if (text === null || text === turn.content || (turn.role === 'user' && !text.trim()))
        return $('prompt').focus();
      const {role, files: attached, reasoning, model} = turn;
      const copy = {role, content: text, files: attached, reasoning, model};
      if (role === 'assistant') copy.finish = 'stop';
      const next = tree.add(c, turn.parent, copy);
      if (role === 'user') {
        answer(c, next.id);
      } else {
        keep(c);
        showTurns();
      }
      $('prompt').focus();
    });
  },
  again(turn) {
    if (!streams.has(current.id)) answer(current, turn.parent);
  },
  /** The same turn once more: there is nothing worth keeping in it. */
  retry(turn, c = current) {
    if (streams.has(c.id)) return;
    if (turn.content) {
      answer(c, turn.parent);
    } else {
      for (const name of ['reasoning', 'calls']) delete turn[name];
      write(c, turn, turn.parent);
    }
  },
  goOn(turn) {
    if (!streams.has(current.id)) write(current, turn, turn.id, {continue_final_message: true});
  },
  results(turn, texts) {
    const c = current;
    if (streams.has(c.id)) return;
    const last = turn.calls.reduce((parent, call, i) => tree.add(c, parent,
      {role: 'tool', content: texts[i], callId: call.id, name: call.name}).id, turn.id);
    answer(c, last);
  },
  step(turn, by) {
    if (streams.has(current.id)) return;
    tree.step(current, turn, by);
    keep(current);
    showTurns();
    const shown = current.nodes[turn.parent].chosen;
    const label = by < 0 ? 'Version before' : 'Next version';
    const buttons = views.get(shown).element.querySelectorAll('.versions button:enabled');
    ([...buttons].find(b => b.title === label) ?? buttons[0])?.focus();
  },
};

// ---- buttons and keys ---------------------------------------------------------------------------

function grow() {
  const {style} = $('prompt');
  style.height = 'auto';
  style.height = `${Math.min($('prompt').scrollHeight, innerHeight * 0.4)}px`;
}

function send() {
  if (!ask($('prompt').value, files.list)) return;
  files.take();
  $('prompt').value = '';
  grow();
}

function stop() {
  streams.get(current.id)?.stop();
  $('prompt').focus();
}

async function editSettings() {
  const given = await settings.edit(current.settings);
  if (!given) return;
  change(c => {
    c.settings = given;
  });
}

async function importFile(event) {
  const [file] = event.target.files;
  event.target.value = '';
  try {
    const read = transfer.read(await file.text());
    for (const c of read) {
      conversations.set(c.id, c);
      await keep(c);
    }
    showFrame();
    note(`${read.length} conversation${read.length === 1 ? '' : 's'} added.`);
  } catch (error) {
    note(`${file.name} cannot be imported: ${error.message}`);
  }
}

function editLast() {
  const last = tree.path(current).findLast(turn => turn.role === 'user');
  if (last) actions.edit(last);
}

function onPromptKey(event) {
  if (event.isComposing) return;
  // On a phone Enter starts a line: it has no Shift at hand, but the button.
  const enterSends = !matchMedia('(pointer: coarse)').matches;
  if (event.key === 'Enter' && !event.shiftKey && (enterSends || event.ctrlKey)) {
    event.preventDefault();
    send();
  } else if (event.key === 'ArrowUp' && !$('prompt').value && !files.list.length) {
    event.preventDefault();
    editLast();
  }
}

function onKey(event) {
  if (document.querySelector('dialog[open]')) return;
  const command = event.ctrlKey || event.metaKey;
  if (event.key === 'Escape' && streams.has(current.id)) {
    stop();
  } else if (command && !event.shiftKey && event.key.toLowerCase() === 'k') {
    event.preventDefault();
    sidebar.toggle(false);
    start();
  } else if (command && event.key === ',') {
    event.preventDefault();
    editSettings();
  }
}

function listen() {
  const on = (id, what, f) => $(id).addEventListener(what, f);
  on('composer', 'submit', event => {
    event.preventDefault();
    send();
  });
  on('prompt', 'keydown', onPromptKey);
  on('prompt', 'input', grow);
  on('stop', 'click', stop);
  on('new', 'click', () => {
    sidebar.toggle(false);
    start();
  });
  on('settings-open', 'click', editSettings);
  on('export', 'click', () =>
    transfer.save([...conversations.values()], '1bit-conversations.json'));
  on('import', 'click', () => $('import-file').click());
  on('import-file', 'change', importFile);
  on('to-end', 'click', toEnd);
  on('scroll', 'scroll', () => {
    $('to-end').hidden = atEnd();
  });
  addEventListener('keydown', onKey);
  addEventListener('beforeunload', () => {
    for (const c of conversations.values()) if (streams.has(c.id)) keep(c);
  });
  store.onChange(reload);
}

/** An answer that was cut by closing the page has ended there. */
function mend(c) {
  for (const turn of Object.values(c.nodes))
    if (turn.role === 'assistant' && !turn.finish && !turn.error) turn.finish = 'stopped';
}

async function main() {
  const lasting = await store.open();
  for (const c of await store.all()) {
    mend(c);
    conversations.set(c.id, c);
  }
  listen();
  const asked = conversations.get(location.hash.slice(1)); // as it was before a reload
  if (asked) open(asked);
  else start();
  $('prompt').focus();
  if (!lasting) note('This browser keeps nothing here: conversations end with this page.');
  document.body.dataset.ready = '';
  await server.load();
}

main();
