// SPDX-License-Identifier: Apache-2.0
// charts.js: the last numbers of something as a small line, with its words beside it.
import {h, svg} from './dom.js';

const WIDTH = 240, HEIGHT = 44, POINTS = 60;

export class Chart {
  constructor(title, unit) {
    this.values = [];
    this.unit = unit;
    this.now = h('span', {class: 'now'}, '–');
    this.area = svg('path', {class: 'area'});
    this.line = svg('path', {class: 'line', 'vector-effect': 'non-scaling-stroke'});
    this.element = h('figure', {class: 'chart'},
      h('figcaption', null, h('span', null, title), this.now),
      svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none',
        'aria-hidden': 'true'}, this.area, this.line));
  }

  add(value) {
    this.values.push(value);
    if (this.values.length > POINTS) this.values.shift();
    const most = Math.max(...this.values, 1e-9), step = WIDTH / (POINTS - 1);
    const shown = this.values.length > 1 ? this.values : [value, value];
    const from = POINTS - shown.length;
    const points = shown.map((v, i) =>
      `${((from + i) * step).toFixed(1)},${(HEIGHT - 2 - v / most * (HEIGHT - 6)).toFixed(1)}`);
    const line = `M${points.join('L')}`;
    this.line.setAttribute('d', line);
    this.area.setAttribute('d', `${line}V${HEIGHT}H${(from * step).toFixed(1)}Z`);
    this.now.textContent =
      `${value.toLocaleString('en', {maximumFractionDigits: value < 100 ? 1 : 0})} ${this.unit}`;
  }
}
