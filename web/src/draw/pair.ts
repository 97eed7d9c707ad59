// SPDX-License-Identifier: Apache-2.0
//
// Two layers beside each other: a bar of kernels each, on one scale, and bands
// between what does the same in both.

import type { Patch } from "../ui/app";
import { groupColor, textOn } from "../ui/colors";
import { svg } from "../ui/dom";
import { clean, kernelName, percent, time } from "../ui/format";
import { niceTop } from "./ruler";

export interface Part {
  kernel: string;
  family: string;
  group: string;
  ns: number;
  patch: Patch;       // to its events
}
// What stands in one place of the two layers.
export interface PairLine {
  place: number;
  a: Part | null;
  b: Part | null;
}

export interface PairOptions {
  id: string;
  width: number;
  titles: [string, string];
  lines: PairLine[];
  href(part: Part): string;
}

const kBar = 36;
const kTop = 22;
const kSpace = 44;
const kBelow = kTop + kBar + kSpace;
const kHeight = kBelow + kBar + 46;
const kLetter = 7.4;  // px of a letter, about
const kNameFrom = 130;

export function sumOf(lines: PairLine[], side: "a" | "b"): number {
  return lines.reduce((sum, line) => sum + (line[side]?.ns ?? 0), 0);
}

function label(part: Part, wide: number): string {
  if (wide >= kNameFrom)
    return kernelName(part.kernel, Math.floor((wide - 24) / kLetter));
  const name = clean(part.family, 40);
  return name.length * kLetter + 18 <= wide ? name : "";
}

export function drawPair(options: PairOptions): SVGElement {
  const { width, lines } = options;
  const sums = { a: sumOf(lines, "a"), b: sumOf(lines, "b") };
  const most = Math.max(1, sums.a, sums.b);
  const { step } = niceTop(most, Math.max(3, Math.floor(width / 130)));
  const x = (ns: number) => ns / most * (width - 2) + 1;
  const picture = svg("svg", { class: "chart pair", role: "group", width,
    height: kHeight, viewBox: `0 0 ${width} ${kHeight}`,
    "aria-label": `${options.titles.join(" and ")}, kernel by kernel` });
  for (let ns = 0; ns <= most; ns += step) {
    const at = x(ns);
    picture.append(svg("line", { class: "grid", x1: at, x2: at, y1: kTop,
                                 y2: kBelow + kBar + 24 }),
      svg("text", { class: "axis", y: kHeight - 6, x: at,
        "text-anchor": ns === 0 ? "start" : at > width - 40 ? "end" : "middle" },
        time(ns)));
  }
  const at = { a: 0, b: 0 };
  const bands: SVGElement[] = [];
  const boxes: SVGElement[] = [];
  for (const line of lines) {
    const from = { ...at };
    for (const side of ["a", "b"] as const) {
      const part = line[side];
      if (!part) continue;
      boxes.push(box(options, line.place, side, part, x(at[side]),
                     x(at[side] + part.ns), sums[side]));
      at[side] += part.ns;
    }
    if (!line.a || !line.b) continue;
    const [top, low] = [kTop + kBar, kBelow];
    const middle = (top + low) / 2;
    const curve = (x0: number, y0: number, x1: number, y1: number) =>
      `${x0},${y0} C${x0},${middle} ${x1},${middle} ${x1},${y1}`;
    bands.push(svg("path", { fill: groupColor(line.a.group), opacity: 0.28,
      d: `M${curve(x(from.a), top, x(from.b), low)} ` +
         `L${curve(x(at.b), low, x(at.a), top)} Z` }));
  }
  picture.append(...bands, ...boxes);
  for (const [side, y] of [["a", 15], ["b", kBelow + kBar + 17]] as const) {
    const title = options.titles[side === "a" ? 0 : 1];
    picture.append(svg("text", { x: 1, y, "font-weight": 600 },
      clean(title, Math.max(12, Math.floor((width - 90) / kLetter)))),
      svg("text", { x: width - 1, y, "text-anchor": "end",
                    "font-weight": 600 }, time(sums[side])));
  }
  return picture;
}

function box(options: PairOptions, place: number, side: "a" | "b", part: Part,
             from: number, to: number, sum: number): SVGElement {
  const y = side === "a" ? kTop : kBelow;
  const words = `${kernelName(part.kernel, 200)} (${clean(part.family, 40)}), ` +
    `${time(part.ns)}, ${percent(part.ns, sum)}, place ${place} of ` +
    options.titles[side === "a" ? 0 : 1];
  const text = label(part, to - from);
  const name = svg("text", { x: from + 6, y: y + kBar / 2 + 4,
                             "pointer-events": "none" }, text);
  name.style.fill = textOn(part.group);
  return svg("a", { href: options.href(part), "aria-label": words,
    "data-k": `${options.id}.${side}.${place}`, "data-part": `${side}${place}` },
    svg("title", {}, words),
    svg("rect", { x: from, y, height: kBar, fill: groupColor(part.group),
      width: Math.max(0.4, to - from - (to - from > 3 ? 1 : 0)) }),
    text === "" ? null : name);
}
