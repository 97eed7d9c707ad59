// SPDX-License-Identifier: Apache-2.0
//
// Single calls of ops on the plane of a roofline, counted in cells. The place
// of a call is that of its whole work, by the cost of its row; a call counts
// if any of its events passes the filter.

import type { DeviceEvents } from "./model";

export const kPerDecade = 8;

export interface Cell {
  ix: number;        // floor(kPerDecade * log10(FLOP per byte))
  iy: number;        // the same of TFLOPS/s
  calls: number;
  ops: Set<number>;  // rows
  events: number[];  // that pass the filter; one more than `mostEvents` at most
}

export interface Cost {
  flops: number;     // of a call
  intensity: number; // FLOP per byte
}

export function cellOf(value: number, least: number): number {
  return Math.floor(kPerDecade * Math.log10(Math.max(value, least)) + 1e-9);
}
export function cellStart(index: number): number {
  return 10 ** (index / kPerDecade);
}

// The calls of all ops in one list.
interface Calls {
  first: Uint32Array;    // by row of the ops: position of its call 1
  busy: Float64Array;    // ns in which at least one event ran
  shown: Uint8Array;
}

function callIndex(device: DeviceEvents, first: Uint32Array, i: number):
    number {
  const op = device.op[i]!;
  return op > 0 && device.call[i]! > 0 ? first[op - 1]! + device.call[i]! - 1
    : -1;
}

// Events stand by start in their lane; work of a call in several lanes is
// united apart.
function callsOfAll(device: DeviceEvents, rows: number,
                    mask: Uint8Array | null): Calls {
  const first = new Uint32Array(rows + 1);
  for (let i = 0; i < device.count; ++i) {
    const op = device.op[i]!;
    if (op > 0) first[op] = Math.max(first[op]!, device.call[i]!);
  }
  for (let row = 1; row <= rows; ++row) first[row]! += first[row - 1]!;
  const total = first[rows]!;
  const busy = new Float64Array(total);
  const shown = new Uint8Array(total);
  const start = new Float64Array(total).fill(-Infinity);
  const end = new Float64Array(total).fill(-Infinity);
  const mixed = new Map<number, number[]>();
  for (let i = 0; i < device.count; ++i) {
    const call = callIndex(device, first, i);
    if (call < 0) continue;
    if (!mask || mask[i]) shown[call] = 1;
    const from = device.start[i]!;
    const to = from + device.dur[i]!;
    if (from < start[call]!) mixed.set(call, []);
    start[call] = from;
    busy[call]! += Math.max(0, to - Math.max(from, end[call]!));
    end[call] = Math.max(end[call]!, to);
  }
  if (mixed.size > 0) uniteMixed(device, first, mixed, busy);
  return { first, busy, shown };
}

function uniteMixed(device: DeviceEvents, first: Uint32Array,
                    mixed: Map<number, number[]>, busy: Float64Array): void {
  for (let i = 0; i < device.count; ++i)
    mixed.get(callIndex(device, first, i))?.push(i);
  for (const [call, events] of mixed) {
    events.sort((a, b) => device.start[a]! - device.start[b]!);
    let end = -Infinity;
    busy[call] = 0;
    for (const i of events) {
      const to = device.start[i]! + device.dur[i]!;
      busy[call]! += Math.max(0, to - Math.max(device.start[i]!, end));
      end = Math.max(end, to);
    }
  }
}

export interface DensityOptions {
  device: DeviceEvents;
  mask: Uint8Array | null;
  costs: (Cost | null)[];  // by row of the ops; null: not drawn
  leastX: number;          // speeds and intensities below stand here
  leastY: number;
  mostEvents: number;      // a cell lists
}

// Cells that hold calls, the lowest row first.
export function densityOf(options: DensityOptions): Cell[] {
  const { device, mask, costs } = options;
  const calls = callsOfAll(device, costs.length, mask);
  const cells = new Map<string, Cell>();
  const cellAt = new Map<number, Cell>();  // by call
  for (const [row, cost] of costs.entries()) {
    if (!cost) continue;
    const ix = cellOf(cost.intensity, options.leastX);
    for (let c = calls.first[row]!; c < calls.first[row + 1]!; ++c) {
      if (!calls.shown[c]) continue;
      // FLOP per ns are 1e-3 TFLOPS/s.
      const iy = cellOf(calls.busy[c]! > 0
        ? cost.flops / calls.busy[c]! / 1e3 : 0, options.leastY);
      const key = `${ix} ${iy}`;
      let cell = cells.get(key);
      if (!cell) {
        cell = { ix, iy, calls: 0, ops: new Set(), events: [] };
        cells.set(key, cell);
      }
      ++cell.calls;
      cell.ops.add(row);
      cellAt.set(c, cell);
    }
  }
  for (let i = 0; i < device.count; ++i) {
    if (mask && !mask[i]) continue;
    const cell = cellAt.get(callIndex(device, calls.first, i));
    if (cell && cell.events.length <= options.mostEvents) cell.events.push(i);
  }
  return [...cells.values()].sort((a, b) => a.iy - b.iy || a.ix - b.ix);
}
