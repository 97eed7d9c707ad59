// SPDX-License-Identifier: Apache-2.0
//
// Lengths of events in logarithmic bins, per row of a table: one pass over
// the events for all rows.

import type { DeviceEvents } from "./model";

export const kBins = 24;
const kFirst = 500;      // ns: end of the first bin
const kRatio = Math.SQRT2 * 1.2;

export function binOf(ns: number): number {
  if (ns <= kFirst) return 0;
  return Math.min(kBins - 1,
    1 + Math.floor(Math.log(ns / kFirst) / Math.log(kRatio)));
}
export function binStart(bin: number): number {
  return bin === 0 ? 0 : kFirst * kRatio ** (bin - 1);
}

// counts[row * kBins + bin] of the single events with column = row + 1.
export function lengthsBy(device: DeviceEvents, rows: number,
                          column: "kernel" | "op",
                          mask: Uint8Array | null): Uint32Array {
  const counts = new Uint32Array(rows * kBins);
  // A logarithm per event is slow; a table over the bits of a length is not.
  const coarse = new Uint8Array(4096);
  for (let i = 0; i < coarse.length; ++i) coarse[i] = binOf(i);
  for (let i = 0; i < device.count; ++i) {
    const row = device[column][i]! - 1;
    if (row < 0 || (mask && !mask[i])) continue;
    const ns = device.dur[i]!;
    const bin = ns < 4096 ? coarse[ns]! : binOf(ns);
    counts[row * kBins + bin]!++;
  }
  return counts;
}
