// SPDX-License-Identifier: Apache-2.0
// stream.js: one answer on its way: from its request to its last chunk, shown as it grows and kept
// every other second, so that a page that is closed meanwhile has lost little.
import {chat} from './api.js';
import {take} from './answer.js';

const SAVE_EVERY = 2000;

export class Stream {
  /** show(text) is called when something new is there, save() when it is time to. */
  constructor(turn, {show, save}) {
    Object.assign(this, {turn, show, save});
    this.controller = new AbortController();
  }

  stop() {
    this.controller.abort();
  }

  /** Text is shown in pieces: the longer showing takes, the fewer. */
  shown(text) {
    this.fresh = (this.fresh ?? '') + text;
    if (this.timer) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      const start = performance.now(), fresh = this.fresh;
      this.fresh = '';
      this.show(fresh);
      this.pause = Math.max(16, 4 * (performance.now() - start));
    }, this.pause ?? 0);
  }

  async run(request) {
    const {turn} = this, start = performance.now();
    let saved = start;
    for (const name of ['error', 'finish', 'timings', 'usage', 'wait']) delete turn[name];
    try {
      for await (const chunk of chat(request, this.controller.signal)) {
        const text = take(turn, chunk), now = performance.now();
        if (!turn.wait && (text || turn.reasoning || turn.calls)) turn.wait = now - start;
        this.shown(text);
        if (now - saved > SAVE_EVERY) {
          saved = now;
          this.save();
        }
      }
      turn.finish ??= 'stop';
    } catch (error) {
      if (error.name === 'AbortError') turn.finish = 'stopped';
      else turn.error = {message: error.message, status: error.status ?? 0};
    }
    if (this.timer) clearTimeout(this.timer);
    this.show(this.fresh ?? '');
    if (turn.calls) turn.calls = turn.calls.filter(Boolean);
    this.save();
  }
}
