// SPDX-License-Identifier: Apache-2.0
//
// Places for boxes, from top to bottom: by dagre, with the boxes of a frame
// close together, or by a simpler layout where there are too many for it.

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

export const layoutTimes: number[] = [];

export function placeBoxes(sizes: Size[], boxes: Boxes): Placed {
  const { edges } = boxes;
  const begin = performance.now();
  const placed = sizes.length > kMostForDagre ||
    edges.length > kMostEdgesForDagre ? placeLayered(sizes, edges)
    : placeByDagre(sizes, boxes);
  layoutTimes.push(performance.now() - begin);
  return placed;
}

function placeByDagre(sizes: Size[], { edges, frames, frameOf }: Boxes):
    Placed {
  const dag = new Graph({ compound: true });
  dag.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, marginx: 12,
                 marginy: 12 });
  dag.setDefaultEdgeLabel(() => ({}));
  sizes.forEach((size, i) => dag.setNode(String(i), { ...size }));
  frames.forEach((frame, f) => {
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
