// SPDX-License-Identifier: Apache-2.0
// blocks.js: Markdown into blocks: headings, lists, quotes, code, tables, rules, paragraphs. Each
// has the lines that it was made of, so that a text that grows only builds its last block anew.
const FENCE = /^( {0,3})(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s(.*))?$/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const UNDER = /^:?-+:?$/; // a cell of the line below a table's head
const MAX_DEPTH = 12; // of lists and quotes in each other; what is deeper is text

const blank = line => !line.trim();
const indent = line => line.length - line.trimStart().length;

/** A heading may end as it began. */
function heading(text) {
  const trimmed = text.trim();
  let n = trimmed.length;
  while (trimmed[n - 1] === '#') n--;
  return n === 0 || trimmed[n - 1] === ' ' ? trimmed.slice(0, n).trimEnd() : trimmed;
}

function startsBlock(line) {
  return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line);
}

class Lines {
  constructor(lines, depth) {
    this.lines = lines;
    this.depth = depth;
    this.at = 0;
  }

  get line() {
    return this.lines[this.at];
  }

  get more() {
    return this.at < this.lines.length;
  }

  all() {
    const out = [];
    while (this.more) {
      if (blank(this.line)) {
        this.at++;
        continue;
      }
      const from = this.at;
      const block = this.next();
      block.source = this.lines.slice(from, this.at).join('\n');
      out.push(block);
    }
    return out;
  }

  next() {
    let m;
    if ((m = FENCE.exec(this.line))) return this.fence(m);
    if ((m = HEADING.exec(this.line))) {
      this.at++;
      return {type: 'heading', level: m[1].length, text: heading(m[2] ?? '')};
    }
    if (RULE.test(this.line)) {
      this.at++;
      return {type: 'rule'};
    }
    if (this.depth < MAX_DEPTH) {
      if (QUOTE.test(this.line)) return this.quote();
      if ((m = ITEM.exec(this.line))) return this.list(m);
    }
    if (this.isTable()) return this.table();
    return this.paragraph();
  }

  fence([, space, sign, info]) {
    const end = new RegExp(`^ {0,3}${sign[0]}{${sign.length},}\\s*$`), code = [];
    for (this.at++; this.more && !end.test(this.line); this.at++)
      code.push(this.line.slice(Math.min(space.length, indent(this.line))));
    const closed = this.more;
    this.at++;
    return {type: 'code', language: info.trim().split(/\s/)[0], text: code.join('\n'), closed};
  }

  quote() {
    const lines = [];
    let text = false; // a paragraph goes on without the sign
    for (; this.more && !blank(this.line); this.at++) {
      const own = QUOTE.test(this.line);
      if (!own && (!text || startsBlock(this.line) || ITEM.test(this.line))) break;
      const line = own ? this.line.replace(QUOTE, '') : this.line;
      text = !blank(line) && !FENCE.test(line);
      lines.push(line);
    }
    return {type: 'quote', blocks: new Lines(lines, this.depth + 1).all()};
  }

  list(first) {
    const kind = m => m[2].length === 1 ? m[2] : m[2].at(-1);
    const block = {type: 'list', ordered: first[2].length > 1, start: parseInt(first[2], 10),
      items: [], loose: false};
    const base = first[1].length;
    let m = first, gap = false;
    while (m && kind(m) === kind(first) && !RULE.test(this.line)) {
      const {lines, loose} = this.item(m);
      block.loose ||= loose || gap;
      gap = blank(this.lines[this.at - 1]); // loose if another item follows it
      block.items.push(this.task(lines));
      m = this.more ? ITEM.exec(this.line) : null;
      if (m && (m[1].length < base || m[1].length > base + 3)) break;
    }
    return block;
  }

  /** Lines that are indented to the item's text belong to it, and those that follow a paragraph. */
  item([all, space, sign, gap]) {
    const width = gap.length > 4 || !gap ? space.length + sign.length + 1 : all.length;
    const lines = [this.line.slice(all.length - (gap.length > 4 ? gap.length - 1 : 0))];
    let empty = false, loose = false, fence = null;
    for (this.at++; this.more; this.at++) {
      const {line} = this;
      if (blank(line)) {
        empty = true;
        lines.push('');
        continue;
      }
      const inside = indent(line) >= Math.min(width, space.length + 2);
      if (!inside && (empty || fence || startsBlock(line) || ITEM.test(line))) break;
      const text = inside ? line.slice(Math.min(width, indent(line))) : line.trimStart();
      const m = FENCE.exec(text);
      if (m && !fence) fence = m[2];
      else if (m && m[2].startsWith(fence) && !m[3].trim()) fence = null;
      if (empty && !fence) loose = true;
      empty = false;
      lines.push(text);
    }
    while (lines.length > 1 && !lines.at(-1)) lines.pop();
    return {lines, loose};
  }

  task(lines) {
    const m = /^\[([ xX])\]\s+/.exec(lines[0]);
    if (m) lines[0] = lines[0].slice(m[0].length);
    return {done: m ? m[1] !== ' ' : null, blocks: new Lines(lines, this.depth + 1).all()};
  }

  isTable() {
    const under = this.lines[this.at + 1];
    return this.line.includes('|') && under !== undefined && under.includes('-') &&
      cells(under).every(c => UNDER.test(c)) && cells(this.line).length === cells(under).length;
  }

  table() {
    const head = cells(this.line);
    const align = cells(this.lines[this.at + 1]).map(c =>
      c.endsWith(':') ? (c.startsWith(':') ? 'center' : 'right') : null);
    const rows = [];
    for (this.at += 2; this.more && !blank(this.line) && !startsBlock(this.line); this.at++)
      rows.push(cells(this.line).slice(0, head.length));
    return {type: 'table', head, align, rows};
  }

  paragraph() {
    const lines = [];
    do lines.push(this.lines[this.at++].trimStart());
    while (this.more && !blank(this.line) && !startsBlock(this.line) && !this.isTable() &&
           (this.depth >= MAX_DEPTH || !ITEM.test(this.line)));
    return {type: 'paragraph', text: lines.join('\n').trimEnd()};
  }
}

/** A row's cells; a | in code or behind a backslash is none of their borders. */
function cells(line) {
  const inner = line.trim().replace(/^\|/, '').replace(/(?<!\\)\|$/, '');
  const out = [''];
  let code = false;
  for (let i = 0; i < inner.length; i++) {
    if (inner[i] === '\\' && inner[i + 1] === '|') out[out.length - 1] += inner[++i];
    else if (inner[i] === '|' && !code) out.push('');
    else out[out.length - 1] += inner[i];
    if (inner[i] === '`') code = !code && inner.includes('`', i + 1);
  }
  return out.map(cell => cell.trim());
}

export function blocks(text) {
  return new Lines(text.replace(/\r\n?/g, '\n').replaceAll('\t', '    ').split('\n'), 0).all();
}
