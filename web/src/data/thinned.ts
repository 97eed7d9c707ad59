// SPDX-License-Identifier: Apache-2.0
//
// Pages of traces with too many device events: single events are the slowest
// of each kernel name and those around findings; all others are merged into
// rows of events that belong to the same rows of the tables. Single events
// and merged rows together add up to everything. Busy times of the timeline
// come in buckets of time that count all events.

import { DamagedFile, type Column } from "./decode";
import { withCoarser, type Level } from "./pyramid";
import type { Chip, ChipKind } from "./state";

export interface Thinned {
  bucket_ns: number;
  origin_ns: number;   // first start of any event, where bucket 0 begins
  last_ns: number;     // last end
  dropped: string[];   // columns that merged rows have no value of
}

export type Columns = Map<string, Column>;

// The columns of single events with those of merged rows behind them; what
// merged rows have no column of stays shorter.
export function joined(singles: Columns, merged: Columns): Columns {
  const out: Columns = new Map(singles);
  for (const [name, tail] of merged) {
    const head = singles.get(name);
    if (!head) continue;
    const wider = head.BYTES_PER_ELEMENT >= tail.BYTES_PER_ELEMENT ? head : tail;
    const both = new (wider.constructor as new (length: number) => Column)(
      head.length + tail.length);
    both.set(head);
    both.set(tail, head.length);
    out.set(name, both);
  }
  return out;
}

// Wide enough for any event, and as long as the page needs: behind the single
// events merged rows, which have no start and no number, then room.
export function roomy(columns: Columns, count: number, rows: number,
                      room: number): Columns {
  const out: Columns = new Map();
  for (const [name, column] of columns) {
    const wide = name === "start" || name === "dur" ? new Float64Array(room)
      : new Uint32Array(room);
    wide.set(column);
    if (name === "start") wide.fill(NaN, count, rows);
    if (name === "uid") wide.fill(0xFFFFFFFF, count);
    out.set(name, wide);
  }
  return out;
}

// Filters that only single events can answer.
const kAlways: ChipKind[] = ["t", "dur", "uid", "frame"];
const kOfColumn: Record<string, ChipKind[]> = {
  layer: ["layer"], pass: ["pass", "stage"], step: ["step"],
};
export function needsSingles(thinned: Thinned | null, kind: ChipKind): boolean {
  return thinned !== null && (kAlways.includes(kind) ||
    thinned.dropped.some((column) => kOfColumn[column]?.includes(kind)));
}

// Buckets of a lane, by time.
export interface LaneBuckets {
  bucket: Column;
  family: Column;
  busy: Column;
  begin: number;  // rows
  end: number;
}

// The rows of each lane.
export function bucketsByLane(columns: Columns, lanes: number,
                              families: number): LaneBuckets[] {
  const [lane, bucket, family, busy] = ["lane", "bucket", "family", "busy"]
    .map((name) => {
      const column = columns.get(name);
      if (!column) throw new DamagedFile(`column ${name} is missing`);
      return column;
    }) as [Column, Column, Column, Column];
  const out: LaneBuckets[] = [];
  let at = 0;
  for (let l = 0; l < lanes; ++l) {
    const begin = at;
    while (at < lane.length && lane[at] === l) {
      if (family[at]! >= families) throw new DamagedFile("family out of range");
      ++at;
    }
    out.push({ bucket, family, busy, begin, end: at });
  }
  if (at !== lane.length) throw new DamagedFile("buckets out of range");
  return out;
}

// Filters that a family in a lane decides; null if there are others, which
// buckets cannot answer.
export function bucketTest(chips: Chip[],
                           test: (chip: Chip, family: number) => boolean):
    ((family: number) => boolean) | null {
  const known: ChipKind[] = ["fam", "cat", "lane"];
  if (chips.some((chip) => !known.includes(chip.kind))) return null;
  return (family) => chips.every((chip) => test(chip, family) !== chip.not);
}

export function bucketLevels(rows: LaneBuckets, thinned: Thinned,
                             groupOf: Uint8Array,
                             passes: ((family: number) => boolean) | null):
    Level[] {
  const span = thinned.last_ns - thinned.origin_ns;
  const size = Math.max(1, Math.ceil(span / thinned.bucket_ns));
  const level: Level = { width: thinned.bucket_ns, from: thinned.origin_ns,
    busy: new Float64Array(size), match: new Float64Array(size),
    group: new Uint8Array(size) };
  // The strongest of a bucket; matching time comes first.
  let best = 0;
  let bestHit = false;
  for (let i = rows.begin; i < rows.end; ++i) {
    const at = rows.bucket[i]!;
    if (at >= size) throw new DamagedFile("buckets out of range");
    const family = rows.family[i]!;
    const busy = rows.busy[i]!;
    const hit = passes !== null && passes(family);
    if (level.busy[at] === 0) {
      best = 0;
      bestHit = false;
    }
    level.busy[at]! += busy;
    if (hit) level.match[at]! += busy;
    if (hit === bestHit ? busy > best : hit) {
      best = busy;
      bestHit = hit;
      level.group[at] = groupOf[family]!;
    }
  }
  return withCoarser(level);
}
