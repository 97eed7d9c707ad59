// SPDX-License-Identifier: Apache-2.0
//
// A layout in ranks for graphs that are too large for dagre: linear in nodes
// and edges but for a few sortings. Ranks are longest paths; in a rank boxes
// stand near what they read. Long ranks wrap, so that 256 experts are a block
// and not a line of 256.

import type { Placed, Size } from "./dagplace";

const kGap = 18;
const kRankGap = 34;
const kRowGap = 12;
const kMargin = 12;
const kMostInRow = 24;
const kSweeps = 3;

// Longest path to each node. Edges that close a circle do not count.
export function ranksOf(count: number, edges: [number, number][]): number[] {
  const out: number[][] = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) out[from]!.push(to);
  const state = new Uint8Array(count);  // 1: on the path, 2: done
  const order: number[] = [];
  const forward: number[][] = Array.from({ length: count }, () => []);
  for (let root = 0; root < count; ++root) {
    if (state[root] !== 0) continue;
    const stack: [number, number][] = [[root, 0]];
    state[root] = 1;
    while (stack.length > 0) {
      const top = stack[stack.length - 1]!;
      const next = out[top[0]]![top[1]++];
      if (next === undefined) {
        state[top[0]] = 2;
        order.push(top[0]);
        stack.pop();
      } else if (state[next] !== 1) {
        forward[top[0]]!.push(next);
        if (state[next] === 0) {
          state[next] = 1;
          stack.push([next, 0]);
        }
      }
    }
  }
  const rank = new Array<number>(count).fill(0);
  for (const node of order.reverse()) {
    for (const next of forward[node]!)
      rank[next] = Math.max(rank[next]!, rank[node]! + 1);
  }
  return rank;
}

export function placeLayered(sizes: Size[], edges: [number, number][]): Placed {
  const rank = ranksOf(sizes.length, edges);
  const rows: number[][] = [];
  rank.forEach((r, i) => (rows[r] ??= []).push(i));
  const near: number[][] = sizes.map(() => []);
  for (const [from, to] of edges) {
    near[from]!.push(to);
    near[to]!.push(from);
  }
  const center = new Float64Array(sizes.length);
  const spread = () => {
    for (const row of rows) {
      const width = row.reduce((s, i) => s + sizes[i]!.width + kGap, 0);
      let x = -width / 2;
      for (const i of row) {
        center[i] = x + sizes[i]!.width / 2;
        x += sizes[i]!.width + kGap;
      }
    }
  };
  spread();
  for (let sweep = 0; sweep < kSweeps; ++sweep) {
    for (const row of sweep % 2 === 0 ? rows : [...rows].reverse()) {
      const wanted = new Map(row.map((i) => [i, near[i]!.length === 0
        ? center[i]! : near[i]!.reduce((s, n) => s + center[n]!, 0) /
          near[i]!.length]));
      row.sort((a, b) => wanted.get(a)! - wanted.get(b)! || a - b);
    }
    spread();
  }
  return placeRows(sizes, edges, rows);
}

function placeRows(sizes: Size[], edges: [number, number][],
                   rows: number[][]): Placed {
  const lines: { boxes: number[]; gap: number }[] = [];
  for (const row of rows) {
    for (let at = 0; at < row.length; at += kMostInRow) {
      lines.push({ boxes: row.slice(at, at + kMostInRow),
                   gap: at + kMostInRow < row.length ? kRowGap : kRankGap });
    }
  }
  const widthOf = (line: number[]) =>
    line.reduce((s, i) => s + sizes[i]!.width + kGap, -kGap);
  const width = Math.max(0, ...lines.map((line) => widthOf(line.boxes))) +
    2 * kMargin;
  const boxes = sizes.map((size) => ({ x: 0, y: 0, ...size }));
  let y = kMargin;
  for (const { boxes: line, gap } of lines) {
    const height = Math.max(...line.map((i) => sizes[i]!.height));
    let x = (width - widthOf(line)) / 2;
    for (const i of line) {
      boxes[i]!.x = x + sizes[i]!.width / 2;
      boxes[i]!.y = y + height / 2;
      x += sizes[i]!.width + kGap;
    }
    y += height + gap;
  }
  return { width, height: y + kMargin, boxes,
    edges: edges.map(([from, to]) => ({ from, to, points: [] })) };
}
