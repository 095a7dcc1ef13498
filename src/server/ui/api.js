// SPDX-License-Identifier: Apache-2.0
// api.js: what the page asks of the server. The key is kept as long as the tab, never longer.
const KEY = '1bit-key';
let ownKey = null; // where sessionStorage is closed to us

export function setKey(key) {
  ownKey = key;
  try {
    sessionStorage.setItem(KEY, key);
  } catch {
    // it lasts as long as the page
  }
}

function key() {
  try {
    return sessionStorage.getItem(KEY) ?? ownKey;
  } catch {
    return ownKey;
  }
}

/** An answer that is none: status 0 if there was no answer at all. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function complaint(reply) {
  try {
    const error = (await reply.json()).error;
    return String(error?.message ?? error ?? reply.statusText);
  } catch {
    return reply.statusText || 'the answer is no JSON';
  }
}

export async function ask(path, options = {}) {
  const headers = {};
  if (key()) headers.Authorization = `Bearer ${key()}`;
  if (options.body) headers['Content-Type'] = 'application/json';
  let reply;
  try {
    reply = await fetch(path, {cache: 'no-store', ...options, headers});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError(0, 'The server cannot be reached.');
  }
  if (!reply.ok) throw new ApiError(reply.status, await complaint(reply));
  return reply;
}

/** The models' names, the first one first. */
export async function models() {
  const list = await (await ask('/v1/models')).json();
  return (list.data ?? []).map(model => ({id: String(model.id), device: model.device,
    meta: model.meta ?? {}}));
}

/** The data of each event of a stream, as text. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const parts = (rest + value).split(/\r?\n\r?\n/);
    rest = parts.pop();
    for (const part of parts) {
      const data = part.split(/\r?\n/).filter(line => line.startsWith('data:'))
        .map(line => line.slice(5).replace(/^ /, '')).join('\n');
      if (data) yield data;
    }
  }
}

/** The chunks of a chat's answer. Throws if the server says so or the stream ends too early. */
export async function* chat(request, signal) {
  const reply = await ask('/v1/chat/completions',
    {method: 'POST', body: JSON.stringify({...request, stream: true,
      stream_options: {include_usage: true}}), signal});
  try {
    for await (const data of events(reply.body)) {
      if (data === '[DONE]') return;
      const chunk = JSON.parse(data);
      if (chunk.error)
        throw new ApiError(chunk.error.code ?? 500, String(chunk.error.message ?? chunk.error));
      yield chunk;
    }
  } catch (error) {
    if (error.name === 'AbortError' || error instanceof ApiError) throw error;
    throw new ApiError(0, 'The connection was lost.');
  }
  throw new ApiError(0, 'The answer broke off.');
}
