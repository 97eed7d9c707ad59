// SPDX-License-Identifier: Apache-2.0
//
// The row of a GPU above its streams: busy time of all of them by family, and
// its idle time as objects that can be pointed at and selected.

import { gapsOf, gpusOf, partsOf, type Gpu, type Parts } from "../data/gpus";
import { groupIndex, kGroups } from "../data/groups";
import { withTrace } from "../data/filter";
import { buildPyramid, pyramidSteps, withCoarser, type Level } from
  "../data/pyramid";
import { inSlices } from "../data/slices";
import { firstStartingAt } from "../data/tracks";
import type { App } from "../ui/app";
import { groupColor, ink } from "../ui/colors";
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
    context.fillStyle = ink("panel");
    context.fillRect(left, box.y, right - left, box.height);
    if (right - left < 4) continue;
    context.strokeStyle = ink("muted");
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.strokeRect(x(start) + 0.5, box.y + 0.5, x(start + dur) - x(start) -
      1, box.height - 1);
    context.setLineDash([]);
    if (right - left < 60) continue;
    context.fillStyle = ink("muted");
    context.fillText(fitText(context, gapWords(app, { gpu, at }),
                             right - left - 10), left + 5,
                     box.y + box.height / 2);
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
