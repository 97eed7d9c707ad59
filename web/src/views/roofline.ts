// SPDX-License-Identifier: Apache-2.0
//
// The roofline of the ops that have a cost, or of their single calls as
// density, and those furthest from it.

import { densityOf, type Cell, type Cost } from "../data/density";
import type { Table } from "../data/model";
import { kMaxValues } from "../data/state";
import { densityScale, drawDensity } from "../draw/density";
import { kLeastX, kLeastY, type Roof } from "../draw/roofplane";
import { drawScatter, type Point } from "../draw/scatter";
import { svgFile } from "../draw/svgfile";
import type { App, View } from "../ui/app";
import { drawLegend, swatch } from "../ui/chips";
import { h } from "../ui/dom";
import { eventsPatch } from "../ui/events";
import { clean, count, real, shapes, time } from "../ui/format";
import { hint } from "../ui/paper";
import { drawTable } from "../ui/table";

interface Entry extends Point { row: number }

function entries(app: App, table: Table): Entry[] {
  const { time: ns, count } = app.sumsOf("op", table, "kernels");
  const groupOf = new Map(app.model.families.map((f) => [f.name, f.group]));
  const least = Number(app.option("roof.min") || 0) / 100 * app.selection.time;
  const list: Entry[] = [];
  for (let row = 0; row < table.rows; ++row) {
    if (table.at(row, "roofline_us") === null || count[row + 1] === 0 ||
        ns[row + 1]! < least) continue;
    const share = table.num(row, "percent_of_roofline");
    const op = clean(table.str(row, "op"), 60);
    list.push({
      row, key: table.str(row, "first_uid"),
      group: groupOf.get(table.str(row, "family")) ?? "other",
      label: `${op} ${share.toFixed(1)} %`,
      words: `${op} ${shapes(table.str(row, "input_dims")).slice(0, 200)}: ` +
        `${time(ns[row + 1]!)}, ${share.toFixed(1)} % of its ` +
        `${table.str(row, "bound")} roof`,
      x: table.num(row, "flops_per_byte"),
      y: table.num(row, "flops_per_s") / 1e12, time: ns[row + 1]!,
    });
  }
  return list;
}

function roofs(app: App, table: Table, list: Entry[]): Roof[] {
  const used = new Set(list.map(({ row }) =>
    table.str(row, "compute_spec").replace(/\?$/, "")));
  // Equal peaks are one line.
  const byPeak = new Map<number, string[]>();
  for (const [spec, flops] of Object.entries(
         app.model.manifest.device?.peaks ?? {})) {
    if (used.has(spec))
      byPeak.set(flops, [...byPeak.get(flops) ?? [], spec.replace(/_/g, " ")]);
  }
  return [...byPeak].map(([flops, names]) =>
    ({ name: clean(names.join(", "), 60), tflops: flops / 1e12 }));
}

// Where single events are merged, calls cannot be told apart.
function showsCalls(app: App): boolean {
  return app.option("roof.by") === "calls" && app.model.device !== null &&
    app.model.device.merged === null;
}

function cellsOf(app: App, table: Table, list: Entry[]): Cell[] {
  const drawn = new Set(list.map(({ row }) => row));
  const costs = Array.from({ length: table.rows }, (_, row): Cost | null =>
    drawn.has(row) ? { flops: table.num(row, "flops"),
                       intensity: table.num(row, "flops_per_byte") } : null);
  return densityOf({ device: app.model.device!, mask: app.selection.mask,
    costs, leastX: kLeastX, leastY: kLeastY, mostEvents: kMaxValues });
}

function drawCells(app: App, table: Table, list: Entry[], plane:
    { width: number; roofs: Roof[]; tbytes: number; label: string }): Node[] {
  const cells = cellsOf(app, table, list);
  const keys = (of: Cell[]) => [...new Set(of.flatMap((cell) =>
    [...cell.ops]))].map((row) => table.str(row, "first_uid"));
  const patch = (of: Cell[]) => eventsPatch(app,
    of.flatMap((cell) => cell.events), keys(of));
  const words = (cell: Cell) => {
    const names = [...new Set([...cell.ops].map((row) =>
      clean(table.str(row, "op"), 60)))];
    return names.slice(0, 4).join(", ") +
      (names.length > 4 ? ` and ${names.length - 4} more` : "");
  };
  return [drawDensity({ ...plane, cells, words,
    href: (cell) => app.href(patch([cell])),
    brushed: (of) => {
      if (of.length > 0) app.go({ chips: patch(of).chips! });
      else app.say("No call in the rectangle");
    } }), densityScale(cells)];
}

function drawPicture(app: App, box: HTMLElement): void {
  const table = app.model.table("op_efficiency")!;
  const { device } = app.model.manifest;
  const list = entries(app, table);
  if (!device || list.length === 0) {
    box.replaceChildren(h("p", { class: "empty" },
      "No op that passes the filter has a cost."));
    return;
  }
  const plane = { width: Math.max(300, box.clientWidth - 2),
    roofs: roofs(app, table, list), tbytes: device.bytes_per_s / 1e12,
    label: `Roofline of ${list.length} ops` };
  if (showsCalls(app)) {
    box.replaceChildren(...drawCells(app, table, list, plane));
    return;
  }
  box.replaceChildren(drawScatter({ ...plane, points: list,
    href: (point) => app.href({ view: "ops",
                                chips: app.only("row", point.key) }),
    isChosen: (point) => app.isChosen("row", point.key),
    brushed: (points) => {
      if (points.length > 0)
        app.go({ chips: app.only("row", ...points.map((p) => p.key)) });
      else app.say("No op in the rectangle");
    } }));
}

function bySwitch(app: App): HTMLElement | null {
  if (!app.model.device || app.model.device.merged) return null;
  const calls = showsCalls(app);
  return h("span", { class: "switch", role: "radiogroup",
                     "aria-label": "What is drawn" },
    ...(["ops", "calls"] as const).map((value) => app.button(
      value === "ops" ? "Ops" : "Single calls", () =>
        app.go(app.withOption("roof.by", value === "calls" ? value : "")),
      { role: "radio", "aria-checked": String(calls === (value === "calls")),
        "data-k": "roof.by." + value })));
}

export const rooflineView: View = {
  id: "roofline",
  title: "Roofline",
  filtered: true,
  missing: (model) => !model.hasTable("op_efficiency")
    ? "No op of the host launched device work."
    : model.manifest.device ? null
    : "The device is not known; name it with --device.",
  needs: () => ["op_efficiency", "device", "kernels"],
  draw(app, root) {
    const table = app.model.table("op_efficiency")!;
    const { device } = app.model.manifest;
    const list = entries(app, table);
    const words = h("output", { class: "muted" });
    const slider = h("input", { type: "range", min: 0, max: 5, step: 0.1,
      "aria-label": "Least share of the time", "data-k": "roof.min",
      input: () => { words.textContent = `at least ${slider.value} % of the ` +
        "time"; },
      change: () => app.go(app.withOption("roof.min",
        slider.value === "0" ? "" : slider.value), true) });
    slider.value = app.option("roof.min") || "0";
    words.textContent = `at least ${slider.value} % of the time`;
    const box = h("div", { class: "canvasbox roofs" });
    root.append(drawLegend(app), h("div", { class: "tools" }, bySwitch(app),
      app.button("SVG", () => svgFile(app, box.querySelector("svg"),
                                      "roofline"), { "data-k": "roof.svg" }),
      slider, words,
      h("span", { class: "muted" }, `${count(list.length)} ops with a cost; ` +
        (showsCalls(app) ? "a call stands where its work and its own time " +
          "put it." : "area is kernel time.") +
        ` Peaks of ${clean(device?.title ?? "", 60)}: ` +
        `${clean(device?.source ?? "", 120)}. `,
        hint(`Click for the ${showsCalls(app) ? "events" : "rows"}, drag to ` +
             "filter."))), box);
    root.append(h("h2", {}, "Furthest from their roof, by time"), drawTable(app, {
      id: "roof", caption: "Ops by time above the bound", rows: list,
      sort: "above-", columns: [
        { key: "op", title: "op and shapes", wide: true,
          value: ({ row }) => table.str(row, "op"),
          text: ({ row }) => clean(table.str(row, "op") + " " +
            shapes(table.str(row, "input_dims")), 500),
          cell: (e) => app.link(clean(table.str(e.row, "op") + " " +
            shapes(table.str(e.row, "input_dims")), 160),
            { view: "ops", chips: app.only("row", e.key) }) },
        { key: "family", title: "family", value: ({ row }) =>
          table.str(row, "family"), cell: (e) => h("span", {},
          swatch(e.group), table.str(e.row, "family")) },
        { key: "time", title: "kernel time", numeric: true,
          value: (e) => e.time, text: (e) => time(e.time) },
        { key: "bound", title: "bound", value: ({ row }) =>
          table.str(row, "bound") },
        { key: "least", title: "least per call", numeric: true,
          value: ({ row }) => table.num(row, "roofline_us"),
          text: ({ row }) => time(table.num(row, "roofline_us")) },
        { key: "roof", title: "% of roof", numeric: true,
          value: ({ row }) => table.num(row, "percent_of_roofline"),
          text: ({ row }) => real(table.num(row, "percent_of_roofline")) },
        { key: "above", title: "above bound", numeric: true,
          value: ({ row }) => table.num(row, "above_roofline_us"),
          text: ({ row }) => time(table.num(row, "above_roofline_us")) },
      ],
    }));
  },
  mounted(app, root) {
    const box = root.querySelector<HTMLElement>(".roofs");
    if (box) drawPicture(app, box);
  },
};
