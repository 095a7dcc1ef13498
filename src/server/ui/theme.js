// SPDX-License-Identifier: Apache-2.0
// theme.js: light, dark or as the system has it. No module, so that it runs before the first paint.
(() => {
  'use strict';
  const KEY = '1bit-theme', NEXT = {auto: 'light', light: 'dark', dark: 'auto'};
  const NAME = {auto: 'as the system', light: 'light', dark: 'dark'};

  function stored() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // a browser that keeps nothing
    }
  }

  let theme = stored() in NEXT ? stored() : 'auto';

  function show() {
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById('theme');
    if (!button) return;
    button.setAttribute('aria-label', `Colours: ${NAME[theme]}`);
    button.title = `Colours: ${NAME[theme]}`;
  }

  show();
  addEventListener('DOMContentLoaded', () => {
    show();
    document.getElementById('theme').addEventListener('click', () => {
      theme = NEXT[theme];
      show();
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        // it holds until the page is left
      }
    });
  });
})();
