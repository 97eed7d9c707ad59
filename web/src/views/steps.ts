// SPDX-License-Identifier: Apache-2.0
//
// Steps: where the time of each went, as a stacked bar. A chosen step stands
// beside the median one, two beside each other, cause by cause.

import { compareSteps, kStepParts, medianStep, partsOfStep, stepDevices,
         stepRows, stepSpan, stepTime, usualStep, type StepCause } from
  "../data/steps";
import { shortName } from "../data/names";
import { parseRow } from "../data/state";
import type { Table } from "../data/model";
import { drawStepBars, kStepColors, stepName } from "../draw/stepbars";
import { svgFile } from "../draw/svgfile";
import type { App, Patch, View } from "../ui/app";
import { drawCauses, type Cause } from "../ui/causes";
import { deltaText, rowEvents } from "../ui/compare";
import { h } from "../ui/dom";
import { clean, count, time } from "../ui/format";
import { gapWords, showGap } from "../ui/gaps";
import { choice } from "../ui/inputs";
import { hint, paper } from "../ui/paper";
import { drawRows } from "../ui/rows";

const kMostBars = 400;

function deviceOf(app: App, devices: string[]): string {
  const wanted = app.option("steps.device");
  return devices.includes(wanted) ? wanted : devices[0] ?? "";
}

// Chosen rows of the table, at most two, in the order of the clicks.
function chosenRows(app: App, rows: number[]): number[] {
  return [...new Set(app.option("steps.pick").split(",")
    .map((text) => parseRow("steps." + text)?.[1] ?? -1))]
    .filter((row) => rows.includes(row)).slice(0, 2);
}

function pickPatch(app: App, chosen: number[], row: number): Patch {
  return app.withOption("steps.pick", (chosen.includes(row)
    ? chosen.filter((other) => other !== row) : [...chosen.slice(-1), row])
    .join(","));
}

function legend(): HTMLElement {
  return h("div", { class: "legend" }, ...kStepParts.map((part, i) => {
    const mark = h("span", { class: "swatch", "aria-hidden": "true" });
    mark.style.background = kStepColors[i]!;
    if (kStepColors[i] === "none") mark.style.outline = "1px dashed var(--muted)";
    return h("span", {}, mark, part, " ");
  }));
}

// --- two steps ---

// The timeline with the kernels of a cause in one step, and that step.
function causePatch(app: App, cause: StepCause, row: number): Patch {
  const span = stepSpan(app.model, row);
  const room = span ? (span.last - span.from) * 0.02 : 0;
  return { ...rowEvents(app, "steps", row),
    zoom: span ? [Math.round(span.from - room), Math.round(span.last + room)]
      : null,
    chips: [...rowEvents(app, "steps", row).chips!.filter((chip) =>
      chip.kind !== "name" && chip.kind !== "op"),
    { kind: "name", values: [cause.name], not: false },
    ...cause.op ? [{ kind: "op" as const, values: [cause.op], not: false }]
      : []] };
}

function causeRow(app: App, cause: StepCause, rows: [number, number]): Cause {
  const { kind, ns } = cause;
  const worst = ns[1] >= ns[0] ? 1 : 0;
  const gap = cause.longest[worst] ?? cause.longest[1 - worst];
  const name = cause.name || "(no name)";
  const patchOf = (side: number): Patch | null => ns[side]! === 0 ? null
    : kind === "kernel" ? causePatch(app, cause, rows[side]!)
    : cause.longest[side] ? showGap(app, cause.longest[side]!) : null;
  return {
    name: kind === "kernel" ? name : kind === "idle" ? `idle before ${shortName(name)}`
      : app.model.thinned ? "several streams at once, and idle time"
      : "several streams at once",
    detail: kind === "kernel" ? cause.op
      : gap ? `longest ${gapWords(app, gap)}` : "",
    badge: kind === "overlap" ? ""
      : cause.count[1] === 0 ? "only in A" : cause.count[0] === 0 ? "only in B"
      : kind === "idle" ? "idle" : "",
    a: ns[0], b: ns[1],
    counts: kind === "overlap" ? null : cause.count,
    link: (text, side) => {
      const patch = patchOf(side === "A" ? 0 : side === "B" ? 1 : worst) ??
        (side === "" ? patchOf(1 - worst) : null);
      return patch ? app.link(text, patch) : text;
    },
  };
}

// What stands beside what; `alike` steps are behind a usual one.
function pairOf(app: App, rows: number[], chosen: number[]):
    { pair: [number, number]; alike: number | null } | null {
  if (chosen.length === 0 || rows.length < 2) return null;
  if (chosen.length === 2)
    return { pair: [chosen[0]!, chosen[1]!], alike: null };
  const usual = usualStep(app.model, rows, chosen[0]!);
  return { pair: [usual.row, chosen[0]!], alike: usual.alike };
}

function comparison(app: App, table: Table, { pair, alike }:
    NonNullable<ReturnType<typeof pairOf>>): HTMLElement {
  const totals = pair.map((row) => stepTime(table, row)) as [number, number];
  const parts = pair.map((row) => partsOfStep(table, row));
  const changes = kStepParts.flatMap((part, i) => {
    const ns = parts[1]![i]! - parts[0]![i]!;
    return ns === 0 ? [] : [`${part} ${deltaText(ns)}`];
  });
  const names = pair.map((row) => stepName(table, row));
  const twins = names[0] === names[1];
  const titles = pair.map((row, i) => `${"AB"[i]}: ` + clean(names[i]!, 40) +
    (twins ? ` (${table.str(row, "step")})` : "")) as [string, string];
  const said = totals[0] === totals[1] ? "takes the same time as"
    : `takes ${time(Math.abs(totals[1] - totals[0]))} ` +
      `${totals[1] > totals[0] ? "more" : "less"} than`;
  const sentence = h("p", { class: "second", "data-steps": "compare" },
    h("b", {}, `${titles[1]} ${said} ${titles[0]}`),
    (alike === null ? "" : alike > 1
      ? `, the median of the ${count(alike)} others with the same kernels`
      : alike === 1 ? ", the only other one with the same kernels"
      : ", the median of the others") +
    (changes.length > 0 ? `: ${changes.join(", ")}.` : "."));
  const section = h("section", {}, h("h2", {}, "Two steps"), sentence);
  if (app.model.thinned?.dropped.includes("step")) {
    section.append(h("p", { class: "muted" }, "This page lacks the events to " +
      "say which kernels differ."));
  } else {
    section.append(...drawCauses(app, { id: "stepcauses", names: titles, totals,
      causes: compareSteps(app.model, pair)
        .map((cause) => causeRow(app, cause, pair)) }));
  }
  return section;
}

export const stepsView: View = {
  id: "steps",
  title: "Steps",
  filtered: false,
  missing: (model) => model.hasTable("steps") && model.hasEvents &&
    model.traces.length === 0 ? null
    : "The trace marks no steps (ProfilerStep or ranges of steps).",
  needs: () => ["steps", "step_summary", "device", "kernels", "gaps",
                "idle_gaps"],
  draw(app, root) {
    const table = app.model.table("steps")!;
    const devices = stepDevices(table);
    const device = deviceOf(app, devices);
    const rows = stepRows(table, device);
    const chosen = chosenRows(app, rows);
    const devicesSelect = devices.length < 2 ? null : choice(app,
      "steps.device", "Device", devices.map((name) => [name,
        `device ${clean(name, 60)}`]), device);
    root.append(legend(), h("div", { class: "tools" }, devicesSelect,
      choice(app, "steps.order", "Order", [["", "by index"],
                                           ["time", "by time"]]),
      h("span", { id: "stepsvg" }),
      h("span", { class: "muted" }, hint("Click a step to compare it with the " +
        "median one, a second to compare the two. "), "A step lasts from its " +
        "first work on the device to that of the next.")),
      h("div", { class: "stepbars", role: "region", tabindex: "0",
                 "aria-label": "Steps", "data-k": "steps.box" }));
    if (!paper.on) {
      const pair = pairOf(app, rows, chosen);
      if (pair) root.append(comparison(app, table, pair));
    }
    root.append(h("h2", {}, "All steps"), drawRows(app, table, { id: "steps",
      rows: [...rows, ...Array.from({ length: table.rows }, (_, row) => row)
        .filter((row) => table.str(row, "device") === device &&
                !rows.includes(row))],
      all: true, cells: {
        name: (row) => rows.includes(row) ? app.link(stepName(table, row),
          pickPatch(app, chosen, row)) : stepName(table, row),
        busy_us: (row) => app.link(time(table.num(row, "busy_us")),
                                   rowEvents(app, "steps", row)) } }));
    const summary = app.model.table("step_summary");
    if (summary && summary.rows > 0) {
      root.append(h("h2", {}, "Spread"), drawRows(app, summary,
                                                  { id: "stepsummary" }));
    }
  },
  mounted(app, root) {
    const box = root.querySelector<HTMLElement>(".stepbars");
    if (!box) return;
    const table = app.model.table("steps")!;
    const rows = stepRows(table, deviceOf(app, stepDevices(table)));
    const chosen = chosenRows(app, rows);
    const byTime = [...rows].sort((a, b) =>
      stepTime(table, b) - stepTime(table, a) || a - b);
    const most = new Set([...byTime.slice(0, kMostBars), ...chosen]);
    const shown = (app.option("steps.order") === "time" ? byTime : rows)
      .filter((row) => most.has(row));
    const picture = drawStepBars(table, shown, {
      width: Math.max(260, box.clientWidth), chosen,
      pair: pairOf(app, rows, chosen)?.pair ?? [],
      median: stepTime(table, medianStep(table, rows)),
      href: (row) => app.href(pickPatch(app, chosen, row)) });
    box.append(picture);
    root.querySelector("#stepsvg")?.append(app.button("SVG", () =>
      svgFile(app, picture, "steps")));
    if (shown.length < rows.length) {
      box.after(h("p", { class: "muted" }, `The ${count(shown.length)} longest ` +
        `of ${count(rows.length)} steps.`));
    }
  },
};
