// SPDX-License-Identifier: Apache-2.0
//
// The icicle of what is active at the peak: memory_tree, outermost frame on
// top; a click makes a frame the root, and filters the other views.

import type { Table } from "../data/model";
import type { App, View } from "../ui/app";
import { memoryColor } from "../ui/colors";
import { h, svg } from "../ui/dom";
import { bytes, clean, percent } from "../ui/format";

const kRow = 26;
const kLeast = 0.7;

interface Node {
  row: number;
  name: string;
  bytes: number;
  children: Node[];
}

function treeOf(table: Table, device: number | null): Node | null {
  const stack: Node[] = [];
  let root: Node | null = null;
  for (let row = 0; row < table.rows; ++row) {
    if (device !== null && table.num(row, "device_index") !== device) continue;
    const depth = table.num(row, "depth");
    const node = { row, name: table.str(row, "name"),
                   bytes: table.num(row, "bytes"), children: [] };
    if (depth === 0) {
      if (root) break;
      root = node;
    }
    stack[depth] = node;
    if (depth > 0) stack[depth - 1]?.children.push(node);
  }
  return root;
}

function find(node: Node, row: number): Node | null {
  const todo = [node];
  for (let one = todo.pop(); one; one = todo.pop()) {
    if (one.row === row) return one;
    todo.push(...one.children);
  }
  return null;
}

export const stacksView: View = {
  id: "stacks",
  title: "Stacks",
  filtered: false,
  missing: (model) => model.hasTable("memory_tree") ? null
    : "The page holds no stacks of a peak.",
  needs: () => ["memory_tree"],
  draw(_app, root) {
    root.append(h("p", { class: "muted" }, "What is active at the moment of " +
      "the tables, by the stacks that allocated it. A click on a frame makes " +
      "it the whole and narrows the other views to it."),
      h("div", { class: "icicles" }));
  },
  mounted(app, root) {
    const table = app.model.table("memory_tree")!;
    const many = table.info.columns.some((c) => c.name === "device_index");
    const tree = treeOf(table, many
      ? Number(app.option("mem.device") || table.num(0, "device_index")) : null);
    if (!tree) return;
    const place = root.querySelector<HTMLElement>(".icicles")!;
    const top = find(tree, Number(app.option("mem.root") || "-1")) ?? tree;
    const width = place.clientWidth;
    const picture = svg("svg", { class: "icicle", role: "group",
      "aria-label": "Stacks by bytes" });
    let deepest = 0;
    const scale = width / Math.max(1, top.bytes);
    const todo: [Node, number, number][] = [[top, 0, 0]];
    for (let next = todo.pop(); next; next = todo.pop()) {
      const [node, x, depth] = next;
      const wide = node.bytes * scale;
      deepest = Math.max(deepest, depth + 1);
      picture.append(drawBox(app, node, tree, x, depth, wide));
      let at = x;
      for (const child of node.children) {
        if (child.bytes * scale >= kLeast) todo.push([child, at, depth + 1]);
        at += child.bytes * scale;
      }
    }
    picture.setAttribute("viewBox", `0 0 ${width} ${deepest * kRow}`);
    picture.setAttribute("width", String(width));
    picture.setAttribute("height", String(deepest * kRow));
    place.append(picture);
  },
};

function drawBox(app: App, node: Node, tree: Node, x: number, depth: number,
                 wide: number): SVGElement {
  const share = percent(node.bytes, tree.bytes);
  const label = `${clean(node.name, 160)}  ${bytes(node.bytes)}`;
  // What the page searches frames by: the name without the count of a run.
  const query = node === tree ? ""
    : node.name.replace(/ x\d+$/, "").replace(/:\d+ /, " ");
  const file = query.split(" ");
  const href = app.href({ options: { ...app.state.options,
    "mem.root": node === tree ? "" : String(node.row),
    "mem.q": query.startsWith("(") ? "" : file.slice(-2).join(" ") } });
  const room = Math.floor((wide - 10) / 6.4);
  const rect = svg("rect", { x, y: depth * kRow, width: Math.max(0.4, wide - 0.7),
    height: kRow - 2, class: "module" });
  const op = node.name.startsWith("aten::");
  const parts: SVGElement[] = [svg("title", {}, `${label}  ${share}`), rect];
  if (op) {
    parts.push(svg("rect", { x, y: depth * kRow + kRow - 5, height: 3,
      width: Math.max(0.4, wide - 0.7), fill: memoryColor(0) }));
  }
  if (room > 4)
    parts.push(svg("text", { x: x + 5, y: depth * kRow + 16 },
      label.length <= room ? label : label.slice(0, room)));
  return svg("a", { href, "data-k": "stack." + node.row }, ...parts);
}
