// SPDX-License-Identifier: Apache-2.0
//
// Layers beside each other, kernel by kernel: two kinds of a stack by their
// means, and two layers that were chosen.

import { kindsOf, layersOf, partnerOf, placesOf, type Kind } from
  "../data/kinds";
import type { Table } from "../data/model";
import { drawPair, sumOf, type PairLine, type Part } from "./pair";
import { svgFile } from "./svgfile";
import type { App } from "../ui/app";
import { rowEvents } from "../ui/compare";
import { h } from "../ui/dom";
import { nameIds, showEvent } from "../ui/events";
import { clean, count, time } from "../ui/format";
import { pairTable } from "./pairtable";

// A drawing is made when its box has a width.
export interface Section {
  element: HTMLElement;
  mount(): void;
}

// Names of both in the drawing, and in the heads of the table.
interface Names {
  titles: [string, string];
  shorts: [string, string];
}

function section(app: App, id: string, { titles, shorts }: Names,
                 lines: PairLine[], heading: string, ...tools: Node[]):
    Section {
  const box = h("div", { class: "pairs" });
  const caption = `${titles[0]} and ${titles[1]}, kernel by kernel`;
  const element = h("section", { "data-pair": id }, h("h2", {}, heading),
    h("div", { class: "tools" }, ...tools, app.button("SVG", () =>
      svgFile(app, box.querySelector("svg"), caption), { "data-k": id + ".svg" }),
    h("span", { class: "muted" }, "Bands join what does the same in both.")),
    box, pairTable(app, id, caption, shorts, lines));
  return { element, mount() {
    if (sumOf(lines, "a") + sumOf(lines, "b") === 0) return;
    box.replaceChildren(drawPair({ id, titles, lines,
      width: Math.max(280, box.clientWidth),
      href: (part) => app.href(part.patch) }));
  } };
}

// Both halves of each place, by place.
function joined(a: Map<number, Part>, b: Map<number, Part>): PairLine[] {
  return [...new Set([...a.keys(), ...b.keys()])].sort((x, y) => x - y)
    .map((place) => ({ place, a: a.get(place) ?? null,
                       b: b.get(place) ?? null }));
}

function groupOf(app: App, family: string): string {
  return app.model.families.find((f) => f.name === family)?.group ?? "other";
}

// --- two kinds ---

function shortTitle(kind: Kind): string {
  return kind.variant + (kind.stage === "none" ? ""
    : ` ${clean(kind.stage, 20)}`);
}
function kindTitle(kind: Kind): string {
  return `${clean(kind.stack, 60)} ${shortTitle(kind)}`;
}

// Mean time per layer of each place. Layers without any event that passes the
// filter do not count.
function kindParts(app: App, kind: Kind): { parts: Map<number, Part>;
                                            layers: number } {
  const table = app.model.table("variant_kernels")!;
  const { time: sums } = app.filter.by("place", table.rows + 1);
  const layers = layersOf(app.model, kind, app.selection.mask);
  const parts = new Map<number, Part>();
  for (const row of placesOf(app.model, kind)) {
    const sum = sums[row + 1]!;
    if (sum === 0 || layers === 0) continue;
    parts.set(table.num(row, "place"), { kernel: table.str(row, "kernel"),
      family: table.str(row, "family"),
      group: groupOf(app, table.str(row, "family")), ns: sum / layers,
      patch: rowEvents(app, "variant_kernels", row) });
  }
  return { parts, layers };
}

function kindSelect(app: App, side: "a" | "b", kinds: Kind[],
                    chosen: Kind): HTMLElement {
  const select = h("select", {
    "aria-label": side === "a" ? "Kind of layers" : "Beside it",
    "data-k": "layers." + side,
    change: () => app.go(app.withOption("layers." + side, select.value)) },
    ...kinds.map((kind) => h("option", { value: kind.key },
      `${kindTitle(kind)}: ${count(kind.layers)} layers, ${time(kind.time)}`)));
  select.value = chosen.key;
  return h("span", { class: "chooser" }, select);
}

export function kindSection(app: App): Section | null {
  const kinds = kindsOf(app.model);
  const table = app.model.table("variant_kernels");
  if (kinds.length === 0 || !table) return null;
  const find = (side: string) => kinds.find((kind) =>
    kind.key === app.option("layers." + side));
  const a = find("a") ?? kinds[0]!;
  const wanted = find("b");
  const b = wanted && wanted !== a && wanted.stack === a.stack ? wanted
    : partnerOf(kinds, a);
  const [left, right] = [kindParts(app, a), kindParts(app, b)];
  const others = kinds.filter((kind) => kind.stack === a.stack && kind !== a);
  return section(app, "kinds", { titles: [kindTitle(a), kindTitle(b)],
    shorts: [shortTitle(a), shortTitle(b)] }, joined(left.parts, right.parts),
    "Kinds of layers side by side", kindSelect(app, "a", kinds, a),
    kindSelect(app, "b", others, b), h("span", { class: "muted" },
      `Mean of ${count(left.layers)} and of ${count(right.layers)} layers.`));
}

// --- two layers ---

// Two chosen rows of the table; of more those of the pass in view.
function chosenPair(app: App, table: Table): [number, number] | null {
  const chosen = new Set(app.state.chips.find((c) => c.kind === "layer" &&
                                              !c.not)?.values);
  const rows = Array.from({ length: table.rows }, (_, row) => row)
    .filter((row) => chosen.has(table.str(row, "first_uid")));
  const pass = app.option("layers.pass") ||
    (app.model.table("passes")?.str(0, "pass") ?? "");
  const pair = rows.length === 2 ? rows
    : rows.filter((row) => table.str(row, "pass") === pass);
  return pair.length === 2 ? [pair[0]!, pair[1]!] : null;
}

// The events of a layer by place; by position where it has no places, or not
// those of the other layer.
function layerParts(app: App, row: number, byPlace: boolean):
    Map<number, Part> {
  const { model } = app;
  const device = model.device!;
  const table = model.table("variant_kernels");
  const mask = app.filter.mask(app.state.chips.filter((c) =>
    c.kind !== "layer"));
  const events: number[] = [];
  for (let i = 0; i < device.count; ++i)
    if (device.layer[i] === row + 1) events.push(i);
  events.sort((a, b) => device.start[a]! - device.start[b]! || a - b);
  const names = nameIds(app);
  const parts = new Map<number, Part>();
  for (const [position, i] of events.entries()) {
    if (mask && !mask[i]) continue;
    const family = model.families[device.family[i]!]!;
    const place = byPlace ? table!.num(device.place[i]! - 1, "place")
      : position;
    parts.set(place, { kernel: model.text(names(i)), family: family.name,
      group: family.group, ns: device.dur[i]!,
      patch: showEvent(app, device.uid[i]!) });
  }
  return parts;
}

function hasPlaces(app: App, row: number): boolean {
  const device = app.model.device!;
  for (let i = 0; i < device.count; ++i)
    if (device.layer[i] === row + 1 && device.place[i] === 0) return false;
  return true;
}

export function layerSection(app: App): Section | null {
  const table = app.model.table("layers")!;
  const pair = chosenPair(app, table);
  // Single events of a layer may not be in the page.
  if (!pair || app.model.device!.merged) return null;
  const [a, b] = pair;
  const byPlace = table.str(a, "stack") === table.str(b, "stack") &&
    hasPlaces(app, a) && hasPlaces(app, b);
  const title = (row: number) => `${clean(table.str(row, "stack"), 40)} ` +
    `${table.str(row, "layer")} of pass ${table.str(row, "pass")}`;
  const short = (row: number) => `${table.str(row, "layer")} of ` +
    `pass ${table.str(row, "pass")}`;
  return section(app, "compare", { titles: [title(a), title(b)],
    shorts: [short(a), short(b)] }, joined(layerParts(app, a, byPlace),
    layerParts(app, b, byPlace)),
    `${title(a)} and ${title(b)}, kernel by kernel`);
}
