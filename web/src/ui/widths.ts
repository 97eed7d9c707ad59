// SPDX-License-Identifier: Apache-2.0
//
// Widths of columns that somebody has dragged, by table and column. They last
// as long as the page; a double click on the edge gives them back.

import { h } from "./dom";

const kLeast = 48;   // px
const kStep = 24;    // px of a key
const widths = new Map<string, Map<string, number>>();

// With widths of its own a table is as wide as their sum.
function apply(table: HTMLTableElement, id: string, keys: string[]): void {
  const own = widths.get(id);
  table.querySelector("colgroup")?.remove();
  table.style.tableLayout = own ? "fixed" : "";
  table.style.width = table.style.minWidth = "";
  if (!own) return;
  const cols = keys.map((key) => {
    const col = h("col");
    col.style.width = `${own.get(key) ?? 100}px`;
    return col;
  });
  const all = keys.reduce((sum, key) => sum + (own.get(key) ?? 100), 0);
  table.style.width = `${all}px`;
  table.style.minWidth = "0";
  table.querySelector("caption")!.after(h("colgroup", {}, ...cols));
}

// The heads get an edge to drag, and Alt with an arrow.
export function resizable(table: HTMLTableElement, id: string,
                          keys: string[]): void {
  const heads = [...table.querySelectorAll<HTMLElement>("thead th")];
  const set = (at: number, width: number) => {
    let own = widths.get(id);
    if (!own) {
      own = new Map(keys.map((key, i) => [key, heads[i]!.offsetWidth]));
      widths.set(id, own);
    }
    own.set(keys[at]!, Math.max(kLeast, Math.round(width)));
    apply(table, id, keys);
  };
  for (const [at, head] of heads.entries()) {
    const grip = h("span", { class: "grip", "aria-hidden": "true",
      title: "Drag: width of the column; double click: as usual" });
    let from: { x: number; width: number } | null = null;
    grip.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX, width: head.offsetWidth };
      grip.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    grip.addEventListener("pointermove", (event) => {
      if (from) set(at, from.width + event.clientX - from.x);
    });
    grip.addEventListener("pointerup", () => { from = null; });
    grip.addEventListener("pointercancel", () => { from = null; });
    grip.addEventListener("dblclick", () => {
      widths.delete(id);
      apply(table, id, keys);
    });
    head.append(grip);
    head.addEventListener("keydown", (event) => {
      if (!event.altKey || !/^Arrow(Left|Right)$/.test(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
      set(at, head.offsetWidth + (event.key === "ArrowRight" ? kStep : -kStep));
    });
  }
  apply(table, id, keys);
}
