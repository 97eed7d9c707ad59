// SPDX-License-Identifier: Apache-2.0
//
// Layers of the engine's table, by stack, with the kernel time of the filter
// split by colour group.

import { apart } from "./apart";
import type { Column } from "./decode";
import { kGroups } from "./groups";
import type { Model, Table } from "./model";

export interface LayerBar {
  layer: number;
  rows: number[];         // of the table, one per pass
  uids: string[];
  time: number;           // ns that pass the filter, mean of a pass
  byGroup: Float64Array;  // its parts
  single: number[];       // ns of each pass that has some
  kernelTime: number;     // ns of all its events, of all passes
  wall: number;
  exact: boolean;
  partial: boolean;       // cut by the recording
}

export interface Stack {
  key: string;
  title: string;
  bars: LayerBar[];
  time: number;           // ns of all layers in all passes
  median: number;         // ns of a layer in a pass
}

// Stacks of one class at two places of the model are two stacks: the path
// above the layer tells them apart.
function stackKey(table: Table, row: number): string {
  const path = table.str(row, "module");
  return table.str(row, "stack") + "\n" + path.slice(0,
    Math.max(0, path.lastIndexOf("/")));
}

// The columns of the table that are groups of their own.
const kTimeColumns: Partial<Record<typeof kGroups[number], string>> = {
  attention: "attention_us", gemm: "gemm_us", moe: "moe_us", norm: "norm_us",
  comm: "communication_us",
};

// What the table says where no event says its layer: what it has no column
// of is "other", the last group.
function addTableTimes(table: Table, times: Float64Array, groups: number):
    void {
  for (let row = 0; row < table.rows; ++row) {
    let rest = table.num(row, "kernel_time_us");
    for (const [group, column] of Object.entries(kTimeColumns)) {
      const ns = table.num(row, column);
      times[(row + 1) * groups + kGroups.indexOf(group as "gemm")] = ns;
      rest -= ns;
    }
    times[(row + 2) * groups - 1] = rest;
  }
}

// Kernel time of each (layer row, group); index (row + 1) * groups + group.
// `dur` is what each event counts.
export function layerGroupTimes(model: Model, mask: Uint8Array | null,
                                dur: Column, groupOf: Uint8Array,
                                groups: number):
    Float64Array {
  const device = model.device!;
  const rows = model.table("layers")?.rows ?? 0;
  const times = new Float64Array((rows + 1) * groups);
  if (model.thinned?.dropped.includes("layer")) {
    addTableTimes(model.table("layers")!, times, groups);
    return times;
  }
  for (let i = 0; i < device.rows; ++i) {
    if (mask && !mask[i]) continue;
    times[device.layer[i]! * groups + groupOf[device.family[i]!]!]! +=
      dur[i]!;
  }
  return times;
}

// The middle, or the mean of the two in the middle.
export function medianOf(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]!
    : sorted.length === 0 ? 0
    : Math.round((sorted[half - 1]! + sorted[half]!) / 2);
}

// Classes; where several have one, with what tells their paths apart.
function titlesOf(keys: string[]): string[] {
  const parts = keys.map((key) => key.split("\n") as [string, string]);
  return parts.map(([name, path]) => {
    const twins = parts.filter((other) => other[0] === name)
      .map((other) => other[1]);
    return twins.length < 2 ? name
      : `${name} in ${apart(twins)[twins.indexOf(path)]}`;
  });
}

export function stacksOf(model: Model, times: Float64Array, groups: number,
                         take: (row: number) => boolean): Stack[] {
  const table = model.table("layers")!;
  const stacks = new Map<string, Map<number, LayerBar>>();
  for (let row = 0; row < table.rows; ++row) {
    if (!take(row)) continue;
    const key = stackKey(table, row);
    let bars = stacks.get(key);
    if (!bars) stacks.set(key, bars = new Map());
    const layer = table.num(row, "layer");
    let bar = bars.get(layer);
    if (!bar) {
      bar = { layer, rows: [], uids: [], time: 0, single: [], kernelTime: 0, wall: 0,
              byGroup: new Float64Array(groups), exact: true,
              partial: false };
      bars.set(layer, bar);
    }
    bar.rows.push(row);
    bar.uids.push(table.str(row, "first_uid"));
    bar.kernelTime += table.num(row, "kernel_time_us");
    bar.wall += table.num(row, "wall_us");
    bar.exact &&= table.at(row, "exact") === 1;
    bar.partial ||= table.at(row, "partial") === 1;
    let own = 0;
    for (let g = 0; g < groups; ++g) {
      const ns = times[(row + 1) * groups + g]!;
      bar.byGroup[g]! += ns;
      own += ns;
    }
    if (own > 0) bar.single.push(own);
  }
  const titles = titlesOf([...stacks.keys()]);
  return [...stacks].map(([key, bars], i) => {
    const list = [...bars.values()].sort((a, b) => a.layer - b.layer);
    const single = list.flatMap((bar) => bar.single);
    for (const bar of list) {
      const passes = Math.max(1, bar.single.length);
      bar.time = bar.single.reduce((sum, ns) => sum + ns, 0) / passes;
      bar.byGroup = bar.byGroup.map((ns) => ns / passes);
    }
    return { key, title: titles[i]!, bars: list,
             time: single.reduce((sum, ns) => sum + ns, 0),
             median: medianOf(single) };
  }).filter((stack) => stack.time > 0).sort((a, b) => b.time - a.time);
}
