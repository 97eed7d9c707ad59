// SPDX-License-Identifier: Apache-2.0
//
// The merged module tree of two traces: the time of each module in A and in B,
// by the rows of diff_by that events count in. byGroup is [A, B].

import type { Column } from "./decode";
import { node, type ModuleNode } from "./moduletree";
import type { Model } from "./model";

export const kSides = 2;

// Rows of the modules of a node and of all below it.
export function rowsBelow(model: Model, paths: string[]): number[] {
  const table = model.table("diff_by");
  const rows: number[] = [];
  for (let row = 0; table && row < table.rows; ++row) {
    if (table.str(row, "dimension") !== "module") continue;
    const key = table.str(row, "key");
    if (paths.some((path) => key === path || key.startsWith(path + "/")))
      rows.push(row);
  }
  return rows;
}

function total(of: ModuleNode): void {
  for (const child of of.children) {
    total(child);
    for (let side = 0; side < kSides; ++side)
      of.byGroup[side]! += child.byGroup[side]!;
  }
  of.time = of.byGroup[0]! + of.byGroup[1]!;
  of.children = of.children.filter((child) => child.time > 0).sort((a, b) =>
    b.time - a.time || (a.key < b.key ? -1 : 1));
}

// Time of the events that pass, by row of diff_by and side.
function sideTimes(model: Model, mask: Uint8Array | null, dur: Column): Float64Array {
  const device = model.device!;
  const times = new Float64Array(
    (model.table("diff_by")!.rows + 1) * kSides);
  for (let i = 0; i < device.rows; ++i) {
    if (mask && !mask[i]) continue;
    const side = model.lanes[device.lane[i]!]!.trace ?? 0;
    times[device.diffmodule[i]! * kSides + side]! += dur[i]!;
  }
  return times;
}

export function diffTree(model: Model, mask: Uint8Array | null, dur: Column): ModuleNode {
  const table = model.table("diff_by")!;
  const times = sideTimes(model, mask, dur);
  const root = node("module", "", "all modules", kSides);
  const known = new Map([["", root]]);
  const find = (path: string): ModuleNode => {
    let found = known.get(path);
    if (found) return found;
    const slash = path.lastIndexOf("/");
    found = node("module", path, path.slice(slash + 1), kSides);
    found.paths = [path];
    known.set(path, found);
    find(path.slice(0, Math.max(0, slash))).children.push(found);
    return found;
  };
  const add = (to: ModuleNode, row: number) => {
    for (let side = 0; side < kSides; ++side)
      to.byGroup[side]! += times[row * kSides + side]!;
  };
  for (let row = 0; row < table.rows; ++row) {
    if (table.str(row, "dimension") !== "module") continue;
    add(find(table.str(row, "key")), row + 1);
  }
  // Work that no row of a module counts.
  const rest = node("rest", "(unlinked)", "(unlinked)", kSides);
  add(rest, 0);
  if (rest.byGroup[0]! + rest.byGroup[1]! > 0) root.children.push(rest);
  total(root);
  return root;
}
