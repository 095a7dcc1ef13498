// SPDX-License-Identifier: Apache-2.0
// settings.js: a conversation's system prompt, sampling and tools. An empty field is left to the
// server. What is chosen "for new chats, too" is where later ones begin.
import {h} from './dom.js';
import {dialog} from './notes.js';

const KEY = '1bit-settings';
const NUMBERS = [
  ['temperature', 'Temperature', {min: 0, step: 'any'}],
  ['top_p', 'Top p', {min: 0, max: 1, step: 'any'}],
  ['top_k', 'Top k', {min: 0, step: 1}],
  ['min_p', 'Min p', {min: 0, max: 1, step: 'any'}],
  ['repeat_penalty', 'Repeat penalty', {min: 0, step: 'any'}],
  ['seed', 'Seed', {min: -1, step: 1}],
  ['max_tokens', 'Tokens at most', {min: 1, step: 1}],
];
const TEXTS = ['system', 'tools', 'thinking', 'model'];

/** The settings among what was read from somewhere, of the right types. */
export function known(settings) {
  const out = {};
  for (const [name] of NUMBERS)
    if (Number.isFinite(settings?.[name])) out[name] = settings[name];
  for (const name of TEXTS)
    if (typeof settings?.[name] === 'string' && settings[name]) out[name] = settings[name];
  if (out.tools && toolsFault(out.tools)) delete out.tools;
  return out;
}

export function first() {
  try {
    return known(JSON.parse(localStorage.getItem(KEY)));
  } catch {
    return {};
  }
}

function toolsFault(text) {
  if (!text.trim()) return '';
  try {
    return Array.isArray(JSON.parse(text)) ? ''
      : 'Tools must be an array: [{"type": "function", …}]';
  } catch (error) {
    return `Tools: ${error.message}`;
  }
}

/** Returns the new settings, or null. */
export async function edit(settings) {
  const system = h('textarea', {rows: 4, name: 'system'});
  system.value = settings.system ?? '';
  const inputs = NUMBERS.map(([name, label, limits]) => {
    const input = h('input', {type: 'number', name, inputmode: 'decimal', placeholder: 'default',
      ...limits});
    input.value = settings[name] ?? '';
    return h('label', null, label, input);
  });
  const thinking = h('select', {name: 'thinking'}, ['', 'on', 'off'].map(value =>
    h('option', {value, selected: value === (settings.thinking ?? '')},
      value || 'default')));
  const tools = h('textarea', {rows: 4, name: 'tools', class: 'mono', spellcheck: 'false',
    placeholder: '[{"type": "function", "function": {"name": …}}]'});
  tools.value = settings.tools ?? '';
  tools.addEventListener('input', () => tools.setCustomValidity(toolsFault(tools.value)));
  const later = h('input', {type: 'checkbox', name: 'later'});
  const fields = [h('label', null, 'System prompt', system), h('div', {class: 'grid'}, inputs,
    h('label', null, 'Thinking', thinking)),
  h('label', null, 'Tools (JSON)', tools),
  h('label', {class: 'check'}, later, 'For new chats, too')];
  if (!await dialog('Settings of this chat', fields, 'Save')) return null;
  const out = known({...Object.fromEntries(inputs.map(label => label.querySelector('input'))
    .filter(input => input.value !== '').map(input => [input.name, input.valueAsNumber])),
  system: system.value, tools: tools.value.trim(), thinking: thinking.value,
  model: settings.model});
  if (later.checked) {
    try {
      localStorage.setItem(KEY, JSON.stringify(out));
    } catch {
      // a browser that keeps nothing
    }
  }
  return out;
}
