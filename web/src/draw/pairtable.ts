// SPDX-License-Identifier: Apache-2.0
//
// The table of two layers beside each other, one row per place.

import { sumOf, type PairLine, type Part } from "./pair";
import type { App } from "../ui/app";
import { swatch } from "../ui/chips";
import { deltaCell, deltaText } from "../ui/compare";
import { h } from "../ui/dom";
import { clean, kernelName, time } from "../ui/format";
import { nameCells } from "../ui/names";
import { drawTable } from "../ui/table";

function delta(line: PairLine): number {
  return (line.b?.ns ?? 0) - (line.a?.ns ?? 0);
}

export function pairTable(app: App, id: string, caption: string,
                          [first, second]: [string, string],
                          lines: PairLine[]): HTMLElement {
  // What the second runs in the place of a kernel of the first.
  const other = (line: PairLine) => !line.a ? `only in ${second}`
    : !line.b ? `only in ${first}`
    : line.a.kernel === line.b.kernel ? "same" : line.b.kernel;
  const partOf = (line: PairLine): Part => line.a ?? line.b!;
  const times = (side: "a" | "b") => ({
    numeric: true, value: (line: PairLine) => line[side]?.ns ?? null,
    text: (line: PairLine) => line[side] ? time(line[side].ns) : "",
    cell: (line: PairLine) => line[side]
      ? app.link(time(line[side].ns), line[side].patch) : "",
  });
  const shown = nameCells(lines.flatMap(({ a, b }) =>
    [a, b].flatMap((part) => part ? [kernelName(part.kernel)] : [])));
  return drawTable<PairLine>(app, {
    id, caption, rows: lines, sort: "",
    note: `${first} ${time(sumOf(lines, "a"))}, ${second} ` +
      `${time(sumOf(lines, "b"))}, difference ${deltaText(sumOf(lines, "b") - sumOf(lines, "a"))}.`,
    empty: "No kernel of either passes the filter.",
    columns: [
      { key: "place", title: "place", numeric: true, value: (l) => l.place },
      { key: "family", title: "family", value: (l) => partOf(l).family,
        cell: (l) => h("span", {}, swatch(partOf(l).group),
                       clean(partOf(l).family, 40)) },
      { key: "kernel", title: "kernel", wide: true,
        value: (l) => partOf(l).kernel,
        text: (l) => clean(partOf(l).kernel, 2000),
        cell: (l) => h("span", { title: clean(partOf(l).kernel, 2000) },
                       shown(kernelName(partOf(l).kernel))) },
      { key: "other", title: `in ${second}`, value: other,
        text: (l) => clean(other(l), 2000),
        cell: (l) => h("span", { title: clean(other(l), 2000),
          class: l.a && l.b && other(l) !== "same" ? "" : "muted" },
          l.a && l.b && other(l) !== "same" ? shown(kernelName(other(l)))
            : kernelName(other(l), 60)) },
      { key: "a", title: first, ...times("a") },
      { key: "b", title: second, ...times("b") },
      { key: "delta", title: "difference", numeric: true, value: delta,
        text: (l) => deltaText(delta(l)), cell: (l) => deltaCell(delta(l)) },
    ],
  });
}
