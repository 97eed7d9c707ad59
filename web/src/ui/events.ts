// SPDX-License-Identifier: Apache-2.0
//
// Single events: the selected one, its neighbours, the longest of a filter.

import { kMaxValues } from "../data/state";
import type { App, Patch } from "./app";

export interface Event {
  on: "device" | "host";
  row: number;
  start: number;
  dur: number;
}

// The selected event is asked for again with every drawing, and so is what is
// not there: the rows of a page stay as they are.
const last = new WeakMap<ArrayLike<number>, { uid: number; row: number }>();

function rowOf(uids: ArrayLike<number>, rows: number, uid: number): number {
  const known = last.get(uids);
  if (known?.uid === uid) return known.row;
  let row = 0;
  while (row < rows && uids[row] !== uid) ++row;
  if (row === rows) row = -1;
  last.set(uids, { uid, row });
  return row;
}

export function findEvent(app: App, uid: number): Event | null {
  for (const on of ["device", "host"] as const) {
    const events = app.model[on];
    if (!events) continue;
    let row = rowOf(events.uid, events.count, uid);
    if (row < 0 && on === "device")
      row = app.model.device?.fetched?.rowOf.get(uid) ?? -1;
    if (row >= 0)
      return { on, row, start: events.start[row]!, dur: events.dur[row]! };
  }
  return null;
}

export function eventAt(app: App): Event | null {
  return app.state.selected ? findEvent(app, Number(app.state.selected)) : null;
}

// The next event of the same lane that passes the filter, by start.
export function stepEvent(app: App, step: 1 | -1): number | null {
  const event = eventAt(app);
  const { device } = app.model;
  if (!event || event.on !== "device" || !device) return null;
  const lane = device.lane[event.row];
  const { mask } = app.selection;
  for (let i = event.row + step; i >= 0 && i < device.count &&
       device.lane[i] === lane; i += step) {
    if (!mask || mask[i]) return device.uid[i]!;
  }
  return null;
}

// Name of a device event: the id of its text.
export function nameIds(app: App): (row: number) => number {
  const { device } = app.model;
  const names = app.model.table("kernels")?.raw("kernel");
  return (row) => {
    const group = device!.kernel[row]!;
    return group > 0 && names ? names[group - 1]! : 0;
  };
}

// The previous or next event of the same name, by start, over all lanes.
export function neighbour(app: App, step: 1 | -1): number | null {
  const event = eventAt(app);
  const { device } = app.model;
  if (event?.on === "host") return hostNeighbour(app, event, step);
  if (!event || !device) return null;
  const nameOf = nameIds(app);
  const name = nameOf(event.row);
  let best = -1;
  const before = (a: number, b: number) =>
    (device.start[a]! - device.start[b]! || a - b) * step < 0;
  for (let i = 0; i < device.count; ++i) {
    if (nameOf(i) === name && before(event.row, i) &&
        (best < 0 || before(i, best)))
      best = i;
  }
  return best < 0 ? null : device.uid[best]!;
}

function hostNeighbour(app: App, event: Event, step: 1 | -1): number | null {
  const { start, name, uid, count } = app.model.host!;
  let best = -1;
  const before = (a: number, b: number) =>
    (start[a]! - start[b]! || a - b) * step < 0;
  for (let i = 0; i < count; ++i) {
    if (name[i] === name[event.row] && before(event.row, i) &&
        (best < 0 || before(i, best)))
      best = i;
  }
  return best < 0 ? null : uid[best]!;
}

// Rows of the longest events for which `take` holds, longest first.
export function longest(dur: ArrayLike<number>, count: number, most: number,
                        take: (row: number) => boolean): number[] {
  // A heap of `most` rows with the shortest on top.
  const heap: number[] = [];
  const less = (a: number, b: number) =>
    dur[a]! < dur[b]! || (dur[a] === dur[b] && a > b);
  const down = () => {
    for (let at = 0;;) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < heap.length && less(heap[child]!, heap[least]!))
          least = child;
      }
      if (least === at) return;
      [heap[at], heap[least]] = [heap[least]!, heap[at]!];
      at = least;
    }
  };
  for (let row = 0; row < count; ++row) {
    if (heap.length === most && !less(heap[0]!, row)) continue;
    if (!take(row)) continue;
    if (heap.length < most) {
      heap.push(row);
      for (let at = heap.length - 1; at > 0;) {
        const parent = (at - 1) >> 1;
        if (!less(heap[at]!, heap[parent]!)) break;
        [heap[at], heap[parent]] = [heap[parent]!, heap[at]!];
        at = parent;
      }
    } else {
      heap[0] = row;
      down();
    }
  }
  return heap.sort((a, b) => less(b, a) ? -1 : 1);
}

// The timeline around an event.
export function showEvent(app: App, uid: number): Patch {
  const event = findEvent(app, uid);
  const patch: Patch = { view: "timeline", selected: String(uid) };
  if (event) {
    const room = Math.max(event.dur * 2, 20_000);
    patch.zoom = [Math.round(event.start - room),
                  Math.round(event.start + event.dur + room)];
  }
  return patch;
}

// The timeline with rows of device events. Links hold a limited number; more
// lead to the ops that they are of, by their keys.
export function eventsPatch(app: App, events: number[], ops: string[]): Patch {
  const device = app.model.device!;
  return { view: "timeline", chips: events.length <= kMaxValues
    ? app.only("uid", ...events.map((row) => String(device.uid[row]!)))
    : app.only("row", ...ops) };
}
