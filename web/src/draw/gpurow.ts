// SPDX-License-Identifier: Apache-2.0
//
// The row of a GPU above its streams: busy time of all of them by family, and
// its idle time as objects that can be pointed at and selected.

import { idleSpans, lastAt } from "../data/answer";
import { gapsOf, gpusOf, partsOf, type Gpu, type Parts } from "../data/gpus";
import { groupIndex, kGroups } from "../data/groups";
import { withTrace } from "../data/filter";
import { buildPyramid, pyramidSteps, withCoarser, type Level } from
  "../data/pyramid";
import { inSlices } from "../data/slices";
import { firstStartingAt } from "../data/tracks";
import type { App } from "../ui/app";
import { groupColor, ink, spentColor } from "../ui/colors";
import { brief } from "../ui/format";
import { gapWords } from "../ui/gaps";
import { fitText } from "./canvas";

export interface GpuRow {
  gpu: Gpu;
  parts: Parts | null;   // null in a page that does not hold every event
  levels: Level[];
}

let cache: { selection: unknown; rows: Map<Gpu, GpuRow> } | null = null;

function rowsOf(app: App): Map<Gpu, GpuRow> {
  if (cache?.selection !== app.selection)
    cache = { selection: app.selection, rows: new Map() };
  return cache.rows;
}

function stepsOf(app: App, parts: Parts, from: number, to: number) {
  return [{ start: parts.start, dur: parts.dur, family: parts.family, begin: 0,
            end: parts.count, overlap: false }, groupIndex(app.model),
          kGroups.length, null, from, to] as
    Parameters<typeof pyramidSteps>;
}

// Streams whose events are not all known, together: at most all of the time.
function added(lanes: Level[]): Level[] {
  const first = lanes[0]!;
  const level: Level = { width: first.width, from: first.from,
    busy: new Float64Array(first.busy.length),
    match: new Float64Array(first.busy.length),
    group: new Uint8Array(first.busy.length) };
  for (let b = 0; b < level.busy.length; ++b) {
    let most = -1;
    for (const lane of lanes) {
      level.busy[b] = Math.min(level.width, level.busy[b]! + lane.busy[b]!);
      level.match[b] = Math.min(level.width, level.match[b]! + lane.match[b]!);
      if (lane.match[b]! <= most) continue;
      most = lane.match[b]!;
      level.group[b] = lane.group[b]!;
    }
  }
  return withCoarser(level);
}

type LaneLevels = (lane: number) => Level[];

export async function prepareGpus(app: App, gpus: Gpu[],
                                  [from, to]: [number, number]):
    Promise<void> {
  const rows = rowsOf(app);
  const wanted = () => cache?.rows === rows;
  for (const gpu of app.model.thinned ? [] : gpus) {
    if (rows.has(gpu)) continue;
    const parts = partsOf(app.model, gpu, app.selection.mask);
    const levels = await inSlices(pyramidSteps(...stepsOf(app, parts, from,
                                                          to)), wanted);
    if (!levels) return;
    rows.set(gpu, { gpu, parts, levels });
  }
}

export function gpuRow(app: App, gpu: Gpu, [from, to]: [number, number],
                       lanes: LaneLevels): GpuRow {
  const rows = rowsOf(app);
  let row = rows.get(gpu);
  if (row) return row;
  if (app.model.thinned) {
    row = { gpu, parts: null,
            levels: added(gpu.lanes.map((lane) => lanes(lane)[0]!)) };
  } else {
    const parts = partsOf(app.model, gpu, app.selection.mask);
    row = { gpu, parts, levels: buildPyramid(...stepsOf(app, parts, from, to)) };
  }
  rows.set(gpu, row);
  return row;
}

export function gpuName(app: App, gpu: Gpu): string {
  const { model } = app;
  const twin = gpusOf(model).some((other) => other !== gpu &&
    other.device === gpu.device && other.trace === gpu.trace);
  return withTrace(model, gpu, (gpu.device === null ? "Device"
    : `GPU ${gpu.device}`) + (twin ? ` (${gpu.process})` : ""));
}

// --- drawing ---

export interface Box { y: number; height: number; left: number; right: number }

// Idle time by cause, at every zoom: each column of pixels is all of its time,
// what is idle of it hatched from above.
export function drawIdle(context: CanvasRenderingContext2D, app: App, gpu: Gpu,
                         box: Box, window: { from: number; to: number }):
    void {
  const spans = idleSpans(app.model, gpu);
  const bar = app.model.manifest.answer!.bar;
  const left = Math.floor(box.left);
  const width = Math.max(1, Math.ceil(box.right) - left);
  const perPixel = (window.to - window.from) / (box.right - box.left);
  const sums = new Map<number, Float64Array>();
  for (let i = Math.max(0, lastAt(spans, window.from)); i < spans.start.length;
       ++i) {
    const start = Math.max(spans.start[i]!, window.from);
    if (start >= window.to) break;
    const end = Math.min(spans.start[i]! + spans.dur[i]!, window.to);
    if (end <= start) continue;
    let columns = sums.get(spans.kind[i]!);
    if (!columns)
      sums.set(spans.kind[i]!, columns = new Float64Array(width));
    const at = (t: number) => (t - window.from) / perPixel + box.left - left;
    const [from, to] = [at(start), at(end)];
    for (let x = Math.floor(from); x < to && x < width; ++x)
      columns[x]! += Math.min(x + 1, to) - Math.max(x, from);
  }
  const top = new Float64Array(width).fill(box.y);
  for (const [kind, columns] of sums) {
    context.fillStyle = hatch(context, bar[kind]!.key);
    for (let x = 0; x < width; ++x) {
      // Equal neighbours are one.
      let next = x + 1;
      if (columns[x]! <= 0) continue;
      while (next < width && columns[next] === columns[x] &&
             top[next] === top[x]) ++next;
      const tall = Math.min(1, columns[x]!) * box.height;
      context.fillRect(left + x, top[x]!, next - x, tall);
      top.fill(top[x]! + tall, x, next);
      x = next - 1;
    }
  }
}

const hatches = new Map<string, CanvasPattern | string>();
function hatch(context: CanvasRenderingContext2D, key: string):
    CanvasPattern | string {
  const color = spentColor(key);
  const known = hatches.get(color);
  if (known !== undefined) return known;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const inner = tile.getContext("2d")!;
  inner.fillStyle = color + "33";
  inner.fillRect(0, 0, 6, 6);
  inner.strokeStyle = color;
  inner.lineWidth = 1.5;
  for (const shift of [-6, 0, 6]) {
    inner.beginPath();
    inner.moveTo(shift - 1, 7);
    inner.lineTo(shift + 7, -1);
    inner.stroke();
  }
  const made = context.createPattern(tile, "repeat") ?? color;
  hatches.set(color, made);
  return made;
}

// Idle time: the gaps that are wider than a pixel.
export function drawGaps(context: CanvasRenderingContext2D, app: App, gpu: Gpu,
                         box: Box, x: (t: number) => number,
                         window: { from: number; to: number }): void {
  const gaps = gapsOf(app.model, gpu);
  const first = Math.max(0, firstStartingAt(gaps.start, window.from, 0,
                                            gaps.start.length) - 1);
  const least = (window.to - window.from) / (box.right - box.left);
  for (let at = first; at < gaps.start.length; ++at) {
    const start = gaps.start[at]!;
    if (start >= window.to) break;
    const dur = gaps.dur[at]!;
    if (dur < least || start + dur <= window.from) continue;
    const left = Math.max(box.left, x(start));
    const right = Math.min(box.right, x(start + dur));
    const caused = app.model.manifest.answer !== undefined;
    context.fillStyle = ink("panel");
    if (!caused) context.fillRect(left, box.y, right - left, box.height);
    if (right - left < 4) continue;
    context.strokeStyle = ink("muted");
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.strokeRect(x(start) + 0.5, box.y + 0.5, x(start + dur) - x(start) -
      1, box.height - 1);
    context.setLineDash([]);
    if (right - left < 60) continue;
    const middle = box.y + box.height / 2;
    if (caused) {
      const lines = [`${brief(dur)} idle`];
      if (right - left >= 96 && box.height >= 40)
        lines.push(causeWords(app, gpu, start, dur));
      boxed(context, lines.filter((line) =>
        context.measureText(line).width <= right - left - 14),
        (left + right) / 2, middle);
      continue;
    }
    const words = fitText(context, gapWords(app, { gpu, at }),
                          right - left - 10);
    context.fillStyle = ink("muted");
    context.fillText(words, left + 5, middle);
  }
}

// What most of a stretch of idle time was spent on.
function causeWords(app: App, gpu: Gpu, start: number, dur: number): string {
  const spans = idleSpans(app.model, gpu);
  const sums = new Map<number, number>();
  for (let i = Math.max(0, lastAt(spans, start)); i < spans.start.length; ++i) {
    const from = Math.max(start, spans.start[i]!);
    const to = Math.min(start + dur, spans.start[i]! + spans.dur[i]!);
    if (spans.start[i]! >= start + dur) break;
    if (to > from)
      sums.set(spans.kind[i]!, (sums.get(spans.kind[i]!) ?? 0) + to - from);
  }
  const [most] = [...sums].sort((a, b) => b[1] - a[1]);
  return most ? app.model.manifest.answer!.bar[most[0]]!.words : "";
}

// Lines in the middle of a hatched box, which they are read on.
function boxed(context: CanvasRenderingContext2D, lines: string[], x: number,
               y: number): void {
  const shown = lines.filter((line) => line !== "");
  if (shown.length === 0) return;
  const wide = Math.max(0, ...shown.map((line) =>
    context.measureText(line).width));
  const tall = 15 * shown.length;
  context.fillStyle = ink("page");
  context.fillRect(x - wide / 2 - 4, y - tall / 2 - 1, wide + 8, tall + 2);
  context.fillStyle = ink("text");
  for (const [i, line] of shown.entries()) {
    context.fillText(line, x - context.measureText(line).width / 2,
                     y - tall / 2 + 15 * i + 7.5);
  }
}

// Where there is room for every part; false where there is not.
export function drawParts(context: CanvasRenderingContext2D, app: App,
                          { parts }: GpuRow, box: Box,
                          x: (t: number) => number,
                          window: { from: number; to: number }): boolean {
  if (!parts) return false;
  const first = Math.max(0, firstStartingAt(parts.start, window.from, 0,
                                            parts.count) - 1);
  const last = firstStartingAt(parts.start, window.to, first, parts.count);
  if (last - first > 1.5 * (box.right - box.left)) return false;
  const groups = groupIndex(app.model);
  for (let i = first; i < last; ++i) {
    const left = x(parts.start[i]!);
    const right = x(parts.start[i]! + parts.dur[i]!);
    context.fillStyle = groupColor(kGroups[groups[parts.family[i]!]!]!);
    context.fillRect(left, box.y, Math.max(0.7, right - left), box.height);
  }
  return true;
}

// Events that are known one by one, over each other.
export function drawRows(context: CanvasRenderingContext2D, app: App,
                         rows: number[], box: Box, x: (t: number) => number):
    void {
  const groups = groupIndex(app.model);
  const { start, dur, family } = app.model.device!;
  for (const row of rows) {
    const left = x(start[row]!);
    const right = x(start[row]! + dur[row]!);
    context.fillStyle = groupColor(kGroups[groups[family[row]!]!]!);
    context.fillRect(left, box.y, Math.max(0.7, right - left), box.height);
  }
}

// The gap or the event at a time; null for neither.
export function gpuHit(app: App, { gpu, parts }: GpuRow, t: number,
                       slack: number, gapsToo = true):
    { gap: number } | { row: number } | null {
  const gaps = gapsOf(app.model, gpu);
  const at = firstStartingAt(gaps.start, t, 0, gaps.start.length) - 1;
  if (gapsToo && at >= 0 && gaps.start[at]! + gaps.dur[at]! > t && gaps.dur[at]! >= slack)
    return { gap: at };
  if (!parts) return null;
  const near = Math.max(0, firstStartingAt(parts.start, t + slack, 0,
                                           parts.count) - 1);
  return near < parts.count && parts.start[near]! <= t + slack &&
    parts.start[near]! + parts.dur[near]! >= t - slack
    ? { row: parts.rows[near]! } : null;
}
