// SPDX-License-Identifier: Apache-2.0
//
// Memory over the events of a recording: sums, every allocation, or the map of
// addresses. A click chooses a moment and what lies there; a drag zooms into a
// box; two recordings stand one above the other with their peaks aligned.

import { kBlocks, stacked, type Series } from "../data/memory";
import { drawFrame, kLeft, momentOf, type Frame, type Mode } from
  "../draw/memory";
import type { App, Patch, View } from "../ui/app";
import { h } from "../ui/dom";
import { bytes, clean, count, percent, time } from "../ui/format";
import { choice } from "../ui/inputs";
import { details, legend, missingMemory, originOf, shownSeries, shownState,
         tools, type Shown } from "../ui/memorystate";
import { drawNotes, drawVerdicts } from "../ui/notes";
import { drawTable } from "../ui/table";

const kHeight = 380;
const kMostRows = 5000;
const kPlotTop = 10;
const kPlotBottom = 22;
const kSlack = 4;

let drawn: Frame[] = [];
export function shownFrames(): object[] {
  return drawn.map(({ mode, from, to, low, high, at, pick, series }) => ({
    mode, from, to, low, high, at, pick, name: series.info.name,
    active: series.active[at], reserved: series.reserved(at) }));
}

function modeOf(app: App): Mode {
  const mode = app.option("mem.mode");
  return mode === "sums" || mode === "map" ? mode : "each";
}

function numbers(text: string): [number, number] | null {
  const found = /^(-?\d+(?:\.\d+)?)~(-?\d+(?:\.\d+)?)$/.exec(text);
  return found && Number(found[2]) > Number(found[1])
    ? [Number(found[1]), Number(found[2])] : null;
}

function byTime(app: App, list: Series[]): boolean {
  return app.option("mem.x") === "time" && list.every((s) => s.times.length > 0);
}

function framesOf(app: App, shown: Shown[]): Frame[] {
  const list = shown.map((s) => s.series);
  const timed = byTime(app, list);
  const mode = modeOf(app);
  const origin = (s: Series) => {
    const moment = originOf(list, s);
    return timed ? s.time(moment) : moment;
  };
  const end = (s: Series) => Math.max(1, timed ? s.time(s.moments) : s.moments);
  const wide = numbers(app.option("mem.range")) ??
    [Math.min(...list.map((s) => -origin(s))),
     Math.max(...list.map((s) => end(s) - origin(s)))];
  return shown.map(({ series, groups, mask, at, pick }) => {
    const top = mode === "map" ? Math.max(1, series.info.units)
      : Math.max(...list.map((s) => s.highest)) * 1.03;
    const high = numbers(app.option("mem.high")) ?? [0, top];
    return { series, groups, mask, mode, byTime: timed, at, pick,
      from: wide[0] + origin(series), to: wide[1] + origin(series),
      low: high[0], high: high[1] };
  });
}

// The allocation that is drawn at a place; -1: none.
function hit(f: Frame, x: number, value: number): number {
  const moment = Math.max(0, Math.min(f.series.moments,
                                      Math.round(momentOf(f, x))));
  let found = -1;
  if (f.mode === "map") {
    for (let i = 0; i < f.series.count; ++i) {
      const from = f.series.place[i]!;
      if (f.series.alive(i, moment) && from <= value &&
          value < from + f.series.bytes[i]! / 512 && (!f.mask || f.mask[i]))
        found = i;
    }
    return found;
  }
  if (f.mode === "sums") return -1;
  stacked(f.series, f.mask, Int32Array.of(moment), (_, i, low) => {
    if (low <= value && value < low + f.series.bytes[i]!) found = i;
  });
  return found;
}

function words(f: Frame, moment: number, i: number): string {
  const { series } = f;
  const place = `After ${count(moment)} events` + (series.times.length > 0
    ? ` (${time(series.time(moment) * 1000)})` : "");
  const state = `${bytes(series.active[moment]!)} active of ` +
    `${bytes(series.reserved(moment))} reserved`;
  if (i < 0) return `${place}: ${state}.`;
  return `${place}: ${state}. ${bytes(series.bytes[i]!)} ` +
    `${series.categoryName(series.category[i]!)}, ` +
    `${clean(series.text("line", series.stack[i]!), 80)}, ` +
    clean(series.text("op", series.stack[i]!), 60);
}

function attach(app: App, canvas: HTMLCanvasElement, f: Frame, part: number,
                list: Series[], say: (text: string) => void): void {
  const box = () => ({ width: canvas.clientWidth - kLeft - 10,
                       height: kHeight - kPlotTop - kPlotBottom });
  const xAt = (px: number) => f.from +
    (f.to - f.from) * Math.min(1, Math.max(0, (px - kLeft) / box().width));
  const yAt = (px: number) => f.high -
    (f.high - f.low) * Math.min(1, Math.max(0, (px - kPlotTop) / box().height));
  const momentAt = (px: number) => Math.max(0, Math.min(f.series.moments,
    Math.round(momentOf(f, xAt(px)))));
  let start: { x: number; y: number } | null = null;
  const veil = h("div", { class: "veil" });
  canvas.parentElement!.append(veil);
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = { x: event.offsetX, y: event.offsetY };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const m = momentAt(event.offsetX);
    if (!start) {
      say(words(f, m, hit(f, xAt(event.offsetX), yAt(event.offsetY))));
      return;
    }
    veil.style.display = Math.abs(event.offsetX - start.x) > kSlack
      ? "block" : "none";
    veil.style.left = Math.min(start.x, event.offsetX) + "px";
    veil.style.width = Math.abs(event.offsetX - start.x) + "px";
    const tall = Math.abs(event.offsetY - start.y) > 24;
    veil.style.top = (tall ? Math.min(start.y, event.offsetY) : kPlotTop) + "px";
    veil.style.height = (tall ? Math.abs(event.offsetY - start.y)
      : box().height) + "px";
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!start) return;
    const from = start;
    start = null;
    veil.style.display = "none";
    const origin = originOf(list, f.series);
    const shift = f.byTime ? f.series.time(origin) : origin;
    if (Math.abs(event.offsetX - from.x) > kSlack) {
      const [a, b] = [xAt(from.x), xAt(event.offsetX)].sort((p, q) => p - q);
      const [low, high] = [yAt(from.y), yAt(event.offsetY)]
        .sort((p, q) => p - q);
      const options: Record<string, string> = { ...app.state.options,
        "mem.range": `${(a! - shift).toFixed(2)}~${(b! - shift).toFixed(2)}` };
      if (Math.abs(event.offsetY - from.y) > 24)
        options["mem.high"] = `${Math.floor(low!)}~${Math.ceil(high!)}`;
      app.go({ options });
      return;
    }
    const i = hit(f, xAt(event.offsetX), yAt(event.offsetY));
    app.go({ options: { ...app.state.options,
      "mem.at": String(momentAt(event.offsetX) - origin),
      "mem.pick": i < 0 ? "" : `${part}.${i}` } });
  });
  canvas.addEventListener("pointercancel", () => {
    start = null;
    veil.style.display = "none";
  });
  canvas.addEventListener("dblclick", () => app.go(wholeRange(app)));
}

function wholeRange(app: App): Patch {
  return { options: { ...app.state.options, "mem.range": "", "mem.high": "" } };
}

function aliveTable(app: App, shown: Shown, part: number): HTMLElement {
  const { series, at, mask } = shown;
  const rows = series.aliveAt(at, mask)
    .sort((a, b) => series.bytes[b]! - series.bytes[a]! || a - b);
  return drawTable<number>(app, {
    id: "alive" + part, sort: "bytes-", rows: rows.slice(0, kMostRows),
    caption: `${count(rows.length)} blocks active after ${count(at)} events` +
      (rows.length > kMostRows ? `, the largest ${count(kMostRows)}` : ""),
    note: rows.length > kMostRows ? "The largest of " +
      `${count(rows.length)} blocks.` : "",
    empty: "Nothing is active.",
    columns: [
      { key: "line", title: "Line", wide: true,
        value: (i) => series.text("line", series.stack[i]!),
        cell: (i) => app.link(clean(series.text("line", series.stack[i]!), 100),
          app.withOption("mem.pick", `${part}.${i}`)) },
      { key: "op", title: "Op",
        value: (i) => series.text("op", series.stack[i]!) },
      { key: "category", title: "Category",
        value: (i) => series.categoryName(series.category[i]!) },
      { key: "bytes", title: "Bytes", numeric: true,
        value: (i) => series.bytes[i]!, text: (i) => bytes(series.bytes[i]!) },
      { key: "born", title: "Made at", numeric: true,
        value: (i) => series.born[i]! - 1,
        text: (i) => series.born[i] === 0 ? "before"
          : count(series.born[i]! - 1) },
      { key: "life", title: "Events alive", numeric: true,
        value: (i) => Math.min(series.dead[i]!, series.moments) -
          series.born[i]!,
        text: (i) => count(Math.min(series.dead[i]!, series.moments) -
          series.born[i]!) },
    ] });
}

export const memoryView: View = {
  id: "memory",
  title: "Memory",
  filtered: false,
  missing: missingMemory,
  needs: () => kBlocks,
  draw(app, root) {
    const shown = shownState(app);
    const list = shown.map((s) => s.series);
    root.append(...drawVerdicts(app));
    const timed = list.every((s) => s.times.length > 0);
    root.append(tools(app, [
      choice(app, "mem.mode", "Drawing", [["", "every allocation"],
        ["sums", "sums"], ["map", "addresses"]]),
      ...(timed ? [choice(app, "mem.x", "Axis", [["", "over events"],
                                                 ["time", "over time"]])] : []),
      app.button("Whole range", () => app.go(wholeRange(app)),
                 { "data-k": "mem.whole" }),
      app.button("Peak", () => app.go(app.withOption("mem.at",
        String(list[0]!.info.peak - originOf(list, list[0]!)))),
                 { "data-k": "mem.peak" })]));
    for (const [k, one] of shown.entries()) {
      if (shown.length > 1) {
        root.append(h("h2", {}, one.series.info.name + ": " +
          clean(app.model.manifest.inputs[one.series.info.part] ?? "", 200)));
      }
      root.append(legend(app, one), h("div", { class: "memory" },
        h("canvas", { class: "memory", "data-part": k, role: "img", tabindex: 0,
          "aria-label": `Memory of ${one.series.info.name}: ` +
            words({ series: one.series } as Frame, one.at, -1) })));
    }
    root.append(h("output", { class: "hover muted" },
      "Click for what lies there; drag a box to zoom; left and right: the " +
      "moment before and after."));
    for (const [k, one] of shown.entries()) {
      const about = details(app, one);
      if (about) root.append(about);
      const { series, at } = one;
      root.append(h("h2", {}, (shown.length > 1 ? series.info.name + ", " : "") +
        `after ${count(at)} events: ${bytes(series.active[at]!)} active, ` +
        `${bytes(series.reserved(at) - series.active[at]!)} cached (` +
        `${percent(series.reserved(at) - series.active[at]!,
                   series.reserved(at))})`), aliveTable(app, one, k));
    }
    const rest = app.model.manifest.notes
      .filter((note) => note.severity !== "verdict");
    if (rest.length > 0) root.append(h("h2", {}, "Notes"), drawNotes(app, rest));
  },
  mounted(app, root) {
    const shown = shownState(app);
    const list = shown.map((s) => s.series);
    const line = root.querySelector("output.hover");
    drawn = framesOf(app, shown);
    for (const [k, f] of drawn.entries()) {
      const canvas = root.querySelector<HTMLCanvasElement>(
        `canvas[data-part="${k}"]`)!;
      drawFrame(canvas, f, canvas.clientWidth, kHeight);
      attach(app, canvas, f, k, list, (text) => {
        if (line) line.textContent = text;
      });
    }
  },
  key(app, event) {
    const list = shownSeries(app);
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[
      event.key];
    if (step === undefined || !drawn[0]) return false;
    const f = drawn[0];
    const far = event.shiftKey ? Math.max(1, Math.round((f.to - f.from) / 50))
      : 1;
    const at = Math.max(0, Math.min(f.series.moments, f.at + step * far));
    app.go(app.withOption("mem.at", String(at - originOf(list, f.series))), true);
    return true;
  },
};
