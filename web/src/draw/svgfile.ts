// SPDX-License-Identifier: Apache-2.0
//
// A drawing of the page as a file of its own: colours resolved, title, trace,
// filter and legend inside the picture, no script, no link.

import { groupTimes } from "../data/groups";
import type { App } from "../ui/app";
import { chipText } from "../ui/chips";
import { groupColor } from "../ui/colors";
import { download, svg } from "../ui/dom";
import { clean } from "../ui/format";

const kStyles = ["fill", "stroke", "stroke-width", "stroke-dasharray",
                 "font-size", "font-weight", "opacity"];

function resolve(from: Element, to: Element): void {
  const style = getComputedStyle(from);
  for (const name of kStyles) {
    const value = style.getPropertyValue(name);
    if (value && !value.startsWith("url")) to.setAttribute(name, value);
  }
  for (const name of ["class", "href", "data-k", "data-box", "tabindex"])
    to.removeAttribute(name);
  for (let i = 0; i < from.children.length; ++i)
    resolve(from.children[i]!, to.children[i]!);
}

export function filterText(app: App): string {
  return app.state.chips.map((chip) => (chip.not ? "not " : "") + chip.values
    .slice(0, 3).map((value) => chipText(app, chip, value)).join(" or "))
    .join("; ");
}

export function svgText(app: App, picture: SVGElement, what: string): string {
  const copy = picture.cloneNode(true) as SVGElement;
  resolve(picture, copy);
  const [, , width, height] = (picture.getAttribute("viewBox") ?? "0 0 0 0")
    .split(" ").map(Number) as [number, number, number, number];
  const text = getComputedStyle(document.body).color;
  const legend = svg("g", { "font-size": 12, fill: text });
  let x = 8;
  for (const { group } of groupTimes(app.model)) {
    legend.append(svg("rect", { x, y: height + 52, width: 11, height: 11,
                                fill: groupColor(group) }),
                  svg("text", { x: x + 15, y: height + 62 }, group));
    x += 24 + group.length * 8;
  }
  copy.setAttribute("y", "34");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  const filter = filterText(app);
  const page = svg("svg", { viewBox: `0 0 ${width} ${height + 72}`,
    width, height: height + 72, "font-family": "sans-serif" },
    svg("rect", { width: "100%", height: "100%",
                  fill: getComputedStyle(document.body).backgroundColor }),
    svg("text", { x: 8, y: 22, "font-size": 16, "font-weight": 600,
                  fill: text }, `${what}: ${clean(app.model.title, 120)}` +
      (filter ? ` (${clean(filter, 160)})` : "")), copy, legend);
  return new XMLSerializer().serializeToString(page);
}

export function svgFile(app: App, picture: SVGElement | null,
                        what: string): void {
  if (!picture) return;
  download(what + ".svg", new Blob([svgText(app, picture, what)],
                                   { type: "image/svg+xml" }));
}
