// SPDX-License-Identifier: Apache-2.0
// sidebar.js: the list of conversations, the last one used first. On a narrow screen it lies over
// the page while it is wanted.
import {$, h, iconButton} from './dom.js';
import {dialog} from './notes.js';

const DOTS = 'M5 12h.01M12 12h.01M19 12h.01';

export class Sidebar {
  /** actions: open(c), rename(c, title), remove(c), save(c). */
  constructor(actions) {
    this.actions = actions;
    $('menu').addEventListener('click', () => this.toggle(!this.open));
    $('shade').addEventListener('click', () => this.toggle(false));
    $('sidebar').addEventListener('keydown', event => {
      if (event.key !== 'Escape' || !this.open) return;
      event.stopPropagation();
      this.toggle(false);
    });
  }

  get open() {
    return document.body.classList.contains('sidebar-open');
  }

  toggle(open) {
    if (open === this.open) return;
    document.body.classList.toggle('sidebar-open', open);
    $('menu').setAttribute('aria-expanded', open);
    (open ? $('new') : $('menu')).focus();
  }

  show(conversations, current, busy) {
    const sorted = [...conversations].sort((a, b) => b.updated - a.updated);
    $('none-yet').hidden = sorted.length > 0;
    $('conversations').hidden = !sorted.length;
    $('conversations').replaceChildren(...sorted.map(c =>
      h('li', {class: busy(c) ? 'busy' : null},
        h('button', {type: 'button', class: 'title', title: c.title,
          'aria-current': c === current ? 'page' : null, onclick: () => {
            this.toggle(false);
            this.actions.open(c);
          }}, c.title),
        iconButton(`More of ${c.title}`, DOTS, () => this.more(c)))));
  }

  async more(c) {
    const title = h('input', {type: 'text', maxlength: 200, required: true});
    title.value = c.title;
    let chosen = null;
    const choose = what => event => {
      chosen = what;
      event.target.closest('dialog').close('no');
    };
    const renamed = await dialog('Conversation', [h('label', null, 'Title', title),
      h('div', {class: 'buttons left'},
        h('button', {type: 'button', onclick: choose('save')}, 'Save as a file'),
        h('button', {type: 'button', class: 'danger', onclick: choose('remove')}, 'Delete…'))],
    'Rename');
    if (renamed && title.value.trim()) this.actions.rename(c, title.value.trim());
    if (chosen === 'save') this.actions.save(c);
    if (chosen === 'remove' &&
        await dialog(`Delete “${c.title}”?`, h('p', null, 'It cannot be brought back.'), 'Delete'))
      this.actions.remove(c);
  }
}
