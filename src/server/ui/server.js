// SPDX-License-Identifier: Apache-2.0
// server.js: what the page knows of the server: its models, whether it wants a key.
import {models, setKey} from './api.js';
import {$, h} from './dom.js';
import {askFor} from './notes.js';

const EVERY = 2000;

export class ServerInfo {
  constructor(onModel) {
    this.models = [];
    $('model').addEventListener('change', () => onModel($('model').value));
  }

  /** Asks for the models until one is loaded; for a key if the server wants one. */
  async load() {
    try {
      this.models = await models();
      this.say();
      if (!this.models.some(model => model.device)) setTimeout(() => this.load(), EVERY);
    } catch (error) {
      if (error.status === 401 && await this.askKey()) return this.load();
      $('where').textContent = error.message;
      if (error.status !== 401) setTimeout(() => this.load(), EVERY);
    }
  }

  /** Returns whether a key was given. */
  async askKey() {
    const again = this.asked ? 'That is no key of this server' : 'The server wants a key';
    if (this.asking) return false;
    this.asking = true;
    const key = await askFor(again, 'API key', '', {type: 'password', yes: 'Use it', id: 'key'});
    this.asking = false;
    if (key === null) return false;
    this.asked = true;
    setKey(key);
    return true;
  }

  say() {
    this.asked = false;
    const [first] = this.models;
    const context = first?.meta.n_ctx;
    const room = context ? `, context of ${context.toLocaleString('en')} tokens` : '';
    $('where').textContent =
      first?.device ? `${first.id} on ${first.device}${room}` : 'The model is loading.';
    $('model').replaceChildren(...this.models.map(model => h('option', null, model.id)));
    this.show(this.shown);
  }

  /** The model of a conversation: the one it names, if there is such a one. */
  of(conversation) {
    const wanted = conversation?.settings.model;
    return this.models.find(model => model.id === wanted)?.id ?? this.models[0]?.id ?? '';
  }

  show(conversation) {
    this.shown = conversation;
    const several = this.models.length > 1;
    $('model-label').hidden = !several;
    $('model-name').hidden = several;
    $('model-name').textContent = this.of(conversation);
    $('model-name').title = this.of(conversation);
    $('model').value = this.of(conversation);
  }
}
