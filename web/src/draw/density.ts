// SPDX-License-Identifier: Apache-2.0
//
// Calls on the plane of a roofline as density: the colour of a cell is how
// many calls are in it, in five steps of the sequential scale.

import { cellOf, cellStart, type Cell } from "../data/density";
import { h, svg } from "../ui/dom";
import { count, real } from "../ui/format";
import { brush, drawRoofs, kLeastX, kLeastY, roofPlane, type PlaneOptions } from
  "./roofplane";

export interface DensityOptions extends Omit<PlaneOptions, "points"> {
  cells: Cell[];
  words(cell: Cell): string;   // of its ops
  href(cell: Cell): string;
  brushed(cells: Cell[]): void;
}

const kSteps = 5;
const kEdge = 6;  // px of a cell outside the axes
// Cells of calls without FLOPs, and of those slower than any axis shows.
const kLowest = { ix: cellOf(0, kLeastX), iy: cellOf(0, kLeastY) };

// The least number of calls of each step: equal factors up to the most.
export function stepsTo(most: number): number[] {
  const steps = [1];
  for (let i = 1; i < kSteps; ++i) {
    const next = Math.max(steps[i - 1]! + 1,
                          Math.ceil(most ** (i / kSteps) - 1e-9));
    if (next <= most) steps.push(next);
  }
  return steps;
}

// The colours of few steps lie as far apart as those of five.
function stepColor(step: number, steps: number): string {
  return `var(--q${steps === 1 ? 3
    : Math.round(step * (kSteps - 1) / (steps - 1))})`;
}

function mostCalls(cells: Cell[]): number {
  return cells.reduce((most, cell) => Math.max(most, cell.calls), 1);
}

export function densityScale(cells: Cell[]): HTMLElement {
  const most = mostCalls(cells);
  const steps = stepsTo(most);
  return h("p", { class: "muted steps" }, "Calls in a cell: ",
    ...steps.flatMap((from, i) => {
      const to = (steps[i + 1] ?? most + 1) - 1;
      const mark = h("span", { class: "swatch", "aria-hidden": "true" });
      mark.style.background = stepColor(i, steps.length);
      return [mark, count(from) + (to > from ? `\u2013${count(to)}` : "") + " "];
    }));
}

export function drawDensity(options: DensityOptions): SVGElement {
  const { cells } = options;
  // 1 stands on both axes whatever else does.
  const at = (index: number, lowest: number) =>
    index > lowest ? cellStart(index) : 1;
  const corners = cells.flatMap(({ ix, iy }) => [0, 1].map((end) =>
    ({ x: at(ix + end, kLowest.ix + end), y: at(iy + end, kLowest.iy + end) })));
  const calls = cells.reduce((sum, cell) => sum + cell.calls, 0);
  const settings = { ...options, points: corners };
  const plane = roofPlane(settings);
  const { picture, px, py } = plane;
  const steps = stepsTo(mostCalls(cells));
  for (const cell of cells) {
    const [left, right] = [px(cellStart(cell.ix)), px(cellStart(cell.ix + 1))];
    const [top, low] = [py(cellStart(cell.iy + 1)), py(cellStart(cell.iy))];
    // Cells outside stand beside the axis, so that they cover none within.
    const [isLeft, isBelow] = [right - left < 1, low - top < 1];
    const outside = isLeft || isBelow;
    const words = `${count(cell.calls)} ` +
      (cell.calls === 1 ? "call" : "calls") +
      `, ${real(cellStart(cell.ix))} to ${real(cellStart(cell.ix + 1))} FLOP ` +
      `per byte, ${real(cellStart(cell.iy))} to ` +
      `${real(cellStart(cell.iy + 1))} TFLOPS/s` +
      `${outside ? " (outside the axes)" : ""}: ${options.words(cell)}`;
    const step = steps.filter((from) => cell.calls >= from).length - 1;
    picture.append(svg("a", { href: options.href(cell), "aria-label": words,
      "data-k": `cell.${cell.ix}.${cell.iy}`,
      "data-cell": `${cell.ix} ${cell.iy}`, "data-calls": cell.calls },
      svg("title", {}, words),
      svg("rect", { x: isLeft ? left - kEdge - 1 : left,
        y: isBelow ? low + 1 : top, width: isLeft ? kEdge : right - left,
        height: isBelow ? kEdge : low - top,
        fill: stepColor(step, steps.length), stroke: "var(--muted)",
        "stroke-width": 0.6, "stroke-dasharray": outside ? "2 2" : "none" })));
  }
  drawRoofs(plane, settings);
  picture.setAttribute("aria-label",
    `Roofline of ${count(calls)} calls in ${count(cells.length)} cells`);
  brush(picture, (fx, fy, tx, ty) => options.brushed(cells.filter((cell) => {
    const x = px(cellStart(cell.ix + 0.5));
    const y = py(cellStart(cell.iy + 0.5));
    return x >= fx && x <= tx && y >= fy && y <= ty;
  })));
  return picture;
}
