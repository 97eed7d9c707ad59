// SPDX-License-Identifier: Apache-2.0
//
// Layers of graph dumps, from the tables that src/graph/atlas writes: what
// alike layers share is kept once per kind, names and times once per distinct
// layer ("cut"). Positions are checked, as a file may have been changed.

import { DamagedFile } from "./decode";
import type { Model, Table } from "./model";

export const kGraphTables = ["graph_files", "graph_layers", "graph_nodes",
  "graph_edges", "graph_names", "graph_node_kernels"];

export interface GraphKernel {
  name: string;
  fullName: string;
  medianNs: number;
  p95Ns: number | null;
  confidence: string;
}

export interface GraphNode {
  id: string;
  op: string;           // of an input: what it is
  shape: string;
  dtype: string;
  group: string;
  subGroup: string;
  launches: boolean;
  secondStream: boolean;
  external: boolean;    // comes from outside of the layer
  carried: boolean;     // and from the layer before
  weights: string[];
  kernels: GraphKernel[];
  // Its box, as src/graph/draw says: see drawBox.
  lines: BoxLine[];
  fill: string;         // of its group
  heat: string;         // by its share of the time; without kernels ""
  badge: string;
  heavy: boolean;
  dashed: boolean;
  bar: string;          // colour of another stream
  forks: boolean;       // begins, ends or waits for one
  frame: FrameOf | null;
  part: FrameOf | null;   // inside of it
}

export interface BoxLine {
  kind: string;         // b label, w weight, k kernel, s shape, x other
  text: string;
}

export interface FrameOf { title: string; fill: string }

export interface LayerGraph {
  kind: number;
  nodes: GraphNode[];
  byId: Map<string, number>;
  producers: number[][];   // by node
  consumers: number[][];
  labels: Map<string, string>;   // of edges, "from to"
}

export interface GraphFile {
  name: string;
  stage: string;
  transform: string;
  section: string;
  layers: Map<string, LayerPlace>;
}

export interface LayerPlace {
  kind: number;
  cut: number;
  nodes: number;
  traced: boolean;      // kernels of a trace were looked at
  title: string[];      // what stands above its picture, by line
  legend: { color: string; text: string }[];
  offNodes: string[];   // kernels that are on no node, behind their sum
}

// Only what is a colour gets into a drawing.
function colorOf(text: string): string {
  return /^#[0-9a-f]{6}$/i.test(text) ? text : "";
}

function lineOf(text: string, id: string): BoxLine {
  return text === "i" ? { kind: "x", text: id }
    : { kind: /^[bwksx]/.test(text) ? text[0]! : "s", text: text.slice(1) };
}

function frameOf(title: string, fill: string): FrameOf | null {
  return title === "" ? null : { title, fill: colorOf(fill) };
}

// First row of each value of a column that counts up from 0.
function firstRows(table: Table | null, column: string): number[] {
  const first: number[] = [];
  for (let row = 0; table && row < table.rows; ++row) {
    const value = table.num(row, column);
    if (value === first.length) first.push(row);
    else if (value !== first.length - 1)
      throw new DamagedFile(`${column} of ${table.name} does not count up`);
  }
  first.push(table?.rows ?? 0);
  return first;
}

export class LayerAtlas {
  readonly files: GraphFile[] = [];
  readonly hasKernels: boolean;
  private readonly nodeRows: number[];
  private readonly nameRows: number[];
  private readonly edgesOf = new Map<number, [number, number, string][]>();
  private readonly kernelsOf = new Map<number, number[]>();
  private readonly graphs = new Map<number, LayerGraph>();

  constructor(private readonly model: Model) {
    const files = model.table("graph_files");
    for (let row = 0; files && row < files.rows; ++row) {
      this.files.push({ name: files.str(row, "file"),
        stage: files.str(row, "stage"), transform: files.str(row, "transform"),
        section: files.str(row, "section"), layers: new Map() });
    }
    this.nodeRows = firstRows(model.table("graph_nodes"), "kind");
    this.nameRows = firstRows(model.table("graph_names"), "cut");
    this.readLayers();
    const kernels = model.table("graph_node_kernels");
    this.hasKernels = kernels !== null && kernels.rows > 0;
    for (let row = 0; kernels && row < kernels.rows; ++row) {
      const cut = kernels.num(row, "cut");
      this.kernelsOf.set(cut, [...this.kernelsOf.get(cut) ?? [], row]);
    }
    const edges = model.table("graph_edges");
    for (let row = 0; edges && row < edges.rows; ++row) {
      const kind = edges.num(row, "kind");
      const list = this.edgesOf.get(kind) ?? [];
      list.push([edges.num(row, "from"), edges.num(row, "to"),
                 edges.str(row, "label")]);
      this.edgesOf.set(kind, list);
    }
  }

  private readLayers(): void {
    const layers = this.model.table("graph_layers");
    for (let row = 0; layers && row < layers.rows; ++row) {
      const file = this.files[layers.num(row, "file")];
      const kind = layers.num(row, "kind");
      const cut = layers.num(row, "cut");
      if (!file || kind + 1 >= this.nodeRows.length ||
          cut + 1 >= this.nameRows.length)
        throw new DamagedFile("a layer of a graph is missing");
      file.layers.set(layers.str(row, "layer"),
        { kind, cut, nodes: layers.num(row, "nodes"),
          traced: layers.num(row, "traced") === 1,
          title: layers.str(row, "title").split("\n").filter((s) => s !== ""),
          legend: layers.str(row, "legend").split("\n").filter((s) => s !== "")
            .map((line) => {
              const [color, ...text] = line.split("\t");
              return { color: colorOf(color!), text: text.join(" ") };
            }),
          offNodes: layers.str(row, "off_nodes").split("\n")
            .filter((s) => s !== "") });
    }
  }

  // The file that a table names; -1 without its graph.
  find(file: string, section: string): number {
    return this.files.findIndex((one) => one.name === file &&
                                (section === "" || one.section === section));
  }

  // Null where the file has no such layer.
  graph(file: number, layer: string): LayerGraph | null {
    const place = this.files[file]?.layers.get(layer);
    if (!place) return null;
    let graph = this.graphs.get(place.cut);
    if (!graph) {
      graph = this.read(place.kind, place.cut);
      this.graphs.set(place.cut, graph);
    }
    return graph;
  }

  private read(kind: number, cut: number): LayerGraph {
    const table = this.model.table("graph_nodes")!;
    const names = this.model.table("graph_names")!;
    const first = this.nodeRows[kind]!;
    const size = this.nodeRows[kind + 1]! - first;
    const at = this.nameRows[cut]!;
    if (this.nameRows[cut + 1]! - at !== size)
      throw new DamagedFile("names of a layer are missing");
    const nodes: GraphNode[] = [];
    const byId = new Map<string, number>();
    for (let i = 0; i < size; ++i) {
      const op = table.str(first + i, "op");
      const id = names.str(at + i, "node");
      if (!byId.has(id)) byId.set(id, i);
      nodes.push({ id, op: op || names.str(at + i, "label"),
        external: op === "", shape: table.str(first + i, "shape"),
        dtype: table.str(first + i, "dtype"),
        group: table.str(first + i, "group"),
        subGroup: table.str(first + i, "sub_group"),
        launches: table.num(first + i, "launches") === 1,
        secondStream: table.num(first + i, "second_stream") === 1,
        carried: table.num(first + i, "carried") === 1,
        weights: names.str(at + i, "weights").split("\n").filter((w) => w),
        kernels: [],
        lines: names.str(at + i, "lines").split("\n").map((line) =>
          lineOf(line, id)),
        fill: colorOf(table.str(first + i, "fill")),
        heat: colorOf(names.str(at + i, "heat")),
        badge: names.str(at + i, "badge"),
        heavy: names.num(at + i, "heavy") === 1,
        dashed: table.num(first + i, "dashed") === 1,
        bar: colorOf(table.str(first + i, "bar")),
        forks: table.num(first + i, "forks") === 1,
        frame: frameOf(table.str(first + i, "frame"),
                       table.str(first + i, "frame_fill")),
        part: frameOf(table.str(first + i, "part"),
                      table.str(first + i, "part_fill")) });
    }
    this.addKernels(cut, nodes, byId);
    const producers: number[][] = nodes.map(() => []);
    const consumers: number[][] = nodes.map(() => []);
    const labels = new Map<string, string>();
    for (const [from, to, label] of this.edgesOf.get(kind) ?? []) {
      if (from >= size || to >= size)
        throw new DamagedFile("an edge of a graph leads nowhere");
      producers[to]!.push(from);
      consumers[from]!.push(to);
      if (label !== "") labels.set(`${from} ${to}`, label);
    }
    return { kind, nodes, byId, producers, consumers, labels };
  }

  private addKernels(cut: number, nodes: GraphNode[],
                     byId: Map<string, number>): void {
    const table = this.model.table("graph_node_kernels");
    for (const row of this.kernelsOf.get(cut) ?? []) {
      const node = nodes[byId.get(table!.str(row, "node")) ?? -1];
      if (!node) throw new DamagedFile("a kernel of a graph has no node");
      const p95 = table!.at(row, "p95_us");
      node.kernels.push({ name: table!.str(row, "kernel"),
        fullName: table!.str(row, "full_name"),
        medianNs: table!.num(row, "median_ns"),
        p95Ns: p95 === null ? null : Number(p95),
        confidence: table!.str(row, "confidence") });
    }
  }
}

const atlases = new WeakMap<Model, LayerAtlas>();
// The layers of the page, read once. The tables must be there.
export function atlasOf(model: Model): LayerAtlas {
  let atlas = atlases.get(model);
  if (!atlas) atlases.set(model, atlas = new LayerAtlas(model));
  return atlas;
}

export function nodeTime(node: GraphNode): number {
  return node.kernels.reduce((sum, kernel) => sum + kernel.medianNs, 0);
}

// Nodes of a shortest path along the edges, or of none; both ends included.
export function pathBetween(graph: LayerGraph, from: number, to: number):
    number[] {
  const before = new Map<number, number>([[from, -1]]);
  const queue = [from];
  for (const node of queue) {
    if (node === to) break;
    for (const next of graph.consumers[node]!) {
      if (before.has(next)) continue;
      before.set(next, node);
      queue.push(next);
    }
  }
  if (!before.has(to)) return [];
  const path = [];
  for (let node = to; node >= 0; node = before.get(node)!) path.push(node);
  return path.reverse();
}

// One graph of all that a layer was in several files: nodes with equal name
// and op are one. For each file its nodes in the union.
export function unionOf(graphs: LayerGraph[]):
    { graph: LayerGraph; places: number[][] } {
  const nodes: GraphNode[] = [];
  const index = new Map<string, number>();
  const edges = new Map<number, Set<number>>();
  const places = graphs.map((graph) => {
    const at = graph.nodes.map((node) => {
      const key = unionKey(node);
      let u = index.get(key);
      if (u === undefined) {
        index.set(key, u = nodes.length);
        nodes.push(node);
      } else {
        nodes[u] = node;
      }
      return u;
    });
    graph.producers.forEach((from, to) => from.forEach((p) => {
      const set = edges.get(at[to]!) ?? new Set();
      edges.set(at[to]!, set.add(at[p]!));
    }));
    return at;
  });
  const producers = nodes.map((_, i) => [...edges.get(i) ?? []]);
  const consumers: number[][] = nodes.map(() => []);
  producers.forEach((from, to) => from.forEach((p) => consumers[p]!.push(to)));
  return { graph: { kind: -1, nodes, byId: new Map(nodes.map((n, i) =>
    [n.id, i])), producers, consumers, labels: new Map() }, places };
}

export function unionKey(node: GraphNode): string {
  return node.id + "\n" + (node.external ? "" : node.op);
}
