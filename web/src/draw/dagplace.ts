// SPDX-License-Identifier: Apache-2.0
//
// Places for boxes, from top to bottom: by dagre, with the boxes of a frame
// close together, or by a simpler layout where there are too many for it. Above
// kMostInOneColumn boxes the outer frames (attention, FFN) stand beside each
// other, as in the pictures of src/graph/draw.

import { Graph, layout } from "@dagrejs/dagre";

import type { Boxes } from "../data/boxes";
import { placeLayered } from "./layered";

export interface Size {
  width: number;
  height: number;
}

export interface Placed {
  width: number;
  height: number;
  boxes: { x: number; y: number; width: number; height: number }[];  // centres
  // Without points an edge is a line from box to box.
  edges: { from: number; to: number; points: { x: number; y: number }[] }[];
}

// Boxes and edges that dagre places within the time of a click.
const kMostForDagre = 450;
const kMostEdgesForDagre = 1200;

// As in src/graph/draw/draw_layer.cc.
const kMostInOneColumn = 80;
const kColumnGap = 48;
const kBend = 10;  // of lines between columns, above and below boxes

export const layoutTimes: number[] = [];

export function placeBoxes(sizes: Size[], boxes: Boxes): Placed {
  const begin = performance.now();
  const columns = columnsOf(sizes.length, boxes);
  const placed = columns ? placeColumns(sizes, boxes, columns)
    : placeColumn(sizes, boxes);
  layoutTimes.push(performance.now() - begin);
  return placed;
}

function placeColumn(sizes: Size[], boxes: Boxes): Placed {
  const { edges } = boxes;
  return sizes.length > kMostForDagre || edges.length > kMostEdgesForDagre
    ? placeLayered(sizes, edges) : placeByDagre(sizes, boxes);
}

// The boxes of each column: those of an outer frame, with what stands in none
// beside its first user, else its first input. Null: one column is enough.
function columnsOf(count: number, { edges, frames, frameOf }: Boxes):
    number[][] | null {
  if (count <= kMostInOneColumn) return null;
  const outer = (f: number): number =>
    frames[f]!.outer < 0 ? f : outer(frames[f]!.outer);
  const column = new Array<number>(count).fill(-1);
  for (const [box, f] of frameOf) column[box] = outer(f);
  const names = [...new Set(column.filter((c) => c >= 0))]
    .sort((a, b) => a - b);
  if (names.length < 2) return null;
  // Users stand behind in the order, inputs in front: one look is enough.
  const users = [...edges].sort((a, b) => b[0] - a[0] || a[1] - b[1]);
  const inputs = edges.map(([from, to]): [number, number] => [to, from])
    .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  for (const [box, other] of [...users, ...inputs]) {
    if (column[box]! < 0) column[box] = column[other]!;
  }
  return names.map((name, at) => column.flatMap((c, box) =>
    c === name || (c < 0 && at === 0) ? [box] : []));
}

function placeColumns(sizes: Size[], boxes: Boxes, columns: number[][]):
    Placed {
  const out: Placed = { width: 0, height: 0, edges: [],
    boxes: sizes.map((size) => ({ x: 0, y: 0, ...size })) };
  const columnOf = new Map<number, number>();
  const lines = new Map<string, { x: number; y: number }[]>();
  const begins: number[] = [];
  columns.forEach((members, c) => {
    const own = new Map(members.map((box, i) => [box, i]));
    const part = placeColumn(members.map((box) => sizes[box]!), { ...boxes,
      edges: boxes.edges.flatMap(([from, to]): [number, number][] =>
        own.has(from) && own.has(to) ? [[own.get(from)!, own.get(to)!]] : []),
      frameOf: new Map(members.flatMap((box, i): [number, number][] =>
        boxes.frameOf.has(box) ? [[i, boxes.frameOf.get(box)!]] : [])) });
    begins.push(out.width);
    members.forEach((box, i) => {
      const at = part.boxes[i]!;
      out.boxes[box] = { ...at, x: at.x + out.width };
      columnOf.set(box, c);
    });
    for (const { from, to, points } of part.edges) {
      lines.set(`${members[from]!} ${members[to]!}`,
                points.map(({ x, y }) => ({ x: x + begins[c]!, y })));
    }
    out.width += part.width + (c + 1 < columns.length ? kColumnGap : 0);
    out.height = Math.max(out.height, part.height);
  });
  // Lines between columns go down, along the gap and in again.
  out.edges = boxes.edges.map(([from, to]) => {
    const [a, b] = [columnOf.get(from)!, columnOf.get(to)!];
    if (a === b) return { from, to, points: lines.get(`${from} ${to}`) ?? [] };
    const [begin, end] = [out.boxes[from]!, out.boxes[to]!];
    const gap = begins[Math.max(a, b)]! - kColumnGap / 2;
    const low = begin.y + begin.height / 2;
    const high = end.y - end.height / 2;
    const points = [{ x: begin.x, y: low }, { x: begin.x, y: low + kBend },
                    { x: gap, y: low + kBend }];
    // Into its side, or from above where another box stands between.
    const side = end.x - Math.sign(end.x - gap) * end.width / 2;
    const free = columns[b]!.every((box) => {
      const { x, y, width, height } = out.boxes[box]!;
      return box === to || Math.abs(y - end.y) > height / 2 ||
        Math.max(Math.min(gap, side), x - width / 2) >=
        Math.min(Math.max(gap, side), x + width / 2);
    });
    return { from, to, points: [...points, ...free
      ? [{ x: gap, y: end.y }, { x: side, y: end.y }]
      : [{ x: gap, y: high - kBend }, { x: end.x, y: high - kBend },
         { x: end.x, y: high }]] };
  });
  return out;
}

function placeByDagre(sizes: Size[], { edges, frames, frameOf }: Boxes):
    Placed {
  const dag = new Graph({ compound: true });
  dag.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, marginx: 12,
                 marginy: 12 });
  dag.setDefaultEdgeLabel(() => ({}));
  sizes.forEach((size, i) => dag.setNode(String(i), { ...size }));
  // Frames without a box, as those of other columns, would take room.
  const used = new Set<number>();
  for (const [, f] of frameOf) {
    for (let at = f; at >= 0 && !used.has(at); at = frames[at]!.outer)
      used.add(at);
  }
  frames.forEach((frame, f) => {
    if (!used.has(f)) return;
    dag.setNode("g" + f, {});
    if (frame.outer >= 0) dag.setParent("g" + f, "g" + frame.outer);
  });
  for (const [i, f] of frameOf) dag.setParent(String(i), "g" + f);
  for (const [from, to] of edges) dag.setEdge(String(from), String(to), {});
  layout(dag);
  const label = dag.graph() as Partial<Size>;
  return { width: label.width ?? 100, height: label.height ?? 100,
    boxes: sizes.map((size, i) => {
      const at = dag.node(String(i)) as { x: number; y: number };
      return { x: at.x, y: at.y, ...size };
    }),
    edges: edges.map(([from, to]) => {
      const edge = dag.edge(String(from), String(to)) as
        { points?: { x: number; y: number }[] } | undefined;
      return { from, to, points: edge?.points ?? [] };
    }) };
}
