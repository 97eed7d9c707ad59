// SPDX-License-Identifier: Apache-2.0
//
// Which rank holds the others back: waits of each rank in each collective or
// step, who is behind them, and one collective on all ranks.

import type { Table } from "../data/model";
import { drawHeat, heatCell, heatTop, placeHeat, type HeatMap } from
  "../draw/heatmap";
import { toPng } from "../draw/canvas";
import { niceTop } from "../draw/ruler";
import type { App, View } from "../ui/app";
import { download, h, svg } from "../ui/dom";
import { bytes, clean, count, time } from "../ui/format";
import { drawNotes, drawVerdicts } from "../ui/notes";
import { drawRows } from "../ui/rows";

const kColumns = ["collectives", "steps"] as const;
type Columns = typeof kColumns[number];

function columnsOf(app: App): Columns {
  return app.option("ranks.by") === "steps" &&
    app.model.hasTable("rank_steps") ? "steps" : "collectives";
}

interface RankMap extends HeatMap { keys: string[]; ranks: string[] }

function distinct(table: Table, column: string): string[] {
  const seen = new Set<string>();
  for (let row = 0; row < table.rows; ++row) seen.add(table.str(row, column));
  return [...seen];
}

function mapOf(app: App): RankMap | null {
  const by = columnsOf(app);
  const table = app.model.table(by === "steps" ? "rank_steps"
    : "collective_waits");
  const ranks = app.model.table("ranks");
  if (!table || !ranks || table.rows === 0) return null;
  const rankNames = distinct(ranks, "rank")
    .sort((a, b) => Number(a) - Number(b));
  const key = by === "steps" ? "step" : "id";
  const keys = distinct(table, key).sort((a, b) => Number(a) - Number(b));
  const rowOf = new Map(rankNames.map((rank, i) => [rank, i]));
  const columnOf = new Map(keys.map((name, i) => [name, i]));
  const values = new Float64Array(rankNames.length * keys.length).fill(NaN);
  for (let row = 0; row < table.rows; ++row) {
    const r = rowOf.get(table.str(row, "rank"));
    const c = columnOf.get(table.str(row, key));
    if (r === undefined || c === undefined ||
        table.at(row, "wait_us") === null) continue;
    values[r * keys.length + c] = table.num(row, "wait_us");
  }
  return { rows: rankNames.map((rank) => "rank " + rank), ranks: rankNames,
           columns: keys.map((name) => `${key} ${name}`), keys, values,
           missing: by === "steps" ? "this rank has no such step"
             : "this rank takes no part, or its record is missing" };
}

function controls(app: App, save: () => void): HTMLElement {
  const by = columnsOf(app);
  return h("div", { class: "tools" },
    h("span", { class: "switch", role: "radiogroup", "aria-label": "Columns" },
      ...kColumns.filter((c) => c === "collectives" ||
                         app.model.hasTable("rank_steps")).map((value) =>
        app.button(value === "steps" ? "By step" : "By collective", () =>
          app.go({ options: { ...app.state.options, "ranks.by":
            value === "steps" ? "steps" : "", "ranks.col": "" } }),
          { role: "radio", "aria-checked": String(by === value),
            "data-k": "ranks.by." + value }))),
    app.button("PNG", save, { "data-k": "ranks.png" }),
    h("span", { class: "muted" }, "Colour is the time a rank waits for later " +
      "ones; hatched is no data. Click a column to see all ranks in it."));
}

function scale(map: HeatMap): HTMLElement {
  const top = heatTop(map);
  const box = h("p", { class: "muted scale" }, "0 ");
  for (let i = 0; i < 5; ++i) {
    const part = h("span", { class: "swatch", "aria-hidden": "true" });
    part.style.background = `var(--q${i})`;
    box.append(part);
  }
  box.append(` ${time(top)} wait`);
  return box;
}

// One collective on all ranks: when each began, how long it waited and ran.
function oneCollective(app: App, id: string): HTMLElement | null {
  const waits = app.model.table("collective_waits");
  const calls = app.model.table("collectives");
  if (!waits || !calls) return null;
  const call = calls.rowWhere("id", Number(id));
  const rows: number[] = [];
  for (let row = 0; row < waits.rows; ++row)
    if (waits.str(row, "id") === id) rows.push(row);
  if (call < 0 || rows.length === 0) return null;
  rows.sort((a, b) => waits.num(a, "rank") - waits.num(b, "rank"));
  const first = Math.min(...rows.map((row) => waits.num(row, "start_us")));
  const last = Math.max(...rows.map((row) =>
    waits.num(row, "start_us") + waits.num(row, "dur_us")));
  const { top, step } = niceTop(Math.max(1, last - first), 6);
  const width = 1000;
  const left = 70;
  const tall = rows.length <= 32 ? 20 : 8;
  const height = rows.length * tall + 26;
  const x = (ns: number) => left + (width - left - 10) * ns / top;
  const late = calls.str(call, "late_rank");
  const picture = svg("svg", { class: "chart", role: "img",
    viewBox: `0 0 ${width} ${height}`,
    "aria-label": `Collective ${id} on ${rows.length} ranks` });
  for (let ns = 0; ns <= top + step / 2; ns += step) {
    picture.append(svg("line", { class: "grid", x1: x(ns), x2: x(ns), y1: 0,
                                 y2: height - 20 }),
      svg("text", { class: "axis", x: x(ns), y: height - 5,
                    "text-anchor": ns === 0 ? "start" : ns >= top ? "end"
                      : "middle" }, time(ns)));
  }
  for (const [i, row] of rows.entries()) {
    const start = waits.num(row, "start_us") - first;
    const wait = waits.num(row, "wait_us");
    const dur = waits.num(row, "dur_us");
    const rank = waits.str(row, "rank");
    const y = i * tall + 2;
    picture.append(svg("g", {}, svg("title", {}, `rank ${rank}: starts at ` +
        `+${time(start)}, waits ${time(wait)} of ${time(dur)}`),
      svg("rect", { x: x(start), y, height: tall - 4, fill: "var(--q1)",
                    width: Math.max(0.5, x(start + wait) - x(start)) }),
      svg("rect", { x: x(start + wait), y, height: tall - 4,
        fill: rank === late ? "var(--more)" : "var(--q3)",
        width: Math.max(1, x(start + dur) - x(start + wait)) })));
    if (tall >= 14 || i % 4 === 0) {
      picture.append(svg("text", { x: 4, y: y + tall / 2 + 3 },
                         `rank ${rank}`));
    }
  }
  const cause = calls.str(call, "cause");
  return h("section", {},
    h("h2", {}, `${clean(calls.str(call, "name") ||
      calls.str(call, "collective"), 60)} ${id} on all ranks`),
    h("p", {}, `Rank ${late} comes last, ${time(calls.num(call,
      "start_skew_us"))} after rank ${calls.str(call, "early_rank")}. ` +
      (cause ? `Before it: ${clean(cause, 60)}` +
        (calls.str(call, "cause_name") ? ` ${clean(calls.str(call,
          "cause_name"), 200)}` : "") + ` took ${time(calls.num(call,
          "cause_us"))} longer there. ` : "") +
      `The transfer itself takes ${time(calls.num(call, "transfer_us"))}` +
      (calls.at(call, "bytes") === null ? "."
        : ` for ${bytes(calls.num(call, "bytes"))}.`)),
    h("p", { class: "muted" }, "Pale is waiting, dark is transfer, orange " +
      "the late rank. Times are aligned by the clock offsets below."),
    h("div", { class: "canvasbox" }, picture),
    h("p", {}, app.link("Its rows", app.rowsHref("collective_waits", "id",
                                                id)), ", ",
      app.link("the collective", app.rowsHref("collectives", "id", id))));
}

export const ranksView: View = {
  id: "ranks",
  title: "Ranks",
  filtered: false,
  missing: (model) => model.hasTable("collective_waits") ||
    model.hasTable("rank_steps") ? null
    : "One rank; lamina ranks DIR --format html compares all ranks of a job.",
  needs: () => ["collective_waits", "rank_steps", "ranks", "collectives",
    "stragglers", "straggler_causes", "clock_offsets", "collective_sizes",
    "pipeline_bubbles", "lost_calls", "all_to_all"],
  draw(app, root) {
    const { notes } = app.model.manifest;
    root.append(...drawVerdicts(app));
    const opportunities = notes.filter((n) => n.severity === "opportunity");
    if (opportunities.length > 0) root.append(drawNotes(app, opportunities));
    const map = mapOf(app);
    if (map) {
      const canvas = h("canvas", { tabindex: "0", role: "img",
        "data-k": "ranks.map", class: "heat", "aria-label":
          `Waits of ${map.rows.length} ranks in ${map.columns.length} columns; ` +
          "arrows choose a column; the same numbers stand in the tables" });
      root.append(h("h2", {}, `Waits of ${count(map.rows.length)} ranks`),
        controls(app, () => toPng(canvas, `Waits: ${app.model.title}`,
          "Pale to dark: 0 to " + time(heatTop(map)), (picture) =>
            download("ranks.png", picture))),
        h("div", { class: "canvasbox" }, canvas,
          h("div", { class: "tip", hidden: true })), scale(map));
      const chosen = app.option("ranks.col");
      if (chosen && columnsOf(app) === "collectives") {
        const one = oneCollective(app, chosen);
        if (one) root.append(one);
      }
    }
    const rest = notes.filter((n) => n.severity === "warning" ||
                              n.severity === "info");
    if (rest.length > 0)
      root.append(h("h2", {}, "Notes"), drawNotes(app, rest));
    for (const [name, title] of [["stragglers", "Who is behind the waits"],
        ["straggler_causes", "What they did before"],
        ["rank_steps", "Steps of each rank"],
        ["collective_sizes", "Collectives by size"],
        ["collectives", "Collectives"], ["pipeline_bubbles", "Bubbles"],
        ["all_to_all", "All to all"], ["lost_calls", "Lost calls"],
        ["clock_offsets", "Clocks"], ["ranks", "Files"]] as const) {
      const table = app.model.table(name);
      if (!table || table.rows === 0) continue;
      root.append(h("h2", {}, title), drawRows(app, table, {
        id: name.replace(/_/g, ""), cells: name === "collectives" ? {
          id: (row) => app.link(table.str(row, "id"),
            app.withOption("ranks.col", table.str(row, "id"))) } : {} }));
    }
  },
  mounted(app, root) {
    const canvas = root.querySelector<HTMLCanvasElement>("canvas.heat");
    const tip = root.querySelector<HTMLElement>(".tip");
    const map = mapOf(app);
    if (!canvas || !map || !tip) return;
    const width = canvas.parentElement!.clientWidth;
    drawHeat(canvas, map, width, map.keys.indexOf(app.option("ranks.col")));
    const place = placeHeat(map, width);
    const at = (event: PointerEvent): [number, number] | null => {
      const c = Math.floor((event.offsetX - place.left) / place.width *
                           place.drawnColumns);
      const r = Math.floor((event.offsetY - place.top) / place.height *
                           place.drawnRows);
      return c >= 0 && c < place.drawnColumns && r >= 0 && r < place.drawnRows
        ? [r, c] : null;
    };
    canvas.addEventListener("pointermove", (event) => {
      const cell = at(event);
      tip.hidden = cell === null;
      if (!cell) return;
      const value = heatCell(map, place, cell[0], cell[1]);
      tip.textContent = `${map.rows[cell[0] * place.perRow]}, ` +
        `${map.columns[cell[1] * place.perColumn]}: ` +
        (Number.isNaN(value) ? map.missing : `waits ${time(value)}`);
      tip.style.left = Math.max(4, Math.min(event.offsetX + 12,
                                            width - 300)) + "px";
      tip.style.top = event.offsetY + 14 + "px";
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    const choose = (column: number) => app.go(app.withOption("ranks.col",
      map.keys[Math.min(map.keys.length - 1, Math.max(0, column))]!));
    canvas.addEventListener("click", (event) => {
      const cell = at(event as PointerEvent);
      if (!cell) return;
      // Of the collectives in a pixel the one with the longest wait.
      let best = cell[1] * place.perColumn;
      let most = -1;
      for (let c = best; c < Math.min(map.keys.length,
           (cell[1] + 1) * place.perColumn); ++c) {
        const value = map.values[cell[0] * place.perRow * map.keys.length + c]!;
        if (value > most) {
          most = value;
          best = c;
        }
      }
      choose(best);
    });
    canvas.addEventListener("keydown", (event) => {
      const now = map.keys.indexOf(app.option("ranks.col"));
      if (event.key === "ArrowRight") choose(now + 1);
      else if (event.key === "ArrowLeft") choose(Math.max(0, now - 1));
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  },
};
