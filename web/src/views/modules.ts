// SPDX-License-Identifier: Apache-2.0
//
// Modules as an icicle: click filters, a second click or Enter zooms,
// Backspace goes up, arrows walk.

import { diffTree, rowsBelow } from "../data/difftree";
import type { Model } from "../data/model";
import { findNode, moduleTree, parentOf, type ModuleNode } from
  "../data/moduletree";
import { kMaxValues, type Chip } from "../data/state";
import { groupIndex } from "../data/groups";
import { drawIcicle, labelOf } from "../draw/icicle";
import { svgFile } from "../draw/svgfile";
import type { App, Patch, View } from "../ui/app";
import { drawLegend, swatch } from "../ui/chips";
import { kGroups } from "../ui/colors";
import { deltaCell, deltaText } from "../ui/compare";
import { h } from "../ui/dom";
import { clean, count, percent, tableCsv, time } from "../ui/format";
import { hint } from "../ui/paper";
import { drawTable, type Col } from "../ui/table";

const kLevels = 14;
const kDoubleClick = 400;  // ms
const kMostRows = 400;

let tree: { selection: unknown; merge: boolean; root: ModuleNode } | null =
  null;
let lastClick = { key: "", at: 0 };
let shown: { root: ModuleNode; top: ModuleNode } | null = null;

// A page that compares two traces with modules.
function isDiff(model: Model): boolean {
  return model.traces.length === 2 && (model.manifest.blocks
    .find((b) => b.name === "device")?.columns ?? [])
    .some((c) => c.name === "diffmodule");
}

export function makeTree(app: App, merge: boolean): ModuleNode {
  if (isDiff(app.model)) return diffTree(app.model, app.selection.mask,
    app.filter.dur!);
  return moduleTree({ model: app.model, mask: app.selection.mask,
    dur: app.filter.dur!, groupOf: groupIndex(app.model), groups: kGroups.length, merge });
}

function treeOf(app: App): ModuleNode {
  const merge = app.option("modules.merge") !== "0";
  if (tree?.selection !== app.selection || tree.merge !== merge)
    tree = { selection: app.selection, merge, root: makeTree(app, merge) };
  return tree.root;
}

// Less and more time in B, as strong as the change is large.
function diffOf({ byGroup }: ModuleNode) {
  const [a, b] = [byGroup[0]!, byGroup[1]!];
  const share = Math.abs(b - a) / Math.max(1, a, b);
  return { words: `A ${time(a)}, B ${time(b)}, ${deltaText(b - a)}`,
           fill: b > a ? "var(--more)" : "var(--less)",
           opacity: a === b ? 0 : Math.min(1, 0.25 + share * 1.5) };
}

// A link holds a limited number of rows; large modules have no filter.
function diffChips(app: App, node: ModuleNode): Chip[] | null {
  const rows = rowsBelow(app.model, node.paths);
  return rows.length > kMaxValues ? null
    : app.only("of", ...rows.map((row) => `diff_by.${row}`));
}

function chipsOf(app: App, node: ModuleNode): Chip[] | null {
  if (node.kind === "rest" || node.key === "") return null;
  if (isDiff(app.model)) return diffChips(app, node);
  if (node.kind === "module") return app.only("mod", ...node.paths);
  const chips = node.paths.length > 0 ? app.only("mod", ...node.paths)
    : app.state.chips;
  const kind = node.kind === "op" ? "op" : "name";
  return [...chips.filter((c) => c.kind !== kind),
          { kind, values: [node.name], not: false }];
}

function isChosen(app: App, node: ModuleNode): boolean {
  if (isDiff(app.model)) return false;
  return node.kind === "module" && node.paths.length > 0 &&
    node.paths.every((path) => app.isChosen("mod", path));
}

function zoomPatch(app: App, node: ModuleNode | null): Patch {
  return app.withOption("modules.root", node?.key ?? "");
}

// The module, or the nearest one below it with several children.
function drawPicture(app: App, box: HTMLElement): void {
  const root = treeOf(app);
  const top = findNode(root, app.option("modules.root")) ?? root;
  shown = { root, top };
  const picture = drawIcicle(top, {
    width: Math.max(280, box.clientWidth - 2), levels: kLevels,
    total: root.time, isChosen: (node) => isChosen(app, node),
    ...isDiff(app.model) ? { diff: diffOf } : {},
    href: (node) => {
      const chips = chipsOf(app, node);
      return chips ? app.href({ chips }) : null;
    } });
  picture.addEventListener("click", (event) => {
    const key = (event.target as Element).closest("[data-box]")
      ?.getAttribute("data-box");
    if (key === null || key === undefined) return;
    const now = performance.now();
    if (lastClick.key === key && now - lastClick.at < kDoubleClick) {
      event.preventDefault();
      app.go(zoomPatch(app, findNode(root, key)));
    }
    lastClick = { key, at: now };
  });
  box.replaceChildren(picture);
}

interface Line { node: ModuleNode; depth: number }

function mainGroup({ byGroup }: ModuleNode): string {
  return kGroups[byGroup.indexOf(Math.max(...byGroup))]!;
}

function ownColumns(app: App): Col<Line>[] {
  return [
      { key: "kind", title: "what", value: ({ node }) =>
        node.kind === "rest" ? "no launch" : node.kind },
      { key: "instances", title: "instances", numeric: true,
        value: ({ node }) => node.count,
        text: ({ node }) => count(node.count) },
      { key: "time", title: "kernel time", numeric: true,
        value: ({ node }) => node.time, text: ({ node }) => time(node.time) },
      { key: "share", title: "%", numeric: true,
        value: ({ node }) => node.time,
        text: ({ node }) => percent(node.time, app.selection.time) },
      { key: "main", title: "main family", value: ({ node }) => mainGroup(node),
        cell: ({ node }) => h("span", {}, swatch(mainGroup(node)), mainGroup(node)) },
  ];
}

const kDiffColumns: Col<Line>[] = [
  ...(["A", "B"] as const).map((title, side): Col<Line> => ({
    key: title.toLowerCase(), title, numeric: true,
    value: ({ node }) => node.byGroup[side]!,
    text: ({ node }) => time(node.byGroup[side]!) })),
  { key: "delta", title: "difference", numeric: true,
    value: ({ node }) => node.byGroup[1]! - node.byGroup[0]!,
    text: ({ node }) => deltaText(node.byGroup[1]! - node.byGroup[0]!),
    cell: ({ node }) => deltaCell(node.byGroup[1]! - node.byGroup[0]!) },
];

function table(app: App, root: ModuleNode): HTMLElement {
  const lines: Line[] = [];
  const walk = (node: ModuleNode, depth: number) => {
    for (const child of node.children) {
      if (lines.length >= kMostRows) return;
      lines.push({ node: child, depth });
      if (child.kind === "module") walk(child, depth + 1);
    }
  };
  walk(root, 0);
  const engine = app.model.table("modules");
  return drawTable<Line>(app, {
    id: "modules", caption: "Modules, ops and kernels", rows: lines, sort: "",
    csv: engine && app.state.chips.length === 0
      ? () => tableCsv(engine, Array(engine.rows).keys()) : undefined,
    note: (engine && app.state.chips.length === 0
      ? "Copies hold the engine's table. " : "") +
      (lines.length >= kMostRows ? `The first ${kMostRows} boxes.` : ""),
    columns: [
      { key: "module", title: "module", wide: true,
        value: ({ node }) => labelOf(node),
        cell: ({ node, depth }) => {
          const chips = chipsOf(app, node);
          const cell = h("span", {}, chips
            ? app.link(labelOf(node), { chips }) : labelOf(node));
          cell.style.paddingLeft = depth * 14 + "px";
          return cell;
        } },
      ...isDiff(app.model) ? kDiffColumns : ownColumns(app),
    ],
  });
}

export const modulesView: View = {
  id: "modules",
  title: "Modules",
  filtered: true,
  missing: (model) => isDiff(model) ||
    (model.hasTable("modules") && model.hasEvents) ? null : "The trace holds no nn.Module ranges; record it with_stack=True and " +
      "with_modules=True.",
  needs: () => ["modules", "device", "kernels", "diff_by"],
  draw(app, root) {
    const diff = isDiff(app.model);
    const tree = treeOf(app);
    const top = findNode(tree, app.option("modules.root")) ?? tree;
    const merge = h("input", { type: "checkbox", "data-k": "modules.merge",
      change: () => app.go(app.withOption("modules.merge",
        merge.checked ? "" : "0")) });
    merge.checked = app.option("modules.merge") !== "0";
    const up = parentOf(tree, top.key);
    const box = h("div", { class: "canvasbox icicles" });
    root.append(drawLegend(app), h("div", { class: "tools" },
      diff ? null : h("label", {}, merge, " merge equal siblings"),
      app.button("SVG", () => svgFile(app, box.querySelector("svg"),
                                      "modules"), { "data-k": "modules.svg" }),
      top !== tree ? app.link(`Up from ${clean(labelOf(top), 40)}`,
                              zoomPatch(app, up), { "data-k": "modules.up" })
        : null,
      h("span", { class: "muted" }, diff
        ? "Width is kernel time of A and B together, the lower stripe the " +
          "change: blue is less in B, orange more. "
        : "Width is kernel time, the lower stripe its families. ",
        hint("Click to filter, twice to zoom, Backspace goes up."))),
      box);
    root.append(h("h2", {}, "Modules"), table(app, top));
  },
  mounted(app, root) {
    const box = root.querySelector<HTMLElement>(".icicles");
    if (box) drawPicture(app, box);
  },
  key(app, event) {
    if (!shown) return false;
    const { root, top } = shown;
    const focused = (event.target as Element).closest("[data-box]")
      ?.getAttribute("data-box") ?? null;
    if (event.key === "Backspace") {
      app.go(zoomPatch(app, parentOf(root, top.key)));
      return true;
    }
    if (focused === null) return false;
    const node = findNode(root, focused);
    const parent = parentOf(root, focused);
    if (!node) return false;
    if (event.key === "Enter") {
      app.go(zoomPatch(app, node));
      return true;
    }
    const siblings = parent?.children ?? [];
    const at = siblings.indexOf(node);
    const next = event.key === "ArrowDown" ? node.children[0]
      : event.key === "ArrowUp" ? parent
      : event.key === "ArrowRight" ? siblings[at + 1]
      : event.key === "ArrowLeft" ? siblings[at - 1] : undefined;
    if (!/^Arrow/.test(event.key)) return false;
    const target = next ? document.querySelector<HTMLElement>(
      `[data-box="${CSS.escape(next.key)}"]`) : null;
    target?.focus();
    return true;
  },
};
