// SPDX-License-Identifier: Apache-2.0
//
// Ops by op and shapes, op, shapes, family or module. Calls, costs and bounds
// are those of the engine's table; time and kernels are added up over the events that pass
// the filter. Every device event counts in exactly one row, so rows add up to
// the time of the filter.

import type { Table } from "../data/model";
import type { App, Patch, View } from "../ui/app";
import { drawLegend, swatch } from "../ui/chips";
import { h } from "../ui/dom";
import { clean, count, percent, real, shapes, tableCsv, time } from
  "../ui/format";
import { parseNumberFilter, textFilter } from "../ui/inputs";
import { drawOpCalls } from "../draw/opcalls";
import { drawTable, type Col } from "../ui/table";
import { textTest } from "../data/filter";
import { kMaxValues } from "../data/state";

const kMostOpen = 20;

interface Row {
  row: number;       // of op_efficiency; -1: work in no op
  key: string;       // its first_uid
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

const kBy = ["shapes", "op", "dims", "family", "module"] as const;
type By = typeof kBy[number];
const kTitles: Record<By, string> = { shapes: "op and shapes", op: "op",
  dims: "shapes", family: "family", module: "module" };

// Rows that show their calls, by first_uid; part of the address.
function openKeys(app: App): string[] {
  return app.option("ops.open").split(",").filter((key) => /^\d+$/.test(key));
}

function openButton(app: App, row: Row, by: By): Node | null {
  if (by !== "shapes" || row.row < 0 || !app.model.device) return null;
  const keys = openKeys(app);
  const key = row.key;
  const open = keys.includes(key);
  return app.button(open ? "\u25be" : "\u25b8", () => app.go(app.withOption(
    "ops.open", (open ? keys.filter((k) => k !== key) : [...keys, key])
      .slice(-kMostOpen).join(","))), { class: "open", "data-k": "ops.open." +
    key, "aria-expanded": String(open), "aria-label": "Kernels and calls of " +
    clean(row.name, 80) });
}

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
    const key = by === "op" ? one.name : by === "dims" ? one.detail
      : one.family;
    const old = merged.get(key);
    if (old) {
      old.kernels += one.kernels;
      old.ns += one.ns;
      old.calls = (old.calls ?? 0) + (one.calls ?? 0);
      old.rows++;
      old.detail = `${old.rows} ` +
        (by === "dims" ? "ops" : "sets of shapes");
    } else {
      one.detail = by === "dims" ? "1 op" : "1 set of shapes";
      one.rows = 1;
      if (by !== "op") one.name = key || "no shapes";
      one.patch = { options: { ...app.state.options, "ops.by": "",
        "ops.q": by === "family" ? "family:" + key : key } };
      merged.set(key, one);
      rows.push(one);
    }
  }
  return rows;
}

// Own time of each module: what its submodules did is in their rows.
function moduleRows(app: App, modules: Table): Row[] {
  const { time: ns, count: kernels } =
    app.sumsOf("module", modules, "kernels");
  const path = (row: number) => modules.str(row, "module");
  const depth = (row: number) => modules.num(row, "depth");
  const rows: Row[] = [];
  for (let row = -1; row < modules.rows; ++row) {
    if (kernels[row + 1] === 0) continue;
    // Below a module are the rows after it that are deeper.
    const below: string[] = [];
    for (let at = row + 1; at < modules.rows &&
         (row < 0 || depth(at) > depth(row)); ++at)
      if (row < 0 ? depth(at) === 0 : depth(at) === depth(row) + 1)
        below.push(path(at));
    const chips = row < 0 ? app.state.chips.filter((c) => c.kind !== "mod")
      : app.only("mod", path(row));
    if (below.length > 0)
      chips.push({ kind: "mod", values: below, not: true });
    const last = row < 0 ? "in no module" : path(row);
    rows.push({ row: -1, key: "", name: last.slice(last.lastIndexOf("/") + 1),
      detail: row < 0 ? "work without a launch" : last, group: "other",
      family: "", calls: null, kernels: kernels[row + 1]!, ns: ns[row + 1]!,
      rows: 0, patch: below.length <= kMaxValues ? { chips } : {} });
  }
  return rows;
}

function noOp(app: App): Row {
  return { row: -1, key: "", name: "in no op", detail: "work without a launch or op",
    group: "other", family: "", calls: null, kernels: 0, ns: 0, rows: 0,
    patch: { chips: app.only("row", "none") } };
}

function shapeRow(app: App, table: Table, row: number): Row {
  const family = table.str(row, "family");
  const key = table.str(row, "first_uid");
  return {
    row, key, name: table.str(row, "op"),
    detail: shapes(table.str(row, "input_dims")), group: groupOf(app, family),
    family, calls: table.num(row, "count"), kernels: 0, ns: 0, rows: 0,
    patch: { chips: app.only("row", key) },
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
    { key: "op", title: kTitles[by],
      wide: true, value: (row) => row.name,
      text: (row) => clean(`${row.name} ${row.detail}`),
      cell: (row) => h("span", {}, openButton(app, row, by),
        app.link(clean(row.name, 120), row.patch),
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
  needs: () => ["op_efficiency", "device", "kernels", "modules"],
  draw(app, root) {
    const table = app.model.table("op_efficiency");
    if (!table) return;
    const by = byOf(app);
    const cols = columns(app, table, by);
    const modules = app.model.table("modules");
    const rows = kept(app, by === "module" && modules
      ? moduleRows(app, modules) : makeRows(app, table, by), cols);
    const groups = kBy.filter((value) => value !== "module" ||
      (modules?.rows ?? 0) > 0);
    const open = new Set(by === "shapes" && app.model.device
      ? openKeys(app) : []);
    root.append(drawLegend(app), h("div", { class: "tools" },
      h("span", { class: "switch", role: "radiogroup",
                  "aria-label": "Group rows" }, ...groups.map((value) =>
        app.button("By " + kTitles[value], () =>
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
      detail: (row) => row.row >= 0 && open.has(row.key)
        ? drawOpCalls(app, row.row, row.key, row.group) : null,
      csv: by === "shapes" && app.state.chips.length === 0 &&
        rows.every((row) => row.row >= 0)
        ? (sorted) => tableCsv(table, sorted.map((row) => row.row)) : undefined,
      note: `${time(shown)} of ${time(app.selection.time)}.`,
      hint: "An op filters every view, a count shows its events.",
    }));
  },
};
