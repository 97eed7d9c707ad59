// SPDX-License-Identifier: Apache-2.0
//
// Colour groups of kernels and the time of each.

import type { Model } from "./model";

// Colour groups, in the order of the palette.
export const kGroups = ["gemm", "attention", "softmax", "norm", "conv",
  "elementwise", "reduce", "moe", "comm", "memory", "other"] as const;

// The position in kGroups of the group of each family.
export function groupIndex(model: Model): Uint8Array {
  return Uint8Array.from(model.families, (family) => {
    const at = (kGroups as readonly string[]).indexOf(family.group);
    return at < 0 ? kGroups.length - 1 : at;
  });
}

// Device time by colour group, by the family of the kernel: what the timeline
// paints and a filter by group selects.
export function groupTimes(model: Model): { group: string; time: number }[] {
  const table = model.table("kernels");
  const groupOf = new Map(model.families.map((f) => [f.name, f.group]));
  const sums = new Map<string, number>();
  for (let row = 0; table && row < table.rows; ++row) {
    const group = groupOf.get(table.str(row, "family")) ?? "other";
    sums.set(group,
      (sums.get(group) ?? 0) + table.num(row, "kernel_time_us"));
  }
  return [...sums].map(([group, time]) => ({ group, time }))
    .filter((g) => g.time > 0).sort((a, b) => b.time - a.time);
}
