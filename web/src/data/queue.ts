// SPDX-License-Identifier: Apache-2.0
//
// How long work waited for its stream: the engine's rule of queue_us.

import type { DeviceEvents } from "./model";

// The part between the beginning of the launch and the start of the work in
// which its stream was busy with earlier work; null where not every event is
// in the page.
export function queueTime(device: DeviceEvents, row: number, launch: number):
    number | null {
  if (device.merged) return null;
  let free = -Infinity;
  for (let i = row - 1; i >= 0 && device.lane[i] === device.lane[row]; --i)
    free = Math.max(free, device.start[i]! + device.dur[i]!);
  return Math.max(0, Math.min(free, device.start[row]!) - launch);
}
