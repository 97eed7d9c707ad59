// SPDX-License-Identifier: Apache-2.0
//
// An icicle: the root on top, width is time, a lower stripe shows the
// families, or how two traces differ. Boxes that are too narrow to see are one hatched box of their sum.

import type { ModuleNode } from "../data/moduletree";
import { groupColor, kGroups } from "../ui/colors";
import { svg } from "../ui/dom";
import { clean, kernelName, percent, time } from "../ui/format";

export interface IcicleOptions {
  width: number;
  levels: number;
  title?: string;                      // else modules
  total: number;                       // ns that percentages are of
  isChosen(node: ModuleNode): boolean;
  // A box becomes an anchor with this address.
  href(node: ModuleNode): string | null;
  // Times in A and B in place of families.
  diff?: (node: ModuleNode) => { words: string; fill: string;
                                 opacity: number };
}

const kRow = 31;
const kStripe = 7;
const kLeast = 0.6;  // px

export function labelOf(node: ModuleNode): string {
  return (node.count > 1 ? `${node.count} \u00d7 ` : "") +
    (node.kind === "kernel" ? kernelName(node.label, 120)
      : clean(node.label, 120));
}

export function drawIcicle(root: ModuleNode, options: IcicleOptions):
    SVGElement {
  const picture = svg("svg", { class: "icicle", role: "group",
    "aria-label": options.title ?? "Modules by kernel time" });
  const defs = svg("defs", {}, svg("pattern", { id: "hatch", width: 6,
    height: 6, patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)" },
    svg("rect", { width: 6, height: 6, fill: "var(--panel)" }),
    svg("rect", { width: 2, height: 6, fill: "var(--muted)" })));
  picture.append(defs);
  let deepest = 0;
  const scale = options.width / Math.max(1, root.time);

  const place = (node: ModuleNode, x: number, depth: number) => {
    if (depth >= options.levels) return;
    deepest = Math.max(deepest, depth + 1);
    picture.append(box(node, x, depth * kRow, node.time * scale, options));
    let at = x;
    let dropped = 0;
    for (const child of node.children) {
      const wide = child.time * scale;
      if (wide < kLeast) {
        dropped += child.time;
        continue;
      }
      place(child, at, depth + 1);
      at += wide;
    }
    if (dropped * scale >= kLeast && depth + 1 < options.levels) {
      picture.append(svg("rect", { x: at, y: (depth + 1) * kRow,
        width: dropped * scale, height: kRow - 2, fill: "url(#hatch)" },
        svg("title", {}, `too narrow to draw: ${time(dropped)}`)));
      deepest = Math.max(deepest, depth + 2);
    }
  };
  place(root, 0, 0);
  picture.setAttribute("viewBox",
                       `0 0 ${options.width} ${Math.max(1, deepest) * kRow}`);
  picture.setAttribute("width", String(options.width));
  picture.setAttribute("height", String(Math.max(1, deepest) * kRow));
  return picture;
}

function box(node: ModuleNode, x: number, y: number, wide: number,
             options: IcicleOptions): SVGElement {
  // Names the box, so it begins with what stands in it.
  const diff = options.diff?.(node);
  const words = diff ? `${labelOf(node)}: ${diff.words}`
    : `${labelOf(node)}  ${percent(node.time, options.total)}: ` +
      time(node.time);
  const href = options.href(node);
  const parts: SVGElement[] = [svg("title", {}, words), svg("rect", {
    x, y, width: Math.max(0.3, wide - 0.7), height: kRow - 2,
    class: node.kind + (options.isChosen(node) ? " chosen" : "") })];
  let at = x;
  if (diff) {
    parts.push(svg("rect", { x, y: y + kRow - 2 - kStripe, height: kStripe,
      width: Math.max(0.2, wide - 0.7), class: "stripe", opacity: diff.opacity,
      fill: diff.fill }));
  }
  for (const [group, ns] of diff ? [] : node.byGroup.entries()) {
    const part = wide * ns / Math.max(1, node.time);
    if (part < 0.2) continue;
    parts.push(svg("rect", { x: at, y: y + kRow - 2 - kStripe,
      width: Math.max(0.2, Math.min(part, x + wide - 0.7 - at)),
      height: kStripe, fill: groupColor(kGroups[group]!) }));
    at += part;
  }
  if (wide > 34) {
    const room = Math.floor((wide - 10) / 6.6);
    const share = diff ? "" : "  " + percent(node.time, options.total);
    const label = labelOf(node);
    const text = label.length + share.length <= room ? label + share
      : label.length <= room ? label : label.slice(0, Math.max(0, room));
    parts.push(svg("text", { x: x + 5, y: y + 15 }, text));
  }
  return href === null ? svg("g", {}, ...parts)
    : svg("a", { href, "data-k": "box." + node.key.slice(-120),
                 "data-box": node.key }, ...parts);
}
