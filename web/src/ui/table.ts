// SPDX-License-Identifier: Apache-2.0
//
// A table for people: sorted by a click on a head, only visible rows in the
// document, copied as CSV or Markdown. Empty cells sort last both ways.

import type { App } from "./app";
import { copyText, download, h } from "./dom";
import { markdown, textCsv } from "./format";
import { hint, paper } from "./paper";
import { resizable } from "./widths";

export interface Col<Row> {
  key: string;       // in the address: letters
  title: string;
  tip?: string;
  numeric?: boolean;
  // To sort by, and as text for copies.
  value(row: Row): number | string | null;
  text?(row: Row): string;
  // What stands in the cell; else the text.
  cell?(row: Row): Node | string;
  wide?: boolean;    // takes the width that is left
  hidden?: boolean;  // in copies alone
}

export interface TableOptions<Row> {
  id: string;          // in the address: letters
  caption: string;
  rows: Row[];
  columns: Col<Row>[];
  sort: string;        // "share-"
  tall?: boolean;      // two lines per row
  // The row that is looked at: marked, and seen when the table is drawn.
  current?: number;    // its place in `rows`, which then are not sorted anew
  // What stands below an open row; null for a closed one.
  detail?(row: Row): Node | null;
  // The engine's file of these rows, where there is one.
  csv?: (rows: Row[]) => string;
  // The row of what is selected: marked, and scrolled to.
  chosen?(row: Row): boolean;
  note?: string;
  hint?: string;       // what a click does
  empty?: string;
}

const kPlainRows = 40;   // drawn in full, without a box of their own
const kShortRows = 15;   // not parted between two sheets of paper
const kSpare = 12;       // rows drawn above and below what is seen
// Browsers cut elements that are higher than 17 to 33 million pixels.
const kMostPixels = 12_000_000;
const kDetailHeight = 250;  // of an open row, as in page.css

export function sortRows<Row>(rows: Row[], columns: Col<Row>[],
                              sort: string): Row[] {
  const column = columns.find((c) => c.key === sort.slice(0, -1));
  if (!column) return rows;
  const sign = sort.endsWith("-") ? -1 : 1;
  // Positions and values apart: a million rows need no object each.
  const values = rows.map((row) => column.value(row));
  const order = Uint32Array.from(rows.keys());
  order.sort((a, b) => compare(values[a]!, values[b]!, sign) || a - b);
  return Array.from(order, (at) => rows[at]!);
}

type Value = number | string | null;

// Empty values come last both ways.
function compare(a: Value, b: Value, sign: number): number {
  if (isEmpty(a) || isEmpty(b)) return Number(isEmpty(a)) - Number(isEmpty(b));
  return sign * (typeof a === "number" && typeof b === "number"
    ? a - b : compareText(String(a), String(b)));
}
function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
function isEmpty(value: Value): boolean {
  return value === null || value === "";
}
function cellText<Row>(column: Col<Row>, row: Row): string {
  if (column.text) return column.text(row);
  const value = column.value(row);
  return value === null ? "" : String(value);
}

export function drawTable<Row>(app: App, options: TableOptions<Row>):
    HTMLElement {
  const { id } = options;
  const columns = options.columns.filter((column) => !column.hidden);
  const wanted = app.option(id + ".sort");
  const sort = columns.some((c) => c.key === wanted.slice(0, -1) &&
                            /[+-]$/.test(wanted)) ? wanted : options.sort;
  const rows = sortRows(options.rows, columns, sort);
  const head = h("tr", {}, ...columns.map((column) => {
    const active = sort.slice(0, -1) === column.key;
    const down = sort.endsWith("-");
    const next = active ? column.key + (down ? "+" : "-")
      : column.key + (column.numeric ? "-" : "+");
    return h("th", {
      scope: "col", class: column.numeric ? "num" : column.wide ? "wide" : "",
      "aria-sort": active ? (down ? "descending" : "ascending") : "none",
      title: column.tip ?? "",
    }, h("button", {
      type: "button", "data-k": id + ".sort." + column.key,
      click: () => app.go(app.withOption(id + ".sort", next)),
    }, column.title, active ? h("span", { "aria-hidden": "true" },
                                down ? " \u25bc" : " \u25b2") : null));
  }));
  const found = options.current ?? (options.chosen
    ? rows.findIndex((row) => options.chosen!(row)) : -1);
  const current = found < 0 ? undefined : found;
  const looked = current === undefined ? undefined : rows[current];
  const line = (row: Row): HTMLElement[] => {
    const cells = h("tr", { "aria-current": row === looked && "true",
      class: row === looked ? "on" : "" }, ...columns.map((column) =>
      h("td", { class: column.numeric ? "num" : column.wide ? "wide" : "" },
        column.cell ? column.cell(row) : cellText(column, row))));
    const detail = paper.on ? null : options.detail?.(row);
    return detail ? [cells, h("tr", { class: "detail" },
      h("td", { colspan: columns.length }, h("div", {}, detail)))] : [cells];
  };

  const body = h("tbody");
  const table = h("table", { class: options.tall ? "tall" : "",
                             "aria-rowcount": rows.length + 1 },
    h("caption", { class: "offscreen" }, options.caption),
    h("thead", {}, head), body);
  if (!paper.on) resizable(table, id, columns.map((column) => column.key));
  const box = h("div", { class: "tablebox", role: "region", tabindex: "0",
                         "aria-label": options.caption,
                         "data-k": id + ".box" }, table);
  const cut = paper.on && rows.length > kPlainRows;
  if (rows.length <= kPlainRows || cut) {
    body.append(...rows.slice(0, kPlainRows).flatMap(line));
  } else {
    const open: number[] = [];
    for (let i = 0; options.detail && i < rows.length; ++i)
      if (options.detail(rows[i]!)) open.push(i);
    scrollRows(box, body, rows, line, rowHeight(options.tall), open,
               columns.length, current);
  }
  const short = rows.length <= kShortRows ? " short" : "";
  return h("section", { class: "table" + short }, toolbar(app, options, rows), cut
    ? h("p", { class: "muted" }, `The first ${kPlainRows} of them.`) : null,
    rows.length > 0 ? box
      : h("p", { class: "empty" }, options.empty ?? "No rows match."));
}

// In pixels, as page.css says for this kind of pointer.
function rowHeight(tall = false): number {
  return parseInt(getComputedStyle(document.documentElement)
    .getPropertyValue(tall ? "--tallrow" : "--row"), 10);
}

// Draws what is seen and leaves room for the rest. Heights of rows are fixed
// by page.css. A box cannot be higher than some millions of pixels: beyond
// that a pixel of scrolling is more than one of rows.
function scrollRows<Row>(box: HTMLElement, body: HTMLElement, rows: Row[],
                         line: (row: Row) => HTMLElement[],
                         height: number, open: number[],
                         columns: number, current?: number): void {
  box.classList.add("scroll");
  // Where a row begins, and the row at a height.
  const topOf = (row: number) => row * height + kDetailHeight *
    open.filter((at) => at < row).length;
  const rowAt = (y: number) => {
    let lo = 0;
    let hi = rows.length;
    while (lo + 1 < hi) {
      const mid = (lo + hi) >> 1;
      if (topOf(mid) <= y) lo = mid;
      else hi = mid;
    }
    return lo;
  };
  const whole = topOf(rows.length);
  const room = Math.min(whole, kMostPixels);
  const filler = (pixels: number) => {
    const cell = h("td", { colspan: columns });
    cell.style.height = pixels + "px";
    const row = h("tr", { class: "room", "aria-hidden": "true" }, cell);
    return pixels > 0 ? [row] : [];
  };
  let shown = -1;
  const draw = () => {
    const seen = box.clientHeight || 600;
    const top = whole === room ? box.scrollTop
      : Math.min(1, box.scrollTop / Math.max(1, box.scrollHeight - seen)) *
        Math.max(0, whole - seen + (box.scrollHeight - room));
    const first = Math.max(0, rowAt(top) - kSpare);
    if (whole === room && shown >= 0 && (first === shown ||
        (first !== 0 && Math.abs(first - shown) < kSpare / 2))) return;
    shown = first;
    const last = Math.min(rows.length,
                          rowAt(top + seen) + 1 + 2 * kSpare);
    const drawn = topOf(last) - topOf(first);
    const above = Math.min(room - drawn,
      Math.max(0, Math.round(box.scrollTop - (top - topOf(first)))));
    body.replaceChildren(...filler(above), ...rows.slice(first, last).flatMap(line),
                         ...filler(room - drawn - above));
  };
  box.addEventListener("scroll", draw, { passive: true });
  draw();
  if (current === undefined) return;
  // When it has entered the page and has a height.
  requestAnimationFrame(() => {
    const seen = box.clientHeight;
    // The first row is seen in full.
    const top = topOf(Math.min(current, rows.length - 1)) -
      Math.floor(seen / 3 / height) * height;
    box.scrollTop = whole === room ? top
      : top / (whole - seen) * (box.scrollHeight - seen);
  });
}

function toolbar<Row>(app: App, options: TableOptions<Row>,
                      rows: Row[]): HTMLElement {
  const head = options.columns.map((c) => c.title);
  const texts = () => rows.map((row) =>
    options.columns.map((column) => cellText(column, row)));
  const csv = () => options.csv ? options.csv(rows) : textCsv(head, texts());
  const name = (app.model.title.replace(/\.json(\.gz)?$/, "") || "lamina") +
    "-" + options.id + ".csv";
  const copied = async (text: string) => app.say(
    await copyText(text) ? `${rows.length} rows copied`
      : "The browser did not allow to copy");
  return h("div", { class: "tools" },
    app.button("Copy CSV", () => void copied(csv()),
               { "data-k": options.id + ".csv", "data-copy": "csv" }),
    app.button("Copy Markdown", () => void copied(markdown(head, texts(),
      options.columns.map((c) => c.numeric === true))),
      { "data-k": options.id + ".md", "data-copy": "md" }),
    app.button("Download", () => download(name, new Blob(
      [csv()], { type: "text/csv" })), { "data-k": options.id + ".file" }),
    h("span", { class: "muted" }, `${rows.length.toLocaleString("en-US")} ` +
      `${rows.length === 1 ? "row" : "rows"}. ${options.note ?? ""}`,
      options.hint ? hint(" ", options.hint) : null));
}
