// SPDX-License-Identifier: Apache-2.0
//
// Layers: one bar per layer of each stack, by pass; two kinds of layers, or two
// chosen ones, stand beside each other kernel by kernel.

import { groupIndex } from "../data/groups";
import { layerGroupTimes, stacksOf, type LayerBar, type Stack } from
  "../data/layers";
import type { Table } from "../data/model";
import { drawBars } from "../draw/bars";
import { svgFile } from "../draw/svgfile";
import type { App, View } from "../ui/app";
import { drawLegend } from "../ui/chips";
import { kGroups } from "../ui/colors";
import { h } from "../ui/dom";
import { clean, count, time } from "../ui/format";
import { kindSection, layerSection, type Section } from "../draw/layerpairs";
import { choice } from "../ui/inputs";
import { hint, paper } from "../ui/paper";
import { drawRows } from "../ui/rows";

let sections: Section[] = [];

function passSelect(app: App, passes: Table | null): HTMLElement | null {
  if (!passes || passes.rows < 2) return null;
  const values: [string, string][] = [["", `all ${passes.rows} passes`]];
  for (let row = 0; row < Math.min(passes.rows, 2000); ++row) {
    const evidence = passes.str(row, "stage_evidence").replace(/^-$/, "");
    const parts = [`pass ${passes.str(row, "pass")}`,
      passes.str(row, "stage").replace(/^none$/, "") +
        (evidence ? ` (${clean(evidence, 20)})` : ""),
      passes.at(row, "batch") === null ? ""
        : `${passes.str(row, "batch")} requests`,
      time(passes.num(row, "kernel_time_us"))];
    values.push([passes.str(row, "pass"),
                 parts.filter((p) => p !== "").join(", ")]);
  }
  return choice(app, "layers.pass", "Pass", values);
}

function currentStacks(app: App): Stack[] {
  const { model } = app;
  const table = model.table("layers")!;
  const pass = app.option("layers.pass");
  const groups = groupIndex(model);
  // Chips of layers choose bars; they do not empty the others.
  const chips = app.state.chips.filter((chip) => chip.kind !== "layer");
  const mask = chips.length === app.state.chips.length
    ? app.selection.mask : app.filter.mask(chips);
  return stacksOf(model, layerGroupTimes(model, mask, app.filter.dur!,
      groups, kGroups.length),
    kGroups.length, (row) => pass === "" || table.str(row, "pass") === pass);
}

function isChosen(app: App, bar: LayerBar): boolean {
  return bar.uids.some((uid) => app.isChosen("layer", uid));
}

function chipsFor(app: App, bar: LayerBar) {
  const now = app.state.chips.find((c) => c.kind === "layer" && !c.not)
    ?.values ?? [];
  const on = isChosen(app, bar);
  const values = on ? now.filter((uid) => !bar.uids.includes(uid))
    : [...now, ...bar.uids];
  return values.length > 0 ? app.only("layer", ...values)
    : app.state.chips.filter((c) => c.kind !== "layer");
}

function drawStacks(app: App, box: HTMLElement): void {
  const any = app.state.chips.some((c) => c.kind === "layer");
  for (const stack of currentStacks(app)) {
    if (app.option("layers.order") === "time")
      stack.bars.sort((a, b) => b.time - a.time || a.layer - b.layer);
    const passes = Math.max(...stack.bars.map((bar) => bar.single.length));
    const picture = drawBars(stack, {
      width: Math.max(300, box.clientWidth),
      href: (bar) => app.href({ chips: chipsFor(app, bar) }),
      isChosen: (bar) => isChosen(app, bar), anyChosen: any });
    box.append(h("section", { "data-stack": stack.title },
      h("h2", {}, `${stack.bars.length} \u00d7 ${clean(stack.title, 80)} `,
        h("span", { class: "muted" }, time(stack.time) +
          (passes > 1 ? ` in ${passes} passes` : "") + `, median ` +
          `${time(stack.median)} per layer` +
          (passes > 1 ? "; bars are means over the passes" : "")),
        " ", app.button("SVG", () => svgFile(app, picture, stack.title))),
      picture));
  }
  if (box.children.length === 0)
    box.append(h("p", { class: "empty" }, "No layer holds matching work."));
}

// Tables below the bars. On paper a bar stands for each layer, and how kinds
// of layers differ kernel by kernel would fill pages.
const kMoreTables = [
  { name: "layer_types", title: "Kinds of layers", onPaper: true },
  { name: "layer_stacks", title: "Stacks", onPaper: true },
  { name: "stage_kernel_type", title: "By stage and part", onPaper: false },
  { name: "passes", title: "Passes", onPaper: true },
  { name: "layer_check", title: "By modules and by repeats", onPaper: false },
];

// Layers beside each other, and each layer as a row.
function drawComparisons(app: App, root: HTMLElement, rows: number[]): void {
  const table = app.model.table("layers")!;
  sections = [layerSection(app), kindSection(app)].filter((s) => s !== null);
  root.append(...sections.map(({ element }) => element),
    h("h2", {}, "Layers"), drawRows(app, table, { id: "layers",
      rows, all: true, note: "Of the whole trace.", cells: {
        layer: (row) => app.link(table.str(row, "layer"), { chips:
          app.toggle("layer", table.str(row, "first_uid")) }) } }));
}

export const layersView: View = {
  id: "layers",
  title: "Layers",
  filtered: true,
  missing: (model) => model.hasTable("layers") && model.hasEvents ? null
    : "No repeat of at least three equal parts was found on the device.",
  needs: () => ["layers", "passes", "layer_types", "layer_stacks", "device",
                "kernels", "orphans", "stage_kernel_type", "layer_check",
                "variant_kernels"],
  draw(app, root) {
    const table = app.model.table("layers")!;
    const pass = app.option("layers.pass");
    const rows: number[] = [];
    for (let row = 0; row < table.rows; ++row)
      if (pass === "" || table.str(row, "pass") === pass) rows.push(row);
    root.append(drawLegend(app), h("div", { class: "tools" },
      passSelect(app, app.model.table("passes")), choice(app, "layers.order",
        "Order", [["", "by index"], ["time", "by time"]]),
      h("span", { class: "muted" }, hint("Click layers to filter every view; " +
        (app.model.thinned ? "this page lacks the events to compare two. "
          : "two layers are compared kernel by kernel. ")), "The line is the " +
        "median, a dot marks a layer that waits, a dashed frame one that the " +
        "recording cut or that is unlike its neighbours.")),
      h("div", { class: "stacks" }));
    sections = [];
    if (!paper.on) drawComparisons(app, root, rows);
    for (const { name, title, onPaper } of kMoreTables) {
      const more = app.model.table(name);
      if (!more || more.rows === 0 || (paper.on && !onPaper)) continue;
      root.append(h("h2", {}, title), drawRows(app, more,
        { id: name.replace(/_/g, ""), all: name === "passes" }));
    }
    const orphans = app.model.table("orphans");
    if (orphans && orphans.rows > 0) {
      root.append(h("p", { class: "muted" }, `${count(orphans.rows)} kinds of ` +
        "kernels are in no layer", hint(": ", app.link("show them",
          app.rowsHref("orphans"))), "."));
    }
  },
  mounted(app, root) {
    const box = root.querySelector<HTMLElement>(".stacks");
    if (box) drawStacks(app, box);
    for (const section of sections) section.mount();
  },
};
