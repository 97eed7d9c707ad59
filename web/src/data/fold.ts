// SPDX-License-Identifier: Apache-2.0
//
// A time axis on which long stretches without work on any GPU are folded: each
// takes the same small width. Without folds the axis is time itself.

import { gapsOf, gpusOf, type Gpu } from "./gpus";
import type { Model } from "./model";

export interface Stretch { from: number; to: number }
export interface Piece extends Stretch { folded: boolean }

const kLeastShare = 0.05;  // of the rest of the axis: shorter ones stay
const kWidth = 0.05;       // of the rest that a fold takes
const kAllWidths = 0.4;

export class Axis {
  constructor(readonly folds: readonly Stretch[] = [],
              private readonly width = 0) {}

  toAxis(t: number): number {
    let less = 0;
    for (const { from, to } of this.folds) {
      if (t <= from) break;
      if (t < to) return from - less + (t - from) * this.width / (to - from);
      less += to - from - this.width;
    }
    return t - less;
  }
  toTime(at: number): number {
    let less = 0;
    for (const { from, to } of this.folds) {
      if (at <= from - less) break;
      const in_fold = at - (from - less);
      if (in_fold < this.width)
        return from + in_fold * (to - from) / this.width;
      less += to - from - this.width;
    }
    return at + less;
  }
  // A window of time, cut at the folds in it.
  pieces({ from, to }: Stretch): Piece[] {
    const list: Piece[] = [];
    let at = from;
    for (const fold of this.folds) {
      if (fold.to <= at || fold.from >= to) continue;
      if (fold.from > at) list.push({ from: at, to: fold.from, folded: false });
      at = Math.min(fold.to, to);
      list.push({ from: Math.max(from, fold.from), to: at, folded: true });
    }
    if (at < to) list.push({ from: at, to, folded: false });
    return list;
  }
}

// Times longer than `least` in which a GPU has no work, by start.
function idleOf(model: Model, gpu: Gpu, whole: Stretch, least: number):
    Stretch[] {
  const { start, dur } = model.device!;
  const gaps = gapsOf(model, gpu);
  let last = whole.from;
  for (const row of gpu.rows) last = Math.max(last, start[row]! + dur[row]!);
  const long: Stretch[] = [];
  const add = (from: number, to: number) => {
    if (to - from > least) long.push({ from, to });
  };
  add(whole.from, start[gpu.rows[0]!]!);
  for (let i = 0; i < gaps.dur.length; ++i)
    add(gaps.start[i]!, gaps.start[i]! + gaps.dur[i]!);
  add(last, whole.to);
  return long;
}

function shared(a: Stretch[], b: Stretch[], least: number): Stretch[] {
  return a.flatMap((one) => b.flatMap((other) => {
    const [from, to] = [Math.max(one.from, other.from),
                        Math.min(one.to, other.to)];
    return to - from > least ? [{ from, to }] : [];
  }));
}

const known = new WeakMap<Model, Axis>();

// The axis of a trace with its long idle stretches folded. Pages of several
// traces, and those that do not hold every event, have none.
export function foldedAxis(model: Model, whole: Stretch): Axis {
  let axis = known.get(model);
  if (axis) return axis;
  const gpus = model.thinned || model.traces.length > 0 || !model.device ? []
    : gpusOf(model).filter((gpu) => gpu.rows.length > 0);
  const least = (whole.to - whole.from) / 1000;
  const idle = gpus.map((gpu) => idleOf(model, gpu, whole, least));
  const all = idle.length === 0 ? []
    : idle.reduce((a, b) => shared(a, b, least));
  let rest = whole.to - whole.from;
  const folds: Stretch[] = [];
  for (const one of all.sort((a, b) => (b.to - b.from) - (a.to - a.from))) {
    const length = one.to - one.from;
    if (length < kLeastShare * (rest - length)) break;
    folds.push(one);
    rest -= length;
  }
  axis = new Axis(folds.sort((a, b) => a.from - b.from),
    rest * Math.min(kWidth, kAllWidths / Math.max(1, folds.length)));
  known.set(model, axis);
  return axis;
}
