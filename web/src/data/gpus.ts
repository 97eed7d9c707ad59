// SPDX-License-Identifier: Apache-2.0
//
// GPUs: the streams of one device together. What they do at once counts once,
// so busy and idle time of a GPU add up to the time that passes.

import type { Column } from "./decode";
import type { Model } from "./model";

export interface Gpu {
  trace: number;
  device: number | null;
  process: string;
  lanes: number[];    // with events
  rows: Uint32Array;  // of their single events, by start
}

// Time between two events in which no stream of the GPU works.
export interface Gaps {
  start: Float64Array;
  dur: Float64Array;
  before: Uint32Array;  // rows of device events: the last to end
  next: Uint32Array;
}

// Events without what earlier ones cover: they do not overlap.
export interface Parts {
  start: Float64Array;
  dur: Float64Array;
  family: Column;
  rows: Uint32Array;
  count: number;
}

const known = new WeakMap<Model, Gpu[]>();
const knownGaps = new WeakMap<Gpu, Gaps>();

export function gpusOf(model: Model): Gpu[] {
  let gpus = known.get(model);
  if (gpus || !model.device) return gpus ?? [];
  const byKey = new Map<string, Gpu>();
  for (const [i, lane] of model.lanes.entries()) {
    const size = model.buckets[i] ?? lane;
    if (size.end === size.begin) continue;
    const key = JSON.stringify([lane.trace ?? 0, lane.process, lane.device]);
    let gpu = byKey.get(key);
    if (!gpu) {
      byKey.set(key, gpu = { trace: lane.trace ?? 0, device: lane.device,
        process: lane.process, lanes: [], rows: new Uint32Array(0) });
    }
    gpu.lanes.push(i);
  }
  gpus = [...byKey.values()];
  for (const gpu of gpus) gpu.rows = byStart(model, gpu.lanes);
  known.set(model, gpus);
  return gpus;
}

const knownParts = new WeakMap<Gpu, Map<string, Gpu>>();

// Some streams of a GPU, as if they were one.
export function someLanes(model: Model, gpu: Gpu, lanes: number[]): Gpu {
  let parts = knownParts.get(gpu);
  if (!parts) knownParts.set(gpu, parts = new Map<string, Gpu>());
  const key = lanes.join();
  let part = parts.get(key);
  if (!part) parts.set(key, part = { ...gpu, lanes, rows: byStart(model, lanes) });
  return part;
}

// Lanes are sorted; they are merged two by two.
function byStart(model: Model, lanes: number[]): Uint32Array {
  const { start } = model.device!;
  let lists: Uint32Array[] = lanes.map((lane) => {
    const { begin, end } = model.lanes[lane]!;
    return Uint32Array.from({ length: end - begin }, (_, i) => begin + i);
  });
  while (lists.length > 1) {
    const half: Uint32Array[] = [];
    for (let i = 0; i < lists.length; i += 2) {
      const [a, b] = [lists[i]!, lists[i + 1]];
      half.push(b ? merged(a, b, start) : a);
    }
    lists = half;
  }
  return lists[0] ?? new Uint32Array(0);
}

function merged(a: Uint32Array, b: Uint32Array, start: Column): Uint32Array {
  const out = new Uint32Array(a.length + b.length);
  for (let at = 0, i = 0, k = 0; at < out.length; ++at) {
    const first = k >= b.length ||
      (i < a.length && start[a[i]!]! <= start[b[k]!]!);
    out[at] = first ? a[i++]! : b[k++]!;
  }
  return out;
}

export function partsOf(model: Model, gpu: Gpu, mask: Uint8Array | null):
    Parts {
  const device = model.device!;
  const size = gpu.rows.length;
  const start = new Float64Array(size);
  const dur = new Float64Array(size);
  const rows = new Uint32Array(size);
  const family = new Uint16Array(size);
  let count = 0;
  let end = -Infinity;
  for (const row of gpu.rows) {
    if (mask && !mask[row]) continue;
    const stop = device.start[row]! + device.dur[row]!;
    const from = Math.max(device.start[row]!, end);
    if (stop <= from) continue;
    start[count] = from;
    dur[count] = stop - from;
    rows[count] = row;
    family[count++] = device.family[row]!;
    end = stop;
  }
  return { start, dur, family, rows, count };
}

// All gaps of the GPU, whatever the filter leaves. A page that does not hold
// every event cannot tell them.
export function gapsOf(model: Model, gpu: Gpu): Gaps {
  let gaps = knownGaps.get(gpu);
  if (gaps) return gaps;
  const starts: number[] = [];
  const durs: number[] = [];
  const before: number[] = [];
  const next: number[] = [];
  const device = model.device!;
  let end = -Infinity;
  let last = -1;
  for (const row of model.thinned ? [] : gpu.rows) {
    const from = device.start[row]!;
    if (last >= 0 && from > end) {
      starts.push(end);
      durs.push(from - end);
      before.push(last);
      next.push(row);
    }
    const stop = from + device.dur[row]!;
    if (stop > end) {
      end = stop;
      last = row;
    }
  }
  gaps = { start: Float64Array.from(starts), dur: Float64Array.from(durs),
           before: Uint32Array.from(before), next: Uint32Array.from(next) };
  knownGaps.set(gpu, gaps);
  return gaps;
}

export interface GapAt { gpu: Gpu; at: number }

// The gap that the event with this number ends.
export function gapBefore(model: Model, uid: number): GapAt | null {
  const { device } = model;
  for (const gpu of device ? gpusOf(model) : []) {
    const gaps = gapsOf(model, gpu);
    for (let at = 0; at < gaps.next.length; ++at)
      if (device!.uid[gaps.next[at]!] === uid) return { gpu, at };
  }
  return null;
}

// All gaps of all GPUs, the longest first.
export function longestGaps(model: Model): GapAt[] {
  const all = gpusOf(model).flatMap((gpu) =>
    Array.from(gapsOf(model, gpu).dur, (_, at): GapAt => ({ gpu, at })));
  const dur = ({ gpu, at }: GapAt) => gapsOf(model, gpu).dur[at]!;
  const start = ({ gpu, at }: GapAt) => gapsOf(model, gpu).start[at]!;
  return all.sort((a, b) => dur(b) - dur(a) || start(a) - start(b));
}

// --- what the engine says of a gap ---

export interface GapPart { what: string; ns: number }
export interface GapCause {
  row: number;          // of the table idle_gaps
  cause: string;
  host: string;         // what the launching thread did most
  thread: string;
  evidence: string;
  parts: GapPart[];
}

// The causes of a gap; null for one that is not among the longest.
export function causeOf(model: Model, { gpu, at }: GapAt): GapCause | null {
  const table = model.table("idle_gaps");
  const gaps = gapsOf(model, gpu);
  const uid = model.device!.uid[gaps.next[at]!];
  const uids = table?.raw("next_uid");
  for (let row = 0; table && uids && row < table.rows; ++row) {
    if (uids[row] !== uid || table.num(row, "dur_us") !== gaps.dur[at]) continue;
    const parts = table.str(row, "parts").split(", ").flatMap((text) => {
      const colon = text.lastIndexOf(":");
      const ns = Math.round(Number(text.slice(colon + 1)) * 1000);
      return Number.isFinite(ns) ? [{ what: text.slice(0, colon), ns }] : [];
    });
    return { row, cause: table.str(row, "cause"), thread:
      table.str(row, "thread"), host: table.str(row, "host_event"),
      evidence: table.str(row, "evidence"), parts };
  }
  return null;
}
