// SPDX-License-Identifier: Apache-2.0
//
// Names of a list that tell apart: what many share is pale and gives way first,
// what one has alone is bold and gives way last, so that the ellipsis stands in
// the middle. Copied text is the whole name.

import { tellApart } from "../data/apart";
import { h } from "./dom";
import { paper } from "./paper";

export function nameCells(names: Iterable<string>): (name: string) =>
    HTMLElement {
  // Paper breaks names into lines.
  if (paper.on) return (name) => h("span", {}, name);
  const parts = tellApart(names);
  return (name) => {
    const { head, middle, tail } = parts(name);
    return h("span", { class: "apart" },
      head ? h("span", { class: "head" }, head) : null,
      h("span", { class: head ? "own" : "rest" }, ...middle.map(({ text, own }) =>
        own ? h("b", {}, text) : text)),
      tail ? h("span", { class: head ? "tail" : "end" }, tail) : null);
  };
}
