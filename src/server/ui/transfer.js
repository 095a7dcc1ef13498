// SPDX-License-Identifier: Apache-2.0
// transfer.js: conversations as a file, and back. What a file says is checked and taken field by
// field: it may come from anywhere.
import {h} from './dom.js';
import {known} from './settings.js';
import {ROOT, fault, newId} from './tree.js';

const FORMAT = '1bit-conversations';

export function save(conversations, name) {
  const text = JSON.stringify({format: FORMAT, version: 1, conversations}, null, 1);
  const address = URL.createObjectURL(new Blob([text], {type: 'application/json'}));
  h('a', {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

const text = value => typeof value === 'string' ? value : undefined;
const list = (value, each) => Array.isArray(value) ? value.map(each) : undefined;

function numbers(value) {
  if (!value || typeof value !== 'object') return undefined;
  return Object.fromEntries(Object.entries(value).filter(([, v]) => Number.isFinite(v)));
}

function cleanTurn(turn) {
  const {id, parent, children, chosen} = turn;
  if (id === ROOT) return {id, parent: null, children, chosen};
  const usage = numbers(turn.usage), cached = turn.usage?.prompt_tokens_details?.cached_tokens;
  if (usage && Number.isFinite(cached)) usage.prompt_tokens_details = {cached_tokens: cached};
  const out = {id, parent, children, chosen, role: turn.role, content: turn.content, usage,
    timings: numbers(turn.timings), reasoning: text(turn.reasoning), model: text(turn.model),
    finish: text(turn.finish) ?? 'stopped', callId: text(turn.callId), name: text(turn.name),
    files: list(turn.files, f => ({name: String(f?.name), text: String(f?.text)})),
    calls: list(turn.calls, c => ({id: String(c?.id), name: String(c?.name),
      arguments: String(c?.arguments)}))};
  return Object.fromEntries(Object.entries(out).filter(([, value]) => value !== undefined));
}

function clean(c) {
  const time = value => Number.isFinite(value) ? value : Date.now();
  return {id: newId(), title: c.title.slice(0, 200), named: Boolean(c.named),
    created: time(c.created), updated: time(c.updated), settings: known(c.settings),
    nodes: Object.fromEntries(Object.entries(c.nodes).map(([id, turn]) => [id, cleanTurn(turn)]))};
}

/** The conversations of a file's text, as new ones; throws what is wrong with it. */
export function read(source) {
  let file;
  try {
    file = JSON.parse(source);
  } catch (error) {
    throw new Error(`it is no JSON: ${error.message}`);
  }
  if (file?.format !== FORMAT) throw new Error(`its "format" is not "${FORMAT}"`);
  if (file.version !== 1) throw new Error(`its "version" is not 1`);
  if (!Array.isArray(file.conversations)) throw new Error('it has no "conversations"');
  file.conversations.forEach((c, i) => {
    const wrong = fault(c);
    if (wrong) throw new Error(`conversation ${i + 1} ${wrong}`);
  });
  return file.conversations.map(clean);
}
