// SPDX-License-Identifier: Apache-2.0
//
// The allocations of memory snapshots: columns of one device of one recording
// (a series), what is active at a moment, and sums by category, module, op or
// line. Moment m is the state after the first m events.

import { DamagedFile, type Column } from "./decode";
import { textTest } from "./filter";
import type { Model } from "./model";

export interface SeriesInfo {
  name: string;
  part: number;
  device: number;
  moments: number;
  moment: number;
  peak: number;
  units: number;
  allocs: [number, number];
  ranges: [number, number];
  reserved: [number, number];
  times: [number, number];
  events: [number, number];
  tags: [number, number];
  parts: [number, number];
  marks: { text: string; moment: number; asked?: number }[];
}

export const kBlocks = ["#memory_allocs", "#memory_ranges", "#memory_reserved",
  "#memory_times", "#memory_events", "#memory_tags", "#memory_parts",
  "#memory_stacks", "#memory_frames"];
export const kUnit = 512;  // bytes of a place

export type By = "category" | "module" | "op" | "line";
export const kBys: By[] = ["category", "module", "op", "line"];
export const kMostGroups = 11;

// Allocations by some key: the largest ones over all moments have a group
// each, the others share the last.
export interface Groups {
  names: string[];
  of: Uint8Array;      // by allocation
}

export class Series {
  readonly count: number;
  readonly moments: number;
  readonly born: Uint32Array;
  readonly freed: Uint32Array;
  readonly dead: Uint32Array;
  readonly bytes: Column;
  readonly spare: Column;
  readonly place: Column;
  readonly stack: Column;
  readonly freeStack: Column;
  readonly category: Column;
  readonly confidence: Column;
  readonly rule: Column;
  readonly stream: Column;
  readonly range: Record<string, Column> = {};
  readonly times: Column;
  readonly events: Record<string, Column> = {};
  readonly tags: Record<string, Column> = {};
  private readonly parts: Record<string, Column> = {};
  readonly active: Float64Array;  // by moment
  readonly highest: number;       // of what is reserved and active
  private readonly reservedAt: Column;
  private readonly reservedBytes: Column;
  private readonly groups = new Map<By, Groups>();

  constructor(readonly model: Model, readonly info: SeriesInfo) {
    const column = (block: string, name: string, [from, to]: [number, number]) => {
      const all = model.columns(block)?.get(name);
      if (!all || !(from >= 0 && to >= from && to <= all.length))
        throw new DamagedFile(`column ${name} of ${block} is missing`);
      return all.subarray(from, to) as Column;
    };
    const of = (name: string) => column("memory_allocs", name, info.allocs);
    this.moments = info.moments;
    this.bytes = of("bytes");
    this.count = this.bytes.length;
    this.spare = of("spare");
    this.place = of("place");
    this.stack = of("stack");
    this.freeStack = of("free_stack");
    this.category = of("category");
    this.confidence = of("confidence");
    this.rule = of("rule");
    this.stream = of("stream");
    const [born, held, wait] = [of("born"), of("held"), of("wait")];
    const end = this.moments + 1;
    this.born = Uint32Array.from(born, (m) => Math.min(m, end));
    this.freed = this.born.map((m, i) => Math.min(m + held[i]!, end));
    this.dead = this.freed.map((m, i) => Math.min(m + wait[i]!, end));
    for (const name of ["place", "size", "born", "dead", "address", "stream",
                        "pool", "kind"])
      this.range[name] = column("memory_ranges", name, info.ranges);
    this.reservedAt = column("memory_reserved", "moment", info.reserved);
    this.reservedBytes = column("memory_reserved", "bytes", info.reserved);
    this.times = column("memory_times", "time", info.times);
    for (const name of ["event", "action", "bytes", "place", "stack"])
      this.events[name] = column("memory_events", name, info.events);
    for (const name of ["event", "text"])
      this.tags[name] = column("memory_tags", name, info.tags);
    for (const name of ["place", "address"])
      this.parts[name] = column("memory_parts", name, info.parts);
    this.active = new Float64Array(end + 1);
    for (let i = 0; i < this.count; ++i) {
      this.active[this.born[i]!]! += this.bytes[i]!;
      this.active[this.dead[i]!]! -= this.bytes[i]!;
    }
    for (let m = 1; m <= end; ++m) this.active[m]! += this.active[m - 1]!;
    this.highest = Math.max(1, this.active[info.peak] ?? 0,
      ...Array.from(this.reservedBytes).slice(0, 100_000));
  }

  reserved(moment: number): number {
    return this.reservedBytes[Math.max(0,
      upper(this.reservedAt, moment) - 1)] ?? 0;
  }
  // us from the first event; 0 without times.
  time(moment: number): number {
    return this.times[Math.max(0, Math.min(moment, this.times.length) - 1)] ?? 0;
  }
  alive(i: number, moment: number): boolean {
    return this.born[i]! <= moment && moment < this.dead[i]!;
  }
  aliveAt(moment: number, mask: Uint8Array | null): number[] {
    const out: number[] = [];
    for (let i = 0; i < this.count; ++i)
      if (this.alive(i, moment) && (!mask || mask[i])) out.push(i);
    return out;
  }
  text(by: Exclude<By, "category">, stack: number): string {
    const id = this.model.columns("memory_stacks")?.get(by)?.[stack - 1];
    return id === undefined ? "(no stack)" : this.model.text(id);
  }
  keyOf(i: number, by: By): string {
    return by === "category" ? this.categoryName(this.category[i]!)
      : this.text(by, this.stack[i]!);
  }
  categoryName(category: number): string {
    return this.model.manifest.memory_categories?.[category] ?? "unknown";
  }
  // Innermost first.
  frames(stack: number): string[] {
    if (stack <= 0) return [];
    const ends = this.model.columns("memory_stacks")?.get("frames");
    const texts = this.model.columns("memory_frames")?.get("text");
    if (!ends || !texts) return [];
    const from = stack > 1 ? ends[stack - 2]! : 0;
    return Array.from(texts.subarray(from, ends[stack - 1]),
                      (id) => this.model.text(id));
  }

  groupsBy(by: By): Groups {
    let found = this.groups.get(by);
    if (found) return found;
    const area = new Map<number, number>();
    const ids = by === "category" ? null
      : this.model.columns("memory_stacks")?.get(by);
    const key = (i: number) => ids ? ids[this.stack[i]! - 1] ?? -1
      : this.category[i]!;
    for (let i = 0; i < this.count; ++i) {
      const k = key(i);
      area.set(k, (area.get(k) ?? 0) +
        this.bytes[i]! * (this.dead[i]! - this.born[i]!));
    }
    // Categories keep their place, so that their colours do, too.
    const keys = by === "category"
      ? this.model.manifest.memory_categories!.map((_, k) => k)
      : [...area].sort((a, b) => b[1] - a[1] || a[0] - b[0])
        .map(([k]) => k).slice(0, kMostGroups);
    const at = new Map(keys.map((k, g) => [k, g]));
    const names = keys.map((k) => by === "category" ? this.categoryName(k)
      : k < 0 ? "(no stack)" : this.model.text(k));
    const of = new Uint8Array(this.count);
    for (let i = 0; i < this.count; ++i) of[i] = at.get(key(i)) ?? keys.length;
    if (area.size > keys.length) names.push("others");
    found = { names, of };
    this.groups.set(by, found);
    return found;
  }

  addressOf(place: number): string {
    const part = upper(this.parts.place!, place) - 1;
    if (part < 0) return "";
    return "0x" + (BigInt(this.model.text(this.parts.address![part]!)) +
      BigInt((place - this.parts.place![part]!) * kUnit)).toString(16);
  }
  // -1: the map has no such place.
  private placeOf(address: string): number {
    let low = 0;
    let high = this.parts.place!.length;
    const wanted = BigInt(address);
    const start = (part: number) =>
      BigInt(this.model.text(this.parts.address![part]!));
    while (low < high) {
      const mid = (low + high) >>> 1;
      if (start(mid) <= wanted) low = mid + 1;
      else high = mid;
    }
    if (low === 0) return -1;
    const place = this.parts.place![low - 1]! +
      Number((wanted - start(low - 1)) / BigInt(kUnit));
    return place < (this.parts.place![low] ?? this.info.units) ? place : -1;
  }

  // A text or a /pattern/ of frames, op, module or line; a least size
  // (>64MiB); an address (0x7f...).
  search(query: string): Search {
    const size = /^[>=]+\s*([\d.]+)\s*([KMG]?)(i?B)?$/i.exec(query);
    const placed = /^0x[0-9a-f]{1,16}$/i.test(query);
    const test = size || placed ? () => true : textTest(query);
    const pattern = /^\/.+\/$/.test(query);
    const known = new Map<number, boolean>();
    const ofText = new Map<string, boolean>();
    const once = (text: string) => {
      let yes = ofText.get(text);
      if (yes === undefined) ofText.set(text, yes = test(text));
      return yes;
    };
    const frames = (stack: number) => {
      let yes = known.get(stack);
      if (yes === undefined) {
        const texts = [...this.frames(stack), this.text("op", stack),
                       this.text("module", stack), this.text("line", stack)];
        // Words may stand in several frames, a pattern is of one.
        yes = pattern ? texts.some(once) : test(texts.join("\n"));
        known.set(stack, yes);
      }
      return yes;
    };
    return {
      least: size ? Number(size[1]) * 1024 **
        " KMG".indexOf((size[2] || " ").toUpperCase()) : 0,
      placed, place: placed ? this.placeOf(query) : -1,
      frames: size || placed ? () => true : frames,
      text: size || placed ? () => false : test };
  }

  // Allocations that a search finds, or of one group; null: all.
  mask(query: string, by: By, only: string): Uint8Array | null {
    if (query === "" && only === "") return null;
    const out = new Uint8Array(this.count);
    const groups = only ? this.groupsBy(by) : null;
    const group = groups ? groups.names.indexOf(only) : -1;
    const found = query === "" ? null : this.search(query);
    for (let i = 0; i < this.count; ++i) {
      const place = this.place[i]!;
      out[i] = (!groups || groups.of[i] === group) && (!found ||
        (this.bytes[i]! >= found.least && found.frames(this.stack[i]!) &&
         (!found.placed || (place <= found.place &&
                            found.place < place + this.bytes[i]! / kUnit))))
        ? 1 : 0;
    }
    return out;
  }
}

export interface Search {
  least: number;     // bytes
  placed: boolean;   // an address is asked for
  place: number;
  frames(stack: number): boolean;
  text(text: string): boolean;
}

// First index whose value is more.
export function upper(values: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const mid = (low + high) >>> 1;
    if (values[mid]! <= value) low = mid + 1;
    else high = mid;
  }
  return low;
}

// What is drawn in each column: the moment of highest active in it, -1 outside.
export function columns(series: Series, toMoment: (x: number) => number,
                        width: number): Int32Array {
  const out = new Int32Array(width).fill(-1);
  for (let x = 0; x < width; ++x) {
    let from = Math.floor(toMoment(x));
    let to = Math.max(from, Math.ceil(toMoment(x + 1)) - 1);
    if (to < 0 || from > series.moments) continue;
    from = Math.max(0, from);
    to = Math.min(to, series.moments);
    let best = from;
    for (let m = from + 1; m <= to; ++m)
      if (series.active[m]! > series.active[best]!) best = m;
    out[x] = best;
  }
  return out;
}

// Sums by group in each column: [group * width + column].
export function bands(series: Series, groups: Groups, mask: Uint8Array | null,
                      moments: Int32Array): Float64Array {
  const width = moments.length;
  const out = new Float64Array(groups.names.length * (width + 1));
  // First column at or behind a moment.
  const behind = new Uint32Array(series.moments + 2);
  let stop = width;
  while (stop > 0 && moments[stop - 1]! < 0) --stop;
  for (let m = 0, x = 0; m < behind.length; ++m) {
    while (x < stop && moments[x]! < m) ++x;
    behind[m] = x;
  }
  for (let i = 0; i < series.count; ++i) {
    if (mask && !mask[i]) continue;
    const from = behind[series.born[i]!]!;
    const to = behind[series.dead[i]!]!;
    if (from >= to) continue;
    const row = groups.of[i]! * (width + 1);
    out[row + from]! += series.bytes[i]!;
    out[row + to]! -= series.bytes[i]!;
  }
  for (let g = 0; g < groups.names.length; ++g) {
    const row = g * (width + 1);
    for (let x = 1; x <= width; ++x) out[row + x]! += out[row + x - 1]!;
  }
  return out;
}

// Calls see(x, i, low) for every allocation in every column, stacked in the
// order in which they were made.
export function stacked(series: Series, mask: Uint8Array | null,
                        moments: Int32Array,
                        see: (x: number, i: number, low: number) => void): void {
  const { count, born, dead, bytes } = series;
  const next = new Int32Array(count + 1).fill(-1);
  const before = new Int32Array(count + 1).fill(-1);
  const inside = new Uint8Array(count);
  const ends = Uint32Array.from({ length: count }, (_, i) => i)
    .sort((a, b) => dead[a]! - dead[b]!);
  let tail = count;  // the entry `count` is the head
  let made = 0;
  let gone = 0;
  for (let x = 0; x < moments.length; ++x) {
    const m = moments[x]!;
    if (m < 0) continue;
    for (; made < count && born[made]! <= m; ++made) {
      if (dead[made]! <= m || (mask && !mask[made])) continue;
      next[tail] = made;
      before[made] = tail;
      tail = made;
      inside[made] = 1;
    }
    for (; gone < count && dead[ends[gone]!]! <= m; ++gone) {
      const i = ends[gone]!;
      if (!inside[i]) continue;
      const [p, n] = [before[i]!, next[i]!];
      next[p] = n;
      if (n >= 0) before[n] = p;
      else tail = p;
      inside[i] = 0;
    }
    let low = 0;
    for (let i = next[count]!; i >= 0; i = next[i]!) {
      see(x, i, low);
      low += bytes[i]!;
    }
  }
}

export function seriesOf(model: Model): SeriesInfo[] {
  const { memory, memory_categories } = model.manifest;
  return Array.isArray(memory) && Array.isArray(memory_categories) ? memory : [];
}

const kept = new WeakMap<SeriesInfo, Series>();
export function openSeries(model: Model, info: SeriesInfo): Series {
  let series = kept.get(info);
  if (!series) kept.set(info, series = new Series(model, info));
  return series;
}
