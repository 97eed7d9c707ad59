// SPDX-License-Identifier: Apache-2.0
//
// What pages of several traces share: links from a row of a table to the
// events that it counts, and what is known of a collective.

import { kRowTables, type RowColumn, type Table } from "../data/model";
import type { App, Patch } from "./app";
import { h } from "./dom";
import { clean, kernelName, time } from "./format";

// The timeline with nothing but the events that a row counts, of all traces
// or of the one with this name.
export function rowEvents(app: App, table: string, row: number, trace = ""):
    Patch {
  const others = app.state.chips.filter((c) => c.kind !== "of" &&
                                        c.kind !== "trace");
  return { view: "timeline", selected: "", zoom: null, chips: [...others,
    { kind: "of", values: [`${table}.${row}`], not: false },
    ...(trace ? [{ kind: "trace" as const, values: [trace], not: false }]
      : [])] };
}

// The same with the first event of the row in A over the first one in B.
export function pairPatch(app: App, table: string, row: number): Patch {
  return { ...rowEvents(app, table, row),
           ...app.withOption("timeline.pair", "1") };
}

export interface FirstPair {
  a: number;       // rows of device events
  b: number;
  shift: number;   // ns that times of B are larger by than those of A
}

// Of the row that the filter keeps, if the address wants its first events over
// each other; null where one side has none.
export function firstPair(app: App): FirstPair | null {
  const { device, lanes, traces } = app.model;
  const chip = app.state.chips.find((c) => c.kind === "of" && !c.not);
  if (app.option("timeline.pair") !== "1" || traces.length !== 2 || !chip ||
      !device) return null;
  const mask = app.filter.mask([chip])!;
  const first = [-1, -1];
  for (let i = 0; i < device.count; ++i) {
    const side = lanes[device.lane[i]!]!.trace ?? 0;
    if (mask[i] && (first[side]! < 0 ||
                    device.start[i]! < device.start[first[side]!]!))
      first[side] = i;
  }
  const [a, b] = first as [number, number];
  return a < 0 || b < 0 ? null
    : { a, b, shift: device.start[b]! - device.start[a]! };
}

// True if the file says for each event which row of this table counts it.
export function countsEvents(app: App, table: string): boolean {
  const columns = app.model.manifest.blocks
    .find((b) => b.name === "device")?.columns ?? [];
  return columns.some((c) => kRowTables[c.name as RowColumn] === table);
}

// Blue is less, orange is more, with arrow and sign.
export function deltaText(ns: number): string {
  return ns === 0 ? "0" : (ns > 0 ? "\u25b2 +" : "\u25bc \u2212") +
    time(Math.abs(ns));
}
export function deltaCell(ns: number): HTMLElement {
  return h("b", { class: ns > 0 ? "more" : ns < 0 ? "less" : "" },
           deltaText(ns));
}

// As the profilers call copies and fills.
const kCopy = /^\[?(cuda )?mem(cpy|set|ory_copy)|^copy(host|device)/i;

// What the engine found before the rank that came last, as a sentence; empty
// where it found nothing.
export function causeWords(calls: Table, row: number): string {
  const cause = calls.str(row, "cause");
  if (!cause) return "";
  const rank = calls.str(row, "late_rank");
  const name = kernelName(calls.str(row, "cause_name"), 200);
  const more = time(calls.num(row, "cause_us"));
  const than = "than on the other ranks";
  switch (cause) {
    case "compute":
      if (kCopy.test(name)) {
        return `A copy held rank ${rank} up: ${name} took ${more} longer ` +
          `${than}.`;
      }
      return `A longer kernel held rank ${rank} up: the work of ` +
        `${name || "the device"} took ${more} longer ${than}.`;
    case "launch":
      return `A gap of the host held rank ${rank} up: its device waited ` +
        `${more} longer for the launch ${than}` + (name ? `, in ${name}.` : ".");
    case "previous":
      return `The collective before held rank ${rank} up: it ended ${more} ` +
        `later ${than}.`;
    default:
      return `${clean(cause, 40)} ${name}: ${more} more ${than}.`;
  }
}

// The correction of the clock of a rank.
export function clockWords(clocks: Table | null, rank: string): string {
  const row = clocks?.rowWhere("rank", Number(rank)) ?? -1;
  if (!clocks || row < 0 || clocks.at(row, "offset_us") === null)
    return "clock unknown, as recorded";
  if (clocks.str(row, "reference_rank") === rank) return "reference clock";
  const drift = clocks.at(row, "drift_ppm");
  const applied = clocks.num(row, "applied") !== 0;
  // An offset that was applied has been taken off.
  const moved = clocks.num(row, "offset_us") * (applied ? -1 : 1);
  return (applied ? "moved by " : "off by ") + (moved < 0 ? "\u2212" : "+") +
    `${time(Math.abs(moved))} \u00b1 ` +
    time(clocks.num(row, "uncertainty_us")) +
    (drift === null ? "" : `, drift ${Number(drift).toFixed(2)} ppm`);
}
