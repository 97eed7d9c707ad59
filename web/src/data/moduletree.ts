// SPDX-License-Identifier: Apache-2.0
//
// The module tree with the kernel time of the filter: modules, below them the
// ops that launched work in them, below those the kernels. Equal siblings can
// be merged; a merged box is the sum of its members.

import type { Column } from "./decode";
import type { Model } from "./model";

export interface ModuleNode {
  key: string;        // stable: path, or the first path of a merged box
  label: string;
  kind: "module" | "op" | "kernel" | "rest";
  paths: string[];    // modules that the node stands for, or belongs to
  name: string;       // of an op or kernel
  count: number;      // members
  time: number;       // ns, with everything below
  byGroup: Float64Array;
  children: ModuleNode[];
}

interface Sources {
  model: Model;
  mask: Uint8Array | null;
  groupOf: Uint8Array;   // by family
  dur: Column;         // what each event counts, Filter.dur
  groups: number;
  merge: boolean;
}

export function node(kind: ModuleNode["kind"], key: string, label: string,
              groups: number): ModuleNode {
  return { key, label, kind, paths: [], name: "", count: 1, time: 0,
           byGroup: new Float64Array(groups), children: [] };
}

// Time of the events of each (module, kernel row): what leaves are made of.
function ownTimes({ model, mask, dur, groupOf, groups }: Sources):
    Map<number, Map<number, Float64Array>> {
  const device = model.device!;
  const own = new Map<number, Map<number, Float64Array>>();
  for (let i = 0; i < device.rows; ++i) {
    if (mask && !mask[i]) continue;
    const module = device.module[i]!;
    let kernels = own.get(module);
    if (!kernels) own.set(module, kernels = new Map());
    const kernel = device.kernel[i]!;
    let times = kernels.get(kernel);
    if (!times) kernels.set(kernel, times = new Float64Array(groups));
    times[groupOf[device.family[i]!]!]! += dur[i]!;
  }
  return own;
}

// Ops with their kernels as children of a module.
function addWork(to: ModuleNode, work: Map<number, Float64Array> | undefined,
                 { model, groups }: Sources): void {
  const kernels = model.table("kernels");
  if (!work || !kernels) return;
  const ops = new Map<string, ModuleNode>();
  for (const [row, times] of work) {
    const op = row > 0 ? kernels.str(row - 1, "op") : "";
    const name = row > 0 ? kernels.str(row - 1, "kernel") : "";
    let parent = ops.get(op);
    if (!parent) {
      parent = node("op", `${to.key}>${op}`, op || "no op", groups);
      parent.name = op;
      parent.paths = to.paths;
      ops.set(op, parent);
    }
    const leaf = node("kernel", `${parent.key}>${row}`, name, groups);
    leaf.name = name;
    leaf.paths = to.paths;
    for (let g = 0; g < groups; ++g) leaf.byGroup[g] = times[g]!;
    leaf.time = times.reduce((sum, t) => sum + t, 0);
    parent.children.push(leaf);
  }
  to.children.push(...ops.values());
}

function total(of: ModuleNode): void {
  if (of.kind === "kernel") return;
  of.time = 0;
  of.byGroup.fill(0);
  for (const child of of.children) {
    total(child);
    of.time += child.time;
    for (let g = 0; g < of.byGroup.length; ++g)
      of.byGroup[g]! += child.byGroup[g]!;
  }
  of.children = of.children.filter((child) => child.time > 0)
    .sort((a, b) => b.time - a.time || (a.key < b.key ? -1 : 1));
}

// One box for siblings of one class, or of one name below modules.
function merged(children: ModuleNode[], classOf: (n: ModuleNode) => string,
                groups: number): ModuleNode[] {
  const classes = new Map<string, ModuleNode[]>();
  for (const child of children) {
    const key = child.kind + "\n" + classOf(child);
    const list = classes.get(key);
    if (list) list.push(child);
    else classes.set(key, [child]);
  }
  return [...classes.values()].map((members) => {
    const first = members[0]!;
    if (members.length === 1) {
      first.children = merged(first.children, classOf, groups);
      return first;
    }
    const box = node(first.kind, first.key, classOf(first), groups);
    box.name = first.name;
    box.count = members.reduce((sum, m) => sum + m.count, 0);
    box.paths = [...new Set(members.flatMap((m) => m.paths))];
    box.byGroup.fill(0);
    for (const member of members) {
      box.time += member.time;
      for (let g = 0; g < groups; ++g) box.byGroup[g]! += member.byGroup[g]!;
    }
    box.children = merged(members.flatMap((m) => m.children), classOf, groups);
    return box;
  });
}

export function moduleTree(sources: Sources): ModuleNode {
  const { model, groups } = sources;
  const table = model.table("modules")!;
  const own = ownTimes(sources);
  const root = node("module", "", "all modules", groups);
  const stack: ModuleNode[] = [root];
  const classes = new Map<string, string>();
  for (let row = 0; row < table.rows; ++row) {
    const path = table.str(row, "module");
    const depth = table.num(row, "depth");
    const one = node("module", path, path.slice(path.lastIndexOf("/") + 1),
                     groups);
    one.paths = [path];
    classes.set(path, table.str(row, "class") || one.label);
    stack.length = Math.min(stack.length, depth + 1);
    stack[stack.length - 1]!.children.push(one);
    stack.push(one);
    addWork(one, own.get(row + 1), sources);
  }
  const unlinked = own.get(0);
  if (unlinked) {
    const rest = node("module", "(unlinked)", "(unlinked)", groups);
    rest.kind = "rest";
    addWork(rest, unlinked, sources);
    root.children.push(rest);
  }
  total(root);
  if (sources.merge) {
    root.children = merged(root.children, (n) =>
      n.kind === "module" ? classes.get(n.key) ?? n.label : n.label, groups);
  }
  const order = (n: ModuleNode) => {
    n.children.sort((a, b) => b.time - a.time || (a.key < b.key ? -1 : 1));
    n.children.forEach(order);
  };
  order(root);
  return root;
}

export function findNode(root: ModuleNode, key: string): ModuleNode | null {
  if (root.key === key) return root;
  for (const child of root.children) {
    const found = findNode(child, key);
    if (found) return found;
  }
  return null;
}
export function parentOf(root: ModuleNode, key: string): ModuleNode | null {
  for (const child of root.children) {
    if (child.key === key) return root;
    const found = parentOf(child, key);
    if (found) return found;
  }
  return null;
}
