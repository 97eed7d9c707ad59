// SPDX-License-Identifier: Apache-2.0
//
// Ops by shape, op, family or module. Calls, costs and bounds are those of
// the engine's table; time and kernels are added up over the events that pass
// the filter. Every device event counts in exactly one row, so rows add up to
// the time of the filter.

import type { Table } from "../data/model";
import type { App, Patch, View } from "../ui/app";
import { drawLegend, swatch } from "../ui/chips";
import { h } from "../ui/dom";
import { clean, count, percent, real, shapes, tableCsv, time } from
  "../ui/format";
import { parseNumberFilter, textFilter } from "../ui/inputs";
import { drawTable, type Col } from "../ui/table";
import { textTest } from "../data/filter";

interface Row {
  row: number;       // of op_efficiency; -1: work in no op
  name: string;
  detail: string;
  group: string;     // colour group
  family: string;
  calls: number | null;
  kernels: number;
  ns: number;
  rows: number;      // merged rows
  patch: Patch;
}

const kBy = ["shapes", "op", "family"] as const;
type By = typeof kBy[number];

function byOf(app: App): By {
  const by = app.option("ops.by") as By;
  return kBy.includes(by) ? by : "shapes";
}

function groupOf(app: App, family: string): string {
  return app.model.families.find((f) => f.name === family)?.group ?? "other";
}

function makeRows(app: App, table: Table, by: By): Row[] {
  const { time: ns, count: kernels } =
    app.sumsOf("op", table, "kernels");
  const rows: Row[] = [];
  const merged = new Map<string, Row>();
  for (let row = -1; row < table.rows; ++row) {
    if (kernels[row + 1] === 0) continue;
    const one = row < 0 ? noOp(app) : shapeRow(app, table, row);
    one.kernels = kernels[row + 1]!;
    one.ns = ns[row + 1]!;
    if (by === "shapes" || row < 0) {
      rows.push(one);
      continue;
    }
    const key = by === "op" ? one.name : one.family;
    const old = merged.get(key);
    if (old) {
      old.kernels += one.kernels;
      old.ns += one.ns;
      old.calls = (old.calls ?? 0) + (one.calls ?? 0);
      old.rows++;
      old.detail = `${old.rows} sets of shapes`;
    } else {
      one.detail = "1 set of shapes";
      one.rows = 1;
      if (by === "family") one.name = key;
      one.patch = { options: { ...app.state.options, "ops.by": "",
        "ops.q": by === "op" ? key : "family:" + key } };
      merged.set(key, one);
      rows.push(one);
    }
  }
  return rows;
}

function noOp(app: App): Row {
  return { row: -1, name: "in no op", detail: "work without a launch or op",
    group: "other", family: "", calls: null, kernels: 0, ns: 0, rows: 0,
    patch: { chips: app.only("row", "none") } };
}

function shapeRow(app: App, table: Table, row: number): Row {
  const family = table.str(row, "family");
  return {
    row, name: table.str(row, "op"),
    detail: shapes(table.str(row, "input_dims")), group: groupOf(app, family),
    family, calls: table.num(row, "count"), kernels: 0, ns: 0, rows: 0,
    patch: { chips: app.only("row", table.str(row, "first_uid")) },
  };
}

function columns(app: App, table: Table, by: By): Col<Row>[] {
  const total = app.selection.time || table.sum("kernel_time_us");
  const cost = (name: string, scale = 1) => (row: Row) => {
    const value = row.row < 0 || row.rows > 0 ? null : table.at(row.row, name);
    return value === null ? null : Number(value) * scale;
  };
  const shown = (name: string, scale: number) => ({
    numeric: true, value: cost(name, scale),
    text: (row: Row) => {
      const value = cost(name, scale)(row);
      return value === null ? "" : real(value);
    },
  });
  const asTime = (name: string) => ({
    numeric: true, value: cost(name),
    text: (row: Row) => {
      const value = cost(name)(row);
      return value === null ? "" : time(value);
    },
  });
  const all: Col<Row>[] = [
    { key: "op", title: by === "family" ? "family" : "op and shapes",
      wide: true, value: (row) => row.name,
      text: (row) => clean(`${row.name} ${row.detail}`),
      cell: (row) => h("span", {}, app.link(clean(row.name, 120), row.patch),
        h("small", { title: clean(row.detail, 1000) },
          clean(row.detail, 160) || "\u00a0")) },
    { key: "family", title: "family", value: (row) => row.family,
      cell: (row) => h("span", {}, swatch(row.group), row.family) },
    { key: "calls", title: "calls", numeric: true, value: (row) => row.calls,
      tip: "Calls in the whole trace",
      text: (row) => row.calls === null ? "" : count(row.calls) },
    { key: "kernels", title: "kernels", numeric: true,
      tip: "Device events that pass the filter; click for the events",
      value: (row) => row.kernels, text: (row) => count(row.kernels),
      cell: (row) => row.patch.chips ? app.link(count(row.kernels),
        { view: "timeline", chips: row.patch.chips }) : count(row.kernels) },
    { key: "time", title: "kernel time", numeric: true, value: (row) => row.ns,
      text: (row) => time(row.ns) },
    { key: "share", title: "%", numeric: true, value: (row) => row.ns,
      text: (row) => percent(row.ns, total) },
  ];
  if (by !== "shapes") return all;
  all.push(
    { key: "mean", title: "mean", tip: "Mean busy time of a call",
      ...asTime("mean_us") },
    { key: "intensity", title: "FLOP/B", ...shown("flops_per_byte", 1) },
    { key: "tflops", title: "TFLOPS/s", ...shown("flops_per_s", 1e-12) },
    { key: "tbs", title: "TB/s", ...shown("bytes_per_s", 1e-12) },
    { key: "roof", title: "% of roof", ...shown("percent_of_roofline", 1) },
    { key: "above", title: "above bound",
      tip: "Time minus what the roofline allows, over all calls",
      ...asTime("above_roofline_us") });
  if (app.option("ops.all") === "1") {
    for (const [key, name] of [["median", "median_us"], ["min", "min_us"],
                               ["max", "max_us"]] as const)
      all.push({ key, title: key, ...asTime(name) });
    for (const [key, name] of [["spec", "compute_spec"], ["bound", "bound"],
        ["types", "input_types"], ["model", "model"],
        ["inputs", "concrete_inputs"]] as const) {
      all.push({ key, title: key, value: (row) => row.row < 0 || row.rows > 0
        ? "" : clean(table.str(row.row, name), 200) });
    }
  }
  return all;
}

function kept(app: App, rows: Row[], cols: Col<Row>[]): Row[] {
  const words = app.option("ops.q");
  const family = /^family:(\S+)$/.exec(words)?.[1];
  const test = textTest(words);
  const limits = parseNumberFilter(app.option("ops.where"));
  return rows.filter((row) => {
    if (family !== undefined ? row.family !== family
        : !test(`${row.name} ${row.detail} ${row.family}`)) return false;
    return limits.every(({ key, less, value }) => {
      const cell = cols.find((c) => c.key === key)?.value(row);
      if (typeof cell !== "number") return false;
      return less ? cell < value : cell > value;
    });
  });
}

export const opsView: View = {
  id: "ops",
  title: "Ops",
  filtered: true,
  missing: (model) => model.hasTable("op_efficiency") ? null
    : "No op of the host launched device work.",
  needs: () => ["op_efficiency", "device", "kernels"],
  draw(app, root) {
    const table = app.model.table("op_efficiency");
    if (!table) return;
    const by = byOf(app);
    const cols = columns(app, table, by);
    const rows = kept(app, makeRows(app, table, by), cols);
    const names = { shapes: "By op and shapes", op: "By op",
                    family: "By family" };
    root.append(drawLegend(app), h("div", { class: "tools" },
      h("span", { class: "switch", role: "radiogroup",
                  "aria-label": "Group rows" }, ...kBy.map((value) =>
        app.button(names[value], () =>
          app.go(app.withOption("ops.by", value === "shapes" ? "" : value)),
          { role: "radio", "aria-checked": String(by === value),
            "data-k": "ops.by." + value }))),
      textFilter(app, "ops.q", "Names with", "softmax 5185"),
      textFilter(app, "ops.where", "Numbers", "mean>100us roof<40"),
      by === "shapes" ? app.button("All columns", () => app.go(app.withOption(
        "ops.all", app.option("ops.all") === "1" ? "" : "1"), true),
        { "aria-pressed": String(app.option("ops.all") === "1"),
          "data-k": "ops.all" }) : null));
    const shown = rows.reduce((sum, row) => sum + row.ns, 0);
    root.append(drawTable(app, {
      id: "ops", caption: "Ops", rows, columns: cols, sort: "time-", tall: true,
      csv: by === "shapes" && app.state.chips.length === 0 &&
        rows.every((row) => row.row >= 0)
        ? (sorted) => tableCsv(table, sorted.map((row) => row.row)) : undefined,
      note: `${time(shown)} of ${time(app.selection.time)}. An op filters ` +
        "every view, a count shows its events.",
    }));
  },
};
