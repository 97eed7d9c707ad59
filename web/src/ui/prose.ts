// SPDX-License-Identifier: Apache-2.0
//
// Sentences of the engine in the style of the page's numbers. They say times with
// three digits; where just one number of the rows that prove a sentence rounds to
// such a time, it stands there as in the tables.

import type { Note } from "../data/manifest";
import type { Table } from "../data/model";
import type { App } from "./app";
import { time } from "./format";

const kMostRows = 2000;   // of a table that is looked at
const kFewRows = 4;       // differences of its rows count as well

// As the engine writes times in sentences.
function short(ns: number): string {
  const size = Math.abs(ns);
  if (size < 1e3) return `${ns} ns`;
  const [scale, unit] = size < 1e6 ? [1e3, "us"] : size < 1e9 ? [1e6, "ms"]
    : [1e9, "s"];
  const value = size / (scale as number);
  return `${value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)} ${unit}`;
}

type Known = Map<string, Set<string>>;

function add(known: Known, ns: number): void {
  const key = short(Math.abs(ns));
  known.set(key, (known.get(key) ?? new Set()).add(time(Math.abs(ns))));
}

function addTable(known: Known, table: Table): void {
  for (const [c, column] of table.info.columns.entries()) {
    if (column.type !== "time" || table.rows > kMostRows) continue;
    const values = Array.from({ length: table.rows }, (_, row) =>
      table.num(row, c));
    for (const value of values) add(known, value);
    if (table.rows > kFewRows) continue;
    for (const a of values) for (const b of values) add(known, a - b);
  }
}

// Units and signs alone.
export function styled(text: string, known: Known = new Map()): string {
  return text.replace(/(^|[\s([])-(?=\d)/g, "$1\u2212").replace(/(^|[\s([])([\u2212+]?)(\d+(?:\.\d+)?) (ns|us|ms|s)(?![\w/])/g,
    (_, before: string, sign: string, number: string, unit: string) => {
      const found = known.get(`${number} ${unit}`);
      const [shown] = found?.size === 1 ? found
        : [`${number} ${unit === "us" ? "\u00b5s" : unit}`];
      return before + sign + shown;
    });
}

// The tables that prove a note are looked at as far as the view has read them.
export function prose(app: App, note: Note, text = note.text): string {
  const known: Known = new Map();
  const tables = note.evidence.map(({ table }) => table);
  if (note.severity === "verdict") tables.push("diff_totals", "diff_causes");
  if (note.worth_ns !== undefined) add(known, note.worth_ns);
  for (const name of new Set(tables)) {
    const table = app.model.table(name);
    if (table) addTable(known, table);
  }
  return styled(text, known);
}
