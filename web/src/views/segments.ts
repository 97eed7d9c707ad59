// SPDX-License-Identifier: Apache-2.0
//
// Segments at the moment that is looked at, each to scale: what lies in them,
// what is lost to rounding, and the holes.

import { kBlocks, kUnit } from "../data/memory";
import { drawSegments, kLeft, kSegmentRow, segmentScale, segmentsAt,
         type SegmentRow } from "../draw/memory";
import type { App, View } from "../ui/app";
import { h } from "../ui/dom";
import { bytes, clean, count } from "../ui/format";
import { choice } from "../ui/inputs";
import { details, legend, missingMemory, shownState, tools, type Shown } from
  "../ui/memorystate";

const kMostSegments = 500;

function rowsOf(app: App, shown: Shown): { rows: SegmentRow[]; all: number } {
  const rows = segmentsAt(shown.series, shown.at);
  const sort = app.option("mem.sort");
  const { place, born } = shown.series.range;
  const key = (r: SegmentRow) => sort === "size" ? -r.size
    : sort === "address" ? place![r.range]!
    : sort === "age" ? born![r.range]! : -r.stuck;
  rows.sort((a, b) => key(a) - key(b) || place![a.range]! - place![b.range]!);
  return { rows: rows.slice(0, kMostSegments), all: rows.length };
}

export const segmentsView: View = {
  id: "segments",
  title: "Segments",
  filtered: false,
  missing: missingMemory,
  needs: () => kBlocks,
  draw(app, root) {
    root.append(tools(app, [choice(app, "mem.sort", "Order",
      [["", "most stuck first"], ["size", "largest first"],
       ["address", "by address"], ["age", "oldest first"]])]));
    for (const [k, one] of shownState(app).entries()) {
      const { rows, all } = rowsOf(app, one);
      const whole = rows.filter((r) => r.active === 0)
        .reduce((sum, r) => sum + r.size, 0);
      root.append(h("h2", {}, `${one.series.info.name}: ${count(all)} segments ` +
        `after ${count(one.at)} events` +
        (rows.length < all ? `, ${count(rows.length)} shown` : "")),
        h("p", { class: "muted" }, `${bytes(rows.reduce((sum, r) =>
          sum + r.stuck, 0))} free beside blocks in use, ${bytes(whole)} in ` +
          "empty segments. Grey ends of blocks are rounding, pale blocks wait " +
          "for a stream, holes are free. Rows of very unlike sizes have " +
          "scales of their own."),
        legend(app, one), h("canvas", { class: "memory", "data-part": k,
          role: "img", "aria-label": `${all} segments` }));
      const about = details(app, one);
      if (about) root.append(about);
    }
    root.append(h("output", { class: "hover muted" },
      "Click a block for what it is."));
  },
  mounted(app, root) {
    const line = root.querySelector("output.hover")!;
    for (const [k, one] of shownState(app).entries()) {
      const canvas = root.querySelector<HTMLCanvasElement>(
        `canvas[data-part="${k}"]`)!;
      const { rows } = rowsOf(app, one);
      const width = canvas.clientWidth;
      const { series } = one;
      drawSegments(canvas, series, rows, one.groups, one.mask, one.at, one.pick,
                   width);
      const most = Math.max(...rows.map((r) => r.size), 1);
      const find = (event: MouseEvent): { row: SegmentRow; i: number } | null => {
        const row = rows[Math.floor(event.offsetY / kSegmentRow)];
        if (!row) return null;
        const at = series.range.place![row.range]! + (event.offsetX - kLeft) /
          segmentScale(row, most, width) / kUnit;
        return { row, i: row.blocks.find((b) => series.place[b]! <= at &&
          at < series.place[b]! + series.bytes[b]! / kUnit) ?? -1 };
      };
      canvas.addEventListener("pointermove", (event) => {
        const found = find(event);
        if (!found) return;
        const { row, i } = found;
        const text = (name: string) =>
          app.model.text(series.range[name]![row.range]!);
        line.textContent = `${text("address")}, stream ${text("stream")}, pool ` +
          `${text("pool")}: ${bytes(row.active)} of ${bytes(row.size)} active` +
          (i < 0 ? "" : `; ${bytes(series.bytes[i]!)} ` +
            `${series.categoryName(series.category[i]!)}, ` +
            clean(series.text("line", series.stack[i]!), 80));
      });
      canvas.addEventListener("click", (event) => {
        const i = find(event)?.i ?? -1;
        app.go(app.withOption("mem.pick", i < 0 ? "" : `${k}.${i}`));
      });
    }
  },
};
