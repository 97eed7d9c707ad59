// SPDX-License-Identifier: Apache-2.0
//
// The filter as chips, and the legend that is the filter of families.

import { groupTimes } from "../data/groups";
import { shortName } from "../data/names";
import { frameName } from "../data/stacks";
import { parseRange, parseRow, type Chip } from "../data/state";
import { needsSingles } from "../data/thinned";
import type { App } from "./app";
import { groupColor } from "./colors";
import { h } from "./dom";
import { clean, count, kernelName, percent, shapes, time } from "./format";

const kNames: Record<Chip["kind"], string> = {
  q: "text", fam: "family", cat: "category", name: "kernel", op: "op",
  row: "op and shapes", mod: "module", layer: "layer", pass: "pass",
  stage: "stage", trace: "trace", lane: "stream", step: "step", of: "row",
  frame: "called from", t: "time", dur: "length", uid: "event",
};

export function chipName(chip: Chip): string {
  return (chip.not ? "not " : "") + kNames[chip.kind];
}

// A value as a person knows it.
export function chipText(app: App, chip: Chip, value: string): string {
  const { model } = app;
  if (chip.kind === "t") {
    const range = parseRange(value);
    return range ? `${time(range[0])} to ${time(range[1])}` : value;
  }
  if (chip.kind === "dur")
    return `${value[0] === ">" ? "above" : "below"} ${time(Number(value.slice(1)))}`;
  if (chip.kind === "row") {
    const ops = model.table("op_efficiency");
    const row = ops?.rowWhere("first_uid", Number(value)) ?? -1;
    if (value === "none") return "in no op";
    return ops && row >= 0 ? clean(ops.str(row, "op"), 60) + " " +
      shapes(ops.str(row, "input_dims")).slice(0, 60) : value;
  }
  if (chip.kind === "layer") {
    const layers = model.table("layers");
    const row = layers?.rowWhere("first_uid", Number(value)) ?? -1;
    return layers && row >= 0 ? `${clean(layers.str(row, "stack"), 40)} ` +
      `${layers.str(row, "layer")} of pass ${layers.str(row, "pass")}` : value;
  }
  if (chip.kind === "frame")
    return clean(frameName(model, Number(value)), 80) || value;
  if (chip.kind === "of") return rowText(app, value);
  return kernelName(value, 60);
}

// A row of a table by its first text.
function rowText(app: App, value: string): string {
  const [name, row] = parseRow(value)!;
  const table = app.model.table(name);
  if (!table || row >= table.rows) return value;
  const named = table.info.columns.filter((c) => c.type === "text");
  const texts = named.length > 0
    ? named.map((c) => table.str(row, c.name)).filter((text) => text !== "")
    : table.info.columns.map((c) => `${c.name} ${table.str(row, c.name)}`);
  return `${name} ${row + 1}: ` +
    clean(texts.slice(0, 2).map(shortName).join(" "), 60);
}

// What chips and their texts read.
export const kChipTables = ["device", "kernels", "op_efficiency", "modules",
  "layers", "passes", "steps", "variant_kernels", "graph_attribution",
  "family_rules", "#frames", "diff_ops",
  "diff_kernels", "diff_by", "diff_causes", "collectives", "rank_steps"];

const kMostTexts = 4;
function valueTexts(app: App, chip: Chip): string[] {
  const texts = chip.values.slice(0, kMostTexts)
    .map((value) => chipText(app, chip, value));
  if (chip.values.length > kMostTexts)
    texts.push(`${chip.values.length - kMostTexts} more`);
  return texts;
}

// A chip as a line of text: "not family gemm, norm".
export function filterText(app: App, chip: Chip): string {
  return `${chipName(chip)} ${valueTexts(app, chip).join(", ")}`;
}

// Two traces are no sum: what passes in each stands for itself.
export function matchingWords(app: App, all: number): string {
  const { model, selection } = app;
  const { device } = model;
  if (model.manifest.command !== "diff" || model.traces.length !== 2 || !device) {
    return `${count(selection.count)} of ${count(all)} device events, ` +
      time(selection.time);
  }
  const lanes = app.filter.by("lane", model.lanes.length);
  return model.traces.map((trace, t) => {
    let [events, passing, ns] = [0, 0, 0];
    for (const [i, lane] of model.lanes.entries()) {
      if ((lane.trace ?? 0) !== t) continue;
      events += lane.end - lane.begin;
      passing += lanes.count[i]!;
      ns += lanes.time[i]!;
    }
    return `${trace.name}: ${count(passing)} of ${count(events)} device ` +
      `events, ${time(ns)}`;
  }).join("; ");
}

export function drawChips(app: App): HTMLElement {
  const { chips } = app.state;
  const row = h("div", { class: "chips", role: "group",
                         "aria-label": "Filter" });
  for (const chip of chips) {
    const others = chips.filter((c) => c !== chip);
    const flipped = { ...chip, not: !chip.not };
    const texts = valueTexts(app, chip);
    const words = chipName(chip);
    row.append(h("span", { class: "chip" + (chip.not ? " not" : "") },
      app.button(words, () => app.go({ chips: [...others, flipped] }),
                 { title: chip.not ? "Keep only these" : "Leave these out",
                   class: "kind", "data-k": "chip.not." + chip.kind }),
      chip.kind === "t" ? timeInput(app, chip, others)
        : h("b", {}, texts.join(", ")),
      app.button("\u00d7", () => app.go({ chips: others }),
                 { "aria-label": `Remove ${words} ${texts.join(", ")}`,
                   class: "close", "data-k": "chip.x." + chip.kind })));
  }
  const all = app.model.device?.total ?? 0;
  row.append(h("span", { class: "muted", id: "matching" },
    matchingWords(app, all)));
  const only = chips.filter((c) => needsSingles(app.model.thinned, c.kind));
  if (only.length > 0 && !app.filter.complete) {
    row.append(h("span", { class: "muted", id: "singles" },
      `The filter by ${only.map((c) => kNames[c.kind]).join(" and ")} sees ` +
      `the ${count(app.model.device!.count)} single events of this page`));
  }
  row.append(app.button("Clear all", () => app.go({ chips: [] }),
                        { "data-k": "chip.clear" }));
  return row;
}

// Of a page that does not hold all events: how many of those that numbers count
// their links can lead to. Null where they lead to all.
export function drawSingles(app: App, filters: boolean): HTMLElement | null {
  const { model, selection, state } = app;
  if (!model.thinned) return null;
  const filtered = filters && state.chips.length > 0;
  const all = filtered ? selection.count
    : model.table("kernels")?.sum("count") ?? 0;
  const held = filtered ? singlesThatPass(app)
    : model.manifest.blocks.find((b) => b.name === "device")?.rows ?? 0;
  return held === all ? null : h("p", { class: "muted", id: "held" },
    `Numbers count all ${count(all)} ${filtered ? "events that pass the filter"
      : "device events"}. One by one this page holds ${count(held)} of them: ` +
    "links to events lead to those." + (app.served
      ? " The timeline shows all of them." : ""));
}

function singlesThatPass(app: App): number {
  const singles = app.model.device!.count;
  const { mask } = app.selection;
  let passing = 0;
  for (let i = 0; i < singles; ++i) passing += mask ? mask[i]! : 1;
  return passing;
}

// "170.0 ms to 173.5 ms", to be typed over.
function timeInput(app: App, chip: Chip, others: Chip[]): HTMLElement {
  const input = h("input", {
    type: "text", class: "range", "aria-label": "Time range",
    "data-k": "chip.t", size: 24,
    change: () => {
      const ends = input.value.split(/to|\.\.|-/).map(parseTime);
      if (ends.length === 2 && ends[0] !== null && ends[1] !== null &&
          ends[0]! < ends[1]!) {
        app.go({ chips: [...others, { ...chip,
          values: [`${Math.round(ends[0]!)}..${Math.round(ends[1]!)}`] }] });
      } else {
        app.say("A time range looks like 170.0 ms to 173.5 ms");
        input.value = chipText(app, chip, chip.values[0]!);
      }
    },
  });
  input.value = chip.values.map((v) => chipText(app, chip, v)).join(", ");
  return input;
}

// "1.5 ms" in ns.
export function parseTime(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d*)?)\s*(ns|us|\u00b5s|ms|s)?\s*$/.exec(text);
  if (!match) return null;
  const unit = { ns: 1, us: 1e3, "\u00b5s": 1e3, ms: 1e6, s: 1e9 };
  return Number(match[1]) *
    (match[2] ? unit[match[2] as keyof typeof unit] : 1);
}

export function swatch(group: string): HTMLElement {
  const mark = h("span", { class: "swatch", "aria-hidden": "true" });
  mark.style.background = groupColor(group);
  return mark;
}

// Groups by their share of all kernel time; a click filters every view.
// Families in the order of the whole trace; their times under all chips but
// those of families, which the legend itself sets.
function shownTimes(app: App): { group: string; time: number }[] {
  const { model } = app;
  const groups = groupTimes(model);
  const others = app.state.chips.filter(({ kind }) => kind !== "fam");
  if (others.length === 0 || !model.device) return groups;
  const sums = new Map<string, number>();
  for (const [i, ns] of app.filter.byFamily(others).entries()) {
    const { group } = model.families[i]!;
    sums.set(group, (sums.get(group) ?? 0) + ns);
  }
  return groups.map(({ group }) => ({ group, time: sums.get(group) ?? 0 }));
}

export function drawLegend(app: App): HTMLElement {
  const groups = shownTimes(app);
  const total = groups.reduce((sum, g) => sum + g.time, 0);
  const any = app.state.chips.some((c) => c.kind === "fam" && !c.not);
  return h("div", { class: "legend", role: "group",
                    "aria-label": "Families of kernels" },
    ...groups.map(({ group, time: ns }) => {
      const on = app.isChosen("fam", group);
      return app.button("", () => app.go({ chips: app.toggle("fam", group) }), {
        "aria-pressed": on ? "true" : "false", "data-k": "fam." + group,
        class: any && !on ? "off" : "", title: time(ns),
      });
    }).map((button, i) => {
      const { group, time: ns } = groups[i]!;
      button.append(swatch(group), `${group} ${percent(ns, total)}`);
      return button;
    }));
}
