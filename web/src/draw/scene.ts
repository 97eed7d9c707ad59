// SPDX-License-Identifier: Apache-2.0
//
// What the timeline shows, from top to bottom: passes and layers, ranges, the
// streams of each device, modules, host threads. Built once per filter and
// width; drawing a window of it reads only what is in the window.

import type { Column } from "../data/decode";
import { counterLines, type StepLine } from "../data/counters";
import { gpusOf, someLanes, type Gpu } from "../data/gpus";
import { groupIndex, kGroups } from "../data/groups";
import { familyPasses, laneKey, laneName, withTrace, type Selection } from
  "../data/filter";
import type { HostTrack } from "../data/manifest";
import type { Model } from "../data/model";
import { buildPyramid, pyramidSteps, type Level } from "../data/pyramid";
import { inSlices } from "../data/slices";
import { bucketLevels, bucketTest } from "../data/thinned";
import { trackKeys } from "../data/trackkeys";
import { stackTrack } from "../data/tracks";
import type { App, Patch } from "../ui/app";
import { eventAt } from "../ui/events";
import { clean } from "../ui/format";
import { gpuName, gpuRow, prepareGpus, type GpuRow } from "./gpurow";

export const kRowHeight = 15;
export const kRulerHeight = 20;

// Boxes of one row; they do not overlap.
export interface BoxRow {
  start: ArrayLike<number>;
  dur: ArrayLike<number>;
  ids: Uint32Array;          // positions in start and dur, by start
  name(id: number): string;
  uid(id: number): number | null;
  click(id: number): Patch;
}

export interface LaneTrack {
  kind: "lane";
  trace: number;
  lane: number;
  levels: Level[];
  maxEnd: Column | null;     // running maximum of ends, where events overlap
  rowOf: Uint8Array | null;  // 1: drawn in the lower half
}
export interface BoxTrack {
  kind: "boxes";
  trace: number;
  color: "host" | "module";
  rows: BoxRow[];
}
export interface GpuTrack {
  kind: "gpu";
  trace: number;
  row: GpuRow;
  rest: boolean;             // streams that have no row of their own
}
export interface CounterTrack {
  kind: "counter";
  trace: number;
  line: StepLine;
}
export type Track = (LaneTrack | GpuTrack | BoxTrack | CounterTrack) & {
  key: string;
  label: string;
  y: number;
  height: number;
  // What a click on the name does: rows below it come or go.
  toggle?: { open: boolean; patch: Patch; words: string };
};

export interface Scene {
  tracks: Track[];
  hidden: { key: string; label: string }[];
  all: Track[];              // in the order of drawing
  usual: string[];           // keys in the order without a wish
  unknown: number;           // tracks that the address names and nobody has
  height: number;
  from: number;
  to: number;
  gutter: number;            // width of the names at the left
}

const kMostLanes = 96;       // with a row of their own, unless asked for
const kNearlyEmpty = 0.01;   // of the busiest stream of the GPU
const kRestHeight = 14;
const kMostThreads = 6;
export const kLabelHeight = 15;
const kMostTableRows = 3;
const kCounterHeight = 30;
const kGpuHeight = 24;
const kGpuTall = 64;       // where its idle time is drawn by cause
const kMostTall = 4;
const kMostCounters = 4;   // shown without being asked for

let cache: { selection: Selection; levels: Map<number, Level[]> } | null = null;

export function buildLanePyramid(app: App, lane: number): Level[] {
  return bucketPyramid(app, lane) ?? buildPyramid(...pyramidInput(app, lane));
}
function pyramidInput(app: App, lane: number):
    Parameters<typeof buildPyramid> {
  const { begin, end } = app.model.lanes[lane]!;
  const overlap = overlapOf(app.model, lane).maxEnd !== null;
  return [{ ...app.model.device!, begin, end, overlap }, groupIndex(app.model),
          kGroups.length, app.selection.mask, ...extent(app.model)];
}
// From the buckets of a page that does not hold every event.
function bucketPyramid(app: App, lane: number): Level[] | null {
  const { model } = app;
  const rows = model.buckets[lane];
  if (!model.thinned || !rows) return null;
  return bucketLevels(rows, model.thinned, groupIndex(model),
    bucketTest(app.state.chips, (chip, family) =>
      familyPasses(model, lane, chip, family)));
}

function pyramids(app: App): Map<number, Level[]> {
  if (cache?.selection !== app.selection)
    cache = { selection: app.selection, levels: new Map() };
  return cache.levels;
}

// Builds what the scene of the selection needs; stops when there is another.
export async function preparePyramids(app: App): Promise<void> {
  const levels = pyramids(app);
  const wanted = () => cache?.levels === levels;
  const gpus = layoutOf(app);
  for (const lane of gpus.flatMap(({ gpu, own }) => app.model.thinned
    ? gpu.lanes : own)) {
    if (levels.has(lane)) continue;
    const built = bucketPyramid(app, lane) ??
      await inSlices(pyramidSteps(...pyramidInput(app, lane)), wanted);
    if (!built) return;
    levels.set(lane, built);
  }
  await prepareGpus(app, gpus.flatMap(({ gpu, rest }) => rest ? [gpu, rest]
    : [gpu]), extent(app.model));
}

function lanePyramid(app: App, lane: number): Level[] {
  const known = pyramids(app);
  let levels = known.get(lane);
  if (!levels) {
    levels = buildLanePyramid(app, lane);
    known.set(lane, levels);
  }
  return levels;
}

// First and last time of anything that is drawn.
export function extent(model: Model): [number, number] {
  const from = Math.min(model.device?.first ?? Infinity,
                        model.host?.first ?? Infinity);
  const to = Math.max(model.device?.last ?? -Infinity,
                      model.host?.last ?? -Infinity);
  return from < to ? [from, to] : [0, 1000];
}

// Both null where no events of the lane overlap.
interface Overlap { maxEnd: Column | null; rowOf: Uint8Array | null }
const overlaps = new Map<number, Overlap>();

function overlapOf(model: Model, lane: number): Overlap {
  const known = overlaps.get(lane);
  if (known) return known;
  const device = model.device!;
  const { begin, end } = model.lanes[lane]!;
  let most = -Infinity;
  let found = false;
  for (let i = begin; i < end && !found; ++i) {
    found = device.start[i]! < most;
    most = Math.max(most, device.start[i]! + device.dur[i]!);
  }
  const result: Overlap = { maxEnd: null, rowOf: null };
  if (found) {
    result.maxEnd = new Float64Array(end - begin);
    result.rowOf = new Uint8Array(end - begin);
    most = -Infinity;
    let upper = -Infinity;
    for (let i = begin; i < end; ++i) {
      const start = device.start[i]!;
      const last = start + device.dur[i]!;
      if (start < upper) result.rowOf[i - begin] = 1;
      else upper = last;
      most = Math.max(most, last);
      result.maxEnd[i - begin] = most;
    }
  }
  overlaps.set(lane, result);
  return result;
}

// Time of the events of each lane.
const lengths = new WeakMap<Model, Float64Array>();
function laneTimes(model: Model): Float64Array {
  let times = lengths.get(model);
  if (!times) {
    times = new Float64Array(model.lanes.length);
    const { lane, dur, rows } = model.device!;
    for (let i = 0; i < rows; ++i) times[lane[i]!]! += dur[i]!;
    lengths.set(model, times);
  }
  return times;
}

// A GPU, its streams with a row of their own, and the others together.
interface Layout {
  gpu: Gpu;
  key: string;
  own: number[];
  rest: Gpu | null;
  closed: boolean;
  all: boolean;      // nothing is folded
  few: boolean;      // of all streams some would be folded
}

function selectedLane(app: App): number {
  const event = eventAt(app);
  return event?.on === "device" ? app.model.device!.lane[event.row]! : -1;
}

// GPUs in order, each with the streams that are not nearly empty. The selected
// event has its row always.
function layoutOf(app: App): Layout[] {
  const { model } = app;
  if (!model.device) return [];
  const gpus = [...gpusOf(model)].sort((a, b) => a.trace - b.trace ||
    (a.device ?? -1) - (b.device ?? -1));
  const keys = trackKeys(gpus.map((gpu) => ["gpu", ...model.traces.length > 1
    ? [String(gpu.trace)] : [], gpu.process, gpu.device ?? "-"].join(".")));
  const times = laneTimes(model);
  const most = Math.max(4, Math.floor(kMostLanes / Math.max(1, gpus.length)));
  const [shut, open] = [listed(app, "timeline.closed"),
                        listed(app, "timeline.all")];
  const chosen = selectedLane(app);
  return gpus.map((gpu, i) => {
    const bySize = [...gpu.lanes].sort((a, b) => times[b]! - times[a]!);
    const least = kNearlyEmpty * times[bySize[0]!]!;
    const large = new Set(bySize.filter((lane, at) => lane === chosen ||
      (at < most && times[lane]! >= least)));
    const [closed, all] = [shut.includes(keys[i]!), open.includes(keys[i]!)];
    const own = closed ? [] : gpu.lanes.filter((lane) => all || large.has(lane));
    const others = closed ? [] : gpu.lanes.filter((lane) => !own.includes(lane));
    return { gpu, key: keys[i]!, own, closed, all,
             few: large.size < gpu.lanes.length,
             rest: others.length > 0 ? someLanes(model, gpu, others) : null };
  });
}

function switched(app: App, option: string, key: string): Patch {
  const now = listed(app, option);
  return app.withOption(option, (now.includes(key)
    ? now.filter((k) => k !== key) : [...now, key]).join(","));
}

// Each GPU above its streams.
function laneTracks(app: App): Track[] {
  const { model } = app;
  const gpus = layoutOf(app);
  const shown = gpus.reduce((sum, { own }) => sum + own.length, 0);
  const height = shown <= 4 ? 46 : shown <= 16 ? 30 : 18;
  const lanes = gpus.flatMap(({ gpu }) => gpu.lanes);
  const names = trackKeys(lanes.map((lane) => "lane." +
    laneKey(model, lane).replace(/[/:]/g, ".")));
  const keyOf = new Map(lanes.map((lane, i) => [lane, names[i]!]));
  const row = (gpu: Gpu) => gpuRow(app, gpu, extent(model), (lane) =>
    lanePyramid(app, lane));
  return gpus.flatMap(({ gpu, key, own, rest, closed, all, few }): Track[] => {
    const streams = `${gpu.lanes.length} ` +
      (gpu.lanes.length === 1 ? "stream" : "streams");
    return [{ kind: "gpu", key, label: gpuName(app, gpu), trace: gpu.trace,
        y: 0, height: !model.manifest.answer ? kGpuHeight
          : gpus.length > kMostTall ? kGpuTall / 2 : kGpuTall, rest: false, row: row(gpu),
        toggle: { open: !closed, patch: switched(app, "timeline.closed", key),
                  words: (closed ? "show its " : "fold its ") + streams } },
      ...own.map((lane): Track => ({ kind: "lane", key: keyOf.get(lane)!,
        label: laneName(model, lane), trace: gpu.trace, lane, y: 0, height,
        levels: lanePyramid(app, lane), ...overlapOf(model, lane) })),
      ...rest || (all && few && !closed) ? [{ key: key + ".rest",
        trace: gpu.trace, y: 0, height: kRestHeight,
        label: !rest ? "fewer streams" : rest.lanes.length === 1
          ? laneName(model, rest.lanes[0]!) : `${rest.lanes.length} more streams`,
        toggle: { open: all, patch: switched(app, "timeline.all", key),
                  words: all ? "fold nearly empty streams"
                    : "nearly empty: a row for each" },
        ...rest ? { kind: "gpu" as const, rest: true, row: row(rest) }
          : { kind: "boxes" as const, color: "host" as const, rows: [] },
      }] : []];
  });
}

const stacked = new Map<HostTrack, BoxRow[]>();

function hostTrack(app: App, track: HostTrack, key: string): Track | null {
  const { model } = app;
  const host = model.host!;
  let rows = stacked.get(track);
  if (!rows) {
    rows = stackTrack(track, host).rows.map((ids): BoxRow => ({
      start: host.start, dur: host.dur, ids,
      name: (id) => model.text(host.name[id]!).replace(/^nn\.Module: /, ""),
      uid: (id) => host.uid[id]!,
      click: (id) => ({ selected: String(host.uid[id]!) }),
    }));
    stacked.set(track, rows);
  }
  if (rows.length === 0) return null;
  const named = (one: HostTrack) => clean(one.name || one.thread, 80);
  // Threads of one name have their numbers, and those of their processes.
  const twins = model.hostTracks.filter((other) => other.kind === track.kind &&
    (other.trace ?? 0) === (track.trace ?? 0) && named(other) === named(track));
  const differ = (of: (one: HostTrack) => string) =>
    twins.some((other) => of(other) !== of(track));
  const own = [differ(({ process }) => process) ? clean(track.process, 40) : "",
               differ(({ thread }) => thread) ? clean(track.thread, 40) : ""]
    .filter((text, i, all) => text !== "" && all.indexOf(text) === i);
  // "(python3)" behind every name says nothing.
  const [end = ""] = / \([^()]*\)$/.exec(named(track)) ?? [];
  const shared = end !== "" && model.hostTracks.every((other) =>
    named(other).endsWith(end));
  const who = (shared ? named(track).slice(0, -end.length) : named(track)) + (own.length > 0 ? ` (${own.join(", ")})` : "");
  const words = { ranges: "Ranges", modules: "Modules", calls: "Host",
                  python: "Python" };
  return { kind: "boxes", key, 
    label: withTrace(model, track, `${words[track.kind]} ${who}`),
    color: track.kind === "modules" ? "module" : "host", rows, y: 0,
    trace: track.trace ?? 0,
    height: rows.length * kRowHeight };
}

// Passes and layers from the tables; times there count from the first device
// event.
function tableTrack(app: App, name: "passes" | "layers"): Track | null {
  const { model } = app;
  const table = model.table(name);
  const { device } = model;
  if (!table || !device || table.rows === 0) return null;
  const start = new Float64Array(table.rows);
  const dur = new Float64Array(table.rows);
  for (let row = 0; row < table.rows; ++row) {
    start[row] = table.num(row, "start_us") + device.first;
    dur[row] = table.num(row, "wall_us");
  }
  const ids = Uint32Array.from(start.keys())
    .sort((a, b) => start[a]! - start[b]!);
  // Passes and layers of several streams overlap: the first row that is free.
  const free: number[][] = [];
  const ends: number[] = [];
  for (const id of ids) {
    let at = ends.findIndex((end) => end <= start[id]!);
    if (at < 0) at = ends.length;
    if (at >= kMostTableRows) continue;
    (free[at] ??= []).push(id);
    ends[at] = start[id]! + dur[id]!;
  }
  const rows = free.map((list): BoxRow => ({
    start, dur, ids: Uint32Array.from(list), uid: () => null,
    name: name === "passes"
      ? (id) => `pass ${table.str(id, "pass")} ${table.str(id, "stage")}`
          .replace(/ (none|unknown)$/, "")
      : (id) => `${clean(table.str(id, "stack"), 40)} ${table.str(id, "layer")}`,
    click: name === "passes"
      ? (id) => ({ chips: app.toggle("pass", table.str(id, "pass")) })
      : (id) => ({ chips: app.toggle("layer", table.str(id, "first_uid")) }),
  }));
  return { kind: "boxes", key: name, color: "module", rows, y: 0, trace: 0,
           label: name === "passes" ? "Passes" : "Layers",
           height: rows.length * kRowHeight };
}

// The device work of two traces stands close together, with the ranges of each
// above it; the host comes behind.
function traceByTrace(model: Model, ...lists: Track[][]): Track[] {
  const traces = Math.max(1, model.traces.length);
  const of = Array.from({ length: traces }, (): Track[] => []);
  for (const list of lists)
    for (const track of list) of[track.trace]?.push(track);
  return of.flat();
}

function counterTracks(app: App): Track[] {
  return counterLines(app.model).map((line): Track => ({ kind: "counter",
    key: line.key, label: clean(line.name, 80), trace: 0, line, y: 0,
    height: kCounterHeight }));
}

function hostKeys(model: Model): string[] {
  return trackKeys(model.hostTracks.map(({ kind, process, thread, trace }) =>
    [kind, ...model.traces.length > 1 ? [String(trace ?? 0)] : [], process,
     thread].join(".")));
}

// Keys of tracks that an option of the address lists.
function listed(app: App, option: string): string[] {
  return [...new Set(app.option(option).split(","))].filter((k) => k !== "");
}

// The tracks that the address puts first, in its order, then all others.
function inOrder(tracks: Track[], first: string[]): Track[] {
  const byKey = new Map(tracks.map((track) => [track.key, track]));
  const head = first.flatMap((key) => byKey.get(key) ?? []);
  const taken = new Set(head);
  return [...head, ...tracks.filter((track) => !taken.has(track))];
}

// The shortest list that puts the tracks into this order.
export function orderOption(wanted: string[], usual: string[]): string {
  let size = wanted.length;
  for (; size > 0; --size) {
    const head = wanted.slice(0, size - 1);
    const rest = usual.filter((key) => !head.includes(key));
    if (rest.some((key, i) => key !== wanted[size - 1 + i])) break;
  }
  return wanted.slice(0, size).join(",");
}

export function makeScene(app: App, width: number): Scene {
  const { model } = app;
  const [from, to] = extent(model);
  const keys = hostKeys(model);
  const host: Record<HostTrack["kind"], Track[]> =
    { ranges: [], modules: [], calls: [], python: [] };
  const off = new Set<string>();
  const bySize = [...model.hostTracks.keys()].sort((a, b) => {
    const size = (i: number) =>
      model.hostTracks[i]!.end - model.hostTracks[i]!.begin;
    return size(b) - size(a) || a - b;
  });
  for (const [i, info] of model.hostTracks.entries()) {
    const track = model.host ? hostTrack(app, info, keys[i]!) : null;
    if (!track) continue;
    host[info.kind].push(track);
    if (bySize.indexOf(i) >= kMostThreads) off.add(track.key);
  }
  const counters = counterTracks(app);
  for (const { key } of counters.slice(kMostCounters)) off.add(key);
  const tables = [tableTrack(app, "passes"), tableTrack(app, "layers")];
  // Below an answer devices come first.
  const usual = [...model.manifest.answer
    ? [...laneTracks(app), ...tables, ...host.ranges]
    : [...tables, ...traceByTrace(model, host.ranges, laneTracks(app))],
    ...counters,
    ...traceByTrace(model, host.modules, host.calls, host.python)]
    .filter((track) => track !== null);
  // The address names the tracks whose visibility is not the usual one, and
  // those that come first.
  const known = new Set(usual.map((track) => track.key));
  const [switched, first] = [listed(app, "timeline.tracks"),
                             listed(app, "timeline.order")];
  const unknown = new Set([...switched, ...first,
    ...listed(app, "timeline.closed"), ...listed(app, "timeline.all"),
  ].filter((key) =>
    !known.has(key))).size;
  for (const key of switched) {
    if (off.has(key)) off.delete(key);
    else off.add(key);
  }
  const all = inOrder(usual, first);
  const compact = width < 700;
  const scene: Scene = { tracks: all.filter((t) => !off.has(t.key)), hidden:
    all.filter((t) => off.has(t.key)), all, usual: [...known], unknown,
    height: 0, from, to, gutter: compact ? 0 : width < 1300 ? 150 : 180 };
  let y = kRulerHeight + 6;
  for (const track of scene.tracks) {
    if (compact) y += kLabelHeight;
    track.y = y;
    y += track.height + (track.kind === "lane" ? 10 : track.kind === "gpu" ? 4 : 7);
  }
  scene.height = Math.max(y, 90);
  return scene;
}
