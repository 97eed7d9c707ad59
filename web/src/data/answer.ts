// SPDX-License-Identifier: Apache-2.0
//
// The answer over the trace, as the engine made it, and which time of which
// GPU each part of it is. The words in `shown` are those of every front.

import type { Column } from "./decode";
import type { Gpu } from "./gpus";
import type { Model } from "./model";

export interface SourceLine { path: string; line: number; function: string }
export interface Fix {
  rank: number;
  id: string;
  rule: string;
  do: string;
  gain_ns: number;
  low_ns: number;
  high_ns: number;
  before_ns: number;
  share: number;
  how: string;
  sure: string;
  effort: string;
  what: string;
  text: string[];
  verify: string;
  where: { own: SourceLine | null; lib: SourceLine | null;
           framework_frames: number; shown: string };
  shown: { before: string; after: string; gain: string };
}
export interface BarPart {
  key: string;
  words: string;
  ns: number;
  share: number;
  shown: { time: string; share: string };
  families?: { family: string; ns: number }[];
}
export interface Answer {
  sentence: string;
  window_ns: number;
  window: string;
  devices: string[];
  device: string;
  bar: BarPart[];
  mfu: { value: number | null; peak_flops: number; type: string;
         period_ns: number; why: string; shown: string };
  limited_by: { class: string; detail: string; share: number; shown: string };
  hot: string[];  // ops that take much of the time, with their rate and why
  fixes: Fix[];
  warnings: { title: string; do: string }[];
  together_ns: number;
  together: string;
  more: { smaller: number; rules_looked: number; rules: number };
}

// Stretches of one GPU by start; `kind` is a part of the bar, or a fix.
export interface Spans {
  start: Float64Array;
  dur: Float64Array;
  kind: Uint8Array;
}
export const kAnswerBlocks = ["#fix_spans", "#idle_spans"];
export const kNoSpans: Spans = { start: new Float64Array(0),
  dur: new Float64Array(0), kind: new Uint8Array(0) };

const known = new WeakMap<Model, Map<string, Spans>>();

function spansOf(model: Model, block: string, kind: string, gpu: Gpu): Spans {
  let all = known.get(model);
  if (!all) known.set(model, all = new Map<string, Spans>());
  const key = `${block} ${gpu.lanes.join()}`;
  const made = all.get(key);
  if (made) return made;
  const columns = model.columns(block);
  const device = (model.manifest.answer_lanes ?? [])
    .findIndex((lane) => gpu.lanes.includes(lane));
  if (!columns || device < 0) return kNoSpans;
  const [of, start, dur, kinds] = ["device", "start", "dur", kind]
    .map((name) => columns.get(name)!) as [Column, Column, Column, Column];
  const rows: number[] = [];
  for (let row = 0; row < of.length; ++row)
    if (of[row] === device) rows.push(row);
  rows.sort((a, b) => start[a]! - start[b]!);
  const spans = { start: Float64Array.from(rows, (row) => start[row]!),
                  dur: Float64Array.from(rows, (row) => dur[row]!),
                  kind: Uint8Array.from(rows, (row) => kinds[row]!) };
  all.set(key, spans);
  return spans;
}

// Idle time by what it was spent on; needs kAnswerBlocks.
export function idleSpans(model: Model, gpu: Gpu): Spans {
  return spansOf(model, "idle_spans", "spent", gpu);
}
// What fixes are about; needs kAnswerBlocks.
export function fixSpans(model: Model, gpu: Gpu): Spans {
  return spansOf(model, "fix_spans", "fix", gpu);
}

// The last span that starts at `t` or before; -1: none.
export function lastAt(spans: Spans, t: number): number {
  let lo = 0;
  let hi = spans.start.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (spans.start[mid]! <= t) lo = mid + 1;
    else hi = mid;
  }
  return lo - 1;
}
