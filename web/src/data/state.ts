// SPDX-License-Identifier: Apache-2.0
//
// The whole state of the page and its form in the address. The address is
// untrusted: what does not fit is dropped and counted, never an error.

export const kChipKinds = ["q", "fam", "cat", "name", "op", "row", "mod",
  "layer", "pass", "stage", "trace", "lane", "step", "of", "frame", "t", "dur", "uid"] as
  const;
export type ChipKind = typeof kChipKinds[number];

// One condition: any of the values, or none of them.
export interface Chip {
  kind: ChipKind;
  values: string[];
  not: boolean;
}

export interface State {
  view: string;
  chips: Chip[];
  zoom: [number, number] | null;  // ns since the first event
  selected: string;               // number of an event in the input, or
                                  // "gap." and that of the one that ends it
  theme: "" | "light" | "dark";
  // Settings of single views: sorting, switches, text filters.
  options: Record<string, string>;
}

export const kStart: State = {
  view: "overview", chips: [], zoom: null, selected: "", theme: "",
  options: {},
};

export const kMaxValues = 200;
const kMaxText = 4000;
const kOption = /^[a-z]{1,12}(\.[a-z]{1,12})?$/;

// Lengths of events: ">1000" or "<1000", in ns.
export function parseBound(text: string): [number, number] | null {
  const match = /^([<>])(\d{1,16})$/.exec(text);
  if (!match) return null;
  return match[1] === ">" ? [Number(match[2]) + 1, Infinity]
    : [0, Number(match[2]) - 1];
}

export function parseRange(text: string): [number, number] | null {
  const match = /^(-?\d{1,16})\.\.(-?\d{1,16})$/.exec(text);
  if (!match) return null;
  const range: [number, number] = [Number(match[1]), Number(match[2])];
  return range[0] < range[1] ? range : null;
}

// Rows of a table, counted from 0: "diff_ops.12".
export function parseRow(text: string): [string, number] | null {
  const match = /^([a-z_]{1,40})\.(\d{1,9})$/.exec(text);
  return match ? [match[1]!, Number(match[2])] : null;
}

function encode(text: string): string {
  return encodeURIComponent(text).replace(/%20/g, "+").replace(/%3A/g, ":")
    .replace(/%2F/g, "/");
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text.replace(/\+/g, "%20"));
  } catch {
    return null;
  }
}

export function toHash(state: State): string {
  const parts = ["v=" + encode(state.view)];
  for (const chip of state.chips) {
    parts.push((chip.not ? "not." : "") + chip.kind + "=" +
               chip.values.map(encode).join(","));
  }
  if (state.zoom)
    parts.push(`z=${Math.round(state.zoom[0])}..${Math.round(state.zoom[1])}`);
  if (state.selected) parts.push("sel=" + encode(state.selected));
  if (state.theme) parts.push("theme=" + state.theme);
  for (const key of Object.keys(state.options).sort()) {
    const value = state.options[key];
    if (value) parts.push("o." + key + "=" + encode(value));
  }
  return "#" + parts.join("&");
}

// The state of an address, and how many parts of it were dropped.
export function fromHash(hash: string, views: Set<string>):
    { state: State; dropped: number } {
  const state: State = { ...kStart, chips: [], options: {} };
  let dropped = 0;
  for (const part of hash.replace(/^#/, "").split("&")) {
    if (part === "") continue;
    const eq = part.indexOf("=");
    const key = part.slice(0, Math.max(eq, 0));
    const raw = part.slice(eq + 1);
    if (eq < 1 || raw.length > kMaxText || !readPart(state, key, raw, views))
      ++dropped;
  }
  return { state, dropped };
}

function readPart(state: State, key: string, raw: string,
                  views: Set<string>): boolean {
  const text = decode(raw);
  if (text === null) return false;
  if (key === "v") {
    if (!views.has(text)) return false;
    state.view = text;
    return true;
  }
  if (key === "z") {
    state.zoom = parseRange(text);
    return state.zoom !== null;
  }
  if (key === "sel") {
    if (!/^(gap\.)?\d{1,10}$/.test(text)) return false;
    state.selected = text;
    return true;
  }
  if (key === "theme") {
    if (text !== "light" && text !== "dark") return false;
    state.theme = text;
    return true;
  }
  if (key.startsWith("o.")) {
    if (!kOption.test(key.slice(2))) return false;
    state.options[key.slice(2)] = text;
    return true;
  }
  const not = key.startsWith("not.");
  const kind = (not ? key.slice(4) : key) as ChipKind;
  if (!kChipKinds.includes(kind)) return false;
  const values: string[] = [];
  for (const one of raw.split(",").slice(0, kMaxValues)) {
    const value = decode(one);
    if (value === null || value === "") continue;
    if (kind === "t" && !parseRange(value)) continue;
    if (kind === "dur" && !parseBound(value)) continue;
    if (kind === "of" && !parseRow(value)) continue;
    values.push(value);
  }
  if (values.length === 0) return false;
  state.chips.push({ kind, values, not });
  return true;
}

// --- changes ---

export function withChip(chips: Chip[], kind: ChipKind, values: string[],
                         not = false): Chip[] {
  const others = chips.filter((c) => c.kind !== kind || c.not !== not);
  return values.length > 0 ? [...others, { kind, values, not }] : others;
}

// Adds the value to its chip, or takes it away.
export function toggled(chips: Chip[], kind: ChipKind, value: string): Chip[] {
  const now = chips.find((c) => c.kind === kind && !c.not)?.values ?? [];
  return withChip(chips, kind, now.includes(value)
    ? now.filter((v) => v !== value) : [...now, value]);
}
