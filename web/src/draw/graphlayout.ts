// SPDX-License-Identifier: Apache-2.0
//
// The picture of a layer in one file. Alike layers share their places, and a
// layer keeps the places of what stays the same from file to file: there the
// union of all that it was is laid out once.

import { boxesOf, kMostOpenNodes, type Boxes } from "../data/boxes";
import { unionOf, type LayerAtlas, type LayerGraph } from
  "../data/layergraph";
import { sizeOf, type DagPicture } from "./dag";
import { placeBoxes, type Placed, type Size } from "./dagplace";

export interface LayoutOptions {
  hideViews: boolean;
  allInputs: boolean;
  hold: boolean;       // places of nodes over the files
  open: Set<number>;   // parts
}

const layouts = new Map<string, Placed>();
const kMostLayouts = 60;

function kept(key: string, make: () => Placed): Placed {
  let placed = layouts.get(key);
  if (!placed) {
    if (layouts.size >= kMostLayouts)
      layouts.delete(layouts.keys().next().value!);
    layouts.set(key, placed = make());
  }
  return placed;
}

function hider(graph: LayerGraph, options: LayoutOptions):
    (node: number) => boolean {
  return (i) => {
    const node = graph.nodes[i]!;
    return node.external ? !options.allInputs && !node.carried
      : options.hideViews && !node.launches && !node.forks &&
        node.kernels.length === 0 &&
        graph.producers[i]!.length > 0;
  };
}

function keyOf(options: LayoutOptions, sizes: Size[]): string {
  return [options.hideViews, options.allInputs, [...options.open].sort(),
          sizes.map((s) => s.width + "x" + s.height)].join(" ");
}

// Graphs of the layer in all files of the section that hold it, each content
// once.
function versions(atlas: LayerAtlas, file: number, layer: string):
    LayerGraph[] {
  const { section } = atlas.files[file]!;
  const graphs = new Set<LayerGraph>();
  atlas.files.forEach((one, at) => {
    const graph = one.section === section ? atlas.graph(at, layer) : null;
    if (graph) graphs.add(graph);
  });
  return [...graphs];
}

export function canHold(atlas: LayerAtlas, file: number, layer: string):
    boolean {
  const all = versions(atlas, file, layer);
  return all.length > 1 &&
    all.reduce((sum, graph) => sum + graph.nodes.length, 0) <
      8 * kMostOpenNodes;
}

export function pictureOf(atlas: LayerAtlas, file: number, layer: string,
                          options: LayoutOptions): DagPicture | null {
  const graph = atlas.graph(file, layer);
  if (!graph) return null;
  const boxes = boxesOf(graph, { hide: hider(graph, options),
                                 open: options.open });
  const held = options.hold && canHold(atlas, file, layer)
    ? heldPlaces(versions(atlas, file, layer), graph, boxes, options) : null;
  if (held) return { graph, boxes, placed: held };
  const sizes = boxes.boxes.map((box) => sizeOf(graph, box));
  const placed = kept(`${graph.kind} ${keyOf(options, sizes)}`, () =>
    placeBoxes(sizes, boxes));
  return { graph, boxes, placed };
}

// What stands before a hidden node differs from file to file: the edges of each.
function unionEdges(graphs: LayerGraph[], places: number[][], all: Boxes,
                    options: LayoutOptions): [number, number][] {
  const out = new Map<string, [number, number]>();
  graphs.forEach((graph, g) => {
    const own = boxesOf(graph, { hide: hider(graph, options),
                                 open: new Set() });
    const boxOf = (box: number) =>
      all.boxOf.get(places[g]![own.boxes[box]!.node]!);
    for (const edge of own.edges) {
      const [from, to] = [boxOf(edge[0]), boxOf(edge[1])];
      if (from === undefined || to === undefined || from === to) continue;
      out.set(`${from} ${to}`, [from, to]);
    }
  });
  return [...out.values()];
}

// Null where the union is too large to be laid out well.
function heldPlaces(graphs: LayerGraph[], graph: LayerGraph, boxes: Boxes,
                    options: LayoutOptions): Placed | null {
  const union = unionOf(graphs);
  const all = boxesOf(union.graph, { hide: hider(union.graph, options),
                                     open: new Set() });
  if (all.boxes.some((box) => box.isPart) ||
      boxes.boxes.some((box) => box.isPart)) return null;
  const sizes = all.boxes.map((box) => sizeOf(union.graph, box));
  // A box is as large as the largest that stands there.
  graphs.forEach((one, g) => one.nodes.forEach((_, i) => {
    const box = all.boxOf.get(union.places[g]![i]!);
    if (box === undefined) return;
    const size = sizeOf(one, { node: i, nodes: [i], isPart: false });
    sizes[box] = { width: Math.max(sizes[box]!.width, size.width),
                   height: Math.max(sizes[box]!.height, size.height) };
  }));
  const whole = kept(`held ${graphs.map((g) => g.kind)} ` +
    `${union.places.map((p) => p.join(","))} ${keyOf(options, sizes)}`, () =>
    placeBoxes(sizes, { ...all, edges: unionEdges(graphs, union.places, all,
                                                  options) }));
  const places = union.places[graphs.indexOf(graph)]!;
  const wholeBox = (b: number) => all.boxOf.get(places[boxes.boxes[b]!.node]!);
  if (boxes.boxes.some((_, b) => wholeBox(b) === undefined)) return null;
  const lines = new Map(whole.edges.map((e) => [`${e.from} ${e.to}`, e.points]));
  return { width: whole.width, height: whole.height,
    boxes: boxes.boxes.map((_, b) => whole.boxes[wholeBox(b)!]!),
    edges: boxes.edges.map(([from, to]) => ({ from, to, points:
      lines.get(`${wholeBox(from)!} ${wholeBox(to)!}`) ?? [] })) };
}
