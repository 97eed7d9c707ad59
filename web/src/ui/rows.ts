// SPDX-License-Identifier: Apache-2.0
//
// A table of the engine as it is: columns from its schema, links where a cell
// names an event, exact copies.

import type { Table } from "../data/model";
import type { App } from "./app";
import { showEvent } from "./events";
import { h } from "./dom";
import { cell, clean, heading, kernelName, shapes, tableCsv } from "./format";
import { nameCells } from "./names";
import { paper } from "./paper";
import { drawTable, type Col } from "./table";

// Columns of names that can be long and alike.
const kNames = /(^|_)(kernel|name|module|path|what)(_[ab])?$/;
const kShapes = /^(input_dims|input_types|types)$/;

export interface RowOptions {
  id: string;
  rows?: number[];
  caption?: string;
  sort?: string;
  all?: boolean;      // hidden columns too
  note?: string;
  empty?: string;
  // Other cells for some columns.
  cells?: Record<string, (row: number) => Node | string>;
  leaveOut?: string[];
}

// Keys of columns are letters only, so that addresses stay simple.
function keyOf(index: number): string {
  return String.fromCharCode(97 + Math.floor(index / 26)) +
    String.fromCharCode(97 + index % 26);
}

export function rowColumns(app: App, table: Table, options: RowOptions):
    Col<number>[] {
  const columns: Col<number>[] = [];
  const heads = table.info.columns.map((column) => heading(column.name));
  for (const [c, column] of table.info.columns.entries()) {
    const own = options.cells?.[column.name];
    if (options.leaveOut?.includes(column.name)) continue;
    // Paper has room for the columns that a reader needs first.
    const all = options.all && !paper.on;
    if (column.shown === "hidden" && !all && !own) continue;
    const numeric = column.type !== "text" && column.type !== "bool" &&
      !column.text;
    // uid_a is an event of trace A.
    const side = /^uid_([a-z])$/.exec(column.name)?.[1];
    const names = column.type === "text" && kNames.test(column.name) && !own
      ? nameCells((options.rows ?? Array.from({ length: table.rows },
          (_, row) => row)).map((row) => kernelName(table.str(row, c)))) : null;
    const isEvent = /(^|_)uid$/.test(column.name) || side !== undefined;
    const first = app.model.traces.find((t) =>
      t.name.toLowerCase() === side)?.first_uid ?? 0;
    columns.push({
      // "cause" and "cause_us" are two.
      key: keyOf(c), title: heads[c] + (column.type === "time" &&
        heads.indexOf(heads[c]!) !== heads.lastIndexOf(heads[c]!) ? " time"
        : ""), tip: column.doc, numeric,
      wide: c === 0 && column.type === "text",
      value: (row) => table.at(row, c),
      text: (row) => cell(table.at(row, c), column),
      cell: own ?? (isEvent ? (row) => eventLink(app, table, row, c, first)
        : column.shown === "bar" ? (row) => meter(table, row, c)
        : column.type === "text" ? (row) => textCell(table, row, c, names)
        : undefined),
    });
  }
  return columns;
}

function textCell(table: Table, row: number, column: number,
                  names: ((name: string) => Node) | null): Node {
  const text = table.str(row, column);
  if (text === "") return h("span");
  const shown = kShapes.test(table.info.columns[column]!.name)
    ? shapes(text) : names ? names(kernelName(text)) : kernelName(text);
  return h("span", { title: clean(text, 2000) }, shown);
}

export function meter(table: Table, row: number, column: number): Node {
  const info = table.info.columns[column]!;
  const value = table.at(row, column);
  const bar = h("span", { class: "meter", "aria-hidden": "true" });
  bar.style.width = Math.max(0, Math.min(100, Number(value ?? 0))) * 0.6 + "px";
  return h("span", {}, cell(value, info), bar);
}

function eventLink(app: App, table: Table, row: number, column: number,
                   first: number): Node | string {
  const uid = table.at(row, column);
  if (uid === null || !app.model.hasEvents) return uid === null ? "" :
    String(uid);
  return app.link(String(uid), showEvent(app, first + Number(uid)));
}

export function drawRows(app: App, table: Table, options: RowOptions):
    HTMLElement {
  const rows = options.rows ?? Array.from({ length: table.rows }, (_, i) => i);
  return drawTable<number>(app, {
    id: options.id, caption: options.caption ?? table.info.doc, rows,
    columns: rowColumns(app, table, options), sort: options.sort ?? "",
    csv: (sorted) => tableCsv(table, sorted),
    note: options.note, empty: options.empty,
  });
}
