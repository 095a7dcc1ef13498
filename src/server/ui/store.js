// SPDX-License-Identifier: Apache-2.0
// store.js: conversations in this browser's IndexedDB, and nowhere else. Where there is none (some
// private windows) they last as long as the page. Other tabs hear of each change.
const BASE = '1bit', TABLE = 'conversations', VERSION = 1;

let base = null;
const channel = 'BroadcastChannel' in globalThis ? new BroadcastChannel(BASE) : null;

function done(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

function table(mode) {
  return base.transaction(TABLE, mode).objectStore(TABLE);
}

/** Returns whether conversations will still be there later. */
export async function open() {
  try {
    const request = indexedDB.open(BASE, VERSION);
    request.onupgradeneeded = () => request.result.createObjectStore(TABLE, {keyPath: 'id'});
    base = await done(request);
    base.onversionchange = () => base.close();
    return true;
  } catch {
    return false;
  }
}

export async function all() {
  return base ? done(table('readonly').getAll()) : [];
}

export async function get(id) {
  return base ? done(table('readonly').get(id)) : undefined;
}

export async function put(conversation) {
  if (base) await done(table('readwrite').put(conversation));
  channel?.postMessage(conversation.id);
}

export async function remove(id) {
  if (base) await done(table('readwrite').delete(id));
  channel?.postMessage(id);
}

/** Calls f(id) when another tab has changed or deleted a conversation. */
export function onChange(f) {
  if (channel) channel.onmessage = event => f(event.data);
}
