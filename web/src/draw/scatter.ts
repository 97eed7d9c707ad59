// SPDX-License-Identifier: Apache-2.0
//
// A roofline: work per byte against speed, both logarithmic; area is kernel
// time, colour and shape are the family. Points outside the axes stand on
// their edge, hollow.

import { groupColor } from "../ui/colors";
import { svg } from "../ui/dom";
import { real } from "../ui/format";

export interface Point {
  key: string;
  words: string;
  label: string;
  group: string;
  x: number;       // FLOP per byte
  y: number;       // TFLOPS/s
  time: number;    // ns
}

export interface Roof { name: string; tflops: number }

export interface ScatterOptions {
  width: number;
  points: Point[];
  roofs: Roof[];
  tbytes: number;  // TB/s
  href(point: Point): string;
  isChosen(point: Point): boolean;
  brushed(points: Point[]): void;
}

const kLeft = 66;
const kRight = 24;
const kTop = 12;
const kBottom = 44;
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
  const { width, points, roofs, tbytes } = options;
  const height = Math.max(300, Math.min(640, width * 0.5));
  const seen = points.filter((p) => p.x > 0 && p.y > 0);
  const low = (values: number[], least: number) =>
    10 ** Math.floor(Math.log10(Math.max(least, Math.min(...values))));
  const high = (values: number[]) =>
    10 ** Math.ceil(Math.log10(Math.max(...values)));
  const ridge = Math.max(...roofs.map((r) => r.tflops / tbytes), 10);
  const x0 = low([0.1, ...seen.map((p) => p.x)], 1e-2);
  const x1 = high([100, ridge * 2, ...seen.map((p) => p.x)]);
  const y0 = low([1, ...seen.map((p) => p.y)], 1e-4);
  const y1 = 1.8 * Math.max(1, ...roofs.map((r) => r.tflops),
                            ...seen.map((p) => p.y));
  const scale = (v: number, from: number, to: number) =>
    (Math.log10(Math.min(to, Math.max(from, v))) - Math.log10(from)) /
    (Math.log10(to) - Math.log10(from));
  const px = (v: number) => kLeft + scale(v, x0, x1) * (width - kLeft - kRight);
  const py = (v: number) => height - kBottom - scale(v, y0, y1) *
    (height - kBottom - kTop);

  const picture = svg("svg", { class: "chart", role: "group", width, height,
    viewBox: `0 0 ${width} ${height}`,
    "aria-label": `Roofline of ${points.length} ops` });
  axes(picture, { x0, x1, y0, y1, px, py, width, height });
  for (const roof of roofs) {
    const edge = roof.tflops / tbytes;
    picture.append(svg("polyline", { fill: "none", stroke: "var(--text)",
      "stroke-width": 1.5, points: [[x0, x0 * tbytes], [edge, roof.tflops],
        [x1, roof.tflops]].map(([x, y]) => `${px(x!)},${py(y!)}`).join(" ") }),
      svg("text", { x: width - kRight - 4, y: py(roof.tflops) - 6,
        "text-anchor": "end" }, `${roof.name} ${real(roof.tflops)} TFLOPS/s`));
  }
  const at = Math.max(x0, y0 / tbytes) * 6;
  picture.append(svg("text", { x: px(at), y: py(at * tbytes) - 8,
    transform: `rotate(${-Math.atan2(py(at) - py(at * 10),
      px(at * 10) - px(at)) * 180 / Math.PI} ${px(at)} ${py(at * tbytes)})` },
    `${real(tbytes)} TB/s`));

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

interface Axes {
  x0: number; x1: number; y0: number; y1: number;
  px(v: number): number; py(v: number): number;
  width: number; height: number;
}

function axes(picture: SVGElement, a: Axes): void {
  const each = (from: number, to: number, see: (v: number) => void) => {
    for (let e = Math.round(Math.log10(from)); e <= Math.log10(to) + 0.01; ++e)
      see(10 ** e);
  };
  const text = (v: number) => v >= 1e4 || v < 1e-4 ? v.toExponential(0)
    : String(Number(v.toPrecision(1)));
  each(a.x0, a.x1, (v) => picture.append(
    svg("line", { class: "grid", x1: a.px(v), x2: a.px(v), y1: kTop,
                  y2: a.height - kBottom }),
    svg("text", { class: "axis", x: a.px(v), y: a.height - kBottom + 17,
                  "text-anchor": "middle" }, text(v))));
  each(a.y0, a.y1, (v) => picture.append(
    svg("line", { class: "grid", x1: kLeft, x2: a.width - kRight,
                  y1: a.py(v), y2: a.py(v) }),
    svg("text", { class: "axis", x: kLeft - 8, y: a.py(v) + 4,
                  "text-anchor": "end" }, text(v))));
  const middle = (kTop + a.height - kBottom) / 2;
  picture.append(svg("text", { class: "axis", "text-anchor": "middle",
    x: (kLeft + a.width) / 2, y: a.height - 6 }, "FLOP per byte"),
    svg("text", { class: "axis", "text-anchor": "middle", x: 13, y: middle,
                  transform: `rotate(-90 13 ${middle})` }, "TFLOPS/s"));
}

// A rectangle drawn over points filters by them.
function brush(picture: SVGElement, done: (fromX: number, fromY: number,
               toX: number, toY: number) => void): void {
  let from: { x: number; y: number } | null = null;
  const mark = svg("rect", { fill: "var(--link)", opacity: 0.15,
                             "pointer-events": "none" });
  const place = (event: PointerEvent) => {
    const box = picture.getBoundingClientRect();
    const scale = (picture as SVGSVGElement).viewBox.baseVal.width / box.width;
    return { x: (event.clientX - box.left) * scale,
             y: (event.clientY - box.top) * scale };
  };
  picture.addEventListener("pointerdown", (event) => {
    if ((event.target as Element).closest("a") || event.button !== 0 ||
        event.pointerType === "touch") return;
    from = place(event);
    event.preventDefault();
    picture.setPointerCapture(event.pointerId);
    picture.append(mark);
    mark.setAttribute("width", "0");
    mark.setAttribute("height", "0");
  });
  picture.addEventListener("pointermove", (event) => {
    if (!from) return;
    const to = place(event);
    mark.setAttribute("x", String(Math.min(from.x, to.x)));
    mark.setAttribute("y", String(Math.min(from.y, to.y)));
    mark.setAttribute("width", String(Math.abs(to.x - from.x)));
    mark.setAttribute("height", String(Math.abs(to.y - from.y)));
  });
  picture.addEventListener("pointerup", (event) => {
    if (!from) return;
    const to = place(event);
    const start = from;
    from = null;
    mark.remove();
    if (Math.abs(to.x - start.x) + Math.abs(to.y - start.y) < 8) return;
    done(Math.min(start.x, to.x), Math.min(start.y, to.y),
         Math.max(start.x, to.x), Math.max(start.y, to.y));
  });
}
