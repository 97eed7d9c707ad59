// SPDX-License-Identifier: Apache-2.0
//
// What changed between two traces: a waterfall from A to B, and lists of causes
// with the largest first. Blue is less, orange is more, with arrow and sign.
// The rows are the engine's; what a threshold hides is summed up as the rest.

import { severalCompared, type Table } from "../data/model";
import { shortName } from "../data/names";
import type { App, View } from "../ui/app";
import { causeList, drawCauses, type Cause } from "../ui/causes";
import { h } from "../ui/dom";
import { countsEvents, deltaCell, deltaText, pairPatch, rowEvents } from
  "../ui/compare";
import { clean, percent, shapes, tableCsv, time } from "../ui/format";
import { textFilter } from "../ui/inputs";
import { drawNotes, drawVerdicts } from "../ui/notes";
import { drawRows } from "../ui/rows";
import { textTest } from "../data/filter";
import { parseTime } from "../ui/chips";

// A row of a table of the engine.
interface Line extends Cause { row: number }

interface Section {
  table: string;
  title: string;
  name(table: Table, row: number): string;
  detail(table: Table, row: number): string;
  kind: string;              // column
  a: string;
  b: string;
  id?: string;               // of one of several of a table
  take?(table: Table, row: number): boolean;
  adds?: boolean;            // false: rows hold each other and have no sum
}

function stepsIn(count: number): string {
  return count === 0 ? "no steps" : count === 1 ? "1 step" : `${count} steps`;
}

// Rows of times in which nothing or several things ran.
const kNoEvents = new Set(["overlap of device work", "idle time", "computation_time",
  "exposed_comm_time", "exposed_memcpy_time", "idle_time", "total_time"]);

// Causes that are no op, as the verdict calls them.
const kCauses: Record<string, string> = {
  "(idle)": "idle time", "(overlap)": "overlap of device work",
  "(unlinked)": "device work without a launch", "(other ops)": "other ops",
};

const kSections: Section[] = [
  { table: "diff_causes", title: "Why the total differs",
    name: (t, row) => kCauses[t.str(row, "cause")] ?? t.str(row, "cause"),
    detail: () => "", kind: "change",
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
  for (let row = 0; row < table.rows; ++row) {
    if (section.take && !section.take(table, row)) continue;
    const kind = section.kind ? table.str(row, section.kind)
      : !table.has("kernel_a") ? "" : !table.str(row, "kernel_b") ? "only_a"
      : !table.str(row, "kernel_a") ? "only_b" : "";
    const sides = [table.num(row, section.a), table.num(row, section.b)];
    const counts = [table.at(row, "count_a"), table.at(row, "count_b")]
      .map((value) => Number(value ?? 0)) as [number, number];
    const known = table.has("count_a") &&
      (table.at(row, "count_a") ?? table.at(row, "count_b")) !== null;
    if (swap) [sides, counts].forEach((list) => list.reverse());
    const only = /^only_[ab]$/.test(kind);
    const line: Line = { row, name: section.name(table, row),
      detail: section.detail(table, row),
      badge: only ? `only in ${(kind === "only_a") === swap ? "B" : "A"}`
        : kind === "changed" ? "" : kind.replace(/_/g, " "),
      a: sides[0]!, b: sides[1]!, counts: known ? counts : null,
      link: (text, side) => eventsLink(app, table, line, text, side) };
    lines.push(line);
  }
  return lines;
}

// A text as a link to the events of its row in A, in B, or, on their first
// pair, in both; plain where a row sums up no events.
function eventsLink(app: App, table: Table, line: Line, text: string | Node,
                    side: "A" | "B" | ""): Node | string {
  const shown = side === "" ? line.a + line.b : side === "A" ? line.a : line.b;
  if (shown === 0 || !countsEvents(app, table.name) ||
      kNoEvents.has(line.name)) return text;
  const of = side && isSwapped(app) ? (side === "A" ? "B" : "A") : side;
  return app.link(text, of ? rowEvents(app, table.name, line.row, of)
    : pairPatch(app, table.name, line.row));
}

const sumOf = (lines: Line[]) => lines.reduce((s, l) => s + l.b - l.a, 0);

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
                     root: HTMLElement, ends?: [number, number]): void {
  const table = app.model.table(section.table);
  if (!table || table.rows === 0) return;
  const test = textTest(app.option("diff.q"));
  const all = linesOf(app, table, section);
  const shown = all.filter((l) => Math.abs(l.b - l.a) >= least &&
    (app.option("diff.worse") !== "1" || l.b > l.a) &&
    test(`${l.name} ${l.detail}`));
  root.append(h("h2", {}, section.title));
  if (section.adds !== false) {
    root.append(h("p", { class: "muted", "data-sum": section.table },
      `Difference of all rows ${deltaText(sumOf(all))} = shown ` +
      `${deltaText(sumOf(shown))} + rest ` +
      `${deltaText(sumOf(all) - sumOf(shown))}.`));
  }
  const id = section.table.replace("_", "") + (section.id ?? "");
  const csv = isSwapped(app) ? undefined
    : (list: Cause[]) => tableCsv(table, list.map((l) => (l as Line).row));
  root.append(...ends ? drawCauses(app, { id, names: ["A", "B"], totals: ends,
                                          causes: shown, csv })
    : causeList(app, id, section.title, ["A", "B"], shown, csv));
}

// A unit of each side and its change, by phase.
function unitCards(app: App): HTMLElement[] {
  const table = app.model.table("diff_verdict");
  if (!table) return [];
  const [first, second] = isSwapped(app) ? ["b", "a"] : ["a", "b"];
  return Array.from({ length: table.rows }, (_, row) => row)
    .filter((row) => table.num(row, "mean_a_us") > 0)
    .map((row) => {
      const a = table.num(row, `mean_${first}_us`);
      const b = table.num(row, `mean_${second}_us`);
      return h("div", { class: "card" }, h("b", {}, app.link(
        `${time(b)} against ${time(a)}`, app.rowsHref("diff_verdict"))),
        h("span", {}, `a unit of ${clean(table.str(row, "scope"), 40)}, ` +
          percent(b - a, a)));
    });
}

export const diffView: View = {
  id: "diff",
  title: "Diff",
  filtered: false,
  missing: (model) => model.hasTable("diff_totals")
    ? severalCompared(model) ? "Several traces; the view Runs holds each " +
      "against A." : null
    : "One trace; lamina diff A B --format html compares two.",
  needs: () => ["diff_verdict", "diff_totals", "diff_causes", "diff_ops",
                "diff_kernels", "diff_by", "diff_calls", "diff_moved"],
  draw(app, root) {
    const table = app.model.table("diff_totals")!;
    const { a, b } = totals(app, table);
    root.append(...drawVerdicts(app));
    root.append(h("div", { class: "cards" }, ...unitCards(app),
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
    for (const section of kSections)
      drawSection(app, section, least, root,
                  section.table === "diff_causes" ? [a, b] : undefined);
    const by = app.model.table("diff_by");
    if (by) {
      const dimensions = new Set(Array.from({ length: by.rows },
        (_, row) => by.str(row, "dimension")));
      for (const [i, dimension] of [...dimensions].entries()) {
        drawSection(app, { table: "diff_by", id: "xyzuvw"[i], title: "By " + clean(dimension),
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
