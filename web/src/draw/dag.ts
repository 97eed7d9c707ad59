// SPDX-License-Identifier: Apache-2.0
//
// A layer as a graph, laid out by dagre from top to bottom; groups are tinted
// boxes. The stripe of a node is its share of the layer's time.

import { Graph, layout } from "@dagrejs/dagre";

import { nodeTime, type LayerGraph } from "../data/layergraph";
import { groupColor } from "../ui/colors";
import { svg } from "../ui/dom";
import { clean } from "../ui/format";

export interface Placed {
  width: number;
  height: number;
  nodes: Map<number, { x: number; y: number; width: number; height: number }>;
  edges: { from: number; to: number; points: { x: number; y: number }[] }[];
}

export interface DagOptions {
  hide(node: number): boolean;
  state(node: number): "" | "chosen" | "near" | "path" | "found" | "far";
  href(node: number): string;
}

const kMostGroups = 400;  // nodes, above which clusters are left out
const kLine = 15;

function lines(graph: LayerGraph, at: number): string[] {
  const node = graph.nodes[at]!;
  const ns = nodeTime(node);
  const op = node.external ? node.op : node.op.replace(/^\w+\.(?=\w)/, "");
  return [clean(op, 46), clean([node.shape, node.dtype
    .replace(/torch\./g, "")].filter((s) => s !== "").join(" "), 46),
    ns > 0 ? `${node.kernels.length} kernels, ${ns.toFixed(1)} \u00b5s` : ""]
    .filter((line) => line !== "");
}

// Colours of groups of nodes: those of the kernels they become.
export function colorOf(group: string): string {
  const names: Record<string, string> = { attention: "attention", mlp: "gemm",
    moe: "moe", norm: "norm", residual: "elementwise", inputs: "other",
    rope: "elementwise" };
  return groupColor(names[group] ?? "other");
}

// Connected nodes of one group, three or more: node -> its part, named by its
// first node. Two norms at the two ends of a layer are two parts.
export function partsOf(graph: LayerGraph, shown: number[]):
    Map<number, number> {
  const root = new Map(shown.map((i) => [i, i]));
  const find = (i: number): number => {
    let at = i;
    while (root.get(at) !== at) at = root.get(at)!;
    return at;
  };
  const sameGroup = (a: number, b: number) => root.has(a) && root.has(b) &&
    !graph.nodes[a]!.external && !graph.nodes[b]!.external &&
    graph.nodes[a]!.group === graph.nodes[b]!.group;
  for (const i of shown) {
    for (const p of graph.producers[i]!) {
      if (!sameGroup(p, i)) continue;
      const [a, b] = [find(p), find(i)];
      root.set(Math.max(a, b), Math.min(a, b));
    }
  }
  const size = new Map<number, number>();
  for (const i of shown) size.set(find(i), (size.get(find(i)) ?? 0) + 1);
  return new Map(shown.filter((i) => size.get(find(i))! >= 3)
    .map((i) => [i, find(i)]));
}

export function placeDag(graph: LayerGraph, hide: (node: number) => boolean):
    Placed {
  const dag = new Graph({ compound: true });
  dag.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 30, marginx: 12,
                 marginy: 12 });
  dag.setDefaultEdgeLabel(() => ({}));
  const shown = graph.nodes.map((_, i) => i).filter((i) => !hide(i));
  const clusters = shown.length <= kMostGroups;
  for (const i of shown) {
    const text = lines(graph, i);
    dag.setNode(String(i), { width: Math.max(90, 6.6 * Math.max(...text.map(
      (line) => line.length)) + 26), height: text.length * kLine + 12 });
  }
  const parts = clusters ? partsOf(graph, shown) : new Map<number, number>();
  for (const [i, part] of parts) {
    if (!dag.hasNode("g" + part)) dag.setNode("g" + part, {});
    dag.setParent(String(i), "g" + part);
  }
  // Edges pass through what is hidden.
  const through = (node: number, seen: Set<number>): number[] =>
    graph.producers[node]!.flatMap((p) => {
      if (!hide(p)) return [p];
      if (seen.has(p)) return [];
      seen.add(p);
      return through(p, seen);
    });
  for (const i of shown) {
    for (const p of new Set(through(i, new Set([i]))))
      dag.setEdge(String(p), String(i), {});
  }
  layout(dag);
  const label = dag.graph() as { width?: number; height?: number };
  const placed: Placed = { width: label.width ?? 100,
    height: label.height ?? 100, nodes: new Map(), edges: [] };
  for (const name of dag.nodes()) {
    const node = dag.node(name) as { x: number; y: number; width: number;
                                     height: number } | undefined;
    if (!node || !/^\d+$/.test(name)) continue;
    placed.nodes.set(Number(name), { x: node.x, y: node.y, width: node.width,
                                     height: node.height });
  }
  for (const edge of dag.edges()) {
    const { points } = dag.edge(edge) as { points?: { x: number;
                                                      y: number }[] };
    placed.edges.push({ from: Number(edge.v), to: Number(edge.w),
                        points: points ?? [] });
  }
  return placed;
}

export function drawDag(graph: LayerGraph, placed: Placed,
                        options: DagOptions): SVGElement {
  const picture = svg("svg", { class: "dag", role: "group",
    viewBox: `0 0 ${placed.width} ${placed.height}`,
    "aria-label": `Graph of ${placed.nodes.size} nodes` });
  picture.append(svg("defs", {}, svg("marker", { id: "tip", viewBox:
    "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
    orient: "auto" }, svg("path", { d: "M0 0 L8 4 L0 8 z",
                                    fill: "var(--muted)" }))));
  for (const box of partBoxes(graph, placed).values()) {
    picture.append(svg("rect", { class: "cluster", rx: 8, x: box.x0 - 8,
      y: box.y0 - 8, width: box.x1 - box.x0 + 16,
      height: box.y1 - box.y0 + 16, fill: colorOf(box.group) },
      svg("title", {}, clean(box.group, 80))));
  }
  for (const { from, to, points } of placed.edges) {
    const near = [from, to].every((n) => options.state(n) !== "far");
    picture.append(svg("polyline", { class: near ? "edge" : "edge far",
      points: points.map((p) => `${p.x.toFixed(1)},${p.y.toFixed(1)}`)
        .join(" "), "marker-end": "url(#tip)" }));
  }
  const total = Math.max(1e-9, graph.nodes.reduce((s, n) => s + nodeTime(n),
                                                  0));
  for (const [i, box] of placed.nodes) {
    const node = graph.nodes[i]!;
    const x = box.x - box.width / 2;
    const y = box.y - box.height / 2;
    const share = nodeTime(node) / total;
    const text = lines(graph, i);
    picture.append(svg("a", { href: options.href(i), "data-node": node.id,
      "data-k": "node." + node.id.slice(0, 100),
      class: "node " + options.state(i), "aria-label": text.join(", ") },
      svg("title", {}, clean(`${node.id}: ${node.op} ${node.shape}`, 400)),
      svg("rect", { x, y, width: box.width, height: box.height, rx: 4,
                    "stroke-dasharray": node.external ? "4 3" : "none" }),
      svg("rect", { class: "stripe", x, y, height: box.height,
        width: 5 + share * (box.width - 5), fill: colorOf(node.group),
        opacity: share > 0.2 ? 0.35 : 1 }),
      ...text.map((line, k) => svg("text", { x: x + 12, y: y + 18 + k * kLine,
        class: k === 0 ? "name" : "" }, line))));
  }
  return picture;
}

// The extent of each part, with its group.
function partBoxes(graph: LayerGraph, placed: Placed) {
  const boxes = new Map<number, { group: string; x0: number; y0: number;
                                  x1: number; y1: number }>();
  if (placed.nodes.size > kMostGroups) return boxes;
  for (const [i, part] of partsOf(graph, [...placed.nodes.keys()])) {
    const at = placed.nodes.get(i)!;
    const box = boxes.get(part) ?? { group: graph.nodes[i]!.group,
      x0: Infinity, y0: Infinity, x1: -Infinity, y1: -Infinity };
    box.x0 = Math.min(box.x0, at.x - at.width / 2);
    box.x1 = Math.max(box.x1, at.x + at.width / 2);
    box.y0 = Math.min(box.y0, at.y - at.height / 2);
    box.y1 = Math.max(box.y1, at.y + at.height / 2);
    boxes.set(part, box);
  }
  return boxes;
}
