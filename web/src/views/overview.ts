// SPDX-License-Identifier: Apache-2.0
//
// The first screen: is there a problem, where, what is it worth. Sentences
// and opportunities are notes of the engine; the page only orders them.

import { groupTimes } from "../data/groups";
import type { Note } from "../data/manifest";
import type { Table } from "../data/model";
import type { App, View } from "../ui/app";
import { drawLegend } from "../ui/chips";
import { groupColor } from "../ui/colors";
import { h } from "../ui/dom";
import { clean, count, percent, time } from "../ui/format";
import { drawNotes, drawVerdicts, gapPatch } from "../ui/notes";
import { hint } from "../ui/paper";
import { drawRows } from "../ui/rows";

const kMostOpportunities = 6;
const kLowRoof = 40;  // percent
const kLeastTarget = 24;  // px

function timelineValue(app: App, type: string, column = "time_us"): number {
  const table = app.model.table("gpu_timeline");
  for (let row = 0; table && row < table.rows; ++row) {
    if (table.str(row, "type") === type && table.str(row, "device") === "all")
      return table.num(row, column);
  }
  return 0;
}

function card(value: Node | string, ...under: string[]): HTMLElement {
  return h("div", { class: "card" }, h("b", {}, value),
           h("span", {}, under.join(" ")));
}

function timeCard(app: App, type: string, words: string): HTMLElement {
  const share = timelineValue(app, type, "percent");
  return card(app.link(time(timelineValue(app, type)),
    app.rowsHref("gpu_timeline", "type", type), { "data-sum": type }),
    `${words}${type === "total_time" ? "" : ` ${share.toFixed(1)} %`}`);
}

function cards(app: App): HTMLElement {
  const { model } = app;
  const gaps = model.manifest.notes.find((n) => n.id === "device_idle")
    ?.text.match(/[\d,]+ gaps?/)?.[0];
  const box = h("div", { class: "cards" },
    timeCard(app, "total_time", "device window"),
    timeCard(app, "busy_time", "busy:"),
    timeCard(app, "idle_time", gaps ? `idle in ${gaps}:` : "idle:"));
  for (const [type, words] of [
    ["exposed_comm_time", "communication that nothing hides:"],
    ["exposed_memcpy_time", "copies that nothing hides:"]] as const) {
    if (timelineValue(app, type) > 0) box.append(timeCard(app, type, words));
  }
  if (model.manifest.trace) {
    const kernels = model.table("kernels");
    box.append(card(app.link(count(kernels?.sum("count") ?? 0),
      { view: "kernels" }, { "data-sum": "events" }),
      "device events in", count(kernels?.rows ?? 0), "groups"));
  }
  const low = lowShare(model.table("op_efficiency"));
  if (low) {
    box.append(card(app.link(low, { view: "ops", options: {
      ...app.state.options, "ops.where": `roof<${kLowRoof}` } }),
      `of op time below ${kLowRoof} % of its roof`));
  }
  const { device } = model.manifest;
  if (device) {
    box.append(card(model.hasTable("op_efficiency")
      ? app.link(device.title, { view: "roofline" }) : device.title,
      "peaks: " + (/^https?:/.test(device.source) ? "data sheet"
        : clean(device.source, 60))));
  }
  return box;
}

// Share of the time of ops with a roofline that stay below the mark.
function lowShare(ops: Table | null): string {
  let all = 0;
  let low = 0;
  for (let row = 0; ops && row < ops.rows; ++row) {
    const roof = ops.at(row, "percent_of_roofline");
    all += ops.num(row, "kernel_time_us");
    if (roof !== null && Number(roof) < kLowRoof)
      low += ops.num(row, "kernel_time_us");
  }
  return low > all / 2000 ? percent(low, all) : "";
}

// Parts of a bar that is so wide. Those too narrow to hit are no links: the
// legend below has all families.
function familyParts(app: App, pixels: number): HTMLElement[] {
  const groups = groupTimes(app.model);
  const total = groups.reduce((sum, g) => sum + g.time, 0);
  return groups.map(({ group, time: ns }) => {
    const words = `${group}: ${time(ns)}, ${percent(ns, total)}`;
    const part = pixels * ns / total < kLeastTarget
      ? h("span", { title: words })
      : app.link("", { view: "kernels", chips: app.only("fam", group) },
                 { "aria-label": words, title: words });
    part.style.width = 100 * ns / total + "%";
    part.style.background = groupColor(group);
    return part;
  });
}

function notFiltered(app: App): Node | null {
  return app.state.chips.length === 0 ? null
    : h("p", { class: "muted" }, "The sentence, the cards and the gaps are " +
        "about the whole trace; the other views follow the filter.");
}

function gaps(app: App): Node | null {
  const table = app.model.table("gaps");
  if (!table || table.rows === 0) return null;
  const rows = Array.from({ length: Math.min(8, table.rows) }, (_, i) => i);
  return h("section", {}, h("h2", {}, "Longest gaps"),
    drawRows(app, table, { id: "gaps", rows, leaveOut: ["uid"], cells: {
      dur_us: (row) => app.link(time(table.num(row, "dur_us")),
                               gapPatch(app, row)),
    }, note: table.rows > 8 ? `The longest of ${count(table.rows)}.` : "" }),
    table.rows > 8 ? h("p", {}, hint(app.link(`All ${table.rows} rows`,
      app.rowsHref("gaps")))) : null);
}

export const overviewView: View = {
  id: "overview",
  title: "Overview",
  filtered: true,
  missing: (model) => model.manifest.command === "report" ? null
    : "Only a report on a trace has an overview.",
  needs: () => ["gpu_timeline", "gaps", "op_efficiency",
                "kernels", "findings"],
  draw(app, root) {
    const { notes } = app.model.manifest;
    root.append(...drawVerdicts(app));
    const rest = notFiltered(app);
    if (rest) root.append(rest);
    root.append(cards(app));
    if (groupTimes(app.model).length > 0) {
      root.append(h("h2", {}, "Kernel time by family"),
                  h("div", { class: "bar" }), drawLegend(app));
    }
    // Findings come ranked; what only says how much there is comes behind.
    const found = (n: Note) => Number(n.evidence[0]?.table === "findings");
    const opportunities = notes.filter((n) => n.severity === "opportunity")
      .sort((a, b) => found(b) - found(a) ||
        (found(a) ? 0 : (b.worth_ns ?? 0) - (a.worth_ns ?? 0)));
    root.append(h("h2", {}, "Top opportunities"));
    if (opportunities.length === 0) {
      root.append(h("p", { class: "muted" },
        "Nothing here is worth a line: no idle time, no op with a bound " +
        "far below its time."));
    } else {
      root.append(h("p", { class: "muted" }, "What each is worth at most in " +
        "this window. They overlap: do not add them up."),
        drawNotes(app, opportunities.slice(0, kMostOpportunities)));
    }
    const warnings = notes.filter((n) => n.severity === "warning");
    if (warnings.length > 0)
      root.append(h("h2", {}, "Warnings"), drawNotes(app, warnings));
    const table = gaps(app);
    const perDevice = app.model.table("gpu_timeline");
    const two = h("div", { class: "two" });
    if (table) two.append(table);
    if (perDevice && perDevice.rows > 0) {
      two.append(h("section", {}, h("h2", {}, "Device time"),
                   drawRows(app, perDevice, { id: "gputime" })));
    }
    root.append(two);
  },
  mounted(app, root) {
    const bar = root.querySelector<HTMLElement>(".bar");
    bar?.append(...familyParts(app, bar.clientWidth));
  },
};
