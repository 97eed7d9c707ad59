// SPDX-License-Identifier: Apache-2.0
//
// One stacked bar per layer, with the median as a line. Dashed: cut by the
// recording, or not equal to its neighbours kernel by kernel. A dot on top: it took more than a tenth
// longer on the clock than its kernels did.

import type { LayerBar, Stack } from "../data/layers";
import { groupColor, kGroups } from "../ui/colors";
import { svg } from "../ui/dom";
import { time } from "../ui/format";
import { niceTop } from "./ruler";

export interface BarOptions {
  width: number;
  href(bar: LayerBar): string;
  isChosen(bar: LayerBar): boolean;
  anyChosen: boolean;
}

const kHeight = 220;
const kLeft = 70;
const kBottom = 20;
const kTop = 10;
const kWallSlack = 1.1;

export function barWords(stack: Stack, bar: LayerBar): string {
  const ratio = stack.median > 0 ? bar.time / stack.median : 1;
  const passes = bar.single.length;
  return `layer ${bar.layer}: ${time(bar.time)}, ` +
    (passes > 1 ? `mean of ${passes} passes, ${time(Math.min(...bar.single))} ` +
      `to ${time(Math.max(...bar.single))}, ` : "") +
    `${ratio.toFixed(2)} \u00d7 median` +
    (bar.wall > bar.kernelTime * kWallSlack
      ? `, ${time(bar.wall / bar.rows.length)} on the clock` : "") +
    (bar.partial ? ", cut by the recording" : "") +
    (bar.exact ? "" : ", not equal to its neighbours");
}

export function drawBars(stack: Stack, options: BarOptions): SVGElement {
  const { width } = options;
  const { top, step } = niceTop(Math.max(1, ...stack.bars.map((b) => b.time)),
                                5);
  const tall = kHeight - kBottom - kTop;
  const y = (ns: number) => kTop + tall * (1 - ns / top);
  const picture = svg("svg", { class: "chart", role: "group", width,
    height: kHeight, viewBox: `0 0 ${width} ${kHeight}`,
    "aria-label": `${stack.bars.length} layers of ${stack.title}` });
  for (let ns = 0; ns <= top + step / 2; ns += step) {
    picture.append(svg("line", { class: "grid", x1: kLeft, x2: width,
                                 y1: y(ns), y2: y(ns) }),
      svg("text", { class: "axis", x: kLeft - 8, y: y(ns) + 4,
                    "text-anchor": "end" }, time(ns)));
  }
  const slot = (width - kLeft - 4) / stack.bars.length;
  const wide = Math.max(1, slot - Math.min(3, slot * 0.15));
  const every = Math.max(1, Math.ceil(26 / slot));
  for (const [i, bar] of stack.bars.entries()) {
    const x = kLeft + 2 + i * slot;
    const words = barWords(stack, bar);
    const parts: SVGElement[] = [svg("title", {}, words)];
    let at = 0;
    const opacity = options.anyChosen && !options.isChosen(bar) ? 0.35 : 1;
    for (const [group, ns] of bar.byGroup.entries()) {
      if (ns === 0) continue;
      parts.push(svg("rect", { x, width: wide, y: y(at + ns),
        height: Math.max(0.3, tall * ns / top), opacity,
        fill: groupColor(kGroups[group]!) }));
      at += ns;
    }
    // Something to hit for a layer without time in the filter.
    parts.push(svg("rect", { x, width: wide, y: y(at), height:
      Math.max(6, tall * at / top), fill: "transparent",
      stroke: bar.exact && !bar.partial ? "none" : "var(--text)",
      "stroke-dasharray": "3 2" }));
    if (bar.wall > bar.kernelTime * kWallSlack) {
      parts.push(svg("circle", { cx: x + wide / 2, cy: Math.max(4, y(at) - 4),
                                 r: 2.2, fill: "var(--warn)" }));
    }
    picture.append(svg("a", { href: options.href(bar), "aria-label": words,
      "data-k": `layer.${stack.title.slice(0, 40)}.${bar.layer}`,
      "data-layer": bar.layer }, ...parts));
    if (i % every === 0) {
      picture.append(svg("text", { class: "axis", "text-anchor": "middle",
        x: x + wide / 2, y: kHeight - 5 }, bar.layer));
    }
  }
  picture.append(svg("line", { x1: kLeft, x2: width, y1: y(stack.median),
    y2: y(stack.median), stroke: "var(--text)", "stroke-dasharray": "6 4",
    opacity: 0.6 }, svg("title", {}, `median ${time(stack.median)}`)));
  return picture;
}
