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

// Hidden nodes on a shortest way from one shown node to another, in order.
export function hiddenBetween(graph: LayerGraph,
                              shown: (node: number) => boolean, from: number,
                              to: number): number[] {
  const after = new Map<number, number>([[to, -1]]);
  const queue = [to];
  for (const node of queue) {
    for (const p of graph.producers[node]!) {
      if (p === from) {
        const way = [];
        for (let at = node; at !== to; at = after.get(at)!) way.push(at);
        return way;
      }
      if (after.has(p) || shown(p)) continue;
      after.set(p, node);
      queue.push(p);
    }
  }
  return [];
}

// What a hidden node passes on: the shown nodes that it comes from.
function shownSources(graph: LayerGraph, hide: (node: number) => boolean):
    (node: number) => number[] {
  const known = new Map<number, number[]>();
  return (node) => {
    const found = new Set<number>();
    const seen = new Set([node]);
    const stack = [...graph.producers[node]!];
    while (stack.length > 0) {
      const at = stack.pop()!;
      if (seen.has(at)) continue;
      seen.add(at);
      if (!hide(at)) found.add(at);
      else if (known.has(at)) known.get(at)!.forEach((n) => found.add(n));
      else stack.push(...graph.producers[at]!);
    }
    const list = [...found];
    if (hide(node)) known.set(node, list);
    return list;
  };
}

export function boxesOf(graph: LayerGraph, options: BoxOptions): Boxes {
  const shown = graph.nodes.map((_, i) => i).filter((i) => !options.hide(i));
  const parts = partsOf(graph, shown);
  const folded = shown.length > kMostOpenNodes;
  const out: Boxes = { boxes: [], boxOf: new Map(), edges: [],
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
  const sources = shownSources(graph, options.hide);
  const seen = new Set<string>();
  for (const i of shown) {
    const to = out.boxOf.get(i)!;
    for (const p of sources(i)) {
      const from = out.boxOf.get(p)!;
      const key = `${from} ${to}`;
      if (from === to || seen.has(key)) continue;
      seen.add(key);
      out.edges.push([from, to]);
    }
  }
  addFrames(graph, out);
  return out;
}
