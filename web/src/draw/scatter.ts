// SPDX-License-Identifier: Apache-2.0
//
// Ops on the plane of a roofline: area is kernel time, colour and shape are
// the family. Points outside the axes stand on their edge, hollow.

import { groupColor } from "../ui/colors";
import { svg } from "../ui/dom";
import { brush, drawRoofs, roofPlane, type PlaneOptions } from "./roofplane";

export interface Point {
  key: string;
  words: string;
  label: string;
  group: string;
  x: number;       // FLOP per byte
  y: number;       // TFLOPS/s
  time: number;    // ns
}

export interface ScatterOptions extends PlaneOptions {
  points: Point[];
  href(point: Point): string;
  isChosen(point: Point): boolean;
  brushed(points: Point[]): void;
}

const kRight = 24;
const kLabels = 5;

// Shapes by group, so that colour is not alone.
function shape(group: string, x: number, y: number, r: number): [string,
    Record<string, string | number>] {
  const around = (angles: number[]) => angles.map((a) =>
    `${(x + r * 1.2 * Math.sin(a * Math.PI / 180)).toFixed(1)},` +
    `${(y - r * 1.2 * Math.cos(a * Math.PI / 180)).toFixed(1)}`).join(" ");
  switch (group) {
    case "softmax": return ["polygon", { points: around([0, 120, 240]) }];
    case "norm": return ["rect", { x: x - r * 0.9, y: y - r * 0.9,
                                   width: r * 1.8, height: r * 1.8 }];
    case "attention": return ["polygon",
      { points: around([0, 90, 180, 270]) }];
    case "reduce": return ["polygon", { points: around([180, 300, 60]) }];
    case "conv": return ["polygon",
      { points: around([0, 72, 144, 216, 288]) }];
    case "moe": return ["polygon",
      { points: around([30, 90, 150, 210, 270, 330]) }];
    case "memory": return ["rect", { x: x - r, y: y - r * 0.6, width: r * 2,
                                     height: r * 1.2 }];
    default: return ["circle", { cx: x, cy: y, r }];
  }
}

export function drawScatter(options: ScatterOptions): SVGElement {
  const { width, points } = options;
  const plane = roofPlane(options);
  const { picture, px, py, x0, x1, y0 } = plane;
  drawRoofs(plane, options);

  const most = Math.max(1, ...points.map((p) => p.time));
  const drawn = [...points].sort((a, b) => b.time - a.time);
  const largest = Math.min(34, width / 26);
  const labels: SVGElement[] = [];
  const taken: { x: number; y: number }[] = [];
  for (const [i, point] of drawn.entries()) {
    const clamped = point.x < x0 || point.x > x1 || point.y < y0;
    const x = px(point.x);
    const y = py(point.y);
    const r = Math.max(3.5, largest * Math.sqrt(point.time / most));
    const [tag, where] = shape(point.group, x, y, r);
    const color = groupColor(point.group);
    picture.append(svg("a", { href: options.href(point),
      "aria-label": point.words, "data-k": "roof." + point.key,
      "data-point": point.key },
      svg("title", {}, point.words + (clamped ? " (outside the axes)" : "")),
      svg(tag, { ...where, fill: clamped ? "var(--page)" : color,
        stroke: options.isChosen(point) ? "var(--text)"
          : clamped ? color : "var(--page)",
        "stroke-width": options.isChosen(point) ? 3 : 1,
        opacity: 0.82 })));
    if (i >= kLabels) continue;
    let ly = y + 4;
    while (taken.some((t) => Math.abs(t.x - x) < 170 && Math.abs(t.y - ly) < 15))
      ly += 15;
    taken.push({ x, y: ly });
    const left = x + r + 8 + point.label.length * 6.6 > width - kRight;
    labels.push(svg("text", { x: left ? x - r - 6 : x + r + 6, y: ly,
      "text-anchor": left ? "end" : "start", "pointer-events": "none" },
      point.label));
  }
  picture.append(...labels);
  brush(picture, (fx, fy, tx, ty) => options.brushed(points.filter((p) =>
    px(p.x) >= fx && px(p.x) <= tx && py(p.y) >= fy && py(p.y) <= ty)));
  return picture;
}
