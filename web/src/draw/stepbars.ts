// SPDX-License-Identifier: Apache-2.0
//
// One stacked bar per step: computation, communication and copies that nothing
// hides, idle time as a dashed frame. The line is the median.

import { kStepParts, partsOfStep, stepTime } from "../data/steps";
import type { Table } from "../data/model";
import { svg } from "../ui/dom";
import { clean, percent, time } from "../ui/format";
import { niceTop } from "./ruler";

const kHeight = 240;
const kLeft = 70;
const kBottom = 20;
const kTop = 10;
const kLeastSlot = 5;  // px; more steps than fit make the drawing wider

export const kStepColors = ["var(--q3)", "var(--more)", "var(--muted)", "none"];

export function stepName(table: Table, row: number): string {
  return clean(table.str(row, "name"), 60) || `step ${table.str(row, "step")}`;
}

export function stepWords(table: Table, row: number, median: number): string {
  const all = stepTime(table, row);
  return `${stepName(table, row)}: ${time(all)}, ` + partsOfStep(table, row)
    .flatMap((ns, i) => ns > 0 ? [`${kStepParts[i]} ${time(ns)} ` +
      `(${percent(ns, all)})`] : []).join(", ") +
    (median > 0 ? `, ${(all / median).toFixed(2)} \u00d7 median` : "");
}

export interface StepBarOptions {
  width: number;
  median: number;            // ns
  chosen: number[];          // rows
  pair: number[];            // rows that stand beside each other, A and B
  href(row: number): string;
}

export function drawStepBars(table: Table, rows: number[],
                             { width: room, median, chosen, pair, href }:
                               StepBarOptions): SVGElement {
  const width = Math.max(room, kLeft + 4 + rows.length * kLeastSlot);
  const { top, step } = niceTop(Math.max(1,
    ...rows.map((row) => stepTime(table, row))), 5);
  const tall = kHeight - kBottom - kTop;
  const y = (ns: number) => kTop + tall * (1 - ns / top);
  const picture = svg("svg", { class: "chart", role: "group", width,
    height: kHeight, viewBox: `0 0 ${width} ${kHeight}`,
    "aria-label": `${rows.length} steps` });
  // A wide drawing scrolls in its box; another one fits.
  if (width > room) picture.style.width = width + "px";
  for (let ns = 0; ns <= top + step / 2; ns += step) {
    picture.append(svg("line", { class: "grid", x1: kLeft, x2: width,
                                 y1: y(ns), y2: y(ns) }),
      svg("text", { class: "axis", x: kLeft - 8, y: y(ns) + 4,
                    "text-anchor": "end" }, time(ns)));
  }
  const slot = Math.min(90, (width - kLeft - 4) / rows.length);
  const wide = Math.max(2, slot - Math.min(6, slot * 0.2));
  const every = Math.max(1, Math.ceil(40 / slot));
  for (const [i, row] of rows.entries()) {
    const x = kLeft + 4 + i * slot;
    const words = stepWords(table, row, median);
    const opacity = chosen.length > 0 && !pair.includes(row) ? 0.4 : 1;
    const parts: SVGElement[] = [svg("title", {}, words)];
    let at = 0;
    for (const [k, ns] of partsOfStep(table, row).entries()) {
      if (ns <= 0) continue;
      const idle = kStepColors[k] === "none";
      parts.push(svg("rect", { x: x + (idle ? 0.5 : 0),
        width: Math.max(0.5, wide - (idle ? 1 : 0)), y: y(at + ns),
        height: Math.max(0.4, tall * ns / top), opacity,
        fill: kStepColors[k]!, stroke: idle ? "var(--muted)" : "none",
        "stroke-dasharray": "3 2" }));
      at += ns;
    }
    parts.push(svg("rect", { x, width: wide, y: y(at), fill: "transparent",
                             height: Math.max(6, tall * at / top) }));
    const mark = "AB"[pair.indexOf(row)];
    picture.append(svg("a", { href: href(row), "aria-label": words,
      "data-k": `step.${row}`, "data-step": row,
      "aria-current": chosen.includes(row) ? "true" : undefined }, ...parts));
    if (i % every === 0 || mark) {
      picture.append(svg("text", { class: mark ? "" : "axis",
        "text-anchor": "middle", x: x + wide / 2, y: kHeight - 5 },
        (mark ? mark + " " : "") + table.str(row, "step")));
    }
  }
  picture.append(svg("line", { x1: kLeft, x2: width, y1: y(median),
    y2: y(median), stroke: "var(--text)", "stroke-dasharray": "6 4",
    opacity: 0.6 }, svg("title", {}, `median ${time(median)}`)));
  return picture;
}
