// SPDX-License-Identifier: Apache-2.0
//
// What a page that is served asks about events that it does not hold: those of
// a window, sums under a filter, the longest of a window. Answers are exact and
// are kept while they are likely to be asked for again. Events that came stand
// behind all others of the model, so that every view can show one.

import { conditionsOf } from "./conditions";
import { kGroups } from "./groups";
import { ask, servedTrace } from "./live";
import type { Model } from "./model";
import type { Level } from "./pyramid";
import type { Chip } from "./state";

// Columns of events as the server gives them; see docs/serve.md.
export type EventColumns = Record<string, (number | null)[]>;

export interface ColumnSums { row: number[]; events: number[]; time_ns: number[] }
export interface ServedSums {
  events: number;
  time_ns: number;
  by: Record<string, ColumnSums>;
}

// One lane in a window: its events, or buckets.
export interface LaneTile {
  rows: number[] | null;     // of the model, by start
  passes: number[];
  lower: Uint8Array | null;  // 1: overlaps one of the upper half
  level: Level | null;
}
export interface Tile {
  key: string;               // of its filter
  from: number;
  to: number;
  lanes: Map<number, LaneTile>;
}

const kSums = ["lane", "kernel", "family", "op", "module", "layer", "pass",
               "step", "place", "graph", "rule"];
const kMostTiles = 24;
const kMostSums = 8;

interface TileAnswer {
  groups: string[];
  lanes: { lane: number; events?: EventColumns; first_ns: number;
           width_ns: number; busy_ns: number[]; pass_ns: number[];
           group: number[] }[];
}

export class Served {
  private tiles: Tile[] = [];
  private readonly known = new Map<string, ServedSums>();
  private tileAbort = new AbortController();
  private findAbort = new AbortController();
  // How often events were forgotten: rows from before are those of others now.
  drops = 0;

  constructor(private readonly model: Model, private readonly address: string,
              private readonly fields: string[]) {}

  // Null for a file, and for a page that holds every event.
  static of(model: Model): Served | null {
    const address = servedTrace();
    const fields = model.manifest.commands
      .find((c) => c.name === "slice")?.where;
    return address && fields && model.thinned
      ? new Served(model, address, fields) : null;
  }

  // The filter as the server reads it; null where that cannot say all of it.
  where(chips: Chip[]): string[] | null {
    const { texts, leftOut } = conditionsOf(chips, this.fields);
    return leftOut.length > 0 ? null : texts;
  }

  private async ask<T>(what: string, body: object, signal?: AbortSignal):
      Promise<T> {
    return await (await ask(`${this.address}/${what}`, body, signal))
      .json() as T;
  }

  // --- sums ---

  async prepareSums(chips: Chip[]): Promise<void> {
    const key = JSON.stringify(chips);
    const where = this.where(chips);
    if (!where || this.known.has(key)) return;
    const sums = await this.ask<ServedSums>("sum", { where, by: kSums });
    if (this.known.size >= kMostSums)
      this.known.delete(this.known.keys().next().value!);
    this.known.set(key, sums);
  }
  // What prepareSums() was answered.
  sums(chips: Chip[]): ServedSums | null {
    return this.known.get(JSON.stringify(chips)) ?? null;
  }

  // --- single events ---

  // The longest events in a window that pass, as rows of the model, with the
  // number and the time of all of them.
  async longest(chips: Chip[], from: number, to: number, limit: number):
      Promise<{ rows: number[]; events: number; time_ns: number } | null> {
    const where = this.where(chips);
    if (!where) return null;
    this.findAbort.abort();
    this.findAbort = new AbortController();
    const found = await this.ask<{ events: number; time_ns: number;
                                   found: EventColumns }>("find",
      { where, limit, order: "longest", from_ns: Math.floor(from),
        to_ns: Math.ceil(to) }, this.findAbort.signal);
    return { rows: this.add(found.found), events: found.events,
             time_ns: found.time_ns };
  }
  // So that the model has the event, if it is one of a device.
  async fetchEvent(uid: number): Promise<void> {
    const { found } = await this.ask<{ found: EventColumns }>("find",
      { where: [`event=${uid}`], limit: 1 });
    this.add(found);
  }

  // Forgets what came before where there is no room for the whole answer: in
  // the middle of one, rows that it already has would become those of others.
  private makeRoom(answer: EventColumns[]): void {
    if (this.model.hasRoom(answer)) return;
    this.tiles = [];
    this.model.dropEvents();
    ++this.drops;
  }
  private add(columns: EventColumns): number[] {
    this.makeRoom([columns]);
    return this.model.addEvents(columns);
  }

  // --- tiles ---

  // The best that is known of a lane in a window.
  tile(chips: Chip[], lane: number, from: number, to: number): LaneTile | null {
    const key = JSON.stringify(chips);
    let best: LaneTile | null = null;
    for (const tile of this.tiles) {
      if (tile.key !== key || tile.from > from || tile.to < to) continue;
      const one = tile.lanes.get(lane);
      if (!one) continue;
      if (one.rows) return one;
      if (!best || one.level!.width < best.level!.width) best = one;
    }
    return best;
  }
  // Whether a window has all that can be drawn at so many ns per pixel.
  private covered(chips: Chip[], lanes: number[], from: number, to: number,
                  pixel: number): boolean {
    return lanes.every((lane) => {
      const tile = this.tile(chips, lane, from, to);
      return tile !== null && (tile.rows !== null || tile.level!.width <= pixel);
    });
  }
  // Fetches what a window lacks, with some room around it. True: there is more
  // to draw than before. A newer question ends it.
  async fetchTiles(chips: Chip[], lanes: number[], from: number, to: number,
                   pixels: number): Promise<boolean> {
    const where = this.where(chips);
    const span = to - from;
    if (!where || lanes.length === 0 ||
        this.covered(chips, lanes, from, to, span / pixels)) return false;
    this.tileAbort.abort();
    const abort = this.tileAbort = new AbortController();
    const [begin, end] = [Math.floor(from - span / 2), Math.ceil(to + span / 2)];
    const answer = await this.ask<TileAnswer>("tiles", { where, lanes,
      from_ns: begin, to_ns: end,
      // Buckets are at most a pixel wide, and half a pixel at least; two more
      // for those at the ends.
      columns: Math.min(4 * Math.ceil(pixels) + 2, 8000,
                        Math.floor(200_000 / lanes.length)) }, abort.signal);
    const tile: Tile = { key: JSON.stringify(chips), from: begin, to: end,
                         lanes: new Map() };
    const groups = answer.groups.map((name) => Math.max(0,
      (kGroups as readonly string[]).indexOf(name)));
    const other = kGroups.length - 1;
    this.makeRoom(answer.lanes.flatMap((one) =>
      one.events ? [one.events] : []));
    for (const one of answer.lanes) {
      tile.lanes.set(one.lane, one.events ? this.exact(one.events) : {
        rows: null, passes: [], lower: null,
        level: { width: one.width_ns, from: one.first_ns,
                 busy: Float64Array.from(one.busy_ns),
                 match: Float64Array.from(one.pass_ns),
                 group: Uint8Array.from(one.group,
                                        (g) => groups[g] ?? other) } });
    }
    this.tiles.push(tile);
    if (this.tiles.length > kMostTiles) this.tiles.shift();
    return true;
  }
  private exact(events: EventColumns): LaneTile {
    const rows = this.model.addEvents(events);
    const { start, dur } = this.model.device!;
    let upper = -Infinity;
    const lower = new Uint8Array(rows.length);
    for (const [i, row] of rows.entries()) {
      if (start[row]! < upper) lower[i] = 1;
      else upper = start[row]! + dur[row]!;
    }
    return { rows, passes: events.passes as number[], level: null,
             lower: lower.includes(1) ? lower : null };
  }
}
