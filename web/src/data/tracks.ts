// SPDX-License-Identifier: Apache-2.0
//
// Host events as rows of boxes: one row per depth, in which nothing overlaps,
// so that the events of a window are found by bisection.

import type { HostTrack } from "./manifest";
import type { HostEvents } from "./model";

export const kMaxDepth = 12;
const kMaxPythonDepth = 18;

// Outer Python functions that last as long as the thread say nothing: how many
// of them stand around everything else.
function outerDepth(track: HostTrack, host: HostEvents): number {
  const perDepth: number[] = [];
  const ends: number[] = [];
  for (let i = track.begin; i < track.end; ++i) {
    const start = host.start[i]!;
    while (ends.length > 0 && ends[ends.length - 1]! <= start) ends.pop();
    perDepth[ends.length] = (perDepth[ends.length] ?? 0) + 1;
    ends.push(start + host.dur[i]!);
  }
  const branch = perDepth.findIndex((count) => count > 1);
  return Math.max(0, (branch < 0 ? perDepth.length : branch) - 1);
}

export interface TrackRows {
  track: HostTrack;
  rows: Uint32Array[];  // by depth: rows of host events, by start
  hidden: number;       // events deeper than that, or around everything
}

export function stackTrack(track: HostTrack, host: HostEvents): TrackRows {
  const rows: number[][] = [];
  const ends: number[] = [];
  let hidden = 0;
  const python = track.kind === "python";
  const most = python ? kMaxPythonDepth : kMaxDepth;
  const skip = python ? outerDepth(track, host) : 0;
  for (let i = track.begin; i < track.end; ++i) {
    const start = host.start[i]!;
    const end = start + host.dur[i]!;
    while (ends.length > 0 && ends[ends.length - 1]! <= start) ends.pop();
    let depth = ends.length - skip;
    // A range that outlives the one around it goes below it all the same.
    ends.push(end);
    if (depth < 0 || depth >= most) {
      ++hidden;
      continue;
    }
    // Rows hold no overlap: go down to the first one that is free.
    while (depth < most) {
      const row = rows[depth];
      const before = row?.[row.length - 1];
      if (before === undefined ||
          host.start[before]! + host.dur[before]! <= start) break;
      ++depth;
    }
    if (depth >= most) {
      ++hidden;
      continue;
    }
    while (rows.length <= depth) rows.push([]);
    rows[depth]!.push(i);
  }
  return { track, rows: rows.map((row) => Uint32Array.from(row)), hidden };
}

// The first position in rows[lo..] whose event ends after `t`.
export function firstEndingAfter(rows: Uint32Array, events: {
    start: ArrayLike<number>; dur: ArrayLike<number> }, t: number): number {
  let lo = 0;
  let hi = rows.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    const row = rows[mid]!;
    if (events.start[row]! + events.dur[row]! > t) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}

// The first of sorted rows begin..end that starts at or after `t`.
export function firstStartingAt(start: ArrayLike<number>, t: number,
                                begin: number, end: number): number {
  let lo = begin;
  let hi = end;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (start[mid]! < t) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}
