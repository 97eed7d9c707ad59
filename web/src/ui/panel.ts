// SPDX-License-Identifier: Apache-2.0
//
// The panel of the selected event. Every entry is a link.

import { twinOf } from "../data/autograd";
import { gapsOf, gpusOf } from "../data/gpus";
import { eventsOf, laneKey, laneName } from "../data/filter";
import { kRowTables, type HostEvents } from "../data/model";
import { shortName } from "../data/names";
import { queueTime } from "../data/queue";
import { frameName, framesOf } from "../data/stacks";
import { fixBody, isAnswerView, openFix, windowBody } from "./answer";
import type { App } from "./app";
import { swatch } from "./chips";
import { causeWords, clockWords, rowEvents } from "./compare";
import { h } from "./dom";
import { attribution, ruleEntry, type Entry } from "./evidence";
import { chain, gapBody, selectedGap, showGap } from "./gaps";
import { findEvent, nameIds, showEvent, type Event } from "./events";
import { big, bytes, clean, count, kernelName, real, shapes, time } from
  "./format";

export function panelNeeds(): string[] {
  return ["device", "host", "kernels", "op_efficiency", "modules", "layers",
          "passes", "steps", "graph_attribution", "family_rules", "#frames",
          "#autograd", "diff_ops", "diff_kernels", "diff_by", "collectives",
          "clock_offsets", "idle_gaps", "gaps"];
}

const kOpenFrames = 12;

function list(entries: (Entry | null)[]): HTMLElement {
  return h("dl", {}, ...entries.filter((e) => e !== null).flatMap(
    ([name, ...parts]) => [h("dt", {}, name), h("dd", {}, ...parts)]));
}

// Where nothing is selected: the fix that is open, or the window.
function drawRest(app: App, panel: HTMLElement): void {
  const rank = openFix(app);
  panel.hidden = !isAnswerView(app) || app.state.view !== "timeline";
  if (panel.hidden) {
    panel.replaceChildren();
    return;
  }
  const { title, entries, more } = rank > 0 ? fixBody(app, rank)
    : windowBody(app);
  panel.replaceChildren(h("div", { class: "top" }, h("h2", {}, title),
    rank > 0 ? app.button("\u00d7", () => app.go(app.withOption("answer.fix",
      "")), { "aria-label": "Close the panel", "data-k": "panel.close" })
      : null), list(entries), ...more);
}

export function drawPanel(app: App, panel: HTMLElement): void {
  const gap = selectedGap(app);
  const uid = Number(app.state.selected.replace(/^gap\./, ""));
  const event = app.state.selected && !gap ? findEvent(app, uid) : null;
  panel.hidden = false;
  if (!app.state.selected) return drawRest(app, panel);
  const close = app.button("\u00d7", () => app.go({ selected: "" }),
    { "aria-label": "Close the panel", "data-k": "panel.close" });
  if (gap) {
    const { title, entries, more } = gapBody(app, gap);
    panel.replaceChildren(h("div", { class: "top" }, h("h2", {}, title), close),
      list(entries), ...more, h("div", { class: "tools" },
        app.link("Show in timeline", showGap(app, gap))));
    return;
  }
  const body = event === null
    ? [h("p", { class: "muted" }, `Event ${uid} is not in this page.`)]
    : event.on === "device" ? deviceBody(app, event, uid)
      : hostBody(app, event, uid);
  const name = event === null ? "Event " + uid : eventName(app, event);
  panel.replaceChildren(h("div", { class: "top" },
    h("h2", {}, kernelName(name, 600)), close),
    shortName(name) === name ? ""
      : h("p", { class: "whole muted" }, clean(name, 10_000)), ...body);
}

function eventName(app: App, event: Event): string {
  const { model } = app;
  return model.text(event.on === "host" ? model.host!.name[event.row]!
    : nameIds(app)(event.row));
}

function tools(app: App, uid: number, ...more: (Node | null)[]): HTMLElement {
  return h("div", { class: "tools" },
    app.link("Show in timeline", showEvent(app, uid)), ...more);
}

function deviceBody(app: App, event: Event, uid: number): Node[] {
  const { model } = app;
  const device = model.device!;
  const { row } = event;
  const family = model.families[device.family[row]!]!;
  const lane = device.lane[row]!;
  const kernels = model.table("kernels");
  const name = eventName(app, event);
  const op = kernels && device.kernel[row]! > 0
    ? kernels.str(device.kernel[row]! - 1, "op") : "";
  const cost = model.table("op_efficiency");
  const costRow = device.op[row]! - 1;
  const opKey = cost && costRow >= 0 ? cost.str(costRow, "first_uid") : "";
  const modules = model.table("modules");
  const path = modules && device.module[row]! > 0
    ? modules.str(device.module[row]! - 1, "module") : "";
  return [list([
    startEntry(app, event.start, uid),
    ["end", `${count(event.start + event.dur)} ns`],
    ["length", time(event.dur), ` (${count(event.dur)} ns)`],
    gapsEntry(app, row),
    ["track", app.link(laneName(model, lane), {
      chips: app.only("lane", laneKey(model, lane)) })],
    ["family", swatch(family.group), app.link(family.title || family.name,
      { chips: app.only("fam", family.group) })],
    ruleEntry(app, row),
    op ? ["op", app.link(clean(op, 200), { chips: app.only("op", op) })] : null,
    opKey ? ["shapes", app.link(shapes(cost!.str(costRow, "input_dims")) ||
      "of this call", { view: "ops", chips: app.only("row", opKey) })] : null,
    opKey && cost!.str(costRow, "input_types")
      ? ["types", shapes(cost!.str(costRow, "input_types")).slice(0, 200)]
      : null,
    ...compiledEntries(app, device.kernel[row]! - 1),
    path ? ["module", ...modulePath(app, path)] : null,
    layerEntry(app, row), stepEntry(app, row),
    ...launchEntries(app, row), ...attribution(app, row),
    autogradEntry(app, device.launch[row]! - 1),
    opKey ? costEntry(app, costRow) : null,
    sameName(app, row, name),
    ...comparedEntries(app, row),
    eventNumber(app, uid),
  ]), ...callsOfName(app, row, name), ...callStack(app, row), tools(app, uid,
    app.link("Only this kernel", { chips: app.only("name", name) }),
    app.link("Only this time", { chips: app.only("t",
      `${event.start}..${event.start + Math.max(1, event.dur)}`) }))];
}

// What a compiled kernel computes and which lines of the model it is, where the
// page was made with the code of the compiler.
function compiledEntries(app: App, row: number): Entry[] {
  const kernels = app.model.table("kernels");
  if (!kernels || row < 0 || !kernels.has("computes")) return [];
  const entry = (key: string, column: string): Entry[] => {
    const text = kernels.str(row, column);
    return text ? [[key, clean(text, 1000)]] : [];
  };
  return [...entry("computes", "computes"), ...entry("code", "lines")];
}

// Where traces lie over each other: the time on the common axis, and that of
// the trace itself.
function startEntry(app: App, start: number, uid: number): Entry {
  const of = app.model.traceOf(uid);
  return ["start", `${time(start)} (${count(start)} ns)` + (of && of.shift_ns !== 0
    ? `, in ${of.name} ${time(start - of.shift_ns)}` : "")];
}

// Idle time of its GPU right before and behind it.
function gapsEntry(app: App, row: number): Entry | null {
  const { model } = app;
  const gpu = gpusOf(model).find((one) =>
    one.lanes.includes(model.device!.lane[row]!));
  if (!gpu) return null;
  const gaps = gapsOf(model, gpu);
  const link = (at: number, words: string) => at < 0 ? []
    : [app.link(time(gaps.dur[at]!), showGap(app, { gpu, at }),
                { "data-k": `panel.${words}` }), ` ${words} `];
  const parts = [...link(gaps.next.indexOf(row), "before"),
                 ...link(gaps.before.indexOf(row), "after")];
  return parts.length > 0 ? ["GPU idle", ...parts] : null;
}

function eventNumber(app: App, uid: number): Entry {
  const of = app.model.traceOf(uid);
  return ["event", of ? `number ${uid - of.first_uid} of ${of.name}: ` +
    clean(of.input.replace(/^.*\//, ""), 80) : `number ${uid} of the trace`];
}

// Rows of a comparison that count the event.
function comparedEntries(app: App, row: number): (Entry | null)[] {
  const device = app.model.device!;
  const words = { diffop: "op, A to B", diffkernel: "kernel, A to B",
                  difflayer: "layer, A to B" } as const;
  const entries = Object.entries(words).map(([column, title]): Entry | null => {
    const at = device[column as keyof typeof words][row]! - 1;
    const name = kRowTables[column as keyof typeof words];
    const table = app.model.table(name);
    if (at < 0 || !table) return null;
    const delta = table.num(at, "delta_us");
    return [title, app.link(delta === 0 ? "the same time"
      : `${time(Math.abs(delta))} ${delta > 0 ? "more" : "less"} in B`,
      rowEvents(app, name, at))];
  });
  const calls = app.model.table("collectives");
  const call = device.collective[row]! - 1;
  const rank = /^rank (-?\d+)$/.exec(app.model.traces[app.model.lanes[
    device.lane[row]!]!.trace ?? 0]?.name ?? "")?.[1];
  if (rank !== undefined) {
    entries.push(["clock", clockWords(app.model.table("clock_offsets"), rank)]);
  }
  if (!calls || call < 0) return entries;
  const late = calls.str(call, "late_rank");
  return [...entries, ["collective", app.link(
    `${clean(calls.str(call, "collective"), 40)} ${calls.str(call, "id")}`,
    { view: "ranks", ...app.withOption("ranks.col", calls.str(call, "id")) }),
    late ? `, rank ${late} last` : ""],
    causeWords(calls, call) ? ["held up", causeWords(calls, call)] : null];
}

function modulePath(app: App, path: string): Node[] {
  const parts = path.split("/");
  return parts.flatMap((part, i) => [
    ...(i > 0 ? [document.createTextNode(" / ")] : []),
    app.link(clean(part, 80), { view: "modules",
      chips: app.only("mod", parts.slice(0, i + 1).join("/")) })]);
}

function layerEntry(app: App, row: number): Entry | null {
  const layers = app.model.table("layers");
  const at = app.model.device!.layer[row]! - 1;
  if (!layers || at < 0) return null;
  return ["layer", app.link(`${clean(layers.str(at, "stack"), 60)} ` +
    `${layers.str(at, "layer")} of pass ${layers.str(at, "pass")}`, {
    view: "layers", chips: app.only("layer", layers.str(at, "first_uid")) })];
}

function stepEntry(app: App, row: number): Entry | null {
  const steps = app.model.table("steps");
  const at = app.model.device!.step[row]! - 1;
  if (!steps || at < 0 || at >= steps.rows) return null;
  const name = steps.str(at, "name");
  return ["step", app.link(clean(name, 80), { chips: app.only("step", name) })];
}

function launchEntries(app: App, row: number): (Entry | null)[] {
  const { device, host } = app.model;
  const fetched = device!.fetched?.launch.get(row);
  const at = fetched !== undefined ? host?.uid.indexOf(fetched as never) ?? -1
    : device!.launch[row]! - 1;
  if (fetched !== undefined && at < 0)
    return [["launch", `event ${fetched}, which this page does not hold`]];
  if (!host || at < 0) return [];
  const begin = host.start[at]!;
  const queued = queueTime(device!, row, begin);
  return [
    ["launch", app.link(clean(app.model.text(host.name[at]!), 80),
      showEvent(app, host.uid[at]!))],
    ["latency", `${time(device!.start[row]! - begin)} after the launch began; `,
      bothLink(app, row, at)],
    queued === null ? null : ["queue", queued === 0
      ? "the stream was free" : `${time(queued)} of that behind earlier work ` +
        "of the stream"]];
}

// The timeline from the launch to the end of its work.
function bothLink(app: App, row: number, launch: number): Node {
  const { device, host } = app.model;
  const from = Math.min(host!.start[launch]!, device!.start[row]!);
  const to = Math.max(host!.start[launch]! + host!.dur[launch]!,
                      device!.start[row]! + device!.dur[row]!);
  const room = Math.max(1000, (to - from) * 0.1);
  return app.link("both in one window", { view: "timeline",
    selected: String(device!.uid[row]),
    zoom: [Math.round(from - room), Math.round(to + room)] },
    { "data-k": "panel.both" });
}

// The other end of the pair of forward and backward op.
function autogradEntry(app: App, row: number): Entry | null {
  const { model } = app;
  const twin = row >= 0 ? twinOf(model, row) : null;
  if (!twin) return null;
  return [twin.isForward ? "backward" : "forward",
    app.link(clean(model.text(model.host!.name[twin.other]!), 100),
             showEvent(app, model.host!.uid[twin.other]!))];
}

// Innermost first; a frame filters to what was launched below it.
function callStack(app: App, row: number): Node[] {
  const { model } = app;
  const frames = framesOf(model, model.device!.stack[row]!);
  if (frames.length === 0) return [];
  return [h("details", { class: "frames", open: frames.length <= kOpenFrames },
    h("summary", { "data-k": "panel.stack" },
      `Call stack, ${frames.length} frames`),
    h("ol", {}, ...frames.map((frame) => h("li", {}, app.link(
      clean(frameName(model, frame), 200),
      { chips: app.only("frame", String(frame)) })))))];
}

function costEntry(app: App, at: number): Entry | null {
  const cost = app.model.table("op_efficiency")!;
  if (cost.at(at, "roofline_us") === null) return null;
  const parts = [];
  if (cost.at(at, "flops") !== null)
    parts.push(`${big(cost.num(at, "flops"))}FLOP`);
  if (cost.at(at, "bytes") !== null) parts.push(bytes(cost.num(at, "bytes")));
  return ["cost", app.link(`${parts.join(", ")} per call; bound ` +
    `${time(cost.num(at, "roofline_us"))} (${cost.str(at, "bound")}), mean ` +
    `${time(cost.num(at, "mean_us"))}`, { view: "roofline" })];
}

function sameName(app: App, row: number, name: string): Entry {
  const device = app.model.device!;
  const nameOf = nameIds(app);
  const id = nameOf(row);
  let all = 0;
  let sum = 0;
  let longer = 0;
  for (let i = 0; i < device.rows; ++i) {
    if (nameOf(i) !== id) continue;
    all += eventsOf(device, i);
    sum += device.dur[i]!;
    if (device.dur[i]! > device.dur[row]!) ++longer;
  }
  return ["same name", app.link(`${count(all)} ` +
    `${all === 1 ? "event" : "events"}, ${time(sum)}`,
    { view: "kernels", chips: app.only("name", name) }),
    // Not all that are longer need be in the page.
    ...device.merged ? [] : [`; this one is number ${count(longer + 1)} by ` +
      "length"]];
}

interface Call { words: string; uid: number; start: number; dur: number;
                 launch: number | null }

// This call beside the slowest and the one in the middle of its name.
function callTable(app: App, calls: Call[], all: Node | null): Node {
  const median = calls.find(({ words }) => words === "median")!.dur;
  const launched = calls.some(({ launch }) => launch !== null);
  const num = (text: string) => h("td", { class: "num" }, text);
  return h("table", { class: "causes calls" },
    h("caption", {}, "Calls of this name ", all),
    h("thead", {}, h("tr", {}, ...["", "length", "of median", "start",
      ...launched ? ["after launch"] : []].map((head) =>
        h("th", { scope: "col", class: head ? "num" : "" }, head)))),
    h("tbody", {}, ...calls.map((call) => h("tr", {}, h("th", { scope: "row" },
      call.words === "this" ? "this" : app.link(call.words,
        showEvent(app, call.uid), { "data-k": `panel.${call.words}` })),
      num(time(call.dur)),
      num(median > 0 ? `${real(call.dur / median)} \u00d7` : ""),
      num(time(call.start)), launched ? num(call.launch === null ? ""
        : time(call.launch)) : null))));
}

// The rows of its name, the slowest first, with the event that is shown.
function besideOthers(app: App,
                      { uid, start, dur }: Pick<HostEvents, "uid" | "start" | "dur">,
                      row: number, rows: number[],
                      launch: (row: number) => number | null,
                      all: Node | null): Node {
  rows.sort((a, b) => dur[b]! - dur[a]! || a - b);
  const call = (words: string, at: number): Call => ({ words, uid: uid[at]!,
    start: start[at]!, dur: dur[at]!, launch: launch(at) });
  return callTable(app, [call("this", row),
    call("median", rows[rows.length >> 1]!), call("slowest", rows[0]!)], all);
}

function callsOfName(app: App, row: number, name: string): Node[] {
  const { device, host } = app.model;
  if (!device || device.merged) return [];
  const nameOf = nameIds(app);
  const id = nameOf(row);
  const rows: number[] = [];
  for (let i = 0; i < device.count; ++i) if (nameOf(i) === id) rows.push(i);
  const all = app.link("all in order", { view: "timeline",
    chips: app.only("name", name), zoom: [device.first, device.last],
    ...app.withOption("events.sort", "start+") }, { "data-k": "panel.all" });
  return [besideOthers(app, device, row, rows, (at) =>
    host && device.launch[at]! > 0
      ? device.start[at]! - host.start[device.launch[at]! - 1]! : null, all)];
}

// The same of a host event.
function hostCalls(app: App, row: number): { words: string; table: Node } {
  const host = app.model.host!;
  const rows: number[] = [];
  let sum = 0;
  for (let i = 0; i < host.count; ++i) {
    if (host.name[i] !== host.name[row]) continue;
    rows.push(i);
    sum += host.dur[i]!;
  }
  const longer = rows.filter((at) => host.dur[at]! > host.dur[row]!).length;
  return { words: `${count(rows.length)} ` + (rows.length === 1 ? "event" : "events") +
      `, ${time(sum)}; this one is ` +
      `number ${count(longer + 1)} by length`,
    table: besideOthers(app, host, row, rows, () => null, null) };
}

const kMostParents = 6;

// What is open around a host event on its thread, the innermost first.
function parents(app: App, row: number): Entry | null {
  const { host, hostTracks } = app.model;
  const { start, dur, uid, name } = host!;
  const own = hostTracks.find((t) => row >= t.begin && row < t.end);
  const end = start[row]! + dur[row]!;
  const open: number[] = [];
  for (const track of hostTracks) {
    if (!own || track.thread !== own.thread || track.process !== own.process ||
        (track.trace ?? 0) !== (own.trace ?? 0)) continue;
    for (let i = track.begin; i < track.end && start[i]! <= start[row]!; ++i) {
      const around = start[i]! + dur[i]! >= end;
      // Of two with the same times the outer one comes first in the trace.
      if (around && i !== row && (dur[i]! > dur[row]! || uid[i]! < uid[row]!))
        open.push(i);
    }
  }
  open.sort((a, b) => dur[a]! - dur[b]! || uid[b]! - uid[a]!);
  return open.length === 0 ? null : ["inside of", chain(
    open.slice(0, kMostParents).map((at, i) =>
      app.link(clean(app.model.text(name[at]!), 200), showEvent(app, uid[at]!),
               { "data-k": `panel.parent.${i}` })),
    open.length > kMostParents)];
}

// Shapes of an op, by work that it launched.
function hostShapes(app: App, row: number, launched: number[]): (Entry | null)[] {
  const { device, host } = app.model;
  const cost = app.model.table("op_efficiency");
  const name = app.model.text(host!.name[row]!);
  for (const at of cost ? launched : []) {
    const op = device!.op[at]! - 1;
    if (op < 0 || cost!.str(op, "op") !== name) continue;
    const types = shapes(cost!.str(op, "input_types")).slice(0, 200);
    return [["shapes", app.link(shapes(cost!.str(op, "input_dims")) ||
      "of this call", { view: "ops",
        chips: app.only("row", cost!.str(op, "first_uid")) })],
      types ? ["types", types] : null, costEntry(app, op)];
  }
  return [];
}

function hostBody(app: App, event: Event, uid: number): Node[] {
  const { model } = app;
  const device = model.device;
  const track = model.hostTracks.find((t) => event.row >= t.begin &&
                                      event.row < t.end);
  const launched: number[] = [];
  let sum = 0;
  const end = event.start + event.dur;
  // Work launched by calls of this thread inside the event.
  const host = model.host!;
  const sameThread = (at: number) => model.hostTracks.some((t) =>
    at >= t.begin && at < t.end && t.thread === track?.thread &&
    t.process === track?.process);
  for (let i = 0; device && i < device.count; ++i) {
    const at = device.launch[i]! - 1;
    if (at < 0 || host.start[at]! < event.start ||
        host.start[at]! + host.dur[at]! > end || !sameThread(at)) continue;
    launched.push(i);
    sum += device.dur[i]!;
  }
  const same = hostCalls(app, event.row);
  return [list([
    startEntry(app, event.start, uid),
    ["end", `${count(end)} ns`],
    ["length", `${time(event.dur)} (${count(event.dur)} ns)`],
    parents(app, event.row), ...hostShapes(app, event.row, launched),
    autogradEntry(app, event.row),
    track ? ["thread", clean(track.name || track.thread, 80)] : null,
    launched.length > 0 ? ["launched",
      app.link(`${count(launched.length)} device ` +
        (launched.length === 1 ? "event" : "events") +
        (device!.merged ? " of those in the page" : "") + `, ${time(sum)}`,
        launched.length > 200 ? showEvent(app, device!.uid[launched[0]!]!)
          : { view: "timeline", chips: app.only("uid", ...launched.map((at) =>
              String(device!.uid[at]))) }),
        ...launched.length === 1 ? ["; ", bothLink(app, launched[0]!,
          device!.launch[launched[0]!]! - 1)] : []]
      : null,
    ["same name", same.words],
    eventNumber(app, uid),
  ]), same.table, tools(app, uid, app.link("Only this time", { chips: app.only("t",
    `${event.start}..${end}`) }))];
}
