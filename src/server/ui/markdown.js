// SPDX-License-Identifier: Apache-2.0
// markdown.js: blocks as elements. A Markdown view is told its whole text again and again while it
// grows, and leaves alone what has not changed: what is selected stays selected.
import {blocks} from './blocks.js';
import {copyButton} from './copy.js';
import {h} from './dom.js';
import {inline} from './inline.js';

function code(block) {
  return h('figure', {class: 'code'},
    h('figcaption', null, h('span', null, block.language || 'text'),
      copyButton('Copy code', () => block.text)),
    h('pre', {tabindex: 0, 'aria-label': `Code${block.language ? `, ${block.language}` : ''}`},
      h('code', null, block.text)));
}

function item({done, blocks: inner}, loose) {
  const children = inner.map(b => b.type === 'paragraph' && !loose ? inline(b.text) : build(b));
  if (done === null) return h('li', null, children);
  return h('li', {class: 'task'}, h('input', {type: 'checkbox', disabled: true, checked: done,
    'aria-label': done ? 'done' : 'not done'}), children);
}

function table({head, align, rows}) {
  const side = i => align[i] ? {class: align[i]} : null;
  return h('div', {class: 'table', tabindex: 0, role: 'region', 'aria-label': 'Table'},
    h('table', null,
      h('thead', null, h('tr', null, head.map((c, i) => h('th', side(i), inline(c))))),
      h('tbody', null, rows.map(row =>
        h('tr', null, row.map((c, i) => h('td', side(i), inline(c))))))));
}

const BUILD = {
  heading: b => h(`h${Math.min(6, b.level + 2)}`, {class: `level${b.level}`}, inline(b.text)),
  rule: () => h('hr'),
  code,
  quote: b => h('blockquote', null, b.blocks.map(build)),
  list: b => h(b.ordered ? 'ol' : 'ul', b.ordered && b.start !== 1 ? {start: b.start} : null,
    b.items.map(i => item(i, b.loose))),
  table,
  paragraph: b => h('p', null, inline(b.text)),
};

function build(block) {
  return BUILD[block.type](block);
}

export class Markdown {
  constructor() {
    this.element = h('div', {class: 'markdown'});
    this.sources = [];
  }

  set(text) {
    const next = blocks(text), {element, sources} = this;
    let same = 0;
    while (same < next.length && sources[same] === next[same].source) same++;
    while (element.childNodes.length > same) element.lastChild.remove();
    for (const block of next.slice(same)) element.append(build(block));
    this.sources = next.map(block => block.source);
  }
}
