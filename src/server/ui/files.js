// SPDX-License-Identifier: Apache-2.0
// files.js: text files that go with a message: chosen, dropped or pasted. Shown as chips that can
// be opened; their text goes into the prompt (answer.js).
import {$, h, iconButton} from './dom.js';
import {dialog, note, say} from './notes.js';

const MAX = 1 << 20, LONG_PASTE = 4000;

async function readText(file) {
  if (file.size > MAX) throw new Error(`${file.name} is longer than 1 MiB`);
  const bytes = await file.arrayBuffer();
  let text;
  try {
    text = new TextDecoder('utf-8', {fatal: true}).decode(bytes);
  } catch {
    throw new Error(`${file.name} is no text in UTF-8`);
  }
  if (text.includes('\0')) throw new Error(`${file.name} is no text`);
  return {name: file.name, text};
}

export function chip(file, remove) {
  const lines = file.text.split('\n').length - (file.text.endsWith('\n') ? 1 : 0);
  return h('li', {class: 'chip'},
    h('button', {type: 'button', title: 'Show', onclick: () =>
      dialog(file.name, h('pre', {class: 'file', tabindex: 0}, file.text), 'Close', null)},
    h('span', {class: 'name'}, file.name), h('span', {class: 'faint'}, ` ${lines} lines`)),
    remove && iconButton(`Remove ${file.name}`, 'M7 7l10 10M17 7L7 17', remove));
}

export class Files {
  constructor() {
    this.list = [];
    $('attach').addEventListener('click', () => $('attach-file').click());
    $('attach-file').addEventListener('change', event => {
      this.read(event.target.files);
      event.target.value = '';
    });
    $('prompt').addEventListener('paste', event => this.paste(event));
    this.listenToDrops();
  }

  listenToDrops() {
    const carries = event => event.dataTransfer?.types.includes('Files');
    addEventListener('dragover', event => {
      if (!carries(event)) return;
      event.preventDefault();
      $('drop').hidden = false;
    });
    addEventListener('dragleave', event => {
      if (!event.relatedTarget) $('drop').hidden = true;
    });
    addEventListener('drop', event => {
      $('drop').hidden = true;
      if (!carries(event)) return; // text goes where it is dropped
      event.preventDefault();
      this.read(event.dataTransfer.files);
    });
  }

  paste(event) {
    const {files} = event.clipboardData, text = event.clipboardData.getData('text/plain');
    if (files.length && !text) {
      event.preventDefault();
      this.read(files);
    } else if (text.length > LONG_PASTE) {
      event.preventDefault();
      this.set([...this.list, {name: 'pasted text', text}]);
    }
  }

  async read(files) {
    for (const file of [...files]) {
      try {
        const read = await readText(file);
        this.set([...this.list, read]);
        say(`${file.name} attached`);
      } catch (error) {
        note(error.message);
      }
    }
    $('prompt').focus();
  }

  set(list) {
    this.list = list;
    $('files').replaceChildren(...list.map(file =>
      chip(file, () => this.set(this.list.filter(other => other !== file)))));
    this.onchange?.();
  }

  take() {
    const {list} = this;
    this.set([]);
    return list;
  }
}
