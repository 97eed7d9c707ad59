// SPDX-License-Identifier: Apache-2.0
//
// What the file holds: notes, tables, and the events with the rows of the
// tables that count them. Blocks are decoded when a view first needs them.

import { decodeBlock, DamagedFile, type Column } from "./decode";
import { part, servedTrace } from "./live";
import { kSchema, type Family, type HostTrack, type Lane, type Manifest,
         type TableInfo, type TraceInfo } from "./manifest";
import { setShortNames } from "./names";
import type { EventColumns } from "./served";
import { bucketsByLane, joined, roomy, type LaneBuckets, type Thinned } from
  "./thinned";

export type Cell = number | string | null;

export class Table {
  constructor(readonly info: TableInfo, private readonly model: Model,
              private readonly columns: Map<string, Column>) {}

  get name(): string { return this.info.name; }
  get rows(): number { return this.info.rows; }

  find(column: string): number {
    return this.info.columns.findIndex((c) => c.name === column);
  }
  has(column: string): boolean { return this.find(column) >= 0; }

  at(row: number, column: string | number): Cell {
    const c = typeof column === "number" ? column : this.find(column);
    const info = this.info.columns[c];
    if (!info) return null;
    if (info.nulls && this.columns.get(c + "?")![row]) return null;
    const value = this.columns.get(String(c))![row]!;
    return info.type === "text" || info.text ? this.model.text(value) : value;
  }
  // A number, 0 where the cell is empty.
  num(row: number, column: string | number): number {
    const value = this.at(row, column);
    return typeof value === "number" ? value : Number(value ?? 0);
  }
  str(row: number, column: string | number): string {
    const value = this.at(row, column);
    return value === null ? "" : String(value);
  }
  // The raw numbers: ids of texts for a text column.
  raw(column: string): Column | undefined {
    return this.columns.get(String(this.find(column)));
  }
  sum(column: string): number {
    let sum = 0;
    for (let row = 0; row < this.rows; ++row) sum += this.num(row, column);
    return sum;
  }
  // The first row in which `column` has this value, or -1.
  rowWhere(column: string, value: Cell): number {
    for (let row = 0; row < this.rows; ++row)
      if (this.at(row, column) === value) return row;
    return -1;
  }
}

// Device events: lane by lane, by start. The columns of kRowTables are row + 1
// of the table of that name, 0 for none; launch is row + 1 of the host events.
export interface DeviceEvents extends Record<RowColumn, Column> {
  count: number;         // single events
  rows: number;          // with merged ones behind them, see thinned.ts
  merged: Column | null; // how many events each of those stands for
  total: number;         // events of all rows
  start: Column; dur: Column; family: Column; uid: Column; launch: Column;
  call: Column;   // of its op, from 1
  stack: Column;  // innermost frame + 1
  lane: Uint16Array | Uint32Array;
  first: number;  // ns: first start and last end; infinite without events
  last: number;
  // Behind all rows: events that were fetched. Sums and masks do not know them.
  fetched: Fetched | null;
}
interface Fetched {
  most: number;
  rowOf: Map<number, number>;  // by event number
  launch: Map<number, number>; // event number of the launching call, by row
}

export interface HostEvents {
  count: number;
  first: number;
  last: number;
  start: Column; dur: Column; name: Column; kind: Column; uid: Column;
}

const kDeviceColumns = ["start", "dur", "kernel", "family", "uid"] as const;
const kMostFetched = 1 << 17;
export const kNoUid = 0xFFFFFFFF;

// First start and last end of some events.
function span(events: { start: Column; dur: Column }):
    { first: number; last: number } {
  const { start, dur } = events;
  let first = Infinity;
  let last = -Infinity;
  for (let i = 0; i < start.length; ++i) {
    first = Math.min(first, start[i]!);
    last = Math.max(last, start[i]! + dur[i]!);
  }
  return { first, last };
}

// The table that a column of device events counts rows of. A file has the
// columns of the tables that it has; the others are 0.
export const kRowTables = {
  kernel: "kernels", op: "op_efficiency", module: "modules", layer: "layers",
  pass: "passes", step: "steps", place: "variant_kernels",
  graph: "graph_attribution", rule: "family_rules", diffop: "diff_ops",
  diffkernel: "diff_kernels", diffcategory: "diff_by", diffmodule: "diff_by",
  difflayer: "diff_by", diffcause: "diff_causes", collective: "collectives",
  rankstep: "rank_steps",
} as const;
export type RowColumn = keyof typeof kRowTables;
const kHostColumns = ["start", "dur", "name", "kind", "uid"] as const;

export class Model {
  readonly manifest: Manifest;
  readonly families: Family[];
  readonly traces: TraceInfo[];  // none in a page of one trace
  readonly lanes: Lane[];
  readonly hostTracks: HostTrack[];
  device: DeviceEvents | null = null;
  buckets: LaneBuckets[] = [];   // by lane, in a thinned page
  host: HostEvents | null = null;

  private readonly tables = new Map<string, Table>();
  private readonly raw = new Map<string, Map<string, Column>>();
  private readonly pending = new Map<string, Promise<void>>();
  private readonly done = new Set<string>();
  private offsets = new Float64Array(1);
  private bytes: Uint8Array = new Uint8Array(0);
  private readonly texts: (string | undefined)[] = [];
  private readonly decoder = new TextDecoder();

  constructor(manifest: Manifest) {
    this.manifest = manifest;
    this.families = manifest.families ?? [];
    this.traces = manifest.traces ?? [];
    this.lanes = manifest.lanes ?? [];
    this.hostTracks = manifest.host_tracks ?? [];
  }

  static async load(): Promise<Model> {
    let manifest: Manifest;
    try {
      manifest = JSON.parse(
        part("manifest")?.textContent ?? "") as Manifest;
    } catch {
      throw new DamagedFile("the head of the data cannot be read");
    }
    if (manifest.schema !== kSchema) {
      throw new DamagedFile(
        `the data have version ${String(manifest.schema).slice(0, 20)}, ` +
        `this page reads version ${kSchema}`);
    }
    for (const list of [manifest.notes, manifest.tables, manifest.blocks,
                        manifest.commands])
      if (!Array.isArray(list)) throw new DamagedFile("a list is missing");
    const model = new Model(manifest);
    await model.loadStrings();
    return model;
  }

  get thinned(): Thinned | null { return this.manifest.thinned ?? null; }

  get title(): string {
    const names = this.manifest.inputs.map((input) =>
      input.slice(input.lastIndexOf("/") + 1));
    return names.length > 2 ? `${names.length} files` : names.join(" \u2192 ");
  }

  // The trace of an event number; null in a page of one trace.
  traceOf(uid: number): TraceInfo | null {
    let found: TraceInfo | null = null;
    for (const trace of this.traces)
      if (trace.first_uid <= uid) found = trace;
    return found;
  }

  // --- texts ---
  private async loadStrings(): Promise<void> {
    const lengths = (await this.block("string_lengths")).get("length")!;
    const bytes = (await this.block("string_bytes")).get("bytes")!;
    this.offsets = new Float64Array(lengths.length + 1);
    for (let i = 0; i < lengths.length; ++i)
      this.offsets[i + 1] = this.offsets[i]! + lengths[i]!;
    if (this.offsets[lengths.length] !== bytes.length)
      throw new DamagedFile("names of wrong length");
    this.bytes = bytes as Uint8Array;
    const shorts = await this.block("short_names");
    const [names, texts] = [shorts.get("name")!, shorts.get("short")!];
    setShortNames(new Map(Array.from(names, (id, i) =>
      [this.text(id), this.text(texts[i]!)])));
  }
  text(id: number): string {
    let text = this.texts[id];
    if (text === undefined) {
      const from = this.offsets[id];
      const to = this.offsets[id + 1];
      if (from === undefined || to === undefined)
        throw new DamagedFile("a name is missing");
      text = this.decoder.decode(this.bytes.subarray(from, to));
      this.texts[id] = text;
    }
    return text;
  }

  // --- blocks ---
  private async block(name: string): Promise<Map<string, Column>> {
    const info = this.manifest.blocks.find((b) => b.name === name);
    if (!info) throw new DamagedFile(`block ${name} is missing`);
    return decodeBlock(info);
  }
  hasTable(name: string): boolean {
    return this.manifest.tables.some((t) => t.name === name && t.rows > 0);
  }
  get hasEvents(): boolean {
    return this.manifest.blocks.some((b) => b.name === "device" && b.rows > 0);
  }
  // A table that was required before; null if the file has none.
  table(name: string): Table | null {
    return this.tables.get(name) ?? null;
  }

  // Whether what is named as in require() was decoded, or is not in the file.
  has(name: string): boolean { return this.done.has(name); }

  // Decodes what is named: tables, "device", "host", "#block" for the columns
  // of another block. Unknown names are fine.
  async require(names: Iterable<string>): Promise<void> {
    const waits: Promise<void>[] = [];
    for (const name of names) {
      let wait = this.pending.get(name);
      if (!wait) {
        wait = name === "device" ? this.loadDevice()
          : name === "host" ? this.loadHost()
          : name.startsWith("#") ? this.loadRaw(name) : this.loadTable(name);
        this.pending.set(name, wait);
        wait.then(() => this.done.add(name), () => {});
      }
      waits.push(wait);
    }
    await Promise.all(waits);
  }
  // Columns of a block that was required as "#name"; null if the file has none.
  columns(name: string): Map<string, Column> | null {
    return this.raw.get("#" + name) ?? null;
  }
  private async loadRaw(name: string): Promise<void> {
    if (this.manifest.blocks.some((b) => "#" + b.name === name))
      this.raw.set(name, await this.block(name.slice(1)));
  }
  private async loadTable(name: string): Promise<void> {
    const index = this.manifest.tables.findIndex((t) => t.name === name);
    if (index < 0) return;
    const info = this.manifest.tables[index]!;
    const columns = await this.block("t" + index);
    for (const [c, column] of info.columns.entries()) {
      if (columns.get(String(c))?.length !== info.rows ||
          (column.nulls && columns.get(c + "?")?.length !== info.rows))
        throw new DamagedFile(`table ${name} has columns of wrong length`);
    }
    this.tables.set(name, new Table(info, this, columns));
  }
  private async loadDevice(): Promise<void> {
    if (!this.manifest.blocks.some((b) => b.name === "device")) return;
    const singles = await this.block("device");
    const merged = this.thinned ? await this.block("merged") : null;
    const events = merged?.get("events") ?? null;
    const count = singles.get("start")?.length ?? 0;
    const rows = count + (events?.length ?? 0);
    const fetches = merged !== null && servedTrace() !== null;
    const room = rows + (fetches ? kMostFetched : 0);
    let columns = merged ? joined(singles, merged) : singles;
    if (fetches) columns = roomy(columns, count, rows, room);
    let total = count;
    for (const n of events ?? []) total += n;
    const device = { count, rows, merged: events, total, fetched: fetches
      ? { most: kMostFetched, rowOf: new Map(), launch: new Map() } : null,
    } as DeviceEvents;
    for (const name of kDeviceColumns) {
      const column = columns.get(name);
      if (!column) throw new DamagedFile(`column ${name} is missing`);
      device[name] = column;
    }
    const none = new Uint8Array(room);
    for (const name of ["launch", "call", "stack"] as const)
      device[name] = columns.get(name) ?? none;
    for (const name of Object.keys(kRowTables) as RowColumn[])
      device[name] = columns.get(name) ?? none;
    const rowsOf = (table: string) =>
      this.manifest.tables.find((t) => t.name === table)?.rows ?? 0;
    for (const [name, table] of Object.entries(kRowTables)) {
      const most = rowsOf(table);
      const column = device[name as RowColumn];
      for (let i = 0; i < rows; ++i)
        if (column[i]! > most) throw new DamagedFile(`${name} out of range`);
    }
    device.lane = this.lanes.length > 0xFFFF ? new Uint32Array(room)
      : new Uint16Array(room);
    let at = 0;
    for (const [index, lane] of this.lanes.entries()) {
      if (lane.begin !== at || lane.end < at || lane.end > count)
        throw new DamagedFile("lanes out of range");
      if ((lane.trace ?? 0) > Math.max(0, this.traces.length - 1))
        throw new DamagedFile("trace of a lane out of range");
      at = lane.end;
      device.lane.fill(index, lane.begin, lane.end);
    }
    for (let i = 0; i < rows; ++i) {
      if (device.family[i]! >= this.families.length)
        throw new DamagedFile("family out of range");
    }
    if (merged) await this.loadMerged(device, merged);
    this.device = Object.assign(device, this.thinned
      ? { first: this.thinned.origin_ns, last: this.thinned.last_ns }
      : span(device));
  }
  // Whether addEvents() has room for all of these.
  hasRoom(answers: EventColumns[]): boolean {
    const into = this.device?.fetched;
    if (!into) return true;
    const fresh = new Set(answers.flatMap((columns) =>
      (columns.uid ?? []).filter((uid) => !into.rowOf.has(uid!))));
    return into.rowOf.size + fresh.size <= into.most;
  }
  // Events that the page does not hold, as rows behind all others; those that
  // came before keep their row. They fit: see hasRoom().
  addEvents(columns: EventColumns): number[] {
    const device = this.device;
    const into = device?.fetched;
    const uids = columns.uid ?? [];
    if (!device || !into) return [];
    const at = (name: string, i: number) => columns[name]?.[i] ?? 0;
    return uids.map((uid, i) => {
      const known = into.rowOf.get(uid!);
      if (known !== undefined) return known;
      const row = device.rows + into.rowOf.size;
      into.rowOf.set(uid!, row);
      device.start[row] = at("start_ns", i);
      device.dur[row] = at("dur_ns", i);
      device.uid[row] = uid!;
      device.lane[row] = at("lane", i);
      device.family[row] = at("family", i);
      for (const [name, table] of Object.entries(kRowTables)) {
        const value = at(name, i);
        // The page may lack the column, or the table.
        const column = device[name as RowColumn];
        const most = this.manifest.tables.find((t) => t.name === table)?.rows;
        if (column instanceof Uint32Array && value <= (most ?? 0))
          column[row] = value;
      }
      device.call[row] = at("call", i);
      const launch = columns.launch_uid?.[i];
      if (typeof launch === "number") into.launch.set(row, launch);
      return row;
    });
  }
  dropEvents(): void {
    const device = this.device;
    if (!device?.fetched) return;
    device.uid.fill(kNoUid, device.rows);
    device.fetched.rowOf.clear();
    device.fetched.launch.clear();
  }
  private async loadMerged(device: DeviceEvents, merged: Map<string, Column>):
      Promise<void> {
    const lanes = merged.get("lane") ?? new Uint8Array(0);
    if (lanes.length !== device.rows - device.count ||
        lanes.some((lane: number) => lane >= this.lanes.length))
      throw new DamagedFile("lanes of merged events out of range");
    device.lane.set(lanes, device.count);
    this.buckets = bucketsByLane(await this.block("buckets"),
      this.lanes.length, this.families.length);
  }
  private async loadHost(): Promise<void> {
    if (!this.manifest.blocks.some((b) => b.name === "host")) return;
    const columns = await this.block("host");
    const host = { count: columns.get("start")?.length ?? 0 } as HostEvents;
    for (const name of kHostColumns) {
      const column = columns.get(name);
      if (!column) throw new DamagedFile(`column ${name} is missing`);
      host[name] = column;
    }
    let at = 0;
    for (const track of this.hostTracks) {
      if (track.begin !== at || track.end < at || track.end > host.count)
        throw new DamagedFile("host tracks out of range");
      at = track.end;
    }
    this.host = Object.assign(host, span(host));
  }
}

// Whether more than one trace is held against the first one.
export function severalCompared(model: Model): boolean {
  return model.manifest.tables.some((table) => table.name === "diff_verdict" &&
    table.columns[0]!.name === "with");
}
