// SPDX-License-Identifier: Apache-2.0
//
// The graph of one layer: click a node for its producers and consumers,
// another one with "path from here" for the way between them. Layers and
// files can be stepped through.

import { atlasOf, kGraphTables, nodeTime, pathBetween, unionKey,
         type LayerAtlas, type LayerGraph, type LayerPlace } from
  "../data/layergraph";
import { textTest } from "../data/filter";
import { drawDag, emptyPicture, kMostDrawn, type BoxState, type DagPicture }
  from "../draw/dag";
import { canHold, pictureOf } from "../draw/graphlayout";
import { svgFile } from "../draw/svgfile";
import type { App, Patch, View } from "../ui/app";
import { h, svg } from "../ui/dom";
import { clean, count, kernelName } from "../ui/format";
import { textFilter } from "../ui/inputs";
import { drawTable } from "../ui/table";

interface Place {
  atlas: LayerAtlas;
  file: number;
  layer: string;
  graph: LayerGraph;
}

// Where the page begins, as the command was asked.
function startOf(app: App): { file: number; layer: string; views: string } {
  const start = app.model.manifest.graph_start;
  return { file: Number(start?.file ?? 0), layer: String(start?.layer ?? ""),
           views: String(start?.views ?? "") };
}

function layersOf(atlas: LayerAtlas, file: number): string[] {
  return [...atlas.files[file]?.layers.keys() ?? []];
}

// The file and layer of the address; what it names wrongly becomes the nearest
// that there is.
function placeOf(app: App): Place {
  const atlas = atlasOf(app.model);
  const start = startOf(app);
  const wanted = Number(app.option("graph.file") || start.file);
  const file = atlas.files[wanted] ? wanted : 0;
  const layers = layersOf(atlas, file);
  const name = app.option("graph.layer") || start.layer;
  const layer = layers.includes(name) ? name
    : layers.find((one) => one !== "shared") ?? layers[0]!;
  return { atlas, file, layer, graph: atlas.graph(file, layer)! };
}

// Among kernels what launches nothing is in the way, unless asked for.
function hidesViews(app: App, { atlas, file, layer }: Place): boolean {
  const asked = app.option("graph.views") || startOf(app).views;
  return asked === "" ? placeOfLayer(atlas, file, layer).traced
    : asked === "0";
}

function placeOfLayer(atlas: LayerAtlas, file: number, layer: string):
    LayerPlace {
  return atlas.files[file]!.layers.get(layer)!;
}

function openParts(app: App): Set<number> {
  return new Set(app.option("graph.open").split(" ").filter((s) => s !== "")
    .map(Number));
}

function picture(app: App, place: Place): DagPicture {
  const { atlas, file, layer } = place;
  return pictureOf(atlas, file, layer, {
    hideViews: hidesViews(app, place),
    allInputs: app.option("graph.inputs") === "1",
    hold: app.option("graph.hold") !== "0", open: openParts(app) })!;
}

function chosenNode(app: App, graph: LayerGraph, key: string): number {
  return graph.byId.get(app.option(key)) ?? -1;
}

function markedNodes(app: App, graph: LayerGraph): number[] {
  return app.option("graph.mark").split(" ")
    .map((id) => graph.byId.get(id) ?? -1).filter((i) => i >= 0);
}

// How each node stands to what is chosen, searched or marked.
function nodeStates(app: App, graph: LayerGraph): (node: number) => BoxState {
  const chosen = chosenNode(app, graph, "graph.node");
  const from = chosenNode(app, graph, "graph.from");
  const path = new Set(chosen >= 0 && from >= 0 && from !== chosen
    ? [...pathBetween(graph, from, chosen), ...pathBetween(graph, chosen,
                                                           from)] : []);
  const near = new Set(chosen < 0 ? [] : [...graph.producers[chosen]!,
                                          ...graph.consumers[chosen]!]);
  const marked = new Set(markedNodes(app, graph));
  const query = app.option("graph.q");
  const test = textTest(query);
  return (i) => {
    const node = graph.nodes[i]!;
    if (i === chosen || i === from) return "chosen";
    if (path.has(i)) return "path";
    if (path.size > 0) return "far";
    if (query !== "")
      return test(`${node.id} ${node.op} ${node.shape}`) ? "found" : "far";
    if (marked.has(i)) return "marked";
    if (chosen >= 0) return near.has(i) ? "near" : "far";
    return marked.size > 0 ? "far" : "";
  };
}

const kOrder: BoxState[] = ["chosen", "path", "found", "marked", "near", ""];

// What the layer was in the file before; null without one.
function before({ atlas, file, layer }: Place): LayerGraph | null {
  const { section } = atlas.files[file]!;
  for (let at = file - 1; at >= 0; --at) {
    if (atlas.files[at]!.section !== section) continue;
    const graph = atlas.graph(at, layer);
    if (graph) return graph;
  }
  return null;
}

function keysOf(graph: LayerGraph): Set<string> {
  return new Set(graph.nodes.map(unionKey));
}

function zoomOf(app: App): number {
  const zoom = Number(app.option("graph.zoom") || "1");
  return Number.isFinite(zoom) ? Math.min(8, Math.max(0.2, zoom)) : 1;
}

function drawPicture(app: App, box: HTMLElement): void {
  const place = placeOf(app);
  const { graph } = place;
  const what = picture(app, place);
  const old = before(place);
  const known = old && old !== graph ? keysOf(old) : null;
  const stateOf = nodeStates(app, graph);
  const options = {
    state: (b: number) => {
      const states = what.boxes.boxes[b]!.nodes.map(stateOf);
      return kOrder.find((state) => states.includes(state)) ?? "far";
    },
    isNew: (b: number) => known !== null && what.boxes.boxes[b]!.nodes.some(
      (i) => !graph.nodes[i]!.external && !known.has(unionKey(
        graph.nodes[i]!))),
    href: (one: { node: number; isPart: boolean }) => app.href(one.isPart
      ? app.withOption("graph.open", [...openParts(app), one.node].join(" "))
      : app.withOption("graph.node", graph.nodes[one.node]!.id)),
  };
  const drawing = emptyPicture(what, `Layer ${clean(place.layer, 60)}`);
  const zoom = zoomOf(app);
  const { width, height } = what.placed;
  // Not smaller than can be read, unless asked for.
  const fit = Math.min(1, (box.clientWidth - 4) / width);
  const scale = zoom * Math.max(fit, 0.75);
  drawing.setAttribute("width", String(width * scale));
  drawing.setAttribute("height", String(height * scale));
  box.replaceChildren(drawing);
  // The first that the reader looks for stands in the window.
  const focus = what.boxes.boxes.findIndex((_, b) =>
    /chosen|found|marked/.test(options.state(b)));
  if (focus >= 0) {
    const at = what.placed.boxes[focus]!;
    box.scrollTo(at.x * scale - box.clientWidth / 2,
                 at.y * scale - box.clientHeight / 2);
  }
  if (what.boxes.boxes.length <= kMostDrawn) {
    drawDag(drawing, what, options, null);
    return;
  }
  const spare = 800;
  let x = NaN;
  let y = NaN;
  const draw = () => {
    if (Math.abs(box.scrollLeft - x) < spare / 2 &&
        Math.abs(box.scrollTop - y) < spare / 2) return;
    [x, y] = [box.scrollLeft, box.scrollTop];
    drawDag(drawing, what, options, {
      x0: (x - spare) / scale, x1: (x + box.clientWidth + spare) / scale,
      y0: (y - spare) / scale, y1: (y + box.clientHeight + spare) / scale });
  };
  box.addEventListener("scroll", draw, { passive: true });
  draw();
}

function microseconds(ns: number): string {
  // A median may end in half a nanosecond.
  return (ns / 1000).toFixed(4).replace(/\.?0+$/, "");
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
      ...node.weights.slice(0, 40).flatMap((w) => entry("weight",
                                                        clean(w, 300))),
      ...(node.weights.length > 40
        ? entry("weight", `and ${node.weights.length - 40} more`) : []),
      ...node.kernels.flatMap((k) => entry("kernel",
        clean(`${kernelName(k.fullName || k.name)}: ${microseconds(k.medianNs)} \u00b5s` +
          (k.p95Ns === null ? "" : ", 95th percentile " +
            `${microseconds(k.p95Ns)} \u00b5s`) + `, ${k.confidence}`, 600)))),
    h("div", { class: "tools" }, app.link("Path from here",
      app.withOption("graph.from", node.id)),
      app.option("graph.from") ? app.link("Forget the start",
        app.withOption("graph.from", "")) : null,
      app.link("Close", app.withOption("graph.node", ""))));
}

function chooser(app: App, key: string, label: string,
                 entries: { value: string; text: string }[], chosen: string):
    HTMLElement {
  if (entries.length < 2) return h("span");
  const at = entries.findIndex((one) => one.value === chosen);
  const to = (value: string): Patch => app.withOption(key, value);
  const select = h("select", { "aria-label": label, "data-k": key,
    change: () => app.go(to(select.value)) });
  for (const one of entries)
    select.append(h("option", { value: one.value }, clean(one.text, 120)));
  select.value = chosen;
  const step = (by: number, text: string, name: string) => {
    const next = entries[at + by];
    return app.button(text, () => { if (next) app.go(to(next.value)); },
      { "data-k": key + name, disabled: !next,
        "aria-label": `${name} ${label.toLowerCase()}` });
  };
  return h("span", { class: "chooser" }, h("label", { class: "muted" },
    label + " ", select), step(-1, "\u25c0", "previous"),
    step(1, "\u25b6", "next"));
}

// What changed since the file before.
function changes(place: Place): string {
  const old = before(place);
  if (!old) return "";
  if (old === place.graph) return " Unchanged since the dump before.";
  const [was, is] = [keysOf(old), keysOf(place.graph)];
  const ops = (graph: LayerGraph, other: Set<string>) => graph.nodes.filter(
    (node) => !node.external && !other.has(unionKey(node))).length;
  return ` Since the dump before ${ops(place.graph, was)} are new ` +
    `(outlined) and ${ops(old, is)} are gone.`;
}

function toolbars(app: App, place: Place, box: HTMLElement): HTMLElement {
  const { atlas, file, layer, graph } = place;
  const what = picture(app, place);
  const toggle = (key: string, on: string, text: string) =>
    app.button(text, () => app.go(app.withOption("graph." + key,
      app.option("graph." + key) === on ? "" : on)),
      { "aria-pressed": String(app.option("graph." + key) === on),
        "data-k": "graph." + key });
  const zoom = (factor: number) => app.go(app.withOption("graph.zoom",
    (zoomOf(app) * factor).toFixed(2)), true);
  const parts = what.boxes.boxes.filter((b) => b.isPart);
  return h("div", {}, h("div", { class: "tools" },
    chooser(app, "graph.file", "Dump", atlas.files.map((one, i) => ({
      value: String(i), text: one.name + (atlas.files.filter((f) =>
        f.name === one.name).length > 1 ? ` (${one.section})` : "") })),
      String(file)),
    chooser(app, "graph.layer", "Layer", layersOf(atlas, file).map((name) =>
      ({ value: name, text: name })), layer),
    canHold(atlas, file, layer)
      ? toggle("hold", "0", "Place this dump alone") : null),
    h("div", { class: "tools" },
    textFilter(app, "graph.q", "Nodes with", "linear 4096"),
    app.button("Hide views", () => app.go(app.withOption("graph.views",
      hidesViews(app, place) ? "1" : "0")),
      { "aria-pressed": String(hidesViews(app, place)),
        "data-k": "graph.views" }),
    toggle("inputs", "1", "Show all inputs"),
    parts.length > 0 ? app.button("Open all parts", () =>
      app.go(app.withOption("graph.open", parts.map((b) => b.node).join(" "))),
      { "data-k": "graph.open" }) : null,
    app.option("graph.open") ? app.button("Close parts", () =>
      app.go(app.withOption("graph.open", "")), { "data-k": "graph.closed" })
      : null,
    app.button("Zoom in", () => zoom(1.4), { "data-k": "graph.in" }),
    app.button("Zoom out", () => zoom(1 / 1.4), { "data-k": "graph.out" }),
    app.button("SVG", () => svgFile(app, box.querySelector("svg"),
                                    `layer ${layer}`)),
    app.option("graph.mark") ? app.link("Forget the marks",
      app.withOption("graph.mark", "")) : null),
    h("p", { class: "muted" }, `${count(graph.nodes.filter((n) =>
      !n.external).length)} nodes; a click shows producers and consumers.` +
      changes(place)));
}

// Kernels of the marked nodes, of the trace.
function markedKernels(app: App, graph: LayerGraph): HTMLElement | null {
  const rows = markedNodes(app, graph).flatMap((i) =>
    graph.nodes[i]!.kernels.map((kernel) => ({ node: graph.nodes[i]!.id,
                                               kernel })));
  if (rows.length === 0) return null;
  return h("section", { "data-k": "graph.kernels" },
    h("h2", {}, "Kernels of the marked nodes"),
    drawTable<typeof rows[number]>(app, { id: "marked", caption:
      "Kernels of the marked nodes", rows, sort: "", columns: [
        { key: "node", title: "node", value: (r) => clean(r.node, 120) },
        { key: "kernel", title: "kernel", wide: true,
          value: (r) => clean(r.kernel.fullName || r.kernel.name, 300),
          cell: (r) => h("span", { title: clean(r.kernel.fullName, 2000) },
                         kernelName(r.kernel.fullName || r.kernel.name)) },
        { key: "time", title: "median \u00b5s", numeric: true,
          value: (r) => r.kernel.medianNs,
          text: (r) => microseconds(r.kernel.medianNs) },
        { key: "late", title: "95th percentile \u00b5s", numeric: true,
          value: (r) => r.kernel.p95Ns,
          text: (r) => r.kernel.p95Ns === null ? ""
            : microseconds(r.kernel.p95Ns) },
        { key: "sure", title: "confidence",
          value: (r) => r.kernel.confidence }] }));
}

function nodeTable(app: App, graph: LayerGraph): HTMLElement {
  return drawTable<number>(app, {
    id: "nodes", caption: "Nodes of the layer",
    rows: graph.nodes.map((_, i) => i), sort: "", columns: [
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
          ? microseconds(nodeTime(graph.nodes[i]!)) : "" }] });
}

// What shades and bands stand for; lines without a colour are headings.
function legendOf(legend: LayerPlace["legend"]): HTMLElement {
  return h("ul", { class: "daglegend", "data-k": "graph.legend" },
    ...legend.map(({ color, text }) => h("li", {}, color === "" ? null
      : svg("svg", { width: 16, height: 12, "aria-hidden": "true" },
            svg("rect", { x: 0.5, y: 0.5, width: 15, height: 11, fill: color,
                          stroke: "#8a90a0" })),
      h(color === "" ? "strong" : "span", {}, clean(text, 80)))));
}

export const graphView: View = {
  id: "graph",
  title: "Graph",
  filtered: false,
  missing: (model) => model.hasTable("graph_layers") ? null
    : "No graph of a layer.",
  needs: () => kGraphTables,
  draw(app, root) {
    const place = placeOf(app);
    const { graph } = place;
    const box = h("div", { class: "canvasbox dags", tabindex: "0",
      role: "region", "aria-label": "Graph of the layer",
      "data-k": "graph.box" });
    const { title, legend, offNodes } = placeOfLayer(place.atlas, place.file,
                                                     place.layer);
    root.append(h("h2", {}, clean(title[0] ?? place.layer, 120)),
      ...title.slice(1).map((line) => h("p", { "data-k": "graph.title" },
                                        clean(line, 300))),
      toolbars(app, place, box), box);
    if (legend.length > 0) root.append(legendOf(legend));
    if (offNodes.length > 0) {
      root.append(h("ul", { class: "daglegend", "data-k": "graph.offnodes" },
        ...offNodes.map((line, i) => h("li", {},
          h(i === 0 ? "strong" : "span", {}, clean(line, 120))))));
    }
    const chosen = chosenNode(app, graph, "graph.node");
    if (chosen >= 0) root.append(details(app, graph, chosen));
    const kernels = markedKernels(app, graph);
    if (kernels) root.append(kernels);
    root.append(h("h2", {}, "Nodes"), nodeTable(app, graph));
  },
  mounted(app, root) {
    const box = root.querySelector<HTMLElement>(".dags");
    if (box) drawPicture(app, box);
    if (app.option("graph.at") === "kernels")
      root.querySelector('[data-k="graph.kernels"]')?.scrollIntoView();
  },
};
