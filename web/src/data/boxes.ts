// SPDX-License-Identifier: Apache-2.0
//
// A layer as boxes: each shown node is one, and a part of the layer that is
// not opened is one for all its nodes. Edges pass through what is hidden.

import type { LayerGraph } from "./layergraph";

// Nodes above which the parts of a layer start as one box each.
export const kMostOpenNodes = 400;

export interface Box {
  node: number;      // itself, or the first of its part
  nodes: number[];
  isPart: boolean;   // stands for all its nodes
}

export interface Boxes {
  boxes: Box[];
  boxOf: Map<number, number>;   // shown node -> box
  edges: [number, number][];    // between boxes
  ways: Map<string, Way>;       // of edges over hidden nodes: "from to", nodes
  frames: Frame[];              // outer ones first
  frameOf: Map<number, number>; // box -> the innermost frame around it
}

export interface Frame {
  title: string;
  fill: string;
  outer: number;     // the frame around it; -1: none
}

// Frames around two boxes or more: one alone needs none.
function addFrames(graph: LayerGraph, out: Boxes): void {
  const members = new Map<string, number[]>();
  const add = (key: string, box: number) =>
    members.set(key, [...members.get(key) ?? [], box]);
  const keys = out.boxes.map(({ node }) => {
    const { frame, part } = graph.nodes[node]!;
    return frame === null ? null
      : { frame: frame.title, part: part && `${frame.title}\n${part.title}` };
  });
  keys.forEach((key, box) => {
    if (key) add(key.frame, box);
    if (key?.part) add(key.part, box);
  });
  const made = new Map<string, number>();
  const open = (key: string, of: { title: string; fill: string },
                outer: number) => {
    if (members.get(key)!.length < 2) return outer;
    let at = made.get(key);
    if (at === undefined) {
      made.set(key, at = out.frames.length);
      out.frames.push({ title: of.title, fill: of.fill, outer });
    }
    return at;
  };
  keys.forEach((key, box) => {
    if (!key) return;
    const node = graph.nodes[out.boxes[box]!.node]!;
    let at = open(key.frame, node.frame!, -1);
    if (key.part) at = open(key.part, node.part!, at);
    if (at >= 0) out.frameOf.set(box, at);
  });
}

export interface BoxOptions {
  hide(node: number): boolean;
  // Parts, by their first node, that show their nodes in a large layer.
  open: Set<number>;
}

// Connected nodes of one group, three or more: node -> its part, named by its
// first node. Two norms at the two ends of a layer are two parts.
export function partsOf(graph: LayerGraph, shown: number[]):
    Map<number, number> {
  const root = new Map(shown.map((i) => [i, i]));
  const find = (i: number): number => {
    let at = i;
    while (root.get(at) !== at) {
      root.set(at, root.get(root.get(at)!)!);
      at = root.get(at)!;
    }
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

// What an edge goes over: the hidden nodes of the shortest way, as src/graph/draw
// has it for pictures.
export interface Way {
  over: number[];    // in order, at most kMostOver
  more: number;      // behind them
  last: number;      // the one that its end takes
}

const kMostOver = 8;

// The shown nodes that each node takes its values from, each by its shortest
// way; null: directly. A hidden node stands for its first input. Inputs come
// first, so one look at each node is enough.
function waysOf(graph: LayerGraph, hide: (node: number) => boolean):
    Map<number, Way | null>[] {
  const instead = new Map<number, { node: number; way: Way }>();
  const length = (way: Way | null) => way ? way.over.length + way.more : 0;
  return graph.producers.map((producers, i) => {
    const out = new Map<number, Way | null>();
    for (const p of producers) {
      const { node, way } = instead.get(p) ?? { node: p, way: null };
      const known = out.get(node);
      if (known === undefined || length(way) < length(known))
        out.set(node, way);
    }
    const [first] = out;
    if (first && hide(i)) {
      const { over, more } = first[1] ?? { over: [], more: 0 };
      const full = over.length >= kMostOver;
      instead.set(i, { node: first[0], way: {
        over: full ? over : [...over, i], more: more + (full ? 1 : 0),
        last: i } });
    }
    return out;
  });
}

export function boxesOf(graph: LayerGraph, options: BoxOptions): Boxes {
  const shown = graph.nodes.map((_, i) => i).filter((i) => !options.hide(i));
  const parts = partsOf(graph, shown);
  const folded = shown.length > kMostOpenNodes;
  const out: Boxes = { boxes: [], boxOf: new Map(), edges: [], ways: new Map(),
                       frames: [], frameOf: new Map() };
  const partBox = new Map<number, number>();
  for (const i of shown) {
    const part = parts.get(i);
    const isPart = folded && part !== undefined && !options.open.has(part);
    let box = isPart ? partBox.get(part) : undefined;
    if (box === undefined) {
      box = out.boxes.length;
      out.boxes.push({ node: i, nodes: [], isPart });
      if (isPart) partBox.set(part, box);
    }
    out.boxes[box]!.nodes.push(i);
    out.boxOf.set(i, box);
  }
  const ways = waysOf(graph, options.hide);
  const seen = new Set<string>();
  for (const i of shown) {
    const to = out.boxOf.get(i)!;
    for (const [p, way] of ways[i]!) {
      const from = out.boxOf.get(p);
      const key = `${from} ${to}`;
      if (from === undefined || from === to) continue;
      if (way) out.ways.set(`${p} ${i}`, way);
      if (seen.has(key)) continue;
      seen.add(key);
      out.edges.push([from, to]);
    }
  }
  addFrames(graph, out);
  return out;
}
