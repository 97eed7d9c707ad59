// SPDX-License-Identifier: Apache-2.0
//
// Combined terms of the search box as a filter: `op:bmm dur>1ms layer:3-5`.
// Terms are joined by and; `|` is or, `-` before a term is not, quotes keep
// spaces.

import { laneKey, laneName, nameHits, textTest } from "../data/filter";
import type { Table } from "../data/model";
import { kMaxValues, type Chip, type ChipKind } from "../data/state";
import type { App } from "./app";
import { parseTime } from "./chips";

export interface Term {
  key: string;    // empty: a bare word
  op: ":" | ">" | "<";
  value: string;
  not: boolean;
}

const kKeys = ["op", "kernel", "name", "family", "module", "layer", "stack",
               "pass", "step", "stream", "shape", "line", "uid"];

// Null where it is no query of terms: one word, or a pattern.
export function parseTerms(text: string): Term[] | null {
  if (/^\/.+\/$/.test(text.trim())) return null;
  const terms: Term[] = [];
  const pattern = /(-?)(?:([a-z]+)\s*([:<>]))?("[^"]*"|\S+)/gi;
  for (const [, not, key, op, raw] of text.matchAll(pattern)) {
    terms.push({ key: (key ?? "").toLowerCase(), op: (op ?? ":") as Term["op"],
                 value: raw!.replace(/^"|"$/g, ""), not: not === "-" });
  }
  const keyed = terms.filter((term) => term.key !== "");
  return keyed.length > 0 && (terms.length > 1 || terms[0]!.not ||
    /\|/.test(terms[0]!.value) || !/^(op|name|module|shape|layer|dur|host)$/
      .test(terms[0]!.key)) ? terms : null;
}

// "3-5|9": the numbers that it means.
function numberTest(value: string): ((n: number) => boolean) | null {
  const parts = value.split("|").map((one) => /^(\d+)(?:-(\d+))?$/.exec(one));
  if (parts.some((part) => part === null)) return null;
  return (n) => parts.some((part) => n >= Number(part![1]) &&
    n <= Number(part![2] ?? part![1]));
}
// "mm|bmm": names that have one of the words.
function wordTest(value: string): (text: string) => boolean {
  const tests = value.split("|").filter((one) => one !== "").map(textTest);
  return (text) => tests.some((test) => test(text));
}

function cells(table: Table | null, column: string, key: string,
               test: (row: number) => boolean): string[] {
  const out = new Set<string>();
  for (let row = 0; table?.has(column) && row < table.rows; ++row)
    if (test(row)) out.add(table.str(row, key));
  return [...out];
}

// The chip of a term, or why there is none.
function chipOf(app: App, term: Term): Chip | string {
  const { model } = app;
  const made = (kind: ChipKind, values: string[]): Chip | string =>
    values.length === 0 ? `nothing has ${term.key}${term.op}${term.value}`
      : values.length > kMaxValues
      ? `${term.key}:${term.value} means ${values.length} values; at most ` +
        `${kMaxValues} fit` : { kind, values, not: term.not };
  const words = wordTest(term.value);
  const numbers = numberTest(term.value);
  const number = (table: string, column: string, key: string,
                  kind: ChipKind) => numbers === null
    ? `${term.key}: takes numbers, as 3-5 or 1|4`
    : made(kind, cells(model.table(table), column, key, (row) =>
        numbers(model.table(table)!.num(row, column))));
  const text = (table: string, column: string, kind: ChipKind,
                key = column, test = words) => made(kind, cells(
    model.table(table), column, key, (row) =>
      test(model.table(table)!.str(row, column))));
  if (term.key === "dur" || term.key === "start") {
    const ns = parseTime(term.value);
    if (ns === null || term.op === ":")
      return `${term.key} takes > or < and a time, as ${term.key}>1ms`;
    const at = Math.round(ns);
    if (term.key === "dur")
      return { kind: "dur", values: [term.op + String(at)], not: term.not };
    const last = Math.ceil(model.device?.last ?? at + 1) + 1;
    return { kind: "t", not: term.not, values: [term.op === ">"
      ? `${at}..${Math.max(last, at + 1)}` : `0..${Math.max(1, at)}`] };
  }
  switch (term.key) {
    case "": return { kind: "q", values: term.value.split("|"), not: term.not };
    case "op": return text("kernels", "op", "op");
    case "kernel": case "name":
      return text("kernels", "kernel", "name", "kernel",
                  (name) => nameHits(name, words));
    case "family": {
      const found = model.families.filter((one) => words(one.name) ||
        words(one.group) || words(one.title));
      return made("cat", found.map((one) => one.name));
    }
    case "module": return text("modules", "module", "mod", "module", (path) =>
      words(path.slice(path.lastIndexOf("/") + 1)));
    case "layer": return number("layers", "layer", "first_uid", "layer");
    case "stack": return text("layers", "stack", "layer", "first_uid");
    case "pass": return number("passes", "pass", "pass", "pass");
    case "step": return numbers !== null && model.table("steps")?.has("step")
      ? number("steps", "step", "name", "step") : text("steps", "name", "step");
    case "stream": return made("lane", [...model.lanes.keys()]
      .filter((lane) => numbers !== null
        ? numbers(model.lanes[lane]!.stream ?? -1)
        : words(laneName(model, lane)))
      .map((lane) => laneKey(model, lane)));
    case "shape": {
      const wanted = term.value.split(/[^0-9]+/).filter((n) => n !== "");
      return text("op_efficiency", "input_dims", "row", "first_uid", (dims) => {
        const sizes = new Set(dims.match(/\d+/g) ?? []);
        return wanted.length > 0 && wanted.every((size) => sizes.has(size));
      });
    }
    case "line": {
      const frames = model.columns("frames")?.get("name");
      const ids: string[] = [];
      for (let id = 0; frames && id < frames.length; ++id)
        if (words(model.text(frames[id]!))) ids.push(String(id));
      return made("frame", ids);
    }
    case "uid": return { kind: "uid", values: term.value.split("|")
      .filter((one) => /^\d+$/.test(one)), not: term.not };
    default: return `${term.key}: is no key; keys are ${kKeys.join(", ")}, ` +
      "dur and start";
  }
}

export interface Found { chips: Chip[]; events: number; ns: number }

// What the terms leave, or why they cannot be used.
export function resolve(app: App, terms: Term[]): Found | string {
  const chips: Chip[] = [];
  for (const term of terms) {
    const chip = chipOf(app, term);
    if (typeof chip === "string") return chip;
    chips.push(chip);
  }
  const { device } = app.model;
  if (!device) return "the file holds no device events";
  const mask = app.filter.mask(chips)!;
  let events = 0;
  let ns = 0;
  for (let row = 0; row < device.count; ++row) {
    if (!mask[row]) continue;
    ++events;
    ns += device.dur[row]!;
  }
  return { chips, events, ns };
}
