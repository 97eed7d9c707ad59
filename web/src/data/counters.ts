// SPDX-License-Identifier: Apache-2.0
//
// Step lines over time: the counters of the file, and how much work waits on
// each device. Least and most of blocks of samples make a drawing of any
// window cheap.

import type { Model } from "./model";
import { trackKeys } from "./trackkeys";
import { firstStartingAt } from "./tracks";

export interface StepLine {
  key: string;
  name: string;
  bytes: boolean;
  time: ArrayLike<number>;   // ns, rising
  value: ArrayLike<number>;  // from this time on
  least: Float64Array;       // of each block
  most: Float64Array;
  top: number;
}

const kBlock = 64;
const kMostQueued = 500_000;  // events up to which the queue is added up

function stepLine(key: string, name: string, bytes: boolean,
                  time: ArrayLike<number>, value: ArrayLike<number>):
    StepLine {
  const blocks = Math.ceil(time.length / kBlock);
  const line: StepLine = { key, name, bytes, time, value, top: 0,
    least: new Float64Array(blocks).fill(Infinity),
    most: new Float64Array(blocks).fill(-Infinity) };
  for (let i = 0; i < time.length; ++i) {
    const block = Math.floor(i / kBlock);
    line.least[block] = Math.min(line.least[block]!, value[i]!);
    line.most[block] = Math.max(line.most[block]!, value[i]!);
    line.top = Math.max(line.top, value[i]!);
  }
  return line;
}

// The position of the sample that holds at `t`; -1 before the first.
export function sampleAt(line: StepLine, t: number): number {
  return firstStartingAt(line.time, t + 1, 0, line.time.length) - 1;
}

// Least and most of the samples from..to.
export function rangeOf(line: StepLine, from: number, to: number):
    [number, number] {
  let least = Infinity;
  let most = -Infinity;
  for (let i = from; i <= to;) {
    if (i % kBlock === 0 && i + kBlock <= to + 1) {
      least = Math.min(least, line.least[i / kBlock]!);
      most = Math.max(most, line.most[i / kBlock]!);
      i += kBlock;
    } else {
      least = Math.min(least, line.value[i]!);
      most = Math.max(most, line.value[i]!);
      ++i;
    }
  }
  return [least, most];
}

// The mean over time in a range, from the first sample on.
export function meanOf(line: StepLine, from: number, to: number): number {
  let [sum, span] = [0, 0];
  for (let i = Math.max(0, sampleAt(line, from)); i < line.time.length &&
       line.time[i]! < to; ++i) {
    const ns = Math.min(to, line.time[i + 1] ?? Infinity) -
      Math.max(from, line.time[i]!);
    sum += line.value[i]! * ns;
    span += ns;
  }
  return span > 0 ? sum / span : 0;
}

function fileLines(model: Model): StepLine[] {
  const columns = model.columns("counters");
  const time = columns?.get("time");
  const value = columns?.get("value");
  const list = model.manifest.counters;
  if (!time || !value || !Array.isArray(list)) return [];
  const whole = list.filter(({ begin, end }) => begin >= 0 && begin < end &&
                            end <= time.length);
  const keys = trackKeys(whole.map(({ name }) => `counter.${name}`));
  return whole.map(({ name, bytes, begin, end }, i) => stepLine(keys[i]!,
    String(name), bytes, time.subarray(begin, end),
    value.subarray(begin, end)));
}

// Work of each device that is launched and has not begun.
function queues(model: Model): StepLine[] {
  const { device, host, lanes } = model;
  // Some events of many would be a queue that never was.
  if (!device || !host || device.count > kMostQueued || model.thinned ||
      model.traces.length > 1) return [];
  const rows = new Map<number, number[]>();
  for (let i = 0; i < device.count; ++i) {
    const id = lanes[device.lane[i]!]!.device;
    if (device.launch[i] === 0 || id === null) continue;
    const list = rows.get(id);
    if (list) list.push(i);
    else rows.set(id, [i]);
  }
  return [...rows].sort((a, b) => a[0] - b[0]).map(([id, list]) => {
    const launched = Float64Array.from(list, (i) =>
      host.start[device.launch[i]! - 1]!);
    // Clocks of host and device may differ a little: nothing begins before its
    // launch.
    const begun = Float64Array.from(list, (i, at) =>
      Math.max(device.start[i]!, launched[at]!)).sort();
    launched.sort();
    const time: number[] = [];
    const value: number[] = [];
    for (let a = 0, b = 0; b < begun.length;) {
      const t = Math.min(launched[a] ?? Infinity, begun[b]!);
      while (a < launched.length && launched[a]! <= t) ++a;
      while (b < begun.length && begun[b]! <= t) ++b;
      time.push(t);
      value.push(a - b);
    }
    return stepLine(`queue${id}`, `Queued GPU ${id}`, false, time, value);
  });
}

let known: { model: Model; host: unknown; lines: StepLine[] } | null = null;
export function counterLines(model: Model): StepLine[] {
  if (known?.model !== model || known.host !== model.host) {
    known = { model, host: model.host,
              lines: [...queues(model), ...fileLines(model)] };
  }
  return known.lines;
}
