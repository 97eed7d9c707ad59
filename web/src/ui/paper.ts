// SPDX-License-Identifier: Apache-2.0
//
// Whether what is drawn goes to paper: with more dots than a screen has, and
// without anything to scroll or to open.

import { h } from "./dom";

export const paper = { on: false };

// What can be done on a screen, which page.css leaves out on paper.
export function hint(...words: (Node | string)[]): HTMLElement {
  return h("span", { class: "hint" }, ...words);
}
