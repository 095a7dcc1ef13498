// SPDX-License-Identifier: Apache-2.0
// turns.js: a turn of a conversation on the page. A view is made once and told to show its turn
// again when that has changed; what can be done with a turn is main.js's to do (`actions`).
import {figures} from './answer.js';
import {copyButton} from './copy.js';
import {h, iconButton} from './dom.js';
import {chip} from './files.js';
import {Markdown} from './markdown.js';
import {siblings} from './tree.js';

const EDIT = 'M5 19l1-4L16 5l3 3L9 18z', AGAIN = 'M20 12a8 8 0 1 1-2.5-5.8M20 4v4h-4';
const BACK = 'M14 6l-6 6 6 6', ON = 'M10 6l6 6-6 6', MORE = 'M5 5l7 7-7 7M13 5l7 7-7 7';
const FINISH = {length: 'The limit of tokens was reached.', stopped: 'Stopped.'};

function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json; // not whole yet, or the model's own idea
  }
}

export class TurnView {
  constructor(conversation, turn, actions) {
    Object.assign(this, {conversation, turn, actions});
    const who = {user: 'You', assistant: 'Answer', tool: `Result of ${turn.name ?? 'a tool'}`};
    this.body = h('div', {class: 'body'});
    this.foot = h('div', {class: 'foot'});
    this.element = h('article', {class: `turn ${turn.role}`, 'data-turn': turn.id},
      h('h2', {class: 'hidden'}, who[turn.role]), this.body, this.foot);
    if (turn.role === 'assistant') this.startAnswer();
    this.show(false);
  }

  startAnswer() {
    this.thought = new Markdown();
    this.thoughtHead = h('summary');
    this.thoughtBox = h('details', {class: 'fold', hidden: true}, this.thoughtHead,
      this.thought.element);
    this.text = new Markdown();
    this.waiting = h('p', {class: 'waiting', hidden: true}, h('span'), h('span'), h('span'));
    this.calls = h('div');
    this.trouble = h('div');
    this.body.append(this.thoughtBox, this.text.element, this.waiting, this.calls, this.trouble);
  }

  /** `running`: tokens still come. */
  show(running) {
    if (this.editor) return;
    if (this.turn.role === 'assistant') this.showAnswer(running);
    else if (this.turn.role === 'tool') this.showResult();
    else this.showQuestion();
    this.showFoot(running);
  }

  showQuestion() {
    const {turn} = this;
    this.body.replaceChildren(...[
      turn.files?.length ? h('ul', {class: 'chips'}, turn.files.map(file => chip(file))) : null,
      turn.content ? h('div', {class: 'plain'}, turn.content) : null].filter(Boolean));
  }

  showResult() {
    this.body.replaceChildren(h('details', {class: 'fold'},
      h('summary', null, `Result of ${this.turn.name}`),
      h('pre', {tabindex: 0}, this.turn.content)));
  }

  showAnswer(running) {
    const {turn} = this;
    this.element.setAttribute('aria-busy', running);
    const thinking = running && !turn.content && !turn.calls?.length;
    this.thoughtBox.hidden = !turn.reasoning;
    this.thoughtHead.textContent = thinking ? 'Thinking…' : 'Thoughts';
    if (turn.reasoning) this.thought.set(turn.reasoning);
    this.text.set(turn.content);
    this.waiting.hidden = !thinking || Boolean(turn.reasoning);
    this.showCalls(running);
    this.showTrouble(running);
  }

  /** Redrawn only when they change: results that are being written stay. */
  showCalls(running) {
    const {calls, children} = this.turn;
    const state = JSON.stringify([calls, running, children.length]);
    if (!calls?.length || state === this.callsState) return;
    this.callsState = state;
    this.calls.replaceChildren(...calls.map(call => h('details', {class: 'fold call', open: true},
      h('summary', null, 'Calls ', h('code', null, call.name)),
      h('pre', {tabindex: 0}, pretty(call.arguments)))));
    if (running || children.length) return;
    const fields = calls.map(() => h('textarea', {rows: 2, class: 'mono'}));
    this.calls.append(h('form', {class: 'results', onsubmit: event => {
      event.preventDefault();
      this.actions.results(this.turn, fields.map(field => field.value));
    }}, calls.map((call, i) => h('label', null, `Result of ${call.name}`, fields[i])),
    h('button', {class: 'primary'}, 'Send results')));
  }

  showTrouble(running) {
    const {error, finish} = this.turn;
    const state = `${running} ${error?.message} ${finish}`;
    if (state === this.troubleState) return;
    this.troubleState = state;
    this.trouble.replaceChildren();
    if (running) return;
    if (error) {
      this.trouble.append(h('p', {class: 'error', role: 'alert'},
        h('span', null, error.status ? `${error.message} (${error.status})` : error.message),
        h('button', {type: 'button', onclick: () => this.actions.retry(this.turn)}, 'Retry')));
    } else if (FINISH[finish]) {
      this.trouble.append(h('p', {class: 'faint'}, FINISH[finish]));
    }
  }

  showFoot(running) {
    const {turn, actions} = this;
    this.foot.replaceChildren();
    if (running) return;
    this.foot.append(...this.arrows());
    if (turn.role === 'user') {
      this.foot.append(iconButton('Edit', EDIT, () => actions.edit(turn)),
        copyButton('Copy message', () => turn.content));
    } else if (turn.role === 'assistant') {
      this.foot.append(iconButton('Answer again', AGAIN, () => actions.again(turn)));
      if (turn.content && !turn.calls?.length && (FINISH[turn.finish] || turn.error))
        this.foot.append(iconButton('Go on', MORE, () => actions.goOn(turn)));
      if (turn.content) {
        this.foot.append(iconButton('Edit answer', EDIT, () => actions.edit(turn)),
          copyButton('Copy answer', () => turn.content));
      }
      this.foot.append(h('span', {class: 'figures'}, figures(turn).join(' · ')));
    }
  }

  arrows() {
    const all = siblings(this.conversation, this.turn), at = all.indexOf(this.turn.id);
    if (all.length < 2) return [];
    const go = by => () => this.actions.step(this.turn, by);
    return [h('span', {class: 'versions', role: 'group', 'aria-label': 'Versions'},
      iconButton('Version before', BACK, go(-1), {disabled: at === 0}),
      h('span', null, `${at + 1}/${all.length}`),
      iconButton('Next version', ON, go(1), {disabled: at === all.length - 1}))];
  }

  /** The turn's text as a field; done(text) when it is sent, done(null) when it is not. */
  edit(done) {
    const question = this.turn.role === 'user';
    const area = h('textarea', {'aria-label': question ? 'Your message' : 'The answer', rows: 3});
    const end = text => {
      this.editor = null;
      this.element.classList.remove('editing');
      if (this.turn.role === 'assistant') {
        this.body.replaceChildren(this.thoughtBox, this.text.element, this.waiting, this.calls,
          this.trouble);
      }
      this.show(false);
      done(text);
    };
    area.value = this.turn.content;
    area.addEventListener('keydown', event => {
      if (event.key === 'Escape') {
        event.stopPropagation();
        end(null);
      } else if (event.key === 'Enter' && !event.shiftKey && !event.isComposing && question) {
        event.preventDefault();
        end(area.value);
      }
    });
    this.editor = h('form', {class: 'editor', onsubmit: event => {
      event.preventDefault();
      end(area.value);
    }}, area, h('div', {class: 'buttons'},
      h('button', {type: 'button', onclick: () => end(null)}, 'Cancel'),
      h('button', {class: 'primary'}, question ? 'Send' : 'Save')));
    this.element.classList.add('editing');
    this.body.replaceChildren(this.editor);
    this.foot.replaceChildren();
    area.style.height = `${Math.min(400, Math.max(72, area.scrollHeight + 4))}px`;
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }
}
