// SPDX-License-Identifier: Apache-2.0
//
// Kernels by name, op and stream, with the spread of their lengths; lengths
// over time for one name; short kernels.

import { kBins, binStart, lengthsBy } from "../data/lengths";
import type { Table } from "../data/model";
import { shortName } from "../data/names";
import { drawLengths } from "../draw/lengths";
import { drawHistogram } from "../draw/histogram";
import type { App, View } from "../ui/app";
import { drawLegend, swatch } from "../ui/chips";
import { h, svg } from "../ui/dom";
import { clean, count, kernelName, percent, tableCsv, time } from "../ui/format";
import { nameCells } from "../ui/names";
import { drawTable, type Col } from "../ui/table";

function spark(counts: Uint32Array, row: number): Node {
  let most = 1;
  let first = kBins;
  let last = 0;
  for (let bin = 0; bin < kBins; ++bin) {
    const value = counts[row * kBins + bin]!;
    most = Math.max(most, value);
    if (value > 0) {
      first = Math.min(first, bin);
      last = bin;
    }
  }
  const words = `lengths from ${time(binStart(first))} to ` +
    time(binStart(last + 1));
  const picture = svg("svg", { class: "spark", viewBox: "0 0 96 20",
    role: "img", "aria-label": words }, svg("title", {}, words));
  for (let bin = 0; bin < kBins; ++bin) {
    const value = counts[row * kBins + bin]!;
    if (value === 0) continue;
    const height = Math.max(1.5, 19 * value / most);
    picture.append(svg("rect", { x: bin * 4, y: 20 - height, width: 3.2,
                                 height, fill: "currentColor" }));
  }
  return picture;
}

function columns(app: App, table: Table, counts: Uint32Array | null,
                 ns: ArrayLike<number>, events: ArrayLike<number>):
    Col<number>[] {
  const shown = nameCells(Array.from({ length: table.rows }, (_, row) =>
    kernelName(table.str(row, "kernel"))));
  const total = app.selection.time || table.sum("kernel_time_us");
  const asTime = (name: string) => ({
    numeric: true, value: (row: number) => table.at(row, name),
    text: (row: number) => table.at(row, name) === null ? ""
      : time(table.num(row, name)),
  });
  const family = (row: number) => table.str(row, "family");
  const groupOf = (name: string) =>
    app.model.families.find((f) => f.name === name)?.group ?? "other";
  const cols: Col<number>[] = [
    { key: "kernel", title: "kernel", wide: true,
      value: (row) => shortName(table.str(row, "kernel")),
      text: (row) => clean(table.str(row, "kernel"), 2000),
      cell: (row) => app.link(shown(kernelName(table.str(row, "kernel"))), {
        chips: app.only("name", table.str(row, "kernel")) },
        { title: clean(table.str(row, "kernel"), 2000) }) },
    { key: "op", title: "op", value: (row) => table.str(row, "op"),
      text: (row) => clean(table.str(row, "op"), 200),
      cell: (row) => table.str(row, "op") === "" ? "" : app.link(
        clean(table.str(row, "op"), 80),
        { chips: app.only("op", table.str(row, "op")) }) },
    { key: "family", title: "family", value: family,
      cell: (row) => h("span", {}, swatch(groupOf(family(row))),
                       family(row)) },
    { key: "stream", title: "stream", numeric: true,
      value: (row) => table.at(row, "stream"),
      text: (row) => `${table.str(row, "device_index")}/${table.str(row, "stream")}` },
    { key: "count", title: "count", numeric: true,
      value: (row) => events[row + 1]!, text: (row) => count(events[row + 1]!),
      cell: (row) => app.link(count(events[row + 1]!), { view: "timeline",
        chips: app.only("name", table.str(row, "kernel")) }) },
    { key: "time", title: "time", numeric: true,
      value: (row) => ns[row + 1]!, text: (row) => time(ns[row + 1]!) },
    { key: "share", title: "%", numeric: true, value: (row) => ns[row + 1]!,
      text: (row) => percent(ns[row + 1]!, total) },
    { key: "mean", title: "mean", ...asTime("mean_us") },
    { key: "min", title: "min", ...asTime("min_us") },
    { key: "max", title: "max", ...asTime("max_us") },
  ];
  if (counts) {
    cols.push({ key: "spread", title: "lengths", value: () => null,
                tip: "From under 0.5 \u00b5s to 60 ms, logarithmic",
                cell: (row) => spark(counts, row) });
  }
  cols.push({ key: "latency", title: "latency",
              tip: "Mean time from the launch call to the start",
              ...asTime("launch_latency_us") },
            { key: "queue", title: "queued", ...asTime("queue_us") });
  return cols;
}

// The kernel that a chip names, if it names one.
function chosenName(app: App): string | null {
  const chip = app.state.chips.find((c) => c.kind === "name" && !c.not);
  return chip?.values.length === 1 ? chip.values[0]! : null;
}

export const kernelsView: View = {
  id: "kernels",
  title: "Kernels",
  filtered: true,
  missing: (model) => model.traces.length > 0
    ? "A page of several traces compares; lamina report TRACE --format html " +
      "lists the kernels of one."
    : model.hasTable("kernels") ? null
    : "The trace holds no work of a device.",
  needs: () => ["kernels", "device", "short_kernel_histogram"],
  draw(app, root) {
    const table = app.model.table("kernels");
    if (!table) return;
    const { device } = app.model;
    const { time: ns, count: events } =
      app.sumsOf("kernel", table, "count");
    const rows: number[] = [];
    for (let row = 0; row < table.rows; ++row)
      if (events[row + 1]! > 0) rows.push(row);
    const counts = device && !device.merged
      ? lengthsBy(device, table.rows, "kernel", app.selection.mask) : null;
    root.append(drawLegend(app), drawTable(app, {
      id: "kernels", caption: "Kernels", rows, sort: "time-",
      columns: columns(app, table, counts, ns, events),
      csv: app.state.chips.length === 0
        ? (sorted) => tableCsv(table, sorted) : undefined,
      note: `${time(app.selection.time)}. Mean, min and max are of the whole ` +
        "trace.",
      hint: "A name filters every view, a count shows its events.",
    }));
    const name = chosenName(app);
    if (device && name !== null && app.selection.count > 0) {
      root.append(h("h2", {}, "Length over time"), drawLengths(app),
        h("p", { class: "muted" }, `One point per ${device.merged
          ? "single event of this page" : "event"} that passes the filter: ` +
          "drift, warm-up and throttling show here."));
    }
    const short = app.model.table("short_kernel_histogram");
    const limit = app.model.manifest.trace?.short_kernel_ns;
    if (short && short.rows > 0 && limit !== undefined) {
      root.append(h("h2", {}, `Short kernels, below ${time(limit)}`),
        drawHistogram(app, short), h("p", { class: "muted" },
          "Of the whole trace. ", app.link("Only these events",
            { view: "timeline", chips: app.only("dur", `<${limit}`) })));
    }
  },
};
