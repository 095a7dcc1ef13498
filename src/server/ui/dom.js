// SPDX-License-Identifier: Apache-2.0
// dom.js: elements, built one by one. Text only ever becomes a text node, so nothing that a model,
// a file or the server says can turn into markup.
const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter(c => c !== null && c !== undefined));
  return element;
}

/** h('p', {class: 'x', onclick: f}, 'text', element): attributes that are null or false are not
 * set. */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** A line drawing of 24 by 24. */
export function icon(path) {
  return svg('svg', {viewBox: '0 0 24 24', 'aria-hidden': 'true'}, svg('path', {d: path}));
}

/** A button that has a picture instead of words. */
export function iconButton(label, path, onclick, attributes) {
  return h('button', {type: 'button', class: 'icon', 'aria-label': label, title: label, onclick,
    ...attributes}, icon(path));
}

export const $ = id => document.getElementById(id);
