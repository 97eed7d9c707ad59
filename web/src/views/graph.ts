// SPDX-License-Identifier: Apache-2.0
//
// The graph of one layer: click a node for its producers and consumers,
// another one with "path from here" for the way between them.

import { nodeTime, pathBetween, readLayerGraph, type LayerGraph } from
  "../data/layergraph";
import { drawDag, placeDag, type Placed } from "../draw/dag";
import { svgFile } from "../draw/svgfile";
import { textTest } from "../data/filter";
import type { App, View } from "../ui/app";
import { h } from "../ui/dom";
import { clean, count } from "../ui/format";
import { textFilter } from "../ui/inputs";
import { drawTable } from "../ui/table";

let loaded: LayerGraph | null = null;
let placedFor = "";
let placed: Placed | null = null;

function graphOf(app: App): LayerGraph {
  return loaded ??= readLayerGraph(app.model.manifest.graph);
}

// Nodes that launch nothing, as the engine says.
function viewsOf(app: App): Set<string> {
  const list = app.model.manifest.graph_views;
  return new Set(Array.isArray(list) ? list.map(String) : []);
}

// What comes from the layer before; other inputs are shown on demand.
const kLayerOutput = /^(layer|embedding)/i;

function placedGraph(app: App): Placed {
  const graph = graphOf(app);
  const hide = app.option("graph.views") === "0";
  const inputs = app.option("graph.inputs") === "1";
  const key = `${hide} ${inputs}`;
  if (!placed || placedFor !== key) {
    const views = viewsOf(app);
    placed = placeDag(graph, (i) => {
      const node = graph.nodes[i]!;
      return (hide && views.has(node.id)) ||
        (!inputs && node.external && !kLayerOutput.test(node.op));
    });
    placedFor = key;
  }
  return placed;
}

function chosenNode(app: App, key: string): number {
  return graphOf(app).byId.get(app.option(key)) ?? -1;
}

function drawPicture(app: App, box: HTMLElement): void {
  const graph = graphOf(app);
  const chosen = chosenNode(app, "graph.node");
  const from = chosenNode(app, "graph.from");
  const path = new Set(chosen >= 0 && from >= 0 && from !== chosen
    ? [...pathBetween(graph, from, chosen), ...pathBetween(graph, chosen,
                                                           from)] : []);
  const near = new Set(chosen < 0 ? [] : [...graph.producers[chosen]!,
                                          ...graph.consumers[chosen]!]);
  const query = app.option("graph.q");
  const test = textTest(query);
  const picture = drawDag(graph, placedGraph(app), {
    hide: () => false,
    state: (i) => {
      const node = graph.nodes[i]!;
      if (i === chosen || i === from) return "chosen";
      if (path.has(i)) return "path";
      if (path.size > 0) return "far";
      if (query !== "")
        return test(`${node.id} ${node.op} ${node.shape}`) ? "found" : "far";
      return chosen < 0 ? "" : near.has(i) ? "near" : "far";
    },
    href: (i) => app.href(app.withOption("graph.node", graph.nodes[i]!.id)),
  });
  const zoom = Number(app.option("graph.zoom") || "1");
  const { width, height } = placedGraph(app);
  // Not smaller than can be read, unless asked for.
  const fit = Math.min(1, (box.clientWidth - 4) / width);
  const scale = zoom * Math.max(fit, 0.75);
  picture.setAttribute("width", String(width * scale));
  picture.setAttribute("height", String(height * scale));
  box.replaceChildren(picture);
  if (chosen >= 0) {
    box.querySelector(`[data-node="${CSS.escape(graph.nodes[chosen]!.id)}"]`)
      ?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

function details(app: App, graph: LayerGraph, at: number): HTMLElement {
  const node = graph.nodes[at]!;
  const links = (nodes: number[]) => nodes.length === 0 ? ["none"]
    : nodes.flatMap((i, k) => [...(k > 0 ? [", "] : []),
      app.link(clean(graph.nodes[i]!.id, 80),
               app.withOption("graph.node", graph.nodes[i]!.id))]);
  const entry = (name: string, ...parts: (Node | string)[]) =>
    [h("dt", {}, name), h("dd", {}, ...parts)];
  return h("section", { class: "facts" }, h("h2", {}, clean(node.id, 200)),
    h("dl", {}, ...entry("op", clean(node.op, 200)),
      ...entry("shape", clean(`${node.shape} ${node.dtype}`, 300)),
      ...entry("group", clean([node.group, node.subGroup]
        .filter((s) => s !== "").join(" / "), 100)),
      ...entry("from", ...links(graph.producers[at]!)),
      ...entry("to", ...links(graph.consumers[at]!)),
      ...node.weights.flatMap((w) => entry("weight",
        clean(`${w.name} ${w.shape} ${w.dtype}`, 300))),
      ...node.kernels.flatMap((k) => entry("kernel",
        clean(`${k.full_name || k.name}: ${k.duration_us} \u00b5s` +
          (k.p95_us === null ? "" : `, 95th percentile ${k.p95_us} \u00b5s`),
          600)))),
    h("div", { class: "tools" }, app.link("Path from here",
      app.withOption("graph.from", node.id)),
      app.option("graph.from") ? app.link("Forget the start",
        app.withOption("graph.from", "")) : null,
      app.link("Close", app.withOption("graph.node", ""))));
}

export const graphView: View = {
  id: "graph",
  title: "Graph",
  filtered: false,
  missing: (model) => model.manifest.graph ? null
    : "No graph of a layer; lamina graph layer DUMP -n 5 --render html " +
      "shows one.",
  needs: () => [],
  draw(app, root) {
    const graph = graphOf(app);
    const box = h("div", { class: "canvasbox dags", tabindex: "0",
      role: "region", "aria-label": "Graph of the layer",
      "data-k": "graph.box" });
    const hide = app.option("graph.views") === "0";
    const zoom = (factor: number) => app.go(app.withOption("graph.zoom",
      (Math.min(8, Math.max(0.2, Number(app.option("graph.zoom") || "1") *
                            factor))).toFixed(2)), true);
    root.append(h("h2", {}, `Layer ${graph.layer} of ` +
      clean(graph.source, 120)), h("div", { class: "tools" },
      textFilter(app, "graph.q", "Nodes with", "linear 4096"),
      app.button("Hide views", () => app.go(app.withOption("graph.views",
        hide ? "" : "0")), { "aria-pressed": String(hide),
                             "data-k": "graph.views" }),
      app.button("Show all inputs", () => app.go(app.withOption("graph.inputs",
        app.option("graph.inputs") === "1" ? "" : "1")), { "aria-pressed":
        String(app.option("graph.inputs") === "1"),
        "data-k": "graph.inputs" }),
      app.button("Zoom in", () => zoom(1.4), { "data-k": "graph.in" }),
      app.button("Zoom out", () => zoom(1 / 1.4), { "data-k": "graph.out" }),
      app.button("SVG", () => svgFile(app, box.querySelector("svg"),
                                      `layer ${graph.layer}`)),
      h("span", { class: "muted" }, `${count(graph.nodes.length)} nodes; a ` +
        "click shows producers and consumers.")), box);
    const chosen = chosenNode(app, "graph.node");
    if (chosen >= 0) root.append(details(app, graph, chosen));
    const rows = graph.nodes.map((_, i) => i);
    root.append(h("h2", {}, "Nodes"), drawTable<number>(app, {
      id: "nodes", caption: "Nodes of the layer", rows, sort: "", columns: [
        { key: "id", title: "node", wide: true,
          value: (i) => graph.nodes[i]!.id,
          cell: (i) => app.link(clean(graph.nodes[i]!.id, 100),
            app.withOption("graph.node", graph.nodes[i]!.id)) },
        { key: "op", title: "op", value: (i) => clean(graph.nodes[i]!.op, 120) },
        { key: "shape", title: "shape", value: (i) =>
          clean(graph.nodes[i]!.shape, 120) },
        { key: "group", title: "group", value: (i) =>
          clean(graph.nodes[i]!.group, 40) },
        { key: "kernels", title: "kernels", numeric: true,
          value: (i) => graph.nodes[i]!.kernels.length },
        { key: "time", title: "time \u00b5s", numeric: true,
          value: (i) => nodeTime(graph.nodes[i]!) || null,
          text: (i) => nodeTime(graph.nodes[i]!) > 0
            ? nodeTime(graph.nodes[i]!).toFixed(1) : "" },
      ] }));
  },
  mounted(app, root) {
    const box = root.querySelector<HTMLElement>(".dags");
    if (box) drawPicture(app, box);
  },
};
