// SPDX-License-Identifier: Apache-2.0
//
// Call stacks of launches: a tree of frames, callers before callees. A stack
// is its innermost frame + 1.

import type { Model } from "./model";

// Frames of a stack, innermost first.
export function framesOf(model: Model, stack: number): number[] {
  const parent = model.columns("frames")?.get("parent");
  const list: number[] = [];
  for (let at = stack; parent && at > 0 && at <= parent.length;) {
    list.push(at - 1);
    const up = parent[at - 1]!;
    if (up >= at) break;  // not a tree
    at = up;
  }
  return list;
}

export function frameName(model: Model, frame: number): string {
  const name = model.columns("frames")?.get("name")?.[frame];
  return name === undefined ? "" : model.text(name);
}

// 1 at frame + 1 for each wanted frame and all that it called.
export function framesBelow(model: Model, wanted: Set<string>): Uint8Array {
  const parent = model.columns("frames")?.get("parent");
  const below = new Uint8Array((parent?.length ?? 0) + 1);
  for (let at = 1; parent && at < below.length; ++at)
    below[at] = wanted.has(String(at - 1)) ? 1 : below[parent[at - 1]!] ?? 0;
  return below;
}
