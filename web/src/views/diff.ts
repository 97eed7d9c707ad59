// SPDX-License-Identifier: Apache-2.0
//
// What changed between two traces: A and B as bars on one scale, the
// difference between them. Blue is less, orange is more, with arrow and sign.
// The rows are the engine's; what a threshold hides is summed up as the rest.

import type { Table } from "../data/model";
import { shortName } from "../data/names";
import type { App, View } from "../ui/app";
import { h } from "../ui/dom";
import { countsEvents, deltaCell, deltaText, rowEvents } from
  "../ui/compare";
import { clean, count, kernelName, percent, shapes, tableCsv, time } from
  "../ui/format";
import { textFilter } from "../ui/inputs";
import { drawNotes, drawVerdicts } from "../ui/notes";
import { drawRows } from "../ui/rows";
import { drawTable, type Col } from "../ui/table";
import { textTest } from "../data/filter";
import { parseTime } from "../ui/chips";

interface Line {
  row: number;
  name: string;
  detail: string;
  kind: string;
  a: number;
  b: number;
  delta: number;
  countA: number | null;
  countB: number | null;
}

interface Section {
  table: string;
  title: string;
  name(table: Table, row: number): string;
  detail(table: Table, row: number): string;
  kind: string;              // column
  a: string;
  b: string;
  take?(table: Table, row: number): boolean;
  adds?: boolean;            // false: rows hold each other and have no sum
}

const kOnly: Record<string, string> = { only_a: "only in A", only_b: "only in B" };

function stepsIn(count: number): string {
  return count === 0 ? "no steps" : count === 1 ? "1 step" : `${count} steps`;
}

// Rows of times in which nothing or several things ran.
const kNoEvents = new Set(["(overlap)", "(idle)", "computation_time",
  "exposed_comm_time", "exposed_memcpy_time", "idle_time", "total_time"]);

const kSections: Section[] = [
  { table: "diff_causes", title: "Why the total differs",
    name: (t, row) => t.str(row, "cause"), detail: () => "", kind: "change",
    a: "time_a_us", b: "time_b_us" },
  { table: "diff_ops", title: "Ops",
    name: (t, row) => t.str(row, "op"),
    detail: (t, row) => [shapes(t.str(row, "shapes")), t.str(row, "module")]
      .filter((s) => s !== "").join(" in "),
    kind: "kind", a: "kernel_time_a_us", b: "kernel_time_b_us" },
  { table: "diff_kernels", title: "Kernels",
    name: (t, row) => t.str(row, "kernel_a") || t.str(row, "kernel_b"),
    detail: (t, row) => t.str(row, "kernel_a") && t.str(row, "kernel_b") &&
      t.str(row, "kernel_a") !== t.str(row, "kernel_b")
      ? "now " + shortName(t.str(row, "kernel_b")) : t.str(row, "op"),
    kind: "", a: "kernel_time_a_us", b: "kernel_time_b_us" },
];

// A and B change places; then a loss is a gain.
function isSwapped(app: App): boolean { return app.option("diff.swap") === "1"; }

function linesOf(app: App, table: Table, section: Section): Line[] {
  const swap = isSwapped(app);
  const lines: Line[] = [];
  const number = (row: number, column: string) => {
    const value = table.at(row, column);
    return value === null ? null : Number(value);
  };
  for (let row = 0; row < table.rows; ++row) {
    if (section.take && !section.take(table, row)) continue;
    const a = table.num(row, section.a);
    const b = table.num(row, section.b);
    const delta = table.num(row, "delta_us");
    const kind = section.kind ? table.str(row, section.kind) : "";
    lines.push({ row, name: section.name(table, row),
      detail: section.detail(table, row),
      kind: swap && kind in kOnly ? (kind === "only_a" ? "only_b" : "only_a")
        : kind,
      a: swap ? b : a, b: swap ? a : b, delta: swap ? -delta : delta,
      countA: number(row, swap ? "count_b" : "count_a"),
      countB: number(row, swap ? "count_a" : "count_b") });
  }
  return lines;
}

function bar(ns: number, most: number, side: "a" | "b"): HTMLElement {
  const mark = h("span", { class: "sidebar " + side, "aria-hidden": "true" });
  mark.style.width = Math.max(ns > 0 ? 1 : 0, 110 * ns / most) + "px";
  return mark;
}

// A number as a link to the events of its row in A, in B or in both; plain
// where a row sums up no events.
function eventsLink(app: App, table: Table, line: Line, text: string,
                    side: "A" | "B" | ""): Node | string {
  const shown = side === "" ? line.a + line.b : side === "A" ? line.a : line.b;
  if (shown === 0 || !countsEvents(app, table.name) ||
      kNoEvents.has(line.name)) return text;
  const of = side && isSwapped(app) ? (side === "A" ? "B" : "A") : side;
  return app.link(text, rowEvents(app, table.name, line.row, of));
}

function drawLines(app: App, id: string, title: string, lines: Line[],
                   table: Table): HTMLElement {
  const most = Math.max(1, ...lines.map((l) => Math.max(l.a, l.b)));
  const columns: Col<Line>[] = [
    { key: "what", title: "what", wide: true, value: (l) => l.name,
      text: (l) => clean(`${l.name} ${l.detail}`, 500),
      cell: (l) => h("span", { title: clean(`${l.name} ${l.detail}`, 1500) },
        eventsLink(app, table, l, kernelName(l.name, 200), ""), l.detail ? h("small", {}, clean(l.detail, 200))
          : null) },
    { key: "kind", title: "change", value: (l) =>
      kOnly[l.kind] ?? l.kind.replace(/_/g, " ") },
    { key: "a", title: "A", numeric: true, value: (l) => l.a,
      text: (l) => time(l.a), cell: (l) =>
        h("span", {}, eventsLink(app, table, l, time(l.a), "A"), " ", bar(l.a, most, "a")) },
    { key: "delta", title: "B \u2212 A", numeric: true,
      value: (l) => l.delta, text: (l) => deltaText(l.delta),
      cell: (l) => deltaCell(l.delta) },
    { key: "b", title: "B", value: (l) => l.b, text: (l) => time(l.b),
      cell: (l) => h("span", {}, bar(l.b, most, "b"), " ",
                           eventsLink(app, table, l, time(l.b), "B")) },
    { key: "percent", title: "%", numeric: true,
      value: (l) => l.a > 0 ? l.delta / l.a : null,
      text: (l) => l.a > 0 ? percent(l.delta, l.a) : "" },
    { key: "count", title: "count", numeric: true,
      value: (l) => (l.countB ?? 0) - (l.countA ?? 0),
      text: (l) => l.countA === null && l.countB === null ? ""
        : l.countA === l.countB ? count(l.countA ?? 0)
        : `${count(l.countA ?? 0)} \u2192 ${count(l.countB ?? 0)}` },
  ];
  return drawTable(app, { id, caption: title, rows: lines, columns, sort: "",
    tall: lines.some((l) => l.detail !== ""),
    csv: isSwapped(app) ? undefined
      : (rows) => tableCsv(table, rows.map((l) => l.row)),
    empty: "No row is above the threshold." });
}

function controls(app: App): HTMLElement {
  const toggle = (key: string, words: string) => app.button(words, () =>
    app.go(app.withOption(key, app.option(key) === "1" ? "" : "1")),
    { "aria-pressed": String(app.option(key) === "1"), "data-k": key });
  return h("div", { class: "tools" },
    textFilter(app, "diff.q", "Names with", "mm"),
    textFilter(app, "diff.least", "Counts from", "10us 1%"),
    toggle("diff.worse", "Only what got slower"),
    toggle("diff.swap", "Swap A and B"));
}

// "10us 1%": at least this much time and this share of A's total.
function threshold(app: App, total: number): number {
  let least = 0;
  for (const word of app.option("diff.least").split(/[\s,]+/)) {
    const share = /^(\d+(?:\.\d+)?)%$/.exec(word);
    least = Math.max(least, share ? Number(share[1]) / 100 * total
      : parseTime(word) ?? 0);
  }
  return least;
}

function totals(app: App, table: Table): { a: number; b: number } {
  const row = (side: string) => table.rowWhere("side", side);
  const of = (side: string) => table.num(row(side), "total_us");
  return isSwapped(app) ? { a: of("b"), b: of("a") }
    : { a: of("a"), b: of("b") };
}

function drawSection(app: App, section: Section, least: number,
                     root: HTMLElement): void {
  const table = app.model.table(section.table);
  if (!table || table.rows === 0) return;
  const test = textTest(app.option("diff.q"));
  const all = linesOf(app, table, section);
  const shown = all.filter((l) => Math.abs(l.delta) >= least &&
    (app.option("diff.worse") !== "1" || l.delta > 0) &&
    test(`${l.name} ${l.detail}`));
  const sum = (lines: Line[]) => lines.reduce((s, l) => s + l.delta, 0);
  const id = section.table.replace("_", "");
  root.append(h("h2", {}, section.title));
  if (section.adds !== false) {
    root.append(h("p", { class: "muted", "data-sum": section.table },
      `Difference of all rows ${deltaText(sum(all))} = shown ` +
      `${deltaText(sum(shown))} + rest ${deltaText(sum(all) - sum(shown))}.`));
  }
  const parts: [string, Line[]][] = [
    ["", shown.filter((l) => !(l.kind in kOnly))],
    ["Only in A", shown.filter((l) => l.kind === "only_a")],
    ["Only in B", shown.filter((l) => l.kind === "only_b")]];
  for (const [i, [title, lines]] of parts.entries()) {
    if (lines.length === 0 && i > 0) continue;
    if (title) root.append(h("h3", {}, title));
    root.append(drawLines(app, id + "xyz"[i]!, title || section.title, lines,
                          table));
  }
}

export const diffView: View = {
  id: "diff",
  title: "Diff",
  filtered: false,
  missing: (model) => model.hasTable("diff_totals") ? null
    : "One trace; lamina diff A B --format html compares two.",
  needs: () => ["diff_totals", "diff_causes", "diff_ops", "diff_kernels",
                "diff_by", "diff_calls", "diff_moved"],
  draw(app, root) {
    const table = app.model.table("diff_totals")!;
    const { a, b } = totals(app, table);
    root.append(...drawVerdicts(app));
    root.append(h("div", { class: "cards" },
      ...(["a", "b"] as const).map((side) => {
        const row = table.rowWhere("side", isSwapped(app)
          ? (side === "a" ? "b" : "a") : side);
        return h("div", { class: "card" }, h("b", {}, app.link(
          time(table.num(row, "total_us")), app.rowsHref("diff_totals"))),
          h("span", {}, `${side.toUpperCase()}: ` +
            clean(table.str(row, "input").replace(/^.*\//, ""), 80) +
            (table.str(row, "device") ? `, ${clean(table.str(row, "device"),
                                                   60)}` : "") +
            `, ${stepsIn(table.num(row, "steps"))}`));
      }),
      h("div", { class: "card" }, h("b", {}, deltaCell(b - a)),
        h("span", {}, `of the window, ${percent(b - a, a)}`))));
    const steps = ["a", "b"].map((side) =>
      table.num(table.rowWhere("side", side), "steps"));
    if (steps[0] !== steps[1]) {
      root.append(h("p", { class: "warn" }, `A holds ${stepsIn(steps[0]!)}, B ` +
        `${steps[1]}: the times are of whole windows, not per step.`));
    }
    root.append(controls(app));
    if (app.model.hasEvents) {
      root.append(h("p", {}, app.link("Both timelines above each other",
        { view: "timeline", chips: [], zoom: null, selected: "" }),
        "; a name or a time below leads to its events there."));
    }
    const least = threshold(app, a);
    for (const section of kSections) drawSection(app, section, least, root);
    const by = app.model.table("diff_by");
    if (by) {
      const dimensions = new Set(Array.from({ length: by.rows },
        (_, row) => by.str(row, "dimension")));
      for (const dimension of dimensions) {
        drawSection(app, { table: "diff_by", title: "By " + clean(dimension),
          name: (t, row) => t.str(row, "key"), detail: () => "", kind: "",
          a: "time_a_us", b: "time_b_us",
          take: (t, row) => t.str(row, "dimension") === dimension,
          adds: dimension === "category" }, least,
          root);
      }
    }
    for (const [name, title] of [["diff_calls", "Calls of the host"],
                                 ["diff_moved", "Moved"]] as const) {
      const more = app.model.table(name);
      if (more && more.rows > 0)
        root.append(h("h2", {}, title), drawRows(app, more,
          { id: name.replace("_", "") }));
    }
    const rest = app.model.manifest.notes.filter((n) =>
      n.severity !== "verdict");
    if (rest.length > 0)
      root.append(h("h2", {}, "Notes"), drawNotes(app, rest));
  },
};
