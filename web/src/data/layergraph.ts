// SPDX-License-Identifier: Apache-2.0
//
// One layer of a graph dump as `lamina graph layer` writes it. The engine
// made it; everything is checked again, as a file may have been changed.

import { DamagedFile } from "./decode";

export interface GraphKernel {
  name: string;
  full_name: string;
  duration_us: number;
  p95_us: number | null;
}

export interface GraphNode {
  id: string;
  op: string;
  shape: string;
  dtype: string;
  group: string;
  subGroup: string;
  inputs: string[];
  weights: { name: string; shape: string; dtype: string }[];
  kernels: GraphKernel[];
  external: boolean;
}

export interface LayerGraph {
  layer: number;
  source: string;
  nodes: GraphNode[];
  byId: Map<string, number>;
  producers: number[][];   // by node
  consumers: number[][];
}

type Json = Record<string, unknown>;

function text(from: Json, key: string): string {
  const value = from[key];
  return typeof value === "string" ? value : "";
}
function list(from: Json, key: string): unknown[] {
  const value = from[key];
  return Array.isArray(value) ? value : [];
}
function objects(from: Json, key: string): Json[] {
  return list(from, key).filter((one): one is Json =>
    typeof one === "object" && one !== null);
}
function number(from: Json, key: string): number | null {
  const value = from[key];
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

// "<function f at 0x7fea>" and "<built-in function getitem>" as "f".
export function shortOp(op: string): string {
  return op.replace(/^<(?:built-in )?function ([^ >]+).*>$/, "$1")
    .replace(/\.default$/, "");
}

export function readLayerGraph(json: unknown): LayerGraph {
  if (typeof json !== "object" || json === null)
    throw new DamagedFile("the graph cannot be read");
  const root = json as Json;
  const nodes: GraphNode[] = objects(root, "external_inputs").map((one) => ({
    id: text(one, "id"), op: text(one, "label"), shape: text(one, "shape"),
    dtype: "", group: "inputs", subGroup: "", inputs: [], weights: [],
    kernels: [], external: true }));
  for (const one of objects(root, "nodes")) {
    nodes.push({
      id: text(one, "id"), op: shortOp(text(one, "op")),
      shape: text(one, "shape"), dtype: text(one, "dtype"),
      group: text(one, "group") || "other", subGroup: text(one, "sub_group"),
      inputs: list(one, "inputs").filter((i): i is string =>
        typeof i === "string"),
      weights: objects(one, "weight_inputs").map((w) => ({
        name: text(w, "name"), shape: text(w, "shape"),
        dtype: text(w, "dtype") })),
      kernels: objects(one, "kernels").map((k) => ({
        name: text(k, "name"), full_name: text(k, "full_name"),
        duration_us: number(k, "duration_us") ?? 0,
        p95_us: number(k, "p95_us") })),
      external: false });
  }
  const byId = new Map<string, number>();
  nodes.forEach((node, i) => { if (!byId.has(node.id)) byId.set(node.id, i); });
  const producers = nodes.map((node) => [...new Set(node.inputs)]
    .map((id) => byId.get(id)).filter((i) => i !== undefined));
  const consumers: number[][] = nodes.map(() => []);
  producers.forEach((from, i) => from.forEach((p) => consumers[p]!.push(i)));
  return { layer: number(root, "layer") ?? 0, source: text(root, "source_file"),
           nodes, byId, producers, consumers };
}

export function nodeTime(node: GraphNode): number {
  return node.kernels.reduce((sum, kernel) => sum + kernel.duration_us, 0);
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
