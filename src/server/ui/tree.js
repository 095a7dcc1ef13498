// SPDX-License-Identifier: Apache-2.0
// tree.js: a conversation is a tree of turns: to edit or to ask again adds a sibling and keeps what
// there was. Each turn knows which of its children is looked at; ROOT stands before the first turn.
//
// Conversation: {id, title, named, created, updated, settings, nodes: {id: turn}}.
// Turn: {id, parent, children, chosen, role: 'user' | 'assistant' | 'tool', content, ...}.
export const ROOT = 'root';

export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, byte => byte.toString(36).padStart(2, '0')).join('');
}

export function newConversation(settings) {
  const now = Date.now();
  return {id: newId(), title: 'New chat', named: false, created: now, updated: now,
    settings: {...settings}, nodes: {[ROOT]: {id: ROOT, parent: null, children: [], chosen: null}}};
}

/** Adds a turn below `parent` and looks at it. */
export function add(conversation, parent, turn) {
  const node = {id: newId(), created: Date.now(), content: '', ...turn, parent, children: [],
    chosen: null};
  conversation.nodes[node.id] = node;
  conversation.nodes[parent].children.push(node.id);
  conversation.nodes[parent].chosen = node.id;
  return node;
}

/** The turns that are looked at, from the first on; up to and with `last`, if given. */
export function path(conversation, last) {
  const turns = [];
  let at = conversation.nodes[ROOT];
  while (at.id !== last && at.chosen) turns.push(at = conversation.nodes[at.chosen]);
  return turns;
}

export function siblings(conversation, node) {
  return conversation.nodes[node.parent].children;
}

/** Looks at the sibling that lies `by` places after (or before) this one. */
export function step(conversation, node, by) {
  const all = siblings(conversation, node), at = all.indexOf(node.id) + by;
  if (at >= 0 && at < all.length) conversation.nodes[node.parent].chosen = all[at];
}

/** What is wrong with a conversation that was read from a file, or null. */
export function fault(c) {
  const is = (value, type) => typeof value === type;
  if (!c || !is(c, 'object')) return 'is no object';
  if (!is(c.title, 'string')) return 'has no "title"';
  if (!c.nodes || !is(c.nodes, 'object') || !c.nodes[ROOT])
    return `has no "nodes" with a "${ROOT}"`;
  if (c.nodes[ROOT].parent !== null) return 'has no beginning';
  for (const [id, n] of Object.entries(c.nodes)) {
    if (!/^[a-z0-9]{1,64}$/.test(id) || n?.id !== id || !Array.isArray(n.children))
      return `turn "${id}" is none`;
    if (!n.children.every(k => Object.hasOwn(c.nodes, k) && c.nodes[k].parent === id))
      return `turn "${id}" has a child that is not its own`;
    if (n.chosen !== null && !n.children.includes(n.chosen)) return `turn "${id}" looks at none`;
    if (id === ROOT) continue;
    if (!['user', 'assistant', 'tool'].includes(n.role)) return `turn "${id}" has no known "role"`;
    if (!is(n.content, 'string')) return `turn "${id}" has no "content"`;
    if (!Object.hasOwn(c.nodes, n.parent) || !c.nodes[n.parent].children.includes(id))
      return `turn "${id}" has no parent`;
  }
  return null;
}
