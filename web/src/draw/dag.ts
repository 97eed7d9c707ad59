// SPDX-License-Identifier: Apache-2.0
//
// A layer as boxes and arrows from top to bottom; groups are tinted frames.
// The stripe of a node is its share of the layer's time. Of large graphs only
// what is near the window is drawn.

import type { Box, Boxes } from "../data/boxes";
import { nodeTime, type LayerGraph } from "../data/layergraph";
import { groupColor } from "../ui/colors";
import { svg } from "../ui/dom";
import { clean } from "../ui/format";
import type { Placed, Size } from "./dagplace";

export type BoxState = "" | "chosen" | "near" | "path" | "found" | "far" |
  "marked";

// What is drawn, in the order of `boxes`.
export interface DagPicture {
  graph: LayerGraph;
  boxes: Boxes;
  placed: Placed;
}

export interface DagOptions {
  state(box: number): BoxState;
  isNew(box: number): boolean;
  href(box: Box): string;
}

interface Rect { x0: number; y0: number; x1: number; y1: number }

// Boxes above which only those near the window are drawn.
export const kMostDrawn = 600;
const kLine = 15;
const kMargin = 12;  // in front of the text; a wider stripe stands below it
const kLetter = 6.6;
const kMostLetters = 46;

// Of all kinds of layers alike, so that alike layers share a layout: the width
// of a line with times is a guess.
export function sizeOf(graph: LayerGraph, box: Box): Size {
  const node = graph.nodes[box.node]!;
  const text = linesOf(graph, box);
  const wide = node.external ? [25, node.shape.length]
    : box.isPart || node.kernels.length > 0
    ? [...text.slice(0, 2).map((line) => line.length), 24]
    : text.map((line) => line.length);
  const letters = Math.min(kMostLetters, Math.max(...wide));
  return { width: Math.max(90, kLetter * letters + 26),
           height: text.length * kLine + 12 };
}

function linesOf(graph: LayerGraph, box: Box): string[] {
  const node = graph.nodes[box.node]!;
  const kernels = box.nodes.reduce((sum, i) =>
    sum + graph.nodes[i]!.kernels.length, 0);
  const ns = box.nodes.reduce((sum, i) => sum + nodeTime(graph.nodes[i]!), 0);
  const op = node.external ? node.op : node.op.replace(/^\w+\.(?=\w)/, "")
    .replace(/\.default$/, "");
  const what = box.isPart
    ? [`${clean(node.group, 30)}: ${box.nodes.length} nodes`, "click to open"]
    : [clean(op, kMostLetters), clean([node.shape,
        node.dtype.replace(/torch\./g, "")].filter((s) => s !== "").join(" "),
        kMostLetters)];
  return [...what, kernels > 0 ? `${kernels} ${kernels === 1 ? "kernel"
    : "kernels"}, ${(ns / 1000).toFixed(1)} \u00b5s` : ""]
    .filter((line) => line !== "");
}

// Colours of groups of nodes: those of the kernels they become.
function colorOf(group: string): string {
  const names: Record<string, string> = { attention: "attention",
    mla: "attention", mlp: "gemm", moe: "moe", norm: "norm",
    residual: "elementwise", mamba: "conv", gdn: "conv", inputs: "other" };
  return groupColor(names[group] ?? "other");
}

function rectOf(box: Placed["boxes"][number]): Rect {
  return { x0: box.x - box.width / 2, y0: box.y - box.height / 2,
           x1: box.x + box.width / 2, y1: box.y + box.height / 2 };
}
function meets(a: Rect, b: Rect): boolean {
  return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1;
}

// An SVG without content, of the size of the graph.
export function emptyPicture({ placed, boxes }: DagPicture, label: string):
    SVGElement {
  const picture = svg("svg", { class: "dag", role: "group",
    viewBox: `0 0 ${placed.width} ${placed.height}`,
    "aria-label": `${label}: ${boxes.boxes.length} boxes` });
  return picture;
}

// Draws what meets the window (all of it without one) into the picture.
export function drawDag(picture: SVGElement, what: DagPicture,
                        options: DagOptions, window: Rect | null): void {
  const { graph, boxes, placed } = what;
  const rects = placed.boxes.map(rectOf);
  const seen = (rect: Rect) => !window || meets(rect, window);
  const states = boxes.boxes.map((_, b) => options.state(b));
  picture.replaceChildren(svg("defs", {}, svg("marker", { id: "tip", viewBox:
    "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
    orient: "auto" }, svg("path", { d: "M0 0 L8 4 L0 8 z",
                                    fill: "var(--muted)" }))));
  for (const { group, rect } of partRects(what, rects)) {
    if (!seen(rect)) continue;
    picture.append(svg("rect", { class: "cluster", rx: 8, x: rect.x0 - 8,
      y: rect.y0 - 8, width: rect.x1 - rect.x0 + 16,
      height: rect.y1 - rect.y0 + 16, fill: colorOf(group) },
      svg("title", {}, clean(group, 80))));
  }
  for (const { from, to, points } of placed.edges) {
    const a = rects[from]!;
    const b = rects[to]!;
    if (!seen({ x0: Math.min(a.x0, b.x0), y0: Math.min(a.y0, b.y0),
                x1: Math.max(a.x1, b.x1), y1: Math.max(a.y1, b.y1) })) continue;
    const near = states[from] !== "far" && states[to] !== "far";
    const line = points.length > 0 ? points : [
      { x: placed.boxes[from]!.x, y: a.y1 }, { x: placed.boxes[to]!.x, y: b.y0 }];
    picture.append(svg("polyline", { class: near ? "edge" : "edge far",
      points: line.map((p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`).join(" "),
      "marker-end": "url(#tip)" }));
  }
  const total = Math.max(1e-9, graph.nodes.reduce((s, n) => s + nodeTime(n),
                                                  0));
  boxes.boxes.forEach((_, b) => {
    if (seen(rects[b]!))
      picture.append(drawBox(what, b, states[b]!, options, total));
  });
}

function drawBox({ graph, boxes, placed }: DagPicture, at: number,
                 state: BoxState, options: DagOptions, total: number):
    SVGElement {
  const box = boxes.boxes[at]!;
  const node = graph.nodes[box.node]!;
  const { x: mx, y: my, width, height } = placed.boxes[at]!;
  const [x, y] = [mx - width / 2, my - height / 2];
  const share = box.nodes.reduce((s, i) => s + nodeTime(graph.nodes[i]!), 0) /
    total;
  const text = linesOf(graph, box);
  const stripe = 5 + share * (width - 5);
  const fresh = options.isNew(at);
  return svg("a", { href: options.href(box), "data-node": node.id,
    "data-part": box.isPart ? String(box.node) : undefined,
    "data-k": "node." + node.id.slice(0, 100),
    class: `node ${state}${fresh ? " new" : ""}${box.isPart ? " part" : ""}` },
    svg("title", {}, (fresh ? "new: " : "") + (box.isPart ? text.join(", ")
      : [clean(`${node.id}: ${node.op}`, 400), ...text.slice(1)].join(", "))),
    svg("rect", { class: "box", x, y, width, height, rx: 4,
      "stroke-dasharray": node.external || node.secondStream ? "4 3"
        : "none" }),
    svg("rect", { class: "stripe", x, y, height, width: stripe,
      fill: colorOf(node.group), opacity: stripe > kMargin ? 0.3 : 1 }),
    ...text.map((line, k) => svg("text", { x: x + kMargin,
      y: y + 18 + k * kLine, class: k === 0 ? "name" : "" }, line)));
}

// The extent of each opened part, with its group.
function partRects({ graph, boxes }: DagPicture, rects: Rect[]):
    { group: string; rect: Rect }[] {
  const parts = new Map<number, { group: string; rect: Rect }>();
  for (const [b, name] of boxes.part) {
    const { x0, y0, x1, y1 } = rects[b]!;
    const part = parts.get(name);
    const group = graph.nodes[boxes.boxes[b]!.node]!.group;
    if (!part) {
      parts.set(name, { group, rect: { x0, y0, x1, y1 } });
      continue;
    }
    const { rect } = part;
    rect.x0 = Math.min(rect.x0, x0);
    rect.y0 = Math.min(rect.y0, y0);
    rect.x1 = Math.max(rect.x1, x1);
    rect.y1 = Math.max(rect.y1, y1);
  }
  return [...parts.values()];
}
