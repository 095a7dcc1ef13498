// SPDX-License-Identifier: Apache-2.0
// panel.js: what the server does now: its health, slots and metrics, of which it may have none, and
// the speed of this page's own answers. It asks only while it is open and seen.
import {ask} from './api.js';
import {Chart} from './charts.js';
import {$, h, iconButton} from './dom.js';

const EVERY = 2000;

/** A path that the server may not have: null then, and for now when it does not answer. */
async function optional(path, read) {
  try {
    return await read(await ask(path));
  } catch {
    return null;
  }
}

/** Prometheus' text: the sum of each name, without what stands before its colon. */
export function metrics(text) {
  const out = new Map();
  for (const line of text.split('\n')) {
    const m = /^([a-zA-Z_:][\w:]*)(?:\{[^}]*\})?\s+(\S+)/.exec(line);
    const value = m && Number(m[2]);
    if (!m || !Number.isFinite(value)) continue;
    const name = m[1].replace(/^\w+:/, '');
    out.set(name, (out.get(name) ?? 0) + value);
  }
  return out;
}

const write = n => n.toLocaleString('en', {maximumFractionDigits: 1});

export class Panel {
  constructor() {
    this.own = new Chart('Answers of this page', 'tok/s');
    this.charts = {
      tokens_predicted_total: new Chart('Written', 'tok/s'),
      prompt_tokens_total: new Chart('Read', 'tok/s'),
    };
    this.queue = new Chart('Requests in line', '');
    this.health = h('dd');
    this.cached = h('dd');
    this.cachedRow = [h('dt', {hidden: true}, 'Prompt tokens cached'), this.cached];
    this.read = this.found = 0; // by this page's answers
    this.facts = h('dl', null, h('dt', null, 'Server'), this.health, this.cachedRow);
    this.slots = h('ul', {class: 'slots', 'aria-label': 'Slots'});
    this.slotsHead = h('h3', {hidden: true}, 'Slots');
    this.numbers = h('dl', {class: 'numbers'});
    for (const chart of [...Object.values(this.charts), this.queue]) chart.element.hidden = true;
    this.own.element.hidden = true;
    $('panel').append(
      h('div', {class: 'bar'}, h('h2', null, 'Server'),
        iconButton('Close', 'M6 6l12 12M18 6L6 18', () => this.toggle(false))),
      this.facts, this.own.element, ...Object.values(this.charts).map(c => c.element),
      this.queue.element, this.slotsHead, this.slots, this.numbers);
    $('panel-open').addEventListener('click', () => this.toggle($('panel').hidden));
    $('panel').addEventListener('keydown', event => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      this.toggle(false);
    });
    setInterval(() => this.refresh(), EVERY);
  }

  toggle(shown) {
    $('panel').hidden = !shown;
    $('panel-open').setAttribute('aria-expanded', shown);
    if (shown) {
      this.before = null;
      this.refresh();
      $('panel').querySelector('button').focus();
    } else {
      $('panel-open').focus();
    }
  }

  /** An answer of this page has ended. */
  add({timings, usage}) {
    if (usage?.prompt_tokens) {
      this.read += usage.prompt_tokens;
      this.found += usage.prompt_tokens_details?.cached_tokens ?? 0;
      this.cachedRow[0].hidden = false;
      this.cached.textContent = `${write(this.found)} of ${write(this.read)}`;
    }
    if (!timings?.predicted_per_second || timings.predicted_n < 2) return;
    this.own.element.hidden = false;
    this.own.add(timings.predicted_per_second);
  }

  async refresh() {
    if ($('panel').hidden || document.hidden || this.asking) return;
    const {none = {}} = this;
    this.asking = true;
    const [health, slots, numbers] = await Promise.all([this.askHealth(),
      none.slots ? null : optional('/slots', reply => reply.json()),
      none.metrics ? null : optional('/metrics', async reply => metrics(await reply.text()))]);
    this.asking = false;
    this.health.textContent = health;
    // What a server that is well does not have it will not have later.
    if (health === 'ready') this.none = {slots: slots === null, metrics: numbers === null};
    this.showSlots(Array.isArray(slots) ? slots : []);
    if (numbers) this.showMetrics(numbers);
  }

  async askHealth() {
    try {
      await ask('/health');
      return 'ready';
    } catch (error) {
      return error.status === 503 ? 'loading the model' : error.message;
    }
  }

  showSlots(slots) {
    this.slotsHead.hidden = !slots.length;
    this.slots.replaceChildren(...slots.map(slot => {
      const busy = Boolean(slot.is_processing);
      const n = slot.n_past ?? slot.next_token?.n_decoded ?? slot.next_token?.[0]?.n_decoded;
      return h('li', {class: busy ? 'busy' : null}, `${slot.id} ${busy ? 'busy' : 'idle'}`,
        n === undefined ? null : `, ${write(n)} tokens`);
    }));
  }

  showMetrics(now) {
    const time = performance.now(), {before} = this;
    for (const [name, chart] of Object.entries(this.charts)) {
      if (!now.has(name)) continue;
      chart.element.hidden = false;
      if (before?.has(name))
        chart.add(Math.max(0, now.get(name) - before.get(name)) / (time - this.time) * 1000);
    }
    const waiting = now.get('requests_deferred');
    this.queue.element.hidden = waiting === undefined;
    if (waiting !== undefined) this.queue.add(waiting);
    this.before = now;
    this.time = time;
    const facts = [['Answers under way', 'requests_processing'],
      ['Tokens read', 'prompt_tokens_total'], ['of the cache', 'prompt_tokens_cached_total'],
      ['Tokens written', 'tokens_predicted_total']].filter(([, name]) => now.has(name));
    this.numbers.replaceChildren(...facts.flatMap(([label, name]) =>
      [h('dt', null, label), h('dd', null, write(now.get(name)))]));
  }
}
