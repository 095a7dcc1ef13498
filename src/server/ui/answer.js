// SPDX-License-Identifier: Apache-2.0
// answer.js: from a conversation to a request, and from the chunks of a stream to a turn.
import {path} from './tree.js';

/** A file as the model reads it, in a fence longer than any in it. */
function fileText(file) {
  const longest = Math.max(2, ...(file.text.match(/`+/g) ?? []).map(run => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${file.name}:\n${fence}\n${file.text.replace(/\n?$/, '\n')}${fence}`;
}

function message(turn) {
  if (turn.role === 'tool')
    return {role: 'tool', tool_call_id: turn.callId, name: turn.name, content: turn.content};
  if (turn.role === 'user') {
    const parts = [...(turn.files ?? []).map(fileText), turn.content].filter(Boolean);
    return {role: 'user', content: parts.join('\n\n')};
  }
  const out = {role: 'assistant', content: turn.content};
  if (turn.calls?.length) {
    if (turn.reasoning) out.reasoning_content = turn.reasoning; // the same line of thought goes on
    out.tool_calls = turn.calls.map(call => ({id: call.id, type: 'function',
      function: {name: call.name, arguments: call.arguments}}));
  }
  return out;
}

const says = turn => turn.role !== 'assistant' || turn.content || turn.calls?.length;

/** The request for what follows `last`; a setting that is not set is the server's. */
export function request(conversation, last, model) {
  const {system, tools, thinking, ...sampling} = conversation.settings;
  const messages = path(conversation, last).filter(says).map(message);
  if (system) messages.unshift({role: 'system', content: system});
  const out = {model, messages};
  for (const [name, value] of Object.entries(sampling))
    if (value !== null && value !== undefined && name !== 'model') out[name] = value;
  if (tools) out.tools = JSON.parse(tools);
  if (thinking) out.chat_template_kwargs = {enable_thinking: thinking === 'on'};
  return out;
}

function addCalls(turn, deltas) {
  turn.calls ??= [];
  for (const delta of deltas) {
    const call = turn.calls[delta.index ?? 0] ??= {id: '', name: '', arguments: ''};
    if (delta.id) call.id = delta.id;
    call.name += delta.function?.name ?? '';
    call.arguments += delta.function?.arguments ?? '';
  }
}

/** Takes a chunk into the turn. Returns the text that it brought. */
export function take(turn, chunk) {
  const choice = chunk.choices?.[0];
  const {content, reasoning_content: thought, tool_calls: calls} = choice?.delta ?? {};
  if (thought) turn.reasoning = (turn.reasoning ?? '') + thought;
  if (content) turn.content += content;
  if (calls) addCalls(turn, calls);
  if (choice?.finish_reason) turn.finish = choice.finish_reason;
  if (chunk.timings) turn.timings = chunk.timings;
  if (chunk.usage) turn.usage = chunk.usage;
  if (chunk.model) turn.model = chunk.model;
  return content ?? '';
}

const number = (value, digits = 0) =>
  value.toLocaleString('en', {maximumFractionDigits: digits});

/** The figures below an answer: what was read, what was written, how fast. */
export function figures(turn) {
  const {timings: t, usage: u} = turn, out = [];
  const read = u?.prompt_tokens, cached = u?.prompt_tokens_details?.cached_tokens;
  const written = u?.completion_tokens ?? t?.predicted_n;
  if (written) out.push(`${number(written)} tokens`);
  if (t?.predicted_n > 1 && t.predicted_per_second)
    out.push(`${number(t.predicted_per_second, 1)} tok/s`);
  if (read) out.push(`prompt ${number(read)}${cached ? ` (${number(cached)} cached)` : ''}`);
  if (turn.wait) out.push(`first after ${number(turn.wait / 1000, 2)} s`);
  return out;
}
