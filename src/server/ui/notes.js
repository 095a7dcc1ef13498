// SPDX-License-Identifier: Apache-2.0
// notes.js: what the page has to say: say() to who listens to it, note() to who sees it, too, ask()
// with an answer. Answers that grow are read aloud by whole sentences, not by tokens.
import {$, h} from './dom.js';

export function say(text) {
  $('status').append(h('p', null, text));
  while ($('status').childNodes.length > 20) $('status').firstChild.remove();
}

export function note(text) {
  const line = h('p', {class: 'note'}, text,
    h('button', {type: 'button', onclick: () => line.remove()}, 'Close'));
  $('notes').append(line);
  setTimeout(() => line.remove(), 12000);
}

/** Reads a text aloud while it grows. */
export class Reader {
  constructor() {
    this.rest = '';
  }

  add(text) {
    this.rest += text;
    if (this.rest.length < 40) return;
    const last = Math.max(...['. ', '! ', '? ', ': ', '.\n', '\n\n'].map(s =>
      this.rest.lastIndexOf(s)));
    if (last < 0) return;
    say(this.rest.slice(0, last + 1));
    this.rest = this.rest.slice(last + 1);
  }

  end(how) {
    if (this.rest.trim()) say(this.rest);
    this.rest = '';
    say(how);
  }
}

/** A dialog of `fields` (elements) with two buttons: the promise is true for the first one. */
export function dialog(title, fields, yes, no = 'Cancel', onYes = () => true) {
  return new Promise(resolve => {
    const id = `dialog-${Math.random().toString(36).slice(2)}`;
    const form = h('form', {method: 'dialog', onsubmit: event => {
      event.preventDefault();
      if (onYes() === false) return;
      box.returnValue = 'yes';
      box.close('yes');
    }}, h('h2', {id}, title), fields, h('div', {class: 'buttons'},
      no && h('button', {type: 'button', onclick: () => box.close('no')}, no),
      h('button', {class: 'primary'}, yes)));
    const box = h('dialog', {'aria-labelledby': id, onclose: () => {
      box.remove();
      resolve(box.returnValue === 'yes');
    }}, form);
    document.body.append(box);
    box.showModal();
  });
}

/** One line of text, or null. */
export async function askFor(title, label, value = '', options = {}) {
  const input = h('input', {type: 'text', autocomplete: 'off', ...options});
  input.value = value;
  const given = await dialog(title, h('label', null, label, input), options.yes ?? 'Save');
  return given ? input.value.trim() : null;
}
