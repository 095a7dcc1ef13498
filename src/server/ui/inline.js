// SPDX-License-Identifier: Apache-2.0
// inline.js: a line of Markdown as DOM nodes: emphasis, code, links, bare addresses. Made of text
// nodes and of elements named here, so HTML in it is shown as it is written. One pass from left to
// right, and a closer only looks at the last opener of its kind: the time grows with the length.
import {h} from './dom.js';

const MAX_DEPTH = 16; // of emphasis in emphasis: browsers do not like deep trees
const ESCAPABLE = /[!-/:-@[-`{-~]/;
const ENTITY = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-z]{2,6}));/y;
const NAMED = new Map(Object.entries({amp: '&', lt: '<', gt: '>', quot: '"', apos: "'",
  nbsp: '\u00a0', copy: '©', hellip: '…', mdash: '—', ndash: '–', times: '×'}));
const BARE = /https?:\/\/[^\s<>"'`]+/y;
const ANGLE = /<((?:https?:\/\/|mailto:)[^\s<>]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)>/y;
// (address), (<address>), (address "title"); few blanks, so that no search for them grows.
const TARGET = new RegExp(
  String.raw`\(\s{0,3}(?:<([^<>\n]*)>|((?:[^\s()\\]|\\.|\((?:[^\s()\\]|\\.)*\))*))` +
  String.raw`(?:\s{1,3}(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))?\s{0,3}\)`, 'y');
const SPECIAL = /[\\`*_~[\]!<&h\n]/g;
const TAGS = {'*': ['em', 'strong'], '_': ['em', 'strong'], '~': ['del', 'del']};

/** The address if a link may lead there, or null: nothing that runs, nothing of this origin. */
export function safeAddress(text) {
  try {
    const url = new URL(text);
    return ['http:', 'https:', 'mailto:'].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function link(address, children) {
  return h('a', {href: address, target: '_blank', rel: 'noopener noreferrer nofollow'}, children);
}

/** Without the signs of the sentence around it, nor a ) whose ( is not in it. */
function addressEnd(text) {
  let open = text.split('(').length - text.split(')').length, n = text.length;
  for (; n; n--) {
    if (text[n - 1] === ')' && open < 0) open++;
    else if (!'.,;:!?*_~]'.includes(text[n - 1])) break;
  }
  return n;
}

/** Where runs of backticks are, by their length: next() only ever goes forward. */
function runsOf(text) {
  const runs = new Map();
  for (const m of text.matchAll(/`+/g)) {
    if (!runs.has(m[0].length)) runs.set(m[0].length, []);
    runs.get(m[0].length).push(m.index);
  }
  for (const list of runs.values()) list.reverse(); // the next one on top
  return {next(length, after) {
    const list = runs.get(length);
    while (list?.length && list.at(-1) <= after) list.pop();
    return list?.length ? list.at(-1) : -1;
  }};
}

function deepest(items) {
  return items.reduce((most, item) => Math.max(most, item.depth), 0);
}

class Line {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.out = [];      // {node, depth} or {mark, count, opens, closes}
    this.openers = {'*': [], '_': [], '~': []}; // places in out
    this.brackets = []; // places in out of [ and ![
    this.runs = runsOf(text);
  }

  put(node, depth = 0) {
    this.out.push({node, depth});
  }

  say(text) {
    const last = this.out.at(-1);
    if (last && typeof last.node === 'string') last.node += text;
    else this.put(text);
  }

  match(pattern) {
    pattern.lastIndex = this.at;
    return pattern.exec(this.text);
  }

  run() {
    const {text} = this;
    while (this.at < text.length) {
      SPECIAL.lastIndex = this.at;
      const next = SPECIAL.exec(text)?.index ?? text.length;
      if (next > this.at) this.say(text.slice(this.at, next));
      this.at = next;
      if (next < text.length) this.special(text[next]);
    }
    return this.finish(0).map(item => item.node);
  }

  special(c) {
    if (c === '\\') this.escape();
    else if (c === '`') this.code();
    else if (c in TAGS) this.mark(c);
    else if (c === '[' || (c === '!' && this.text[this.at + 1] === '[')) this.bracket(c);
    else if (c === ']') this.closeBracket();
    else if (c === '<') this.angle();
    else if (c === '&') this.entity();
    else if (c === 'h') this.bare();
    else if (c === '\n') this.newline();
    else this.literal(1);
  }

  literal(n) {
    this.say(this.text.slice(this.at, this.at + n));
    this.at += n;
  }

  escape() {
    const next = this.text[this.at + 1];
    if (next === '\n') {
      this.at++;
    } else if (next && ESCAPABLE.test(next)) {
      this.say(next);
      this.at += 2;
    } else {
      this.literal(1);
    }
  }

  newline() {
    this.put(h('br'));
    this.at++;
  }

  code() {
    let n = 1;
    while (this.text[this.at + n] === '`') n++;
    const end = this.runs.next(n, this.at);
    if (end < 0) return this.literal(n);
    let code = this.text.slice(this.at + n, end).replaceAll('\n', ' ');
    if (/^ .* $/.test(code) && code.trim()) code = code.slice(1, -1);
    this.put(h('code', null, code));
    this.at = end + n;
  }

  entity() {
    const m = this.match(ENTITY);
    if (!m || (m[3] && !NAMED.has(m[3]))) return this.literal(1);
    const number = m[1] ? parseInt(m[1], 10) : m[2] ? parseInt(m[2], 16) : -1;
    const bad = number === 0 || number > 0x10ffff || (number >= 0xd800 && number < 0xe000);
    this.say(m[3] ? NAMED.get(m[3]) : bad ? '\ufffd' : String.fromCodePoint(number));
    this.at += m[0].length;
  }

  angle() {
    const m = this.match(ANGLE);
    const address = m && safeAddress(m[1].includes(':') ? m[1] : `mailto:${m[1]}`);
    if (!address) return this.literal(1);
    this.put(link(address, m[1]));
    this.at += m[0].length;
  }

  bare() {
    const before = this.text[this.at - 1];
    const m = before && /\w/.test(before) ? null : this.match(BARE);
    const found = m && m[0].slice(0, addressEnd(m[0]));
    const address = found && safeAddress(found);
    if (!address) return this.literal(1);
    this.put(link(address, found));
    this.at += found.length;
  }

  /** A run of * _ ~: whether it may open or close says what stands beside it. */
  mark(c) {
    let n = 1;
    while (this.text[this.at + n] === c) n++;
    const before = this.text[this.at - 1] ?? ' ', after = this.text[this.at + n] ?? ' ';
    const blank = s => /\s/.test(s), sign = s => /[\p{P}\p{S}]/u.test(s);
    const left = !blank(after) && (!sign(after) || blank(before) || sign(before));
    const right = !blank(before) && (!sign(before) || blank(after) || sign(after));
    const word = c === '_';
    this.at += n;
    if (c === '~' && n !== 2) return this.say(c.repeat(n));
    const item = {mark: c, count: n, opens: left && (!word || !right || sign(before)),
      closes: right && (!word || !left || sign(after))};
    if (item.closes) this.close(item);
    if (item.count && item.opens) {
      this.openers[c].push(this.out.length);
      this.out.push(item);
    } else if (item.count) {
      this.say(c.repeat(item.count));
    }
  }

  close(item) {
    const openers = this.openers[item.mark];
    while (item.count && openers.length) {
      const place = openers.at(-1), opener = this.out[place];
      if ((item.opens || opener.closes) && (item.count + opener.count) % 3 === 0 &&
          (item.count % 3 || opener.count % 3)) return;
      const n = item.count > 1 && opener.count > 1 ? 2 : 1;
      const inside = this.finish(place + 1);
      const depth = 1 + deepest(inside);
      if (depth > MAX_DEPTH) { // they all stay text
        openers.length = 0;
        this.out.push(...inside);
        return;
      }
      opener.count -= n;
      item.count -= n;
      if (!opener.count) {
        openers.pop();
        this.out.pop();
      }
      this.put(h(TAGS[item.mark][n - 1], null, inside.map(i => i.node)), depth);
    }
  }

  bracket(c) {
    const n = c === '!' ? 2 : 1;
    this.brackets.push(this.out.length);
    this.out.push({mark: this.text.slice(this.at, this.at + n), count: 1});
    this.at += n;
  }

  closeBracket() {
    const place = this.brackets.pop();
    this.at++;
    const m = place === undefined ? null : this.match(TARGET);
    const address = m && safeAddress((m[1] ?? m[2]).replace(/\\(.)/g, '$1'));
    if (!address) return this.say(']'); // its [ is text, and so is where it leads
    const items = this.finish(place + 1), inside = items.map(item => item.node);
    const picture = this.out.pop().mark === '![';
    // No picture is fetched from elsewhere: its words lead to it.
    this.put(link(address, picture && !inside.length ? address : inside), 1 + deepest(items));
    this.at += m[0].length;
    if (!picture) this.brackets = []; // no link in a link
  }

  /** What has come since `from`, with openers that found no closer as text. */
  finish(from) {
    const items = this.out.splice(from);
    for (const list of Object.values(this.openers))
      while (list.length && list.at(-1) >= from) list.pop();
    while (this.brackets.length && this.brackets.at(-1) >= from) this.brackets.pop();
    return items.map(item => item.mark ? {node: item.mark.repeat(item.count), depth: 0} : item);
  }
}

export function inline(text) {
  return new Line(text).run();
}
