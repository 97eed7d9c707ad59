// SPDX-License-Identifier: Apache-2.0
//
// Which rank holds the others back: waits of each rank in each collective or
// step, who is behind them, and one collective on all ranks.

import type { Table } from "../data/model";
import { drawHeat, heatCell, heatTop, kNoPart, placeHeat, type HeatMap } from
  "../draw/heatmap";
import { toPng } from "../draw/canvas";
import { drawRankRows, type RankRow } from "../draw/rankrows";
import type { App, View } from "../ui/app";
import { causeWords, clockWords, countsEvents, rowEvents } from "../ui/compare";
import { download, h } from "../ui/dom";
import { bytes, clean, count, time } from "../ui/format";
import { drawNotes, drawVerdicts } from "../ui/notes";
import { hint } from "../ui/paper";
import { drawRows } from "../ui/rows";
import { drawStep, stepLink } from "../ui/rankstep";
import { drawRankBars, drawWaiting } from "../ui/rankwaits";
import { drawTable } from "../ui/table";

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
  if (by === "collectives") markOutsiders(app, rankNames, columnOf, values);
  return { rows: rankNames.map((rank) => "rank " + rank), ranks: rankNames,
           columns: keys.map((name) =>
             `${by === "steps" ? "step" : "call"} ${name || "none"}`), keys, values,
           missing: by === "steps" ? "this rank has no such step"
             : "the record of this rank is missing" };
}

// Cells of ranks that are no member of the group of a collective.
function markOutsiders(app: App, ranks: string[],
                       columnOf: Map<string, number>,
                       values: Float64Array): void {
  const table = app.model.table("collectives");
  const members = new Map<string, Set<string>>();
  for (let row = 0; table && row < table.rows; ++row) {
    const list = table.str(row, "group_ranks");
    const c = columnOf.get(table.str(row, "id"));
    if (c === undefined || list === "") continue;
    let group = members.get(list);
    if (!group) members.set(list, group = new Set(list.match(/\d+/g)));
    for (const [r, rank] of ranks.entries())
      if (!group.has(rank)) values[r * columnOf.size + c] = kNoPart;
  }
}

function cellWords(map: HeatMap, value: number): string {
  return value === kNoPart ? "this rank takes no part"
    : Number.isNaN(value) ? map.missing : `waits ${time(value)}`;
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
      "ones; hatched is a missing record, a thin line no part.",
      hint(" Click a column to see all ranks in it.")));
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

// The shown ranks of a collective: all, or those that come first and last.
const kMostShown = 64;

function ranksShown(waits: Table, rows: number[]): number[] {
  if (rows.length <= kMostShown) return rows;
  const order = [...rows].sort((a, b) =>
    waits.num(a, "start_us") - waits.num(b, "start_us") || a - b);
  const taken = new Set([...order.slice(0, kMostShown / 2),
                         ...order.slice(-kMostShown / 2)]);
  return rows.filter((row) => taken.has(row));
}

// One collective on all ranks: what each did around it, and in numbers when
// each began, how long it waited and how its clock was corrected.
class Collective {
  private readonly waits: Table;
  private readonly calls: Table;
  private readonly call: number;
  private readonly rows: number[] = [];
  private readonly late: string;
  private readonly canvas = h("canvas", { tabindex: "0", role: "img",
    "data-k": "ranks.events", "aria-label": "The collective on its ranks and " +
      "what they did around it; the same numbers stand in the table below" });
  private readonly tip = h("div", { class: "tip", hidden: true });

  private constructor(private readonly app: App, id: string) {
    this.waits = app.model.table("collective_waits")!;
    this.calls = app.model.table("collectives")!;
    this.call = this.calls.rowWhere("id", Number(id));
    this.late = this.calls.str(this.call, "late_rank");
    for (let row = 0; row < this.waits.rows; ++row)
      if (this.waits.str(row, "id") === id) this.rows.push(row);
    this.rows.sort((a, b) => this.waits.num(a, "rank") -
                   this.waits.num(b, "rank"));
  }
  static of(app: App, id: string): Collective | null {
    if (!app.model.table("collective_waits") || !app.model.table("collectives"))
      return null;
    const found = new Collective(app, id);
    return found.call >= 0 && found.rows.length > 0 ? found : null;
  }

  private get span(): [number, number] {
    const { waits, rows } = this;
    return [Math.min(...rows.map((row) => waits.num(row, "start_us"))),
            Math.max(...rows.map((row) => waits.num(row, "start_us") +
                                 waits.num(row, "dur_us")))];
  }
  // From as much before it as shows what made the last rank late.
  private get window(): [number, number] {
    const [first, last] = this.span;
    const room = Math.max(20_000, 1.2 * (last - first));
    return [Math.round(first - room), Math.round(last + room / 8)];
  }

  section(): HTMLElement {
    const { app, calls, call } = this;
    const id = calls.str(call, "id");
    const last = this.late ? `Rank ${this.late} comes last, ` +
      `${time(calls.num(call, "start_skew_us"))} after rank ` +
      `${calls.str(call, "early_rank")}. ` : "";
    const rows = countsEvents(app, "collectives") ? [
      h("p", { class: "muted" }, "Above what each rank computed and copied, " +
        "below its communication; pale is waiting, dark is transfer. " +
        (this.rows.length > kMostShown ? `The first and last ${kMostShown / 2}` +
          ` of ${count(this.rows.length)} ranks. ` : "") + "All in the ",
        app.link("timeline", { ...rowEvents(app, "collectives", call),
                               zoom: this.window }), "."),
      h("div", { class: "canvasbox" }, this.canvas, this.tip)]
      : [h("p", { class: "muted" }, "This page holds no events of the ranks.")];
    return h("section", {}, h("h2", {}, `${clean(calls.str(call, "name") ||
        calls.str(call, "collective"), 60)} ${id} on all ranks`),
      h("p", { "data-cause": calls.str(call, "cause") },
        last + causeWords(calls, call) + (last ? " " : "") +
        (calls.str(call, "doubt") ? `No times: ${calls.str(call, "doubt")}.`
          : `The transfer itself takes ${time(calls.num(call, "transfer_us"))}` +
          (calls.at(call, "bytes") === null ? "."
            : ` for ${bytes(calls.num(call, "bytes"))}.`))),
      ...rows, this.table(),
      h("p", {}, app.link("Its rows", app.rowsHref("collective_waits", "id",
                                                  id)), ", ",
        app.link("the collective", app.rowsHref("collectives", "id", id))));
  }

  // The event of the collective on a rank.
  private uidOf(rank: string): number | null {
    const { device, lanes, traces } = this.app.model;
    if (!device) return null;
    for (const lane of lanes) {
      if (traces[lane.trace ?? 0]?.name !== "rank " + rank) continue;
      for (let i = lane.begin; i < lane.end; ++i)
        if (device.collective[i] === this.call + 1) return device.uid[i]!;
    }
    return null;
  }

  private table(): HTMLElement {
    const { app, waits } = this;
    const clocks = app.model.table("clock_offsets");
    const [first] = this.span;
    const rank = (row: number) => waits.str(row, "rank");
    return drawTable<number>(app, { id: "rankcall", rows: this.rows, sort: "",
      caption: "The collective on each rank", columns: [
        { key: "rank", title: "rank", value: (row) => waits.num(row, "rank"),
          text: rank, cell: (row) => {
            const uid = this.uidOf(rank(row));
            const words = rank(row) + (rank(row) === this.late ? " (last)" : "");
            return uid === null ? words : app.link(words,
              { selected: String(uid) });
          } },
        { key: "start", title: "starts after the first", numeric: true,
          value: (row) => waits.num(row, "start_us") - first,
          text: (row) => "+" + time(waits.num(row, "start_us") - first) },
        { key: "wait", title: "waits", numeric: true,
          value: (row) => waits.at(row, "wait_us") === null ? null
            : waits.num(row, "wait_us"),
          text: (row) => waits.at(row, "wait_us") === null ? ""
            : time(waits.num(row, "wait_us")) },
        { key: "length", title: "length", numeric: true,
          value: (row) => waits.num(row, "dur_us"),
          text: (row) => time(waits.num(row, "dur_us")) },
        { key: "clock", title: "clock", value: (row) =>
          clockWords(clocks, rank(row)) }] });
  }

  mount(): void {
    const box = this.canvas.parentElement;
    const { app, waits } = this;
    if (!box || !this.canvas.isConnected) return;
    const index = new Map(app.model.traces.map((t, i) => [t.name, i]));
    const rows = ranksShown(waits, this.rows).flatMap((row): RankRow[] => {
      const name = "rank " + waits.str(row, "rank");
      const trace = index.get(name);
      return trace === undefined ? [] : [{ trace, label: name,
        wait: waits.num(row, "wait_us"),
        late: waits.str(row, "rank") === this.late }];
    });
    const [from, to] = this.window;
    const boxes = drawRankRows(this.canvas, app.model,
      { rows, collective: this.call, from, to }, box.clientWidth);
    const at = (event: PointerEvent) => [...boxes].reverse().find((b) =>
      event.offsetX >= b.x && event.offsetX <= b.x + b.width &&
      event.offsetY >= b.y && event.offsetY <= b.y + b.height);
    this.canvas.addEventListener("pointermove", (event) => {
      const hit = at(event);
      this.tip.hidden = !hit;
      this.canvas.style.cursor = hit ? "pointer" : "";
      if (!hit) return;
      this.tip.textContent = hit.words;
      this.tip.style.left = Math.max(4, Math.min(event.offsetX + 12,
        box.clientWidth - 300)) + "px";
      this.tip.style.top = event.offsetY + 14 + "px";
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
    });
    this.canvas.addEventListener("click", (event) => {
      const hit = at(event as PointerEvent);
      if (hit) app.go({ selected: String(hit.uid) });
    });
  }
}

let chosen: Collective | null = null;

export const ranksView: View = {
  id: "ranks",
  title: "Ranks",
  filtered: false,
  missing: (model) => model.hasTable("collective_waits") ||
    model.hasTable("rank_steps") ? null
    : "One rank; lamina ranks DIR --format html compares all ranks of a job.",
  needs: () => ["collective_waits", "rank_steps", "ranks", "collectives",
    "stragglers", "straggler_causes", "clock_offsets", "collective_sizes",
    "pipeline_bubbles", "lost_calls", "all_to_all", "kernels", "device"],
  draw(app, root) {
    const { notes } = app.model.manifest;
    root.append(...drawVerdicts(app));
    const opportunities = notes.filter((n) => n.severity === "opportunity" ||
                                       n.id === "lateness");
    if (opportunities.length > 0) root.append(drawNotes(app, opportunities));
    const waiting = drawWaiting(app);
    if (waiting) root.append(waiting);
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
      chosen = app.option("ranks.col") && columnsOf(app) === "collectives"
        ? Collective.of(app, app.option("ranks.col")) : null;
      if (chosen) root.append(chosen.section());
      const step = app.option("ranks.col") && columnsOf(app) === "steps"
        ? drawStep(app, app.option("ranks.col")) : null;
      if (step) root.append(step);
    }
    const bars = drawRankBars(app);
    if (bars) root.append(bars);
    const rest = notes.filter((n) => (n.severity === "warning" ||
      n.severity === "info") && n.id !== "lateness");
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
            app.withOption("ranks.col", table.str(row, "id"))) }
          : name === "rank_steps" ? {
            step: (row) => stepLink(app, table, row, "step") } : {} }));
    }
  },
  mounted(app, root) {
    chosen?.mount();
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
        cellWords(map, value);
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
