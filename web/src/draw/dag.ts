// SPDX-License-Identifier: Apache-2.0
//
// A layer as boxes and arrows from top to bottom, as src/graph/draw says what
// stands in them: lines, frames, shade by share of the time, band of the group.
// Of large graphs only what is near the window is drawn.

import type { Box, Boxes } from "../data/boxes";
import { nodeTime, type BoxLine, type GraphNode, type LayerGraph } from
  "../data/layergraph";
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
const kLine = 16;
const kTitle = 26;   // above the boxes of a frame
const kLetter = 7.1;
const kMostLetters = 52;

// Texts of boxes have their own colours, dark on every shade.
const kInks: Record<string, string> = { b: "#1c202a", s: "#1c202a",
  w: "#5e3700", k: "#083a8c", x: "#3f4551" };
const kEdge = "#5b616e";

// A fork or join of a stream is a small circle.
function isCircle(graph: LayerGraph, box: Box): boolean {
  const node = graph.nodes[box.node]!;
  return node.forks && !box.isPart && node.kernels.length === 0;
}

// Alike layers share a layout: numbers at the end of a name are as wide as
// those of another layer, and lines with times are rounded up.
export function sizeOf(graph: LayerGraph, box: Box): Size {
  if (isCircle(graph, box)) return { width: 16, height: 16 };
  const lines = linesOf(graph, box);
  const timed = lines.some((line) => line.kind === "k");
  const letters = Math.min(kMostLetters + 4, Math.max(10, ...lines.map(
    ({ kind, text }) => kind === "b"
      ? 1.15 * text.replace(/\b\d+\b/, "00").length + (timed ? 19 : 0)
      : text.replace(/_\d+(?=\s|$)/, "_0000").length)));
  const width = kLetter * letters + 30;
  return { width: timed ? 40 * Math.ceil(width / 40) : width,
           height: lines.length * kLine + 12 };
}

function linesOf(graph: LayerGraph, box: Box): BoxLine[] {
  const node = graph.nodes[box.node]!;
  if (!box.isPart) {
    return node.lines.map(({ kind, text }) => ({ kind,
      text: clean(text, kMostLetters) }));
  }
  const kernels = box.nodes.reduce((sum, i) =>
    sum + graph.nodes[i]!.kernels.length, 0);
  const ns = box.nodes.reduce((sum, i) => sum + nodeTime(graph.nodes[i]!), 0);
  return [{ kind: "b", text: `${clean(node.group, 30)}: ${box.nodes.length} ` +
            "nodes" }, { kind: "x", text: "click to open" },
    ...(kernels > 0 ? [{ kind: "k", text: `${kernels} ` +
      `${kernels === 1 ? "kernel" : "kernels"}, ` +
      `${(ns / 1000).toFixed(1)} us` }] : [])];
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
    orient: "auto" }, svg("path", { d: "M0 0 L8 4 L0 8 z", fill: kEdge }))),
    svg("rect", { width: placed.width, height: placed.height,
                  fill: "#ffffff" }));
  frameRects(what, rects).forEach((rect, f) => {
    if (!rect || !seen(rect)) return;
    const frame = boxes.frames[f]!;
    picture.append(svg("rect", { class: "cluster", rx: 8, x: rect.x0,
      y: rect.y0, width: rect.x1 - rect.x0, height: rect.y1 - rect.y0,
      fill: frame.fill || "#fbfbfc", stroke: "#c9ccd4" }),
      svg("text", { class: "clustername", x: rect.x0 + 8, y: rect.y0 + 16,
                    fill: kInks.b }, clean(frame.title, 60)));
  });
  for (const { from, to, points } of placed.edges) {
    const a = rects[from]!;
    const b = rects[to]!;
    if (!seen({ x0: Math.min(a.x0, b.x0), y0: Math.min(a.y0, b.y0),
                x1: Math.max(a.x1, b.x1), y1: Math.max(a.y1, b.y1) })) continue;
    const near = states[from] !== "far" && states[to] !== "far";
    const line = points.length > 0 ? points : [
      { x: placed.boxes[from]!.x, y: a.y1 }, { x: placed.boxes[to]!.x, y: b.y0 }];
    const [source, user] = [from, to].map((b) =>
      graph.nodes[boxes.boxes[b]!.node]!) as [GraphNode, GraphNode];
    const bar = source.forks || user.forks ? source.bar || user.bar : "";
    const { label, over } = wordsOf(what, from, to);
    picture.append(svg("polyline", { class: near ? "edge" : "edge far",
      stroke: bar || kEdge, "stroke-dasharray": bar ? "7 3 1.5 3" : "none",
      "data-from": source.id, "data-to": user.id,
      points: line.map((p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`).join(" "),
      "marker-end": "url(#tip)" }, over ? svg("title", {}, over) : null));
    if (label === "") continue;
    const middle = line[Math.floor(line.length / 2)]!;
    picture.append(svg("text", { class: near ? "edgename" : "edgename far",
      x: middle.x + 4, y: middle.y, fill: kInks.x }, label));
  }
  boxes.boxes.forEach((_, b) => {
    if (seen(rects[b]!)) picture.append(drawBox(what, b, states[b]!, options));
  });
}

// What an edge is, and the hidden nodes that it stands for; nothing of edges
// of parts.
function wordsOf({ graph, boxes }: DagPicture, from: number, to: number):
    { label: string; over: string } {
  const [a, b] = [boxes.boxes[from]!, boxes.boxes[to]!];
  if (a.isPart || b.isPart) return { label: "", over: "" };
  const way = boxes.ways.get(`${a.node} ${b.node}`);
  // What a fork or join waits stands on the edge that leaves it.
  const wait = isCircle(graph, a) ? graph.nodes[a.node]!.badge : "";
  return {
    label: clean(wait || (graph.labels.get(`${way?.last ?? a.node} ` +
                                           b.node) ?? ""), 30),
    over: way ? way.over.map((node) => clean(graph.nodes[node]!.lines[0]!.text,
                                             40)).join(", ") +
      (way.more > 0 ? `, and ${way.more} more` : "") : "" };
}

function drawBox({ graph, boxes, placed }: DagPicture, at: number,
                 state: BoxState, options: DagOptions): SVGElement {
  const box = boxes.boxes[at]!;
  const node = graph.nodes[box.node]!;
  const { x: mx, y: my, width, height } = placed.boxes[at]!;
  const [x, y] = [mx - width / 2, my - height / 2];
  const lines = linesOf(graph, box);
  const fresh = options.isNew(at);
  const circle = isCircle(graph, box);
  const band = box.isPart || node.heat === "" ? "" : node.fill;
  const look = { stroke: node.bar || kEdge, "stroke-width": node.heavy ? 2 : 1,
    "stroke-dasharray": node.dashed && !box.isPart ? "4 3" : "none",
    fill: box.isPart ? "#f4f5f8" : node.heat || node.fill || "#ffffff" };
  const parts = circle
    ? [svg("circle", { class: "box", cx: mx, cy: my, r: 7, ...look,
                       fill: node.bar || kEdge })]
    : [svg("rect", { class: "box", x, y, width, height, ...look,
                     rx: node.external ? 10 : 3 }),
       band ? svg("rect", { class: "stripe", x: x + 3, y: y + 3, width: 9,
                            height: height - 6, fill: band }) : null,
       node.bar && !box.isPart ? svg("rect", { class: "stripe", x: x + width - 5,
         y, width: 5, height, fill: node.bar }) : null,
       ...lines.map(({ kind, text }, k) => svg("text", {
         x: x + (band ? 17 : 9), y: y + 18 + k * kLine, fill: kInks[kind],
         class: kind === "b" ? "name" : "" }, text)),
       node.badge && !box.isPart ? svg("text", { x: x + width - 9, y: y + 18,
         "text-anchor": "end", class: "name badge", fill: kInks.b },
         clean(node.badge, 30)) : null];
  return svg("a", { href: options.href(box), "data-node": node.id,
    "data-part": box.isPart ? String(box.node) : undefined,
    "data-k": "node." + node.id.slice(0, 100),
    class: `node ${state}${fresh ? " new" : ""}${box.isPart ? " part" : ""}` },
    svg("title", {}, (fresh ? "new: " : "") + (box.isPart
      ? lines.map((line) => line.text).join(", ")
      : [clean(`${node.id}: ${node.op}`, 400), ...weightNames(node),
         ...lines.slice(1)
          .map((line) => line.text).filter((text) => text !== node.id)]
        .join(", "))),
    ...parts);
}

// Their whole names: what boxes leave out.
function weightNames({ weights }: GraphNode): string[] {
  const most = 4;
  return [...weights.slice(0, most).map((weight) =>
    clean(weight.split(" ")[0]!, 200)), ...(weights.length > most
    ? [`and ${weights.length - most} more`] : [])];
}

// The extent of each frame; inner ones are inside of theirs.
function frameRects({ boxes }: DagPicture, rects: Rect[]): (Rect | null)[] {
  const out: (Rect | null)[] = boxes.frames.map(() => null);
  const grow = (f: number, rect: Rect) => {
    const old = out[f];
    out[f] = old ? { x0: Math.min(old.x0, rect.x0),
      y0: Math.min(old.y0, rect.y0), x1: Math.max(old.x1, rect.x1),
      y1: Math.max(old.y1, rect.y1) } : { ...rect };
  };
  for (const [b, f] of boxes.frameOf) grow(f, rects[b]!);
  for (let f = out.length - 1; f >= 0; --f) {
    const rect = out[f];
    if (!rect) continue;
    // Room for the title and around.
    out[f] = { x0: rect.x0 - 8, y0: rect.y0 - kTitle, x1: rect.x1 + 8,
               y1: rect.y1 + 8 };
    const { outer } = boxes.frames[f]!;
    if (outer >= 0) grow(outer, out[f]!);
  }
  return out;
}
