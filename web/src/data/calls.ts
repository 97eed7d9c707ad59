// SPDX-License-Identifier: Apache-2.0
//
// Calls of an op: the events that one call launched, in the order in which
// they began. The file numbers the calls of each op from 1.

import type { DeviceEvents } from "./model";

export interface Call {
  events: number[];  // rows of device events, by start
  ns: number;        // sum of their lengths
}

// Calls of a row of op_efficiency with the events that pass the mask.
export function callsOf(device: DeviceEvents, row: number,
                        mask: Uint8Array | null): Call[] {
  const calls = new Map<number, Call>();
  for (let i = 0; i < device.count; ++i) {
    if (device.op[i] !== row + 1 || (mask && !mask[i])) continue;
    const id = device.call[i]!;
    let call = calls.get(id);
    if (!call) calls.set(id, call = { events: [], ns: 0 });
    call.events.push(i);
    call.ns += device.dur[i]!;
  }
  for (const { events } of calls.values())
    events.sort((a, b) => device.start[a]! - device.start[b]! || a - b);
  return [...calls].sort((a, b) => a[0] - b[0]).map(([, call]) => call);
}

// What stands at one position of the calls, one entry per name.
export interface AtPosition {
  position: number;
  name: number;      // as `nameOf` gives it
  events: number[];
  ns: number;
  least: number;
  most: number;
}

export function byPosition(device: DeviceEvents, calls: Call[],
                           nameOf: (row: number) => number): AtPosition[] {
  const found = new Map<string, AtPosition>();
  for (const { events } of calls) {
    for (const [position, row] of events.entries()) {
      const key = `${position} ${nameOf(row)}`;
      let entry = found.get(key);
      if (!entry) {
        found.set(key, entry = { position, name: nameOf(row), events: [],
                                 ns: 0, least: Infinity, most: 0 });
      }
      const ns = device.dur[row]!;
      entry.events.push(row);
      entry.ns += ns;
      entry.least = Math.min(entry.least, ns);
      entry.most = Math.max(entry.most, ns);
    }
  }
  return [...found.values()].sort((a, b) =>
    a.position - b.position || b.ns - a.ns);
}
