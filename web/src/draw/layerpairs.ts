// SPDX-License-Identifier: Apache-2.0
//
// Layers beside each other, kernel by kernel: two kinds of a stack by their
// means, and two layers that were chosen.

import { apart } from "../data/apart";
import { allKinds, kindOfLayer, kindsOf, layersOf, partnerOf, placesOf,
  rowsOfKind, sameStack, type Kind } from "../data/kinds";
import type { Table } from "../data/model";
import { drawPair, sumOf, type PairLine, type Part } from "./pair";
import { svgFile } from "./svgfile";
import type { App } from "../ui/app";
import { rowEvents } from "../ui/compare";
import { h } from "../ui/dom";
import { nameIds, showEvent } from "../ui/events";
import { clean, count, kernelName, percent, time } from "../ui/format";
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
function kindTitle(app: App, kind: Kind): string {
  const twins = [...new Set(allKinds(app.model)
    .filter((other) => other.stack === kind.stack)
    .map((other) => other.module))];
  const where = apart(twins)[twins.indexOf(kind.module)] ?? "";
  return `${clean(kind.stack, 60)} ${shortTitle(kind)}` +
    (twins.length > 1 && where ? ` in ${clean(where, 60)}` : "");
}

// Chips of layers choose bars; they empty no kind.
function withoutLayers(app: App) {
  return app.state.chips.filter((chip) => chip.kind !== "layer");
}

// Time of each place: what is in a page one by one.
function placeTimes(app: App, size: number, mask: Uint8Array | null):
    Float64Array {
  const sums = new Float64Array(size);
  const device = app.model.device!;
  if (device.merged) return app.filter.by("place", size).time;
  const dur = app.filter.dur!;
  for (let i = 0; i < device.rows; ++i)
    if (!mask || mask[i]) sums[device.place[i]!]! += dur[i]!;
  return sums;
}

// Mean time per layer of each place. Layers without any event that passes the
// filter do not count.
function kindParts(app: App, kind: Kind): { parts: Map<number, Part>;
                                            layers: number } {
  const table = app.model.table("variant_kernels")!;
  const chips = withoutLayers(app);
  const chosen = chips.length !== app.state.chips.length;
  const mask = chosen ? app.filter.mask(chips) : app.selection.mask;
  const sums = chosen ? placeTimes(app, table.rows + 1, mask)
    : app.filter.by("place", table.rows + 1).time;
  const layers = layersOf(app.model, kind, mask);
  const parts = new Map<number, Part>();
  for (const row of placesOf(app.model, kind)) {
    const sum = sums[row + 1]!;
    if (sum === 0 || layers === 0) continue;
    parts.set(table.num(row, "position"), { kernel: table.str(row, "kernel"),
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
      `${kindTitle(app, kind)}: ${count(kind.layers)} layers, ${time(kind.time)}`)));
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
  const b = wanted && wanted !== a && sameStack(wanted, a) ? wanted
    : partnerOf(kinds, a);
  const [left, right] = [kindParts(app, a), kindParts(app, b)];
  const others = kinds.filter((kind) => sameStack(kind, a) && kind !== a);
  return section(app, "kinds", { titles: [kindTitle(app, a), kindTitle(app, b)],
    shorts: [shortTitle(a), shortTitle(b)] }, joined(left.parts, right.parts),
    "Kinds of layers side by side", kindSelect(app, "a", kinds, a),
    kindSelect(app, "b", others, b), h("span", { class: "muted" },
      `Mean of ${count(left.layers)} and of ${count(right.layers)} layers.`));
}

// --- two layers ---

// Chosen rows of the table: one or two; of more those of the pass in view.
function chosenRows(app: App, table: Table): number[] {
  const chosen = new Set(app.state.chips.find((c) => c.kind === "layer" &&
                                              !c.not)?.values);
  const rows = Array.from({ length: table.rows }, (_, row) => row)
    .filter((row) => chosen.has(table.str(row, "first_uid")));
  const pass = app.option("layers.pass") ||
    (app.model.table("passes")?.str(0, "pass") ?? "");
  const few = rows.length <= 2 ? rows
    : rows.filter((row) => table.str(row, "pass") === pass);
  return few.length <= 2 ? few : [];
}

// The layer in the middle of those of the same kind.
function medianRow(app: App, table: Table, row: number):
    { row: number; layers: number } | null {
  const kinds = allKinds(app.model);
  const kind = kindOfLayer(kinds, table, row);
  if (!kind) return null;
  const rows = rowsOfKind(kinds, kind, table);
  return { row: rows[(rows.length - 1) >> 1]!, layers: rows.length };
}

const kMostSaid = 3;

// "1.2 ms (20 %) longer than the median layer of its kind: +1 ms gemm ..."
function differenceWords(lines: PairLine[]): string {
  const [before, now] = [sumOf(lines, "a"), sumOf(lines, "b")];
  const whole = now - before;
  const signed = (ns: number) => (ns < 0 ? "\u2212" : "+") + time(Math.abs(ns));
  const parts = lines.map((line) => ({
    ns: (line.b?.ns ?? 0) - (line.a?.ns ?? 0),
    name: kernelName((line.b ?? line.a)!.kernel, 50) }))
    .filter(({ ns }) => ns !== 0).sort((x, y) => Math.abs(y.ns) - Math.abs(x.ns));
  const rest = parts.slice(kMostSaid);
  const said = parts.slice(0, kMostSaid)
    .map(({ ns, name }) => `${signed(ns)} ${name}`);
  if (rest.length > 0) {
    said.push(`${signed(rest.reduce((sum, { ns }) => sum + ns, 0))} in ` +
              `${count(rest.length)} others`);
  }
  return `${time(now)}, ` + (whole === 0 ? "as long as"
    : `${time(Math.abs(whole))} (${percent(Math.abs(whole), before)}) ` +
      `${whole > 0 ? "longer" : "shorter"} than`) +
    " the median layer of its kind" + (said.length > 0
      ? `: ${said.join(", ")}.` : ".");
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
    const place = byPlace ? table!.num(device.place[i]! - 1, "position")
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
  const chosen = chosenRows(app, table);
  // Single events of a layer may not be in the page.
  if (chosen.length === 0 || app.model.device!.merged) return null;
  const median = chosen.length === 1 ? medianRow(app, table, chosen[0]!) : null;
  const a = median ? median.row : chosen[0]!;
  const b = chosen.at(-1)!;
  if (chosen.length === 1 && (!median || median.layers < 2)) return null;
  const byPlace = table.str(a, "stack") === table.str(b, "stack") &&
    hasPlaces(app, a) && hasPlaces(app, b);
  const title = (row: number) => `${clean(table.str(row, "stack"), 40)} ` +
    `${table.str(row, "layer")} of pass ${table.str(row, "pass")}`;
  const short = (row: number) => `${table.str(row, "layer")} of ` +
    `pass ${table.str(row, "pass")}`;
  const lines = joined(layerParts(app, a, byPlace),
                       layerParts(app, b, byPlace));
  if (!median) {
    return section(app, "compare", { titles: [title(a), title(b)],
      shorts: [short(a), short(b)] }, lines,
      `${title(a)} and ${title(b)}, kernel by kernel`);
  }
  if (a === b) {
    return { element: h("section", { "data-pair": "compare" },
      h("h2", {}, title(b)), h("p", {}, `${time(sumOf(lines, "b"))}: this is ` +
        `the median of the ${count(median.layers)} layers of its kind.`)),
      mount() {} };
  }
  return section(app, "compare", {
    titles: [`median of ${count(median.layers)} of its kind: ${title(a)}`,
             title(b)], shorts: ["median", short(b)] }, lines,
    `${title(b)} and the median layer of its kind`,
    h("p", { class: "difference" }, differenceWords(lines)));
}
