// SPDX-License-Identifier: Apache-2.0
//
// The plane of a roofline: work per byte against speed, both logarithmic, with
// the roofs of a device, and a rectangle that is drawn with the pointer.

import { svg } from "../ui/dom";
import { real } from "../ui/format";

export interface Roof { name: string; tflops: number }

export interface Plane {
  picture: SVGElement;
  width: number;
  height: number;
  x0: number; x1: number;   // FLOP per byte
  y0: number; y1: number;   // TFLOPS/s
  px(v: number): number;
  py(v: number): number;
}

export interface PlaneOptions {
  width: number;
  roofs: Roof[];
  tbytes: number;  // TB/s
  label: string;
  // What has to fit; speeds and intensities of 0 stand on the edge.
  points: { x: number; y: number }[];
}

const kLeft = 66;
const kRight = 24;
const kTop = 12;
const kBottom = 44;
export const kLeastX = 1e-2;
export const kLeastY = 1e-4;

export function roofPlane(options: PlaneOptions): Plane {
  const { width, roofs, tbytes } = options;
  const height = Math.max(300, Math.min(640, width * 0.5));
  const seen = options.points.filter((p) => p.x > 0 && p.y > 0);
  const low = (values: number[], least: number) =>
    10 ** Math.floor(Math.log10(Math.max(least, Math.min(...values))));
  const high = (values: number[]) =>
    10 ** Math.ceil(Math.log10(Math.max(...values)));
  const ridge = Math.max(...roofs.map((r) => r.tflops / tbytes), 10);
  const x0 = low([0.1, ...seen.map((p) => p.x)], kLeastX);
  const x1 = high([100, ridge * 2, ...seen.map((p) => p.x)]);
  const y0 = low([1, ...seen.map((p) => p.y)], kLeastY);
  const y1 = 1.8 * Math.max(1, ...roofs.map((r) => r.tflops),
                            ...seen.map((p) => p.y));
  const scale = (v: number, from: number, to: number) =>
    (Math.log10(Math.min(to, Math.max(from, v))) - Math.log10(from)) /
    (Math.log10(to) - Math.log10(from));
  const picture = svg("svg", { class: "chart", role: "group", width, height,
    viewBox: `0 0 ${width} ${height}`, "aria-label": options.label });
  const plane: Plane = { picture, width, height, x0, x1, y0, y1,
    px: (v) => kLeft + scale(v, x0, x1) * (width - kLeft - kRight),
    py: (v) => height - kBottom - scale(v, y0, y1) *
      (height - kBottom - kTop) };
  axes(plane);
  return plane;
}

// Above what is drawn on the plane if that covers it.
export function drawRoofs({ picture, px, py, x0, x1, y0, width }: Plane,
                          { roofs, tbytes }: PlaneOptions): void {
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
}

function axes(a: Plane): void {
  const { picture } = a;
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

// A rectangle drawn over the plane.
export function brush(picture: SVGElement, done: (fromX: number, fromY: number,
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
