// SPDX-License-Identifier: Apache-2.0
//
// Busy time of one lane in buckets of time, at widths that grow by four: what
// a timeline draws when events are thinner than pixels. One pixel reads at
// most a handful of buckets. Sums at every level equal the sum of the events;
// the family of a bucket is the one with most matching time in it (where
// events of a lane overlap, of those seen in order of start).

import type { Column } from "./decode";

export interface Level {
  width: number;         // ns
  busy: Float64Array;    // ns of all events
  match: Float64Array;   // ns of those that pass the filter
  group: Uint8Array;     // with most matching time, else with most time
}

export interface LaneEvents {
  start: Column;
  dur: Column;
  family: Column;
  begin: number;  // rows
  end: number;
}

const kFactor = 4;

export function buildPyramid(lane: LaneEvents, groupOf: Uint8Array,
                             groups: number, mask: Uint8Array | null,
                             from: number, to: number): Level[] {
  const events = lane.end - lane.begin;
  let width = 64;
  while ((to - from) / width > Math.max(64, 2 * events)) width *= 2;
  const size = Math.max(1, Math.ceil((to - from) / width));
  const level: Level = { width, busy: new Float64Array(size),
    match: new Float64Array(size), group: new Uint8Array(size) };
  fillFirst(level, lane, groupOf, groups, mask, from);
  const levels = [level];
  while (levels[levels.length - 1]!.busy.length > 64)
    levels.push(coarser(levels[levels.length - 1]!, groups));
  return levels;
}

function fillFirst(level: Level, lane: LaneEvents, groupOf: Uint8Array,
                   groups: number, mask: Uint8Array | null,
                   from: number): void {
  const { width, busy, match, group } = level;
  // Time by group in the bucket that is being filled; matching time first.
  const matched = new Float64Array(groups);
  const others = new Float64Array(groups);
  let at = 0;
  const flush = () => {
    const best = strongest(matched);
    group[at] = best >= 0 ? best : Math.max(0, strongest(others));
    matched.fill(0);
    others.fill(0);
  };
  for (let i = lane.begin; i < lane.end; ++i) {
    const dur = lane.dur[i]!;
    if (dur === 0) continue;
    const start = lane.start[i]! - from;
    const end = start + dur;
    const g = groupOf[lane.family[i]!]!;
    const hit = mask === null || mask[i] === 1;
    const last = Math.min(busy.length - 1, Math.floor((end - 1) / width));
    for (let b = Math.floor(start / width); b <= last; ++b) {
      const part = Math.min(end, (b + 1) * width) - Math.max(start, b * width);
      busy[b]! += part;
      if (hit) match[b]! += part;
      if (b > at) {
        flush();
        at = b;
      }
      (hit ? matched : others)[g]! += part;
    }
  }
  flush();
}

// The index of the largest value; -1 if all are 0.
function strongest(values: Float64Array): number {
  let best = -1;
  let most = 0;
  for (let i = 0; i < values.length; ++i) {
    if (values[i]! > most) {
      most = values[i]!;
      best = i;
    }
  }
  return best;
}

function coarser(fine: Level, groups: number): Level {
  const size = Math.ceil(fine.busy.length / kFactor);
  const level: Level = { width: fine.width * kFactor,
    busy: new Float64Array(size), match: new Float64Array(size),
    group: new Uint8Array(size) };
  const weight = new Float64Array(groups);
  for (let b = 0; b < size; ++b) {
    weight.fill(0);
    for (let k = b * kFactor; k < Math.min(fine.busy.length,
                                           (b + 1) * kFactor); ++k) {
      level.busy[b]! += fine.busy[k]!;
      level.match[b]! += fine.match[k]!;
      // What matches decides; without it what is there.
      weight[fine.group[k]!]! += fine.match[k]! * 1e6 + fine.busy[k]!;
    }
    level.group[b] = Math.max(0, strongest(weight));
  }
  return level;
}

// The widest buckets that are not wider than `ns`.
export function levelFor(levels: Level[], ns: number): Level {
  let best = levels[0]!;
  for (const level of levels) if (level.width <= ns) best = level;
  return best;
}
