// SPDX-License-Identifier: Apache-2.0
//
// What lies in the area that is marked in the timeline: busy and idle time, sums,
// counters.

import { sumsOf, type Area } from "../data/area";
import { meanOf, rangeOf, sampleAt, type StepLine } from "../data/counters";
import { laneKey, laneName } from "../data/filter";
import type { Scene } from "./scene";
import { counterText } from "./steps";
import type { App, Patch } from "../ui/app";
import { areaPatch, markedArea, type Marked } from "../ui/area";
import { swatch } from "../ui/chips";
import { copyCommand } from "../ui/command";
import { h } from "../ui/dom";
import { nameIds, showEvent } from "../ui/events";
import { clean, count, kernelName, percent, time } from "../ui/format";
import { nameCells } from "../ui/names";
import { choice } from "../ui/inputs";
import { drawTable } from "../ui/table";

function lanesOf(app: App, scene: Scene, { keys }: Marked): Set<number> {
  const tracks = scene.all.filter((track) =>
    keys.length === 0 || keys.includes(track.key));
  const lanes = tracks.flatMap((track) => track.kind === "lane" ? [track.lane]
    : track.kind === "gpu" ? track.row.gpu.lanes : []);
  // An area over other tracks alone is about all streams.
  return new Set(lanes.length > 0 ? lanes : app.model.lanes.keys());
}

function linesOf(scene: Scene, { keys }: Marked): StepLine[] {
  return scene.tracks.flatMap((track) => track.kind === "counter" &&
    (keys.length === 0 || keys.includes(track.key)) ? [track.line] : []);
}

interface Group { name: string; group: string; ns: number; events: number;
                  longest: number; patch: Patch | null }

const kBy: [string, string][] = [["", "by family"], ["kernel", "by kernel"],
  ["op", "by op"], ["stream", "by stream"], ["event", "each event"]];

function groupsOf(app: App, { rows, ns }: { rows: number[]; ns: number[] }):
    Group[] {
  const { model } = app;
  const device = model.device!;
  const kernels = model.table("kernels");
  const names = nameIds(app);
  const by = app.option("timeline.by");
  const found = new Map<string | number, Group>();
  for (const [i, row] of rows.entries()) {
    const family = model.families[device.family[row]!]!;
    const kernel = device.kernel[row]! - 1;
    const op = kernels && kernel >= 0 ? kernels.str(kernel, "op") : "";
    const key = by === "kernel" ? names(row) : by === "op" ? op
      : by === "stream" ? device.lane[row]! : by === "event" ? row
      : family.group;
    let one = found.get(key);
    if (!one) {
      const name = by === "kernel" || by === "event" ? model.text(names(row))
        : by === "op" ? op || "in no op"
        : by === "stream" ? laneName(model, device.lane[row]!) : family.group;
      const patch = by === "kernel" ? { chips: app.only("name", name) }
        : by === "op" ? op ? { chips: app.only("op", op) } : null
        : by === "stream" ? { chips: app.only("lane",
            laneKey(model, device.lane[row]!)) }
        : by === "event" ? { selected: String(device.uid[row]) }
        : { chips: app.only("fam", family.group) };
      found.set(key, one = { name, group: family.group, ns: 0, events: 0,
                             longest: row, patch });
    }
    one.ns += ns[i]!;
    ++one.events;
    if (device.dur[row]! > device.dur[one.longest]!) one.longest = row;
  }
  return [...found.values()];
}

function counterTable(lines: StepLine[], { from, to }: Marked): Node | null {
  const rows = lines.flatMap((line) => {
    const last = sampleAt(line, to - 1);
    if (last < 0) return [];
    const [least, most] = rangeOf(line, Math.max(0, sampleAt(line, from)), last);
    return [h("tr", {}, h("td", {}, clean(line.name, 60)),
      ...[least, meanOf(line, from, to), most].map((value) =>
        h("td", { class: "num" }, counterText(line, value))))];
  });
  return rows.length === 0 ? null : h("div", { class: "tablebox" }, h("table", {},
    h("caption", { class: "offscreen" }, "Counters in the area"),
    h("thead", {}, h("tr", {}, ...["counter", "least", "mean", "most"].map(
      (head, i) => h("th", { scope: "col", class: i > 0 ? "num" : "" }, head)))),
    h("tbody", {}, ...rows)));
}

// The filter that leaves what the area holds.
function filterOf(app: App, marked: Marked, { lanes }: Area): Patch["chips"] {
  const { model } = app;
  const chips = app.only("t", `${marked.from}..${marked.to}`);
  return lanes.size === model.lanes.length ? chips
    : [...chips.filter((chip) => chip.kind !== "lane"), { kind: "lane",
        values: [...lanes].map((lane) => laneKey(model, lane)), not: false }];
}

export function drawArea(app: App, scene: Scene): HTMLElement | null {
  const marked = markedArea(app);
  const { model } = app;
  if (!marked || !model.device) return null;
  const area = { ...marked, lanes: lanesOf(app, scene, marked) };
  const sums = sumsOf(model, area, app.selection.mask);
  const all = sums.busy + sums.idle;
  const part = (words: string, ns: number) => ns === 0 ? []
    : [`${words} ${time(ns)} (${percent(ns, all)})`];
  const chips = filterOf(app, marked, area);
  const groups = groupsOf(app, sums);
  const shown = nameCells(groups.map(({ name }) => kernelName(name, 200)));
  const { device } = model;
  return h("section", { class: "area", "aria-label": "Marked area" },
    h("h2", {}, `Marked: ${time(marked.to - marked.from)} `,
      h("span", { class: "muted" }, `${count(marked.from)} to ` +
        `${count(marked.to)} ns, ${area.lanes.size === model.lanes.length
          ? "all streams" : `${area.lanes.size} of ${model.lanes.length} streams`}`)),
    h("p", { id: "areasums" }, `${count(sums.events)} device events, ` +
      `${time(sums.time)} inside: ` + [...part("busy", sums.busy),
      ...part("idle", sums.idle), ...part("exposed communication", sums.comm),
      ...part("exposed copies", sums.copies)].join(", ") + "." +
      (model.thinned ? " Of the single events of this page." : "")),
    h("div", { class: "tools" },
      choice(app, "timeline.by", "Sums", kBy),
      app.button("Zoom to it", () => app.go({ zoom: [marked.from, marked.to] }),
                 { "data-k": "area.zoom" }),
      app.button("Filter to it", () => app.go({ chips }),
                 { "data-k": "area.filter" }),
      app.button("Copy as command", () => {
        // The command of the view under the filter of the area.
        const filtered = Object.create(app, { state: { value: { ...app.state,
          chips } } }) as App;
        void copyCommand(filtered);
      }, { "data-k": "area.command" }),
      app.button("Clear", () => app.go(areaPatch(app, null)),
                 { "data-k": "area.clear" })),
    drawTable<Group>(app, { id: "area", caption: "What lies in the area",
      rows: groups, sort: "time-", empty: "No device event.",
      columns: [
        { key: "what", title: "what", wide: true, value: (one) => one.name,
          text: (one) => clean(one.name, 2000),
          cell: (one) => h("span", { title: clean(one.name, 2000) },
            swatch(one.group), one.patch
              ? app.link(shown(kernelName(one.name, 200)), one.patch)
              : shown(kernelName(one.name, 200))) },
        { key: "time", title: "inside", numeric: true, value: (one) => one.ns,
          text: (one) => time(one.ns) },
        { key: "share", title: "%", numeric: true, value: (one) => one.ns,
          text: (one) => percent(one.ns, sums.time) },
        { key: "events", title: "events", numeric: true,
          value: (one) => one.events, text: (one) => count(one.events) },
        { key: "longest", title: "longest", numeric: true,
          value: (one) => device.dur[one.longest]!,
          text: (one) => time(device.dur[one.longest]!),
          cell: (one) => app.link(time(device.dur[one.longest]!),
            showEvent(app, device.uid[one.longest]!)) },
      ] }),
    counterTable(linesOf(scene, marked), marked));
}
