// SPDX-License-Identifier: Apache-2.0
//
// From a row that names nodes of a dump to the drawing of their layer, with
// these nodes marked.

import { atlasOf } from "../data/layergraph";
import type { App, Patch } from "./app";
import { h } from "./dom";
import { count } from "./format";

const kMostMarks = 60;

// Null where the page does not hold the graph.
export function graphPatch(app: App, file: string, section: string,
                           layer: string, nodes: string[]): Patch | null {
  const atlas = atlasOf(app.model);
  const at = atlas.find(file, section);
  if (at < 0 || !atlas.files[at]!.layers.has(layer)) return null;
  return { view: "graph", options: { ...app.state.options,
    "graph.file": String(at), "graph.layer": layer, "graph.node": "",
    "graph.from": "", "graph.q": "", "graph.views": "", "graph.open": "",
    "graph.at": "",
    "graph.mark": nodes.slice(0, kMostMarks).join(" ") } };
}

// Links to the drawing, and to the kernels of the nodes where the page has
// those of a trace.
export function graphLinks(app: App, file: string, section: string,
                           layer: string, nodes: string[]): Node | string {
  const patch = graphPatch(app, file, section, layer, nodes);
  if (!patch) return "";
  const atlas = atlasOf(app.model);
  const graph = atlas.graph(atlas.find(file, section), layer)!;
  const kernels = nodes.reduce((sum, id) => sum +
    (graph.nodes[graph.byId.get(id) ?? -1]?.kernels.length ?? 0), 0);
  const words = `${count(kernels)} ${kernels === 1 ? "kernel" : "kernels"}`;
  return h("span", {}, app.link("Graph", patch), ...(kernels > 0 ? [", ",
    app.link(words, { ...patch, options: { ...patch.options,
                                           "graph.at": "kernels" } })] : []));
}
