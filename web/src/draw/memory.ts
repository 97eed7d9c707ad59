// SPDX-License-Identifier: Apache-2.0
//
// Drawings of memory: an area over moments, by sums or allocation by
// allocation; the map of addresses over moments; segments at one moment. All
// are rasters, so a million allocations cost no more than their pixels.

import { bands, columns, kUnit, stacked, upper, type Groups, type Series } from
  "../data/memory";
import { ink, memoryColor } from "../ui/colors";
import { bytes, count, time } from "../ui/format";
import { prepare } from "./canvas";

export const kLeft = 74;    // px of the axis
export const kBottom = 22;
const kGap = 10;

export type Mode = "sums" | "each" | "map";

export interface Frame {
  series: Series;
  groups: Groups;
  mask: Uint8Array | null;
  mode: Mode;
  byTime: boolean;
  from: number;      // moments, or us
  to: number;
  low: number;       // bytes, or places of the map
  high: number;
  at: number;        // the moment that is marked
  pick: number;      // allocation, -1: none
}

function packed(color: string): number {
  const value = parseInt(color.slice(1), 16);
  return (0xff000000 | (value & 0xff) << 16 | (value & 0xff00) |
    value >> 16 & 0xff) >>> 0;
}
function darker(color: number): number {
  return (0xff000000 | (color >> 1 & 0x7f7f7f)) >>> 0;
}

export function momentOf(f: Frame, x: number): number {
  return f.byTime ? upper(f.series.times, x - 1e-9) : x;
}
export function xOf(f: Frame, moment: number): number {
  return f.byTime ? f.series.time(moment) : moment;
}

function ticks(from: number, to: number, most: number, base: number): number[] {
  const step0 = (to - from) / most;
  let step = base ** Math.floor(Math.log(Math.max(1e-9, step0)) / Math.log(base));
  for (const k of base === 10 ? [1, 2, 5, 10] : [1, 2, 4, 8, 16, 32, 64, 128,
                                                256, 512, 1024]) {
    if (step * k < step0) continue;
    step *= k;
    break;
  }
  const out: number[] = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) out.push(t);
  return out;
}

export function drawFrame(canvas: HTMLCanvasElement, f: Frame, width: number,
                          height: number): void {
  const context = prepare(canvas, width, height);
  const ratio = canvas.width / width;
  context.fillStyle = ink("page");
  context.fillRect(0, 0, width, height);
  const plot = { left: kLeft, top: kGap, width: width - kLeft - kGap,
                 height: height - kBottom - kGap };
  const W = Math.max(1, Math.round(plot.width * ratio));
  const H = Math.max(1, Math.round(plot.height * ratio));
  const image = context.createImageData(W, H);
  const pixels = new Uint32Array(image.data.buffer);
  pixels.fill(packed(ink("panel")));
  const span = f.to - f.from;
  const moments = columns(f.series,
    (x) => momentOf(f, f.from + span * x / W), W);
  const colors = f.groups.names.map((_, g) => packed(memoryColor(g)));
  const perPixel = (f.high - f.low) / H;
  const row = (value: number) => H - (value - f.low) / perPixel;
  const fill = (x: number, bottom: number, top: number, color: number) => {
    const from = Math.max(0, Math.round(top));
    const to = Math.min(H, Math.round(bottom));
    for (let y = from; y < to; ++y) pixels[y * W + x] = color;
  };
  if (f.mode === "sums") {
    const sums = bands(f.series, f.groups, f.mask, moments);
    for (let x = 0; x < W; ++x) {
      let low = 0;
      for (const [g, color] of colors.entries()) {
        const size = sums[g * (W + 1) + x]!;
        if (size > 0) fill(x, row(low), row(low + size), color);
        low += size;
      }
    }
  } else if (f.mode === "each") {
    const lines = colors.map(darker);
    const chosen = packed(ink("text"));
    stacked(f.series, f.mask, moments, (x, i, low) => {
      const top = row(low + f.series.bytes[i]!);
      const bottom = row(low);
      if (top >= H || bottom <= 0) return;
      const g = f.groups.of[i]!;
      fill(x, bottom, top, i === f.pick ? chosen : colors[g]!);
      if (bottom - top > 3) fill(x, top + 1, top, lines[g]!);
    });
  } else {
    drawMap(f, moments, W, H, row, fill, colors);
  }
  context.putImageData(image, Math.round(plot.left * ratio),
                       Math.round(plot.top * ratio));
  const X = (moment: number) => plot.left +
    plot.width * (xOf(f, moment) - f.from) / span;
  const Y = (value: number) => plot.top +
    plot.height * (1 - (value - f.low) / (f.high - f.low));
  context.save();
  context.beginPath();
  context.rect(plot.left, plot.top, plot.width, plot.height);
  context.clip();
  if (f.mode !== "map") {
    context.strokeStyle = ink("text");
    context.lineWidth = 1.25;
    context.beginPath();
    let open = false;
    for (let x = 0; x < W; ++x) {
      if (moments[x]! < 0) { open = false; continue; }
      const y = Y(f.series.reserved(moments[x]!));
      if (open) context.lineTo(plot.left + x / ratio, y);
      else context.moveTo(plot.left + x / ratio, y);
      open = true;
    }
    context.stroke();
  }
  drawMarks(context, f, X, plot);
  context.restore();
  drawAxes(context, f, plot, Y);
}

function drawMap(f: Frame, moments: Int32Array, W: number, H: number,
                 row: (value: number) => number,
                 fill: (x: number, bottom: number, top: number,
                        color: number) => void, colors: number[]): void {
  const { series } = f;
  // First column at or behind each moment.
  const behind = new Uint32Array(series.moments + 2);
  let stop = W;
  while (stop > 0 && moments[stop - 1]! < 0) --stop;
  for (let m = 0, x = 0; m < behind.length; ++m) {
    while (x < stop && moments[x]! < m) ++x;
    behind[m] = x;
  }
  const box = (born: number, dead: number, place: number, size: number,
               color: number) => {
    const bottom = row(place);
    const top = row(place + size / kUnit);
    if (top >= H || bottom <= 0) return;
    const low = Math.max(bottom, top + 1);
    const from = behind[Math.min(born, series.moments + 1)]!;
    let to = behind[Math.min(dead, series.moments + 1)]!;
    // Too short to have a column: still seen.
    if (to === from && from < stop && moments[from] === born) ++to;
    for (let x = from; x < to; ++x) fill(x, low, top, color);
  };
  const free = packed(ink("page"));
  const { place, size, born, dead } = series.range;
  for (let i = 0; i < place!.length; ++i)
    box(born![i]!, dead![i]!, place![i]!, size![i]!, free);
  const chosen = packed(ink("text"));
  for (let i = 0; i < series.count; ++i) {
    if (f.mask && !f.mask[i]) continue;
    box(series.born[i]!, series.dead[i]!, series.place[i]!, series.bytes[i]!,
        i === f.pick ? chosen : colors[f.groups.of[i]!]!);
  }
}

function drawMarks(context: CanvasRenderingContext2D, f: Frame,
                   X: (moment: number) => number,
                   plot: { left: number; top: number; width: number;
                           height: number }): void {
  context.font = "11px system-ui, sans-serif";
  let last = -Infinity;
  const line = (x: number, color: string, dash: number[]) => {
    context.strokeStyle = color;
    context.setLineDash(dash);
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, plot.top);
    context.lineTo(x, plot.top + plot.height);
    context.stroke();
    context.setLineDash([]);
  };
  const label = (x: number, y: number, text: string) => {
    const wide = context.measureText(text).width;
    const at = Math.min(x + 3, plot.left + plot.width - wide - 4);
    context.fillStyle = ink("page");
    context.globalAlpha = 0.82;
    context.fillRect(at - 2, y - 10, wide + 4, 13);
    context.globalAlpha = 1;
    context.fillStyle = ink("text");
    context.fillText(text, at, y);
  };
  for (const mark of f.series.info.marks) {
    const x = X(mark.moment);
    if (x < plot.left || x > plot.left + plot.width) continue;
    if (mark.asked === undefined && x - last < 24) continue;
    line(x, ink("muted"), [2, 3]);
    const text = mark.asked === undefined ? mark.text.slice(0, 40)
      : `${bytes(mark.asked)} failed`;
    if (x - last > 90) {
      label(x, plot.top + 12, text);
      last = x;
    }
  }
  const peak = X(f.series.info.peak);
  line(peak, ink("link"), [5, 3]);
  label(peak, plot.top + plot.height - 6, "peak");
  line(X(f.at), ink("text"), []);
}

function drawAxes(context: CanvasRenderingContext2D, f: Frame,
                  plot: { left: number; top: number; width: number;
                          height: number }, Y: (v: number) => number): void {
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = ink("muted");
  context.textAlign = "right";
  const scale = f.mode === "map" ? kUnit : 1;
  for (const value of ticks(f.low * scale, f.high * scale, plot.height / 40, 1024)) {
    context.fillText(bytes(value), plot.left - 6,
      Math.max(12, Y(value / scale) + 4));
  }
  context.textAlign = "center";
  for (const t of ticks(f.from, f.to, plot.width / 110, 10)) {
    const x = plot.left + plot.width * (t - f.from) / (f.to - f.from);
    const label = f.byTime ? time(t * 1000) : count(t);
    const most = plot.left + plot.width + kGap -
      context.measureText(label).width / 2;
    context.fillText(label, Math.min(x, most), plot.top + plot.height + 16);
  }
  context.textAlign = "left";
}

export interface SegmentRow {
  range: number;
  size: number;
  active: number;
  stuck: number;  // free beside something active
  blocks: number[];
}

// Segments at a moment, with the allocations in each.
export function segmentsAt(series: Series, moment: number): SegmentRow[] {
  const { place, size, born, dead } = series.range;
  const rows: SegmentRow[] = [];
  for (let i = 0; i < place!.length; ++i) {
    if (born![i]! <= moment && moment < dead![i]!)
      rows.push({ range: i, size: size![i]!, active: 0, stuck: 0, blocks: [] });
  }
  const starts = rows.map((r) => place![r.range]!);
  for (let i = 0; i < series.count; ++i) {
    if (!series.alive(i, moment)) continue;
    const at = rows[upper(starts, series.place[i]!) - 1];
    if (!at) continue;
    at.active += series.bytes[i]!;
    at.blocks.push(i);
  }
  for (const r of rows) r.stuck = r.active > 0 ? Math.max(0, r.size - r.active) : 0;
  return rows;
}

export const kSegmentRow = 18;

export function drawSegments(canvas: HTMLCanvasElement, series: Series,
                             rows: SegmentRow[], groups: Groups,
                             mask: Uint8Array | null, moment: number,
                             pick: number, width: number): void {
  const context = prepare(canvas, width, Math.max(1, rows.length) * kSegmentRow);
  context.fillStyle = ink("panel");
  context.fillRect(0, 0, width, rows.length * kSegmentRow);
  const most = Math.max(...rows.map((r) => r.size), 1);
  context.font = "11px system-ui, sans-serif";
  for (const [k, r] of rows.entries()) {
    const y = k * kSegmentRow + 1;
    const scale = segmentScale(r, most, width);
    const high = kSegmentRow - 3;
    context.fillStyle = ink("page");
    context.fillRect(kLeft, y, r.size * scale, high);
    context.strokeStyle = ink("line");
    context.strokeRect(kLeft + 0.5, y + 0.5, Math.max(1, r.size * scale - 1),
                       high - 1);
    for (const i of r.blocks) {
      if (mask && !mask[i]) continue;
      const x = kLeft +
        (series.place[i]! - series.range.place![r.range]!) * kUnit * scale;
      const wide = Math.max(0.5, series.bytes[i]! * scale);
      context.fillStyle = i === pick ? ink("text")
        : memoryColor(groups.of[i]!);
      // Freed, but another stream still uses it.
      context.globalAlpha = series.freed[i]! <= moment ? 0.45 : 1;
      context.fillRect(x, y, wide, high);
      context.globalAlpha = 1;
      const spare = series.spare[i]! * scale;
      if (spare >= 0.5) {
        context.fillStyle = ink("muted");
        context.fillRect(x + wide - spare, y, spare, high);
      }
      if (wide > 4) {
        context.fillStyle = ink("page");
        context.fillRect(x + wide - 0.5, y, 0.5, high);
      }
    }
    context.fillStyle = ink("muted");
    context.textAlign = "right";
    context.fillText(bytes(r.size), kLeft - 6, y + 12);
    context.textAlign = "left";
  }
}

// Rows of very unlike sizes have scales of their own, 16 apart: a small segment
// would not be seen beside a large one.
export function segmentScale(row: SegmentRow, most: number,
                             width: number): number {
  let whole = most;
  while (row.size * 16 <= whole) whole /= 16;
  return (width - kLeft - 4) / whole;
}
