// SPDX-License-Identifier: Apache-2.0
//
// Busy time of one lane in buckets of time, at widths that grow by four: what
// a timeline draws when events are thinner than pixels. One pixel reads at
// most a handful of buckets. Sums at every level equal the sum of the events;
// the family of a bucket is the one with most matching time in it (where
// events of a lane overlap, of those seen in order of start).

import type { Column } from "./decode";

type Times = Uint16Array | Uint32Array | Float64Array;

export interface Level {
  width: number;      // ns
  from: number;       // ns: where the first bucket begins
  busy: Times;        // ns of all events
  match: Times;       // ns of those that pass the filter; `busy` without one
  group: Uint8Array;  // with most matching time, else with most time
}

export interface LaneEvents {
  start: Column;
  dur: Column;
  family: Column;
  begin: number;      // rows
  end: number;
  overlap: boolean;   // a bucket can hold more time than its width
}

const kFactor = 4;
const kRowsPerStep = 8192;  // well below a millisecond

function makeLevel(width: number, from: number, size: number,
                   overlap: boolean, filtered: boolean): Level {
  const times = (): Times => overlap || width > 0xFFFFFFFF
    ? new Float64Array(size)
    : width > 0xFFFF ? new Uint32Array(size) : new Uint16Array(size);
  const busy = times();
  return { width, from, busy, match: filtered ? times() : busy,
           group: new Uint8Array(size) };
}

// Yields between steps that are shorter than a frame.
export function* pyramidSteps(lane: LaneEvents, groupOf: Uint8Array,
                              groups: number, mask: Uint8Array | null,
                              from: number, to: number):
    Generator<void, Level[]> {
  const events = lane.end - lane.begin;
  let width = 64;
  while ((to - from) / width > Math.max(64, 2 * events)) width *= 2;
  const size = Math.max(1, Math.ceil((to - from) / width));
  const filtered = mask !== null;
  const level = makeLevel(width, from, size, lane.overlap, filtered);
  const first = new FirstLevel(level, lane, groupOf, groups, mask, from);
  for (let row = lane.begin; row < lane.end; row += kRowsPerStep) {
    first.add(row, Math.min(lane.end, row + kRowsPerStep));
    yield;
  }
  first.close();
  return yield* coarserSteps(level);
}

function* coarserSteps(first: Level): Generator<void, Level[]> {
  const overlap = first.busy instanceof Float64Array;
  const levels = [first];
  for (let fine = first; fine.busy.length > 64;) {
    const level = makeLevel(fine.width * kFactor, fine.from,
      Math.ceil(fine.busy.length / kFactor), overlap,
      fine.match !== fine.busy);
    for (let b = 0; b < level.busy.length; b += kRowsPerStep) {
      addCoarser(level, fine, b, Math.min(level.busy.length, b + kRowsPerStep));
      yield;
    }
    levels.push(level);
    fine = level;
  }
  return levels;
}

function run<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}
// A level with the coarser ones above it.
export function withCoarser(first: Level): Level[] {
  return run(coarserSteps(first));
}
export function buildPyramid(...args: Parameters<typeof pyramidSteps>):
    Level[] {
  return run(pyramidSteps(...args));
}

class FirstLevel {
  // Time by group in the bucket that is being filled, matching time behind
  // the rest; `bucketOf` says which bucket a number is of.
  private readonly time: Float64Array;
  private readonly bucketOf: Float64Array;
  private at = -1;   // that bucket
  private best = 0;  // the strongest there

  constructor(private readonly level: Level,
              private readonly lane: LaneEvents,
              private readonly groupOf: Uint8Array,
              private readonly groups: number,
              private readonly mask: Uint8Array | null,
              private readonly from: number) {
    this.time = new Float64Array(2 * groups);
    this.bucketOf = new Float64Array(2 * groups).fill(-1);
  }

  add(begin: number, end: number): void {
    const { lane, mask, groupOf, groups, from } = this;
    const { start: starts, dur: durs, family } = lane;
    const { width, busy, match } = this.level;
    const most = busy.length - 1;
    for (let i = begin; i < end; ++i) {
      const dur = durs[i]!;
      if (dur === 0) continue;
      const start = starts[i]! - from;
      const stop = start + dur;
      const hit = mask === null || mask[i] === 1;
      const slot = groupOf[family[i]!]! + (hit ? groups : 0);
      const last = Math.min(most, Math.floor((stop - 1) / width));
      for (let b = Math.floor(start / width); b <= last; ++b) {
        const edge = b * width;
        const part = (stop < edge + width ? stop : edge + width) -
          (start > edge ? start : edge);
        busy[b]! += part;
        if (hit && mask !== null) match[b]! += part;
        if (b >= this.at) this.strengthen(slot, b, part);
      }
    }
  }
  private strengthen(slot: number, bucket: number, part: number): void {
    const { time, groups } = this;
    if (bucket > this.at) {
      this.close();
      this.at = bucket;
      this.best = slot;
    }
    if (this.bucketOf[slot] !== bucket) {
      this.bucketOf[slot] = bucket;
      time[slot] = 0;
    }
    time[slot]! += part;
    const match = slot >= groups;
    if (match === this.best >= groups ? time[slot]! > time[this.best]!
      : match) this.best = slot;
  }
  close(): void {
    if (this.at >= 0) this.level.group[this.at] = this.best % this.groups;
  }
}

function addCoarser(level: Level, fine: Level, begin: number, end: number):
    void {
  const { busy, match, group } = fine;
  const filtered = fine.match !== fine.busy;
  for (let b = begin; b < end; ++b) {
    const first = b * kFactor;
    const last = Math.min(busy.length, first + kFactor);
    let best = first;
    let bestMatch = -1;
    let bestBusy = -1;
    for (let k = first; k < last; ++k) {
      level.busy[b]! += busy[k]!;
      if (filtered) level.match[b]! += match[k]!;
      // The time of this group in all four; what matches decides.
      let matchOf = 0;
      let busyOf = 0;
      for (let other = first; other < last; ++other) {
        if (group[other] !== group[k]) continue;
        matchOf += match[other]!;
        busyOf += busy[other]!;
      }
      if (matchOf > bestMatch ||
          (matchOf === bestMatch && busyOf > bestBusy)) {
        best = k;
        bestMatch = matchOf;
        bestBusy = busyOf;
      }
    }
    level.group[b] = group[best]!;
  }
}

// The widest buckets that are not wider than `ns`.
export function levelFor(levels: Level[], ns: number): Level {
  let best = levels[0]!;
  for (const level of levels) if (level.width <= ns) best = level;
  return best;
}
