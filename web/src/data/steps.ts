// SPDX-License-Identifier: Apache-2.0
//
// Steps of the engine's table: where the time of each went, and why two of
// them differ. What a step is counts from its first work on a device to that
// of the next step, so steps add up to the time of the device.

import { gapsOf, gpusOf, type GapAt, type Gpu } from "./gpus";
import type { Model, Table } from "./model";

export const kStepParts = ["computation", "exposed communication",
                           "exposed copies", "idle"] as const;

// ns of each of kStepParts. Sums up to stepTime().
export function partsOfStep(table: Table, row: number): number[] {
  const comm = table.num(row, "exposed_comm_us");
  const copies = table.num(row, "exposed_memcpy_us");
  return [table.num(row, "busy_us") - comm - copies, comm, copies,
          table.num(row, "idle_us")];
}
export function stepTime(table: Table, row: number): number {
  return table.num(row, "busy_us") + table.num(row, "idle_us");
}

// Rows of steps with work, of one device.
export function stepRows(table: Table, device: string): number[] {
  const rows: number[] = [];
  for (let row = 0; row < table.rows; ++row) {
    if (table.at(row, "step") !== null && table.num(row, "kernels") > 0 &&
        table.str(row, "device") === device) rows.push(row);
  }
  return rows;
}

// Devices of the table, that with most work first.
export function stepDevices(table: Table): string[] {
  const work = new Map<string, number>();
  for (let row = 0; row < table.rows; ++row) {
    if (table.at(row, "step") === null || table.num(row, "kernels") === 0)
      continue;
    const device = table.str(row, "device");
    work.set(device, (work.get(device) ?? 0) + table.num(row, "busy_us"));
  }
  return [...work].sort((a, b) => b[1] - a[1]).map(([device]) => device);
}

export function medianStep(table: Table, rows: number[]): number {
  const sorted = [...rows].sort((a, b) =>
    stepTime(table, a) - stepTime(table, b) || a - b);
  return sorted[sorted.length >> 1] ?? -1;
}

// What a chosen step stands beside: the median of the others that run the same
// kernels, however often; where there are none, of all others.
export function usualStep(model: Model, rows: number[], row: number):
    { row: number; alike: number } {
  const table = model.table("steps")!;
  const device = model.device!;
  const names = model.table("kernels")?.raw("kernel");
  const found = new Map(rows.map((one) => [one, new Set<number>()]));
  for (let i = 0; i < device.rows; ++i) {
    const group = device.kernel[i]!;
    if (group > 0) found.get(device.step[i]! - 1)?.add(names![group - 1]!);
  }
  const own = found.get(row)!;
  const others = rows.filter((other) => other !== row);
  const alike = others.filter((other) => {
    const set = found.get(other)!;
    return set.size === own.size && [...own].every((name) => set.has(name));
  });
  return { row: medianStep(table, alike.length > 0 ? alike : others),
           alike: alike.length };
}

// --- two steps ---

export interface StepCause {
  kind: "kernel" | "idle" | "overlap";
  name: string;       // of the kernel; of idle time the one that ends it
  op: string;
  ns: [number, number];
  count: [number, number];
  longest: [GapAt | null, GapAt | null];  // of idle time
}

// From the first work of each wanted step to its last, and to where the idle
// time of the step ends.
export function stepSpan(model: Model, row: number):
    { gpu: Gpu; from: number; last: number; to: number } | null {
  const device = model.device!;
  const steps = model.table("steps")!;
  for (const gpu of gpusOf(model)) {
    const first = new Map<number, [number, number]>();
    for (const at of gpu.rows) {
      const step = device.step[at]! - 1;
      if (step < 0 || steps.at(step, "step") === null) continue;
      const start = device.start[at]!;
      const end = start + device.dur[at]!;
      const span = first.get(step);
      if (!span) first.set(step, [start, end]);
      else if (end > span[1]) span[1] = end;
    }
    const own = first.get(row);
    if (!own) continue;
    let next = Infinity;
    for (const [step, [start]] of first) {
      if (start > own[0] || (start === own[0] && step > row))
        next = Math.min(next, start);
    }
    return { gpu, from: own[0], last: own[1],
             to: next === Infinity ? own[1] : next };
  }
  return null;
}

// Why the second step takes another time than the first: by kernel and op, and
// by the kernel that ends idle time. All rows add up to the difference.
export function compareSteps(model: Model, rows: [number, number]):
    StepCause[] {
  const device = model.device!;
  const steps = model.table("steps")!;
  const kernels = model.table("kernels");
  const found = new Map<string, StepCause>();
  const causeOf = (kind: StepCause["kind"], at: number): StepCause => {
    const group = device.kernel[at]! - 1;
    const name = kernels && group >= 0 ? kernels.str(group, "kernel") : "";
    const op = kernels && group >= 0 ? kernels.str(group, "op") : "";
    const key = [kind, name, op].join("\n");
    let cause = found.get(key);
    if (!cause) {
      found.set(key, cause = { kind, name, op, ns: [0, 0], count: [0, 0],
                               longest: [null, null] });
    }
    return cause;
  };
  for (let i = 0; i < device.rows; ++i) {
    const side = rows.indexOf(device.step[i]! - 1);
    if (side < 0) continue;
    const cause = causeOf("kernel", i);
    cause.ns[side]! += device.dur[i]!;
    cause.count[side]! += i < device.count ? 1
      : device.merged![i - device.count]!;
  }
  const rest: StepCause = { kind: "overlap", name: "", op: "", ns: [0, 0],
                            count: [0, 0], longest: [null, null] };
  for (const [side, row] of rows.entries()) {
    let idle = 0;
    const span = model.thinned ? null : stepSpan(model, row);
    const gaps = span ? gapsOf(model, span.gpu) : null;
    for (let at = 0; span && gaps && at < gaps.start.length; ++at) {
      const start = gaps.start[at]!;
      const ns = Math.min(start + gaps.dur[at]!, span.to) -
        Math.max(start, span.from);
      if (ns <= 0) continue;
      idle += ns;
      const cause = causeOf("idle", gaps.next[at]!);
      cause.ns[side]! += ns;
      ++cause.count[side]!;
      const most = cause.longest[side];
      if (!most || gaps.dur[most.at]! < gaps.dur[at]!)
        cause.longest[side] = { gpu: span.gpu, at };
    }
    // Kernels of several streams at once count once in the step; what no gap
    // tells of idle time (in a page without all events) is here as well.
    rest.ns[side] = stepTime(steps, row) - steps.num(row, "kernel_time_us") -
      idle;
  }
  return [...found.values(), ...rest.ns[0] || rest.ns[1] ? [rest] : []];
}
