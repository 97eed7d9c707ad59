// SPDX-License-Identifier: Apache-2.0
//
// Why B takes another time than A: a waterfall from one to the other, and one
// list of causes, the largest first, whichever side they are on. What explains
// less than 1 % is folded, and what comes after the first twelve.

import type { App } from "./app";
import { deltaCell, deltaText } from "./compare";
import { h } from "./dom";
import { clean, count, kernelName, percent, time } from "./format";
import { nameCells } from "./names";
import { paper } from "./paper";
import { drawTable, type Col } from "./table";

export interface Cause {
  name: string;
  detail: string;
  badge: string;       // "only in B", or what kind of change it is
  a: number;
  b: number;
  counts: [number, number] | null;
  // The text as a link to what the row counts in A, in B, or in both.
  link(text: string | Node, side: "A" | "B" | ""): Node | string;
}

export interface Compared {
  id: string;                 // of the table, and of its option
  names: [string, string];
  totals: [number, number];   // ns
  causes: Cause[];
  csv?: (causes: Cause[]) => string;
}

const kFold = 0.01;
const kMostFalls = 10;
const kLeastRows = 3;    // shown, however little each explains
const kMostRows = 12;

const delta = (cause: Cause) => cause.b - cause.a;
const sumOf = (causes: Cause[]) =>
  causes.reduce((sum, cause) => sum + delta(cause), 0);

function badgeOf(cause: Cause): Node | null {
  return cause.badge ? h("span", { class: "mark" }, cause.badge) : null;
}

function largestFirst(causes: Cause[]): Cause[] {
  return causes.filter((cause) => cause.a !== 0 || cause.b !== 0)
    .sort((a, b) => Math.abs(delta(b)) - Math.abs(delta(a)));
}

// The largest causes, those above 1 % of all that changed, and the others.
function folded(causes: Cause[]): { shown: Cause[]; rest: Cause[] } {
  const all = causes.reduce((sum, c) => sum + Math.abs(delta(c)), 0);
  const large = causes.filter((c, i) => delta(c) !== 0 && i < kMostRows &&
    (i < kLeastRows || Math.abs(delta(c)) >= all * kFold)).length;
  return { shown: causes.slice(0, large), rest: causes.slice(large) };
}

// --- the waterfall ---

function fall(name: Node | string, from: number, to: number, value: Node | string,
              place: (ns: number) => number, kind: string): HTMLElement {
  const bar = h("i", { class: kind });
  const left = place(Math.min(from, to));
  bar.style.left = left + "%";
  bar.style.width = Math.max(0.3, place(Math.max(from, to)) - left) + "%";
  return h("li", {}, h("span", {}, name), h("span", { class: "track" }, bar),
           h("span", { class: "num" }, value));
}

function waterfall({ names, totals, causes }: Compared): HTMLElement {
  const falls = folded(causes).shown.slice(0, kMostFalls);
  const list: { name: Node | string; from: number; to: number }[] = [];
  let at = totals[0];
  for (const cause of falls) {
    list.push({ name: h("span", {}, cause.link(kernelName(cause.name, 90), ""),
                        badgeOf(cause)), from: at, to: at + delta(cause) });
    at += delta(cause);
  }
  // Small causes, those that a filter hides, and what no cause explains.
  if (totals[1] !== at) {
    list.push({ name: "all else", from: at, to: totals[1] });
  }
  const ends = list.flatMap(({ from, to }) => [from, to]);
  const low = Math.min(...totals, ...ends);
  const high = Math.max(...totals, ...ends, 1);
  // The axis begins where the differences can be seen.
  const begin = Math.max(0, low - (high - low) * 0.4);
  const place = (ns: number) => 100 * (ns - begin) / (high - begin);
  return h("figure", { class: "fall" },
    h("figcaption", { class: "muted" }, `From ${names[0]} to ${names[1]}` +
      (begin > 0 ? `; the axis begins at ${time(begin)}.` : ".")),
    h("ol", {}, fall(names[0], begin, totals[0], time(totals[0]), place, ""),
      ...list.map(({ name, from, to }) => fall(name, from, to,
        deltaCell(to - from), place, to > from ? "up" : "down")),
      fall(names[1], begin, totals[1], time(totals[1]), place, "")));
}

// --- the list ---

function bar(ns: number, most: number, side: "a" | "b"): HTMLElement {
  const mark = h("span", { class: "sidebar " + side, "aria-hidden": "true" });
  mark.style.width = Math.max(ns > 0 ? 1 : 0, 90 * ns / most) + "px";
  return mark;
}

export function causeColumns(names: [string, string], causes: Cause[]):
    Col<Cause>[] {
  const most = Math.max(1, ...causes.map((c) => Math.max(c.a, c.b)));
  const changed = causes.reduce((sum, c) => sum + Math.abs(delta(c)), 0);
  const shown = nameCells(causes.map((c) => kernelName(c.name, 200)));
  return [
    { key: "what", title: "what", wide: true, value: (c) => c.name,
      text: (c) => clean(`${c.name} ${c.detail}`, 500),
      cell: (c) => h("span", { title: clean(`${c.name} ${c.detail}`, 1500) },
        c.link(shown(kernelName(c.name, 200)), ""),
        badgeOf(c),
        c.detail ? h("small", {}, clean(c.detail, 200)) : null) },
    { key: "kind", title: "change", value: (c) => c.badge, hidden: true },
    { key: "a", title: "A", tip: names[0], numeric: true, value: (c) => c.a,
      text: (c) => time(c.a), cell: (c) =>
        h("span", {}, c.link(time(c.a), "A"), " ", bar(c.a, most, "a")) },
    { key: "delta", title: "B \u2212 A", numeric: true, value: delta,
      text: (c) => deltaText(delta(c)), cell: (c) => deltaCell(delta(c)) },
    { key: "b", title: "B", tip: names[1], value: (c) => c.b, text: (c) => time(c.b),
      cell: (c) => h("span", {}, bar(c.b, most, "b"), " ",
                     c.link(time(c.b), "B")) },
    { key: "percent", title: "%", numeric: true,
      tip: "Of the time in the first.",
      value: (c) => c.a > 0 ? delta(c) / c.a : null,
      text: (c) => c.a > 0 ? percent(delta(c), c.a) : "" },
    { key: "share", title: "share", numeric: true,
      tip: "Of all that changed, up or down.",
      value: (c) => Math.abs(delta(c)),
      text: (c) => percent(Math.abs(delta(c)), changed) },
    { key: "count", title: "count", numeric: true,
      value: (c) => c.counts ? c.counts[1] - c.counts[0] : null,
      text: (c) => c.counts === null ? ""
        : c.counts[0] === c.counts[1] ? count(c.counts[0])
        : `${count(c.counts[0])} \u2192 ${count(c.counts[1])}` },
  ];
}

// The list, with a row for each of the largest causes, or for all.
export function causeList(app: App, id: string, caption: string,
                          names: [string, string], found: Cause[],
                          csv?: (causes: Cause[]) => string): HTMLElement[] {
  const causes = largestFirst(found);
  const { shown, rest } = folded(causes);
  const option = id + ".all";
  const all = app.option(option) === "1" || paper.on;
  return [drawTable(app, { id, caption, rows: all ? causes : shown,
    columns: causeColumns(names, causes), sort: "",
    tall: causes.some((c) => c.detail !== ""), csv,
    empty: causes.length > 0 ? "Both take the same time." : "Nothing differs." }),
  ...rest.length > 0 && !paper.on ? [h("p", {}, app.button(all
    ? "Fold what explains little"
    : `${count(rest.length)} more, each ` + (shown.length < kMostRows
      ? "below 1 % of what changed" : "smaller than those above") +
      `, together ${deltaText(sumOf(rest))}`, () => app.go(app.withOption(option, all ? "" : "1")),
    { "data-k": option }))] : []];
}

// The waterfall and the list.
export function drawCauses(app: App, compared: Compared): HTMLElement[] {
  const { id, names, csv } = compared;
  const causes = largestFirst(compared.causes);
  return [waterfall({ ...compared, causes }), ...causeList(app, id,
    `Why ${names[1]} differs from ${names[0]}`, names, causes, csv)];
}
