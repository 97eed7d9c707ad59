// SPDX-License-Identifier: Apache-2.0
//
// What lies inside a range of time on some streams: every event counts with
// the part inside, streams of a GPU that work at once count once as busy.

import { groupIndex, kGroups } from "./groups";
import { gpusOf } from "./gpus";
import type { Model } from "./model";

export interface Area { from: number; to: number; lanes: Set<number> }

export interface AreaSums {
  events: number;
  time: number;       // ns of all events, clipped
  busy: number;       // ns in which a GPU works, of all GPUs
  idle: number;
  comm: number;       // of busy: communication alone, copies alone
  copies: number;
  rows: number[];     // of the device events
  ns: number[];       // of each inside
}

// Length of the union of events that come by start; one per GPU and class.
class Union {
  length = 0;
  private end = -Infinity;
  add(from: number, to: number): void {
    this.length += Math.max(0, to - Math.max(from, this.end));
    this.end = Math.max(this.end, to);
  }
}

export function sumsOf(model: Model, { from, to, lanes }: Area,
                       mask: Uint8Array | null): AreaSums {
  const device = model.device!;
  const groups = groupIndex(model);
  const [comm, memory] = [kGroups.indexOf("comm"), kGroups.indexOf("memory")];
  const sums: AreaSums = { events: 0, time: 0, busy: 0, idle: 0, comm: 0,
                           copies: 0, rows: [], ns: [] };
  for (const gpu of gpusOf(model)) {
    if (!gpu.lanes.some((lane) => lanes.has(lane))) continue;
    const [all, computing, noCopies] = [new Union(), new Union(), new Union()];
    for (const row of gpu.rows) {
      const start = device.start[row]!;
      if (start >= to) break;
      const end = Math.min(start + device.dur[row]!, to);
      if (end <= from || !lanes.has(device.lane[row]!) || (mask && !mask[row]))
        continue;
      const begin = Math.max(start, from);
      sums.rows.push(row);
      sums.ns.push(end - begin);
      sums.time += end - begin;
      all.add(begin, end);
      const group = groups[device.family[row]!]!;
      if (group === memory) continue;
      noCopies.add(begin, end);
      if (group !== comm) computing.add(begin, end);
    }
    sums.busy += all.length;
    sums.idle += to - from - all.length;
    sums.comm += noCopies.length - computing.length;
    sums.copies += all.length - noCopies.length;
  }
  sums.events = sums.rows.length;
  return sums;
}
