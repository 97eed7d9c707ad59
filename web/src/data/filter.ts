// SPDX-License-Identifier: Apache-2.0
//
// The one filter of all views: chips to a byte per device event, and sums of
// what is left by any column. Sums are of integers of nanoseconds, exact up
// to 2^53 ns.

import type { Column } from "./decode";
import { kRowTables, type DeviceEvents, type Model, type RowColumn } from
  "./model";
import { shortName } from "./names";
import { framesBelow } from "./stacks";
import { parseBound, parseRange, parseRow, type Chip } from "./state";
import type { Served, ServedSums } from "./served";
import { needsSingles } from "./thinned";

export interface Selection {
  mask: Uint8Array | null;  // null: everything
  count: number;
  time: number;  // ns
}

// Events that a row of the device events stands for.
export function eventsOf(device: DeviceEvents, row: number): number {
  return row < device.count ? 1 : device.merged![row - device.count]!;
}

// Ranges of time that chips leave, by start and apart; null: all of it. What a
// negated chip leaves lies outside of its ranges as a whole.
function rangesOf(chips: Chip[]): [number, number][] | null {
  let left: [number, number][] | null = null;
  for (const chip of chips) {
    if (chip.kind !== "t" || chip.not) continue;
    const own: [number, number][] = [];
    for (const [from, to] of chip.values.map(parseRange)
           .filter((r) => r !== null).sort((a, b) => a[0] - b[0])) {
      const last = own.at(-1);
      if (last && from <= last[1]) last[1] = Math.max(last[1], to);
      else own.push([from, to]);
    }
    left = left === null ? own : left.flatMap(([a, b]) => own
      .map(([c, d]): [number, number] => [Math.max(a, c), Math.min(b, d)])
      .filter(([from, to]) => from < to));
  }
  return left;
}

// The part of each event that lies in the ranges.
function clipped(device: DeviceEvents, ranges: [number, number][]): Column {
  const out = new Float64Array(device.rows);
  for (let i = 0; i < device.count; ++i) {
    const start = device.start[i]!;
    const end = start + device.dur[i]!;
    for (const [from, to] of ranges)
      if (start < to && end > from)
        out[i]! += Math.min(end, to) - Math.max(start, from);
  }
  return out;
}

export interface Sums {
  time: Float64Array;
  count: Uint32Array;
}

// Every value of a small column that passes.
function allow(size: number, test: (value: number) => boolean): Uint8Array {
  const out = new Uint8Array(size);
  for (let i = 0; i < size; ++i) out[i] = test(i) ? 1 : 0;
  return out;
}

// Patterns whose matching could take exponential time are refused: a repeat
// inside a repeat, or many repeats in a row.
export function isSafePattern(source: string): boolean {
  const repeats = source.match(/[*+]|\{\d*,/g)?.length ?? 0;
  return source.length <= 200 && repeats <= 3 &&
    !/[*+}?][^()]*\)\s*[*+{]|\|[^()]*\)\s*[*+{]/.test(source) &&
    !/\)\)\s*[*+{]|\\\d/.test(source);
}

// Words that must all occur in a name; /x/ is a regular expression, matched
// against the first 200 characters and for at most 200 ms in all.
export function textTest(query: string): (text: string) => boolean {
  const source = /^\/(.+)\/$/.exec(query)?.[1];
  if (source !== undefined) {
    if (!isSafePattern(source)) return () => false;
    let compiled: RegExp;
    try {
      compiled = new RegExp(source, "i");
    } catch {
      return () => false;
    }
    const limit = performance.now() + 200;
    return (text) =>
      performance.now() <= limit && compiled.test(text.slice(0, 200));
  }
  const words = query.toLowerCase().split(/\s+/).filter((w) => w !== "");
  return (text) => {
    const low = text.toLowerCase();
    return words.every((w) => low.includes(w));
  };
}

// A kernel is found by its whole name and by the one that is shown.
export function nameHits(name: string, test: (text: string) => boolean):
    boolean {
  const short = shortName(name);
  return test(name) || (short !== name && test(short));
}

export class Filter {
  private readonly masks = new Map<string, Uint8Array>();
  private key = "";
  private now: Selection = { mask: null, count: 0, time: 0 };
  private readonly sums = new Map<string, Sums>();
  private times: Column | null = null;  // ns of each event that count
  private ranges: [number, number][] | null = null;
  private answer: ServedSums | null = null;  // for what the page does not hold

  constructor(private readonly model: Model,
              private readonly served: Served | null = null) {}

  // Filters that this page cannot answer alone.
  private beyond(chips: Chip[]): boolean {
    return chips.some((c) => needsSingles(this.model.thinned, c.kind));
  }
  // Before select(), where the page is served.
  async prepare(chips: Chip[]): Promise<void> {
    if (this.served && this.beyond(chips)) await this.served.prepareSums(chips);
  }
  // True if numbers under the last select() count events that are not here.
  get complete(): boolean { return this.answer !== null; }

  // What passes all chips. Needs the device events and the row tables.
  select(chips: Chip[]): Selection {
    const device = this.model.device;
    if (!device) return { mask: null, count: 0, time: 0 };
    const key = JSON.stringify(chips);
    if (key === this.key) return this.now;
    this.key = key;
    this.sums.clear();
    const mask = this.mask(chips);
    this.ranges = rangesOf(chips);
    this.times = this.ranges ? clipped(device, this.ranges) : null;
    const dur = this.dur!;
    let count = 0;
    let time = 0;
    for (let i = 0; i < device.rows; ++i) {
      if (mask && !mask[i]) continue;
      count += eventsOf(device, i);
      time += dur[i]!;
    }
    this.answer = this.beyond(chips) ? this.served?.sums(chips) ?? null : null;
    if (this.answer) {
      count = this.answer.events;
      time = this.answer.time_ns;
    }
    this.now = { mask, count, time };
    return this.now;
  }

  // What sums count of each event under the last select(): its length, of
  // one that crosses the edge of a range of time the part inside.
  get dur(): Column | null {
    return this.times ?? this.model.device?.dur ?? null;
  }

  // The part of an event that counts inside of a window.
  inside(row: number, from: number, to: number): number {
    const { start, dur } = this.model.device!;
    const end = start[row]! + dur[row]!;
    return (this.ranges ?? [[from, to] as const]).reduce((sum, [a, b]) =>
      sum + Math.max(0, Math.min(end, b, to) - Math.max(start[row]!, a, from)),
      0);
  }

  // A byte per device event: 1 passes. Null: all do.
  mask(chips: Chip[]): Uint8Array | null {
    const device = this.model.device;
    let mask: Uint8Array | null = null;
    for (const chip of device ? chips : []) {
      const one = this.maskOf(device!, chip);
      if (mask === null) {
        mask = one.slice();
      } else {
        for (let i = 0; i < mask.length; ++i) mask[i]! &= one[i]!;
      }
    }
    return mask;
  }

  // Time by family under some chips, clipped as by the last select().
  byFamily(chips: Chip[]): Float64Array {
    const { device, families } = this.model;
    const sums = new Float64Array(families.length);
    const mask = this.mask(chips);
    for (let i = 0; device && i < device.rows; ++i)
      if (!mask || mask[i]) sums[device.family[i]!]! += this.dur![i]!;
    return sums;
  }

  // Kernel time and events by the value of a column, under the last select().
  by(column: RowColumn | "family" | "lane", size: number): Sums {
    let sums = this.sums.get(column);
    const device = this.model.device;
    if (sums) return sums;
    sums = { time: new Float64Array(size), count: new Uint32Array(size) };
    const answer = this.answer?.by[column];
    // Merged events are in no place of their layer.
    if (answer) {
      for (const [i, row] of answer.row.entries()) {
        sums.time[row] = answer.time_ns[i]!;
        sums.count[row] = answer.events[i]!;
      }
    } else if (this.model.thinned?.dropped.includes(column) ||
        (column === "place" && device?.merged)) {
      this.addTable(kRowTables[column as RowColumn], sums);
    } else if (device) {
      const values = device[column];
      const { mask } = this.now;
      const dur = this.dur!;
      for (let i = 0; i < device.rows; ++i) {
        if (mask && !mask[i]) continue;
        const value = values[i]!;
        sums.time[value]! += dur[i]!;
        sums.count[value]! += eventsOf(device, i);
      }
    }
    this.sums.set(column, sums);
    return sums;
  }

  // What a table says of its rows, for columns that the page dropped.
  private addTable(name: string, sums: Sums): void {
    const table = this.model.table(name);
    for (let row = 0; table && row < table.rows; ++row) {
      sums.time[row + 1] = table.num(row, "kernel_time_us");
      sums.count[row + 1] = table.num(row, "kernels");
    }
  }

  private maskOf(device: DeviceEvents, chip: Chip): Uint8Array {
    const key = JSON.stringify(chip);
    const known = this.masks.get(key);
    if (known) return known;
    const mask = this.plainMask(device, chip);
    if (chip.not) for (let i = 0; i < mask.length; ++i) mask[i]! ^= 1;
    if (needsSingles(this.model.thinned, chip.kind))
      mask.fill(0, device.count);
    if (this.masks.size > 12) this.masks.clear();
    this.masks.set(key, mask);
    return mask;
  }

  private plainMask(device: DeviceEvents, chip: Chip): Uint8Array {
    const { model } = this;
    const wanted = new Set(chip.values);
    const mask = new Uint8Array(device.rows);
    const byColumn = (column: Column, ok: Uint8Array) => {
      for (let i = 0; i < mask.length; ++i) mask[i] = ok[column[i]!]!;
      return mask;
    };
    // Rows of a table by the text of one of its columns; row + 1 in events.
    const byRow = (column: Column, table: string,
                   test: (row: number) => boolean) => {
      const rows = model.table(table)?.rows ?? 0;
      return byColumn(column, allow(rows + 1, (v) => v > 0 && test(v - 1)));
    };
    const cell = (table: string, name: string) => {
      const found = model.table(table);
      return (row: number) => wanted.has(found?.str(row, name) ?? "");
    };
    switch (chip.kind) {
      case "fam":
        return byColumn(device.family, allow(model.families.length,
          (f) => wanted.has(model.families[f]!.group)));
      case "cat":
        return byColumn(device.family, allow(model.families.length,
          (f) => wanted.has(model.families[f]!.name)));
      case "name":
        return byRow(device.kernel, "kernels", cell("kernels", "kernel"));
      case "op":
        return byRow(device.kernel, "kernels", cell("kernels", "op"));
      case "row": {
        const none = wanted.has("none") ? 1 : 0;
        const test = cell("op_efficiency", "first_uid");
        byRow(device.op, "op_efficiency", test);
        if (none) {
          for (let i = 0; i < mask.length; ++i)
            if (device.op[i] === 0) mask[i] = 1;
        }
        return mask;
      }
      case "mod": {
        const test = modulesBelow(model, wanted);
        return byRow(device.module, "modules", (row) => test[row] === 1);
      }
      case "layer":
        return byRow(device.layer, "layers", cell("layers", "first_uid"));
      case "pass":
        return byRow(device.pass, "passes", cell("passes", "pass"));
      case "stage":
        return byRow(device.pass, "passes", cell("passes", "stage"));
      case "step":
        return byRow(device.step, "steps", cell("steps", "name"));
      case "lane":
        return byColumn(device.lane, allow(model.lanes.length,
          (lane) => wanted.has(laneKey(model, lane))));
      case "trace":
        return byColumn(device.lane, allow(model.lanes.length, (lane) =>
          wanted.has(model.traces[model.lanes[lane]!.trace ?? 0]?.name ?? "")));
      case "of": {
        for (const value of chip.values) {
          const [table, row] = parseRow(value)!;
          for (const [name, of] of Object.entries(kRowTables)) {
            if (of !== table) continue;
            const column = device[name as RowColumn];
            for (let i = 0; i < mask.length; ++i)
              if (column[i] === row + 1) mask[i] = 1;
          }
        }
        return mask;
      }
      case "t": {
        const ranges = chip.values.map(parseRange).filter((r) => r !== null);
        for (const [from, to] of ranges) {
          for (let i = 0; i < mask.length; ++i) {
            if (device.start[i]! < to &&
                device.start[i]! + device.dur[i]! > from)
              mask[i] = 1;
          }
        }
        return mask;
      }
      case "dur": {
        for (const value of chip.values) {
          const bound = parseBound(value);
          for (let i = 0; bound && i < mask.length; ++i) {
            if (device.dur[i]! >= bound[0] && device.dur[i]! <= bound[1])
              mask[i] = 1;
          }
        }
        return mask;
      }
      case "frame":
        return byColumn(device.stack, framesBelow(model, wanted));
      case "uid": {
        const uids = new Set(chip.values.map(Number));
        for (let i = 0; i < mask.length; ++i)
          mask[i] = uids.has(device.uid[i]!) ? 1 : 0;
        return mask;
      }
      case "q": {
        const tests = chip.values.map(textTest);
        const hit = (text: string) => tests.some((test) => test(text));
        const kernels = model.table("kernels");
        const modules = model.table("modules");
        const names = allow((kernels?.rows ?? 0) + 1, (v) => v > 0 &&
          (nameHits(kernels!.str(v - 1, "kernel"), hit) ||
           hit(kernels!.str(v - 1, "op"))));
        const paths = allow((modules?.rows ?? 0) + 1, (v) => v > 0 &&
          hit(modules!.str(v - 1, "module")));
        for (let i = 0; i < mask.length; ++i)
          mask[i] = names[device.kernel[i]!]! | paths[device.module[i]!]!;
        return mask;
      }
    }
  }
}

// 1 for each row of modules that is one of `paths` or below one.
export function modulesBelow(model: Model, paths: Set<string>): Uint8Array {
  const table = model.table("modules");
  const out = new Uint8Array(table?.rows ?? 0);
  if (!table) return out;
  const depth = table.raw("depth")!;
  let below = -1;  // depth of the wanted module we are in
  for (let row = 0; row < table.rows; ++row) {
    if (below >= 0 && depth[row]! <= below) below = -1;
    if (below < 0 && paths.has(table.str(row, "module"))) below = depth[row]!;
    out[row] = below >= 0 ? 1 : 0;
  }
  return out;
}

// True if chips of kinds fam, cat and lane let this family of a lane pass.
export function familyPasses(model: Model, lane: number, chip: Chip,
                             family: number): boolean {
  const { name, group } = model.families[family]!;
  return chip.values.includes(chip.kind === "fam" ? group
    : chip.kind === "cat" ? name : laneKey(model, lane));
}

export function laneKey(model: Model, lane: number): string {
  const { process, device, stream, trace } = model.lanes[lane]!;
  const name = `${device ?? "?"}/${stream ?? "?"}`;
  const twin = model.lanes.some((other, i) => i !== lane &&
    other.device === device && other.stream === stream &&
    other.trace === trace);
  const own = twin ? `${process}/${name}` : name;
  const from = model.traces[trace ?? 0];
  return from ? `${from.name}:${own}` : own;
}

// The name of the trace that a lane or track is of, in front of its own.
export function withTrace(model: Model, at: { trace?: number },
                          name: string): string {
  const trace = model.traces[at.trace ?? 0];
  return trace ? `${trace.name}: ${name}` : name;
}

export function laneName(model: Model, lane: number): string {
  const { process, device, stream, trace } = model.lanes[lane]!;
  const own = laneKey(model, lane).split("/").length > 2;
  // Of several traces each is its device, as long as it has no other.
  const known = model.traces.length > 0 && stream !== null &&
    !model.lanes.some((other) => other.trace === trace &&
                                 other.device !== device);
  const words = [...known ? [] : [device === null ? "Device"
    : `GPU ${device}`], ...stream === null ? [] : [`stream ${stream}`]];
  return withTrace(model, model.lanes[lane]!,
                   words.join(", ") + (own ? ` (${process})` : ""));
}
