// SPDX-License-Identifier: Apache-2.0
//
// Host time by call stack: events of one thread nested by time, equal stacks
// merged. Time counts whole, or only while the GPUs idle.

import { gapsOf, gpusOf } from "./gpus";
import type { Model } from "./model";

export interface Frame {
  name: number;           // id of the text; -1 at the root
  time: number;           // ns with all that it called
  self: number;
  calls: number;
  longest: number;        // row of the host events, -1 for none
  parent: Frame | null;
  children: Map<number, Frame>;
}

function frame(name: number, parent: Frame | null): Frame {
  return { name, time: 0, self: 0, calls: 0, longest: -1, parent,
           children: new Map() };
}

function below(parent: Frame, name: number): Frame {
  let child = parent.children.get(name);
  if (!child) parent.children.set(name, child = frame(name, parent));
  return child;
}

// Threads of the host with events, the busiest first.
export interface Thread { key: string; name: string; ranges: [number, number][] }

export function threadsOf(model: Model): Thread[] {
  const threads = new Map<string, Thread>();
  for (const track of model.hostTracks) {
    if (track.end === track.begin) continue;
    const key = JSON.stringify([track.trace ?? 0, track.process, track.thread]);
    let thread = threads.get(key);
    if (!thread) {
      threads.set(key, thread = { key, name: track.name || track.thread,
                                  ranges: [] });
    }
    thread.ranges.push([track.begin, track.end]);
  }
  const size = ({ ranges }: Thread) =>
    ranges.reduce((sum, [begin, end]) => sum + end - begin, 0);
  return [...threads.values()].sort((a, b) => size(b) - size(a));
}

// ns before a time in which every GPU idles, from the first work to the last.
export function idleBefore(model: Model): (t: number) => number {
  const gpus = gpusOf(model);
  const starts: number[] = [];
  const ends: number[] = [];
  // Of several GPUs the time in which none works: what all their gaps share.
  let shared: [number, number][] | null = null;
  for (const gpu of gpus) {
    const gaps = gapsOf(model, gpu);
    const own = Array.from(gaps.start, (start, i): [number, number] =>
      [start, start + gaps.dur[i]!]);
    const before: [number, number][] | null = shared;
    shared = before === null ? own : both(before, own);
  }
  const sums = [0];
  for (const [start, end] of shared ?? []) {
    starts.push(start);
    ends.push(end);
    sums.push(sums.at(-1)! + end - start);
  }
  return (t) => {
    let lo = 0;
    let hi = starts.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (ends[mid]! <= t) lo = mid + 1;
      else hi = mid;
    }
    return sums[lo]! + (lo < starts.length && starts[lo]! < t
      ? t - starts[lo]! : 0);
  };
}

function both(a: [number, number][], b: [number, number][]):
    [number, number][] {
  const out: [number, number][] = [];
  for (let i = 0, k = 0; i < a.length && k < b.length;) {
    const from = Math.max(a[i]![0], b[k]![0]);
    const to = Math.min(a[i]![1], b[k]![1]);
    if (from < to) out.push([from, to]);
    if (a[i]![1] < b[k]![1]) ++i;
    else ++k;
  }
  return out;
}

// The tree of the stacks of a thread. `weigh` says what of a span counts.
export function stackTree(model: Model, thread: Thread,
                          weigh: (from: number, to: number) => number): Frame {
  const host = model.host!;
  const rows: number[] = [];
  for (const [begin, end] of thread.ranges)
    for (let row = begin; row < end; ++row) rows.push(row);
  rows.sort((a, b) => host.start[a]! - host.start[b]! ||
            host.dur[b]! - host.dur[a]! || a - b);
  const root = frame(-1, null);
  const open: { at: Frame; end: number }[] = [];
  for (const row of rows) {
    const start = host.start[row]!;
    while (open.length > 0 && open.at(-1)!.end <= start) open.pop();
    const above = open.at(-1);
    // A range that outlives the one around it is cut there.
    const end = Math.min(start + host.dur[row]!, above?.end ?? Infinity);
    const ns = weigh(start, end);
    const at = below(above?.at ?? root, host.name[row]!);
    at.time += ns;
    at.self += ns;
    ++at.calls;
    if (at.longest < 0 || host.dur[row]! > host.dur[at.longest]!)
      at.longest = row;
    if (above) above.at.self -= ns;
    else root.time += ns;
    open.push({ at, end });
  }
  return root;
}

export interface HostFunction {
  name: number;
  time: number;      // ns on the stack, once where it calls itself
  self: number;
  calls: number;
  longest: number;   // row of the host events
}

export function functionsOf(root: Frame, host: { dur: ArrayLike<number> }):
    HostFunction[] {
  const found = new Map<number, HostFunction>();
  const above = new Set<number>();
  const walk = (at: Frame) => {
    let one = found.get(at.name);
    if (!one) {
      found.set(at.name, one = { name: at.name, time: 0, self: 0, calls: 0,
                                 longest: at.longest });
    }
    const outer = !above.has(at.name);
    if (outer) one.time += at.time;
    one.self += at.self;
    one.calls += at.calls;
    if (host.dur[at.longest]! > host.dur[one.longest]!) one.longest = at.longest;
    above.add(at.name);
    for (const child of at.children.values()) walk(child);
    if (outer) above.delete(at.name);
  };
  for (const child of root.children.values()) walk(child);
  return [...found.values()].sort((a, b) => b.time - a.time || a.name - b.name);
}

// --- the sandwich: who calls a function, and what it calls ---

function merge(to: Frame, from: Frame): void {
  to.time += from.time;
  to.self += from.self;
  to.calls += from.calls;
  if (to.longest < 0) to.longest = from.longest;
  for (const child of from.children.values()) merge(below(to, child.name), child);
}

// All outermost places of a function as one: below it what it called, and in a
// tree of its own its callers, the nearest on top.
export function sandwich(root: Frame, name: number):
    { callees: Frame; callers: Frame } {
  const callees = frame(name, null);
  const callers = frame(name, null);
  const walk = (at: Frame) => {
    if (at.name !== name) {
      for (const child of at.children.values()) walk(child);
      return;
    }
    merge(callees, at);
    callers.time += at.time;
    let into = callers;
    for (let up = at.parent; up && up.name >= 0; up = up.parent) {
      into = below(into, up.name);
      into.time += at.time;
      into.calls += at.calls;
      if (into.longest < 0) into.longest = up.longest;
    }
  };
  walk(root);
  return { callees, callers };
}
