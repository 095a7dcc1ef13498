// SPDX-License-Identifier: Apache-2.0
// copy.js: text to the clipboard, with a button. Pages that came over plain HTTP from another
// machine have no clipboard; there the old way is taken.
import {h, iconButton} from './dom.js';
import {say} from './notes.js';

const COPY = 'M9 9h11v11H9zM5 15H4V4h11v1', DONE = 'M5 13l4 4L19 7';

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = h('textarea', {class: 'hidden', readonly: true});
  const back = document.activeElement;
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand('copy');
  area.remove();
  back?.focus();
  if (!copied) throw new Error('not allowed');
}

export function copyButton(label, text) {
  const button = iconButton(label, COPY, async () => {
    try {
      await copy(text());
      button.querySelector('path').setAttribute('d', DONE);
      say('Copied');
    } catch {
      say('The browser does not let the page copy');
    }
    setTimeout(() => button.querySelector('path').setAttribute('d', COPY), 1500);
  });
  return button;
}
