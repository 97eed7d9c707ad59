// SPDX-License-Identifier: Apache-2.0
//
// What the views of memory share: which device is shown, by what it is
// coloured, which moment and which allocation are looked at, all in the
// address; and what stands above and beside the drawings.

import { kBys, openSeries, seriesOf, type By, type Groups, type Series } from
  "../data/memory";
import type { App } from "./app";
import { memoryColor } from "./colors";
import { h } from "./dom";
import { bytes, clean, count, time } from "./format";
import { choice, textFilter } from "./inputs";

export interface Shown {
  series: Series;
  groups: Groups;
  by: By;
  mask: Uint8Array | null;
  at: number;
  pick: number;
}

function whole(text: string): number | null {
  return /^-?\d{1,10}$/.test(text) ? Number(text) : null;
}

// One device; of pages that compare two recordings the one in both.
export function shownSeries(app: App): Series[] {
  const all = seriesOf(app.model);
  const device = whole(app.option("mem.device")) ?? all[0]?.device ?? 0;
  const chosen = all.filter((one) => one.device === device);
  return (chosen.length > 0 ? chosen : all.slice(0, 1))
    .map((info) => openSeries(app.model, info));
}

// Moments count from 0, or where two recordings are compared from the peak of
// each.
export function originOf(list: Series[], series: Series): number {
  return list.length > 1 ? series.info.peak : 0;
}

export function shownState(app: App): Shown[] {
  const list = shownSeries(app);
  const by = kBys.find((one) => one === app.option("mem.by")) ?? "category";
  const at = whole(app.option("mem.at"));
  const [part, pick] = app.option("mem.pick").split(".").map(whole);
  return list.map((series, k) => {
    const moment = at === null ? series.info.moment
      : at + originOf(list, series);
    return {
      series, by, groups: series.groupsBy(by),
      mask: series.mask(app.option("mem.q"), by, app.option("mem.only")),
      at: Math.max(0, Math.min(series.moments, moment)),
      pick: part === k && pick! >= 0 && pick! < series.count ? pick! : -1,
    };
  });
}

export function tools(app: App, more: HTMLElement[]): HTMLElement {
  const devices = [...new Set(seriesOf(app.model).map((one) => one.device))];
  return h("div", { class: "tools" },
    devices.length > 1 && choice(app, "mem.device", "Device",
      devices.map((d) => [String(d), `GPU ${d}`])),
    choice(app, "mem.by", "Colour", kBys.map((by) => [by, "by " + by])),
    ...more,
    textFilter(app, "mem.q", "Only", "frame, op, /regex/, >64MiB, 0x7f..."));
}

export function legend(app: App, shown: Shown): HTMLElement {
  const { series, groups, at } = shown;
  const sums = groups.names.map(() => 0);
  const used = new Set<number>();
  for (let i = 0; i < series.count; ++i) {
    used.add(groups.of[i]!);
    if (series.alive(i, at)) sums[groups.of[i]!]! += series.bytes[i]!;
  }
  const only = app.option("mem.only");
  return h("div", { class: "legend memory" }, ...groups.names.map((name, g) => {
    const swatch = h("i", { "aria-hidden": "true" });
    swatch.style.background = memoryColor(g);
    return !used.has(g) ? null
      : h("button", { type: "button", "data-k": "mem.only." + g,
          "aria-pressed": String(only === name),
          click: () => app.go(app.withOption("mem.only",
                                             only === name ? "" : name)) },
        swatch, ` ${clean(name, 60)} `,
        h("span", { class: "muted" }, bytes(sums[g]!)));
  }));
}

const kConfidences = ["low", "medium", "high", "fact"];

export function framesOf(series: Series, stack: number, title: string): HTMLElement {
  const frames = series.frames(stack);
  const own = series.text("line", stack).split(" ")[0]!;
  const rows: HTMLElement[] = [];
  let folded = 0;
  const flush = () => {
    if (folded > 0) {
      rows.push(h("li", { class: "muted" },
        `${folded} native ${folded === 1 ? "frame" : "frames"}`));
    }
    folded = 0;
  };
  for (const frame of frames) {
    if (/^(\?\?|[^ ]*\.(cpp|cc|c|h|cu)\b|:| )/.test(frame) &&
        !/at::_ops::/.test(frame)) {
      ++folded;
      continue;
    }
    flush();
    rows.push(h("li", {}, own !== "" && frame.includes("/" + own + " ")
      ? h("b", {}, clean(frame, 300)) : clean(frame, 300)));
  }
  flush();
  return h("details", { open: true }, h("summary", {}, title),
    rows.length === 0 ? h("p", { class: "muted" }, "No stack was recorded.")
      : h("ol", { class: "frames" }, ...rows));
}

// All about one allocation.
export function details(app: App, shown: Shown): HTMLElement | null {
  const { series, pick: i } = shown;
  if (i < 0) return null;
  const born = series.born[i]!;
  const [freed, dead] = [series.freed[i]!, series.dead[i]!];
  const last = series.moments;
  const when = (m: number) => app.link(`event ${count(m - 1)}`,
    app.withOption("mem.at", String(m - originOf(shownSeries(app), series))));
  const entry = (name: string, ...parts: (Node | string)[]) =>
    [h("dt", {}, name), h("dd", {}, ...parts)];
  const stack = series.stack[i]!;
  const step = series.info.marks.find((m) => m.asked === undefined &&
                                      m.moment >= born);
  return h("section", { class: "facts" },
    h("h2", {}, `${bytes(series.bytes[i]!)} ` +
      series.categoryName(series.category[i]!)),
    h("dl", {},
      ...entry("bytes", `${count(series.bytes[i]!)} of the block, ` +
        `${count(series.bytes[i]! - series.spare[i]!)} requested`),
      ...entry("category", `${series.categoryName(series.category[i]!)}, ` +
        `${kConfidences[series.confidence[i]!] ?? ""} confidence, rule ` +
        app.model.text(series.rule[i]!)),
      ...entry("line", clean(series.text("line", stack))),
      ...entry("op", clean(series.text("op", stack))),
      ...entry("module", clean(series.text("module", stack))),
      ...entry("made", ...(born === 0 ? ["before the recording"]
        : [when(born), step ? ` in ${clean(step.text, 80)}` : ""])),
      ...entry("freed", ...(freed > last ? ["not in the recording"]
        : [when(freed), dead > freed && dead <= last
          ? ", waited for a stream until " : "",
          ...(dead > freed && dead <= last ? [when(dead)] : [])])),
      ...entry("lifetime", `${count(Math.min(dead, last) - born)} events` +
        (series.times.length > 0
          ? `, ${time((series.time(Math.min(dead, last)) -
                       series.time(born)) * 1000)}` : "")),
      ...entry("stream", app.model.text(series.stream[i]!))),
    framesOf(series, stack, "Allocated"),
    series.freeStack[i]! > 0 &&
      framesOf(series, series.freeStack[i]!, "Freed"));
}

export function missingMemory(model: { manifest: { memory?: unknown } }):
    string | null {
  return Array.isArray(model.manifest.memory) ? null
    : "The page holds no allocations.";
}
