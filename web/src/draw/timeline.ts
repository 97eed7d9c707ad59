// SPDX-License-Identifier: Apache-2.0
//
// Draws a window of a scene. Where events are thinner than pixels a column is
// a bucket of the lane's pyramid: its height is the busy share, its colour
// the family with most time; else each event is a box. What the filter leaves
// out stays as a pale ghost.

import { twinOf } from "../data/autograd";
import { sampleAt } from "../data/counters";
import type { Axis, Piece } from "../data/fold";
import { groupIndex } from "../data/groups";
import type { DeviceEvents } from "../data/model";
import { levelFor, type Level } from "../data/pyramid";
import type { LaneTile } from "../data/served";
import { firstEndingAfter, firstStartingAt } from "../data/tracks";
import { litSpans, type Lit } from "../ui/answer";
import type { App } from "../ui/app";
import { groupColor, ink, kGroups, textOn } from "../ui/colors";
import { clean, kernelName, time } from "../ui/format";
import type { Spans } from "../data/answer";
import { gapsOf, gpusOf, type Gpu, type GapAt } from "../data/gpus";
import type { Marked } from "../ui/area";
import { flagsOf } from "../ui/flags";
import { gapWords, selectedGap } from "../ui/gaps";
import { drawArrow, fitName, fitText } from "./canvas";
import { drawGaps, drawIdle, drawParts, drawRows, gpuHit } from "./gpurow";
import { ticks } from "./ruler";
import { counterText, drawSteps } from "./steps";
import { kRowHeight, kRulerHeight, type BoxRow, type CounterTrack,
  type GpuTrack,  type LaneTrack, type Scene, type Track } from "./scene";

export interface Window { from: number; to: number }
interface Place { t: number; dur: number; y: number; height: number }

const kNameRoom = 90;   // px: below, the beginning of a name alone
function fitBox(context: CanvasRenderingContext2D, text: string, room: number):
    string {
  return room < kNameRoom ? fitText(context, text, room)
    : fitName(context, text, room);
}
// The end of the name of a track is its number.
function fitLabel(context: CanvasRenderingContext2D, text: string,
                  room: number): string {
  let shown = text;
  for (let cut = 2; context.measureText(shown).width > room &&
       cut < text.length; ++cut) {
    const left = text.length - cut;
    shown = text.slice(0, left >> 1) + "\u2026" +
      text.slice(text.length - (left - (left >> 1)));
  }
  return shown;
}

// 1 for each column of pixels that a span touches.
export function coverage({ start, dur }: Spans, window: Window, left: number,
                         right: number): Uint8Array {
  const columns = new Uint8Array(Math.max(1, Math.ceil(right - left)));
  const scale = (right - left) / (window.to - window.from);
  for (let i = 0; i < start.length; ++i) {
    if (start[i]! >= window.to) break;
    const end = start[i]! + dur[i]!;
    if (end <= window.from) continue;
    const from = Math.max(0, Math.floor((start[i]! - window.from) * scale));
    const to = Math.min(columns.length, Math.max(from + 1,
      Math.ceil((end - window.from) * scale)));
    columns.fill(1, from, to);
  }
  return columns;
}
export function veil(context: CanvasRenderingContext2D, columns: Uint8Array,
                     left: number, y: number, height: number): void {
  for (let x = 0; x < columns.length; ++x) {
    if (columns[x]) continue;
    let next = x;
    while (next < columns.length && !columns[next]) ++next;
    context.fillRect(left + x, y, next - x, height);
    x = next;
  }
}

const kEventsPerPixel = 1.5;
const kFont = "11px system-ui, 'DejaVu Sans', sans-serif";

export class Painter {
  private readonly groups: Uint8Array;
  private readonly ink: Record<string, string> = {};
  private readonly colors = kGroups.map(groupColor);
  private readonly inks = kGroups.map(textOn);
  detail = "";  // how the busiest lane was drawn
  // The part of the drawing that a piece of the window has.
  private left = 0;
  private right = 0;
  private folded = false;
  private now: Window = { from: 0, to: 1 };  // what is drawn

  constructor(private readonly app: App, readonly scene: Scene,
              private readonly context: CanvasRenderingContext2D,
              private readonly width: number,
              private readonly axis: Axis, private readonly shift = 0) {
    this.groups = groupIndex(app.model);
    for (const name of ["text", "muted", "line", "page", "panel", "host",
                        "hostink", "ghost", "module", "link"])
      this.ink[name] = ink(name as Parameters<typeof ink>[0]);
  }

  private x(window: Window, t: number): number {
    return this.left + (t - window.from) / (window.to - window.from) *
      (this.right - this.left);
  }
  // On the whole drawing, over all folds.
  private at(t: number): number {
    const { axis, now, width, scene: { gutter } } = this;
    const from = axis.toAxis(now.from);
    return gutter + (axis.toAxis(t) - from) / (axis.toAxis(now.to) - from) *
      (width - gutter);
  }
  private pieces(window: Window): (Piece & { left: number; right: number })[] {
    this.now = window;
    return this.axis.pieces(window).map((piece) => ({ ...piece,
      left: this.at(piece.from), right: this.at(piece.to) }));
  }
  private enter({ left, right, folded }: Piece & { left: number;
                                                   right: number }): void {
    this.left = left;
    this.right = right;
    this.folded = folded;
  }

  // The window in times of the track: B may be moved against A.
  private own(track: { trace: number }, window: Window): Window {
    const by = track.trace === 1 ? this.shift : 0;
    return { from: window.from + by, to: window.to + by };
  }

  draw(window: Window): void {
    const { context, scene, width } = this;
    context.fillStyle = this.ink.page!;
    context.fillRect(0, 0, width, scene.height);
    context.font = kFont;
    context.textBaseline = "middle";
    const pieces = this.pieces(window);
    this.taken = this.areaWords();
    for (const piece of pieces) {
      this.enter(piece);
      if (!piece.folded) this.ruler(piece, pieces.length > 1);
    }
    this.detail = "every event drawn";
    for (const track of scene.tracks) {
      for (const piece of pieces) {
        this.enter(piece);
        context.save();
        context.beginPath();
        context.rect(piece.left, track.y, piece.right - piece.left,
                     track.height);
        context.clip();
        const own = this.own(track, piece);
        if (track.kind === "lane") this.lane(track, own);
        else if (track.kind === "gpu") this.gpu(track, own);
        else if (track.kind === "counter") this.counter(track, own);
        else track.rows.forEach((row, depth) => this.boxes(row,
          track.y + depth * kRowHeight, track.color, own));
        context.restore();
      }
    }
    if (this.app.lit) for (const piece of pieces) this.dim(piece, this.app.lit);
    for (const piece of pieces) if (piece.folded) this.fold(piece);
    for (const track of scene.tracks) {
      if (track.kind === "counter") this.counterTop(track);
      this.label(track);
    }
    this.area();
    this.flags();
    this.selected();
  }

  // All but what is pointed at, in the rows of GPUs and streams.
  private dim(piece: Piece & { left: number; right: number }, lit: Lit): void {
    const { context, scene } = this;
    const gpus = new Map<Gpu, Uint8Array>();
    for (const gpu of gpusOf(this.app.model)) {
      gpus.set(gpu, coverage(litSpans(this.app, gpu, lit), piece,
                             piece.left, piece.right));
    }
    context.fillStyle = this.ink.page!;
    context.globalAlpha = 0.8;
    for (const track of scene.tracks) {
      const lanes = track.kind === "lane" ? [track.lane]
        : track.kind === "gpu" ? track.row.gpu.lanes : [];
      const columns = [...gpus].find(([gpu]) => lanes.length > 0 &&
        gpu.lanes.includes(lanes[0]!))?.[1];
      if (columns) veil(context, columns, piece.left, track.y, track.height);
    }
    context.globalAlpha = 1;
  }

  // Idle time that takes less room than it lasts, and says so.
  private fold({ from, to, left, right }: Piece & { left: number;
                                                   right: number }): void {
    const { context, scene } = this;
    context.fillStyle = this.ink.ghost!;
    context.globalAlpha = 0.6;
    context.fillRect(left, 0, right - left, scene.height);
    context.globalAlpha = 1;
    context.strokeStyle = this.ink.muted!;
    context.lineWidth = 1;
    context.setLineDash([2, 3]);
    for (const x of [left, right]) {
      context.beginPath();
      context.moveTo(Math.round(x) + 0.5, 0);
      context.lineTo(Math.round(x) + 0.5, scene.height);
      context.stroke();
    }
    context.setLineDash([]);
    const words = time(to - from);
    const wide = context.measureText(words).width;
    if (wide > right - left) return;
    context.fillStyle = this.ink.text!;
    context.fillText(words, (left + right - wide) / 2, 9);
  }

  // The marked area: its tracks shaded, its edges to be dragged.
  marked: Marked | null = null;

  private get markedPixels(): { left: number; right: number } | null {
    const { scene, width, marked } = this;
    if (!marked) return null;
    const left = Math.max(scene.gutter, this.at(marked.from));
    const right = Math.min(width, this.at(marked.to));
    return right < scene.gutter || left > width ? null : { left, right };
  }
  // Its length, in the ruler, and where that stands: no tick has its label there.
  private taken: { words: string; left: number; right: number } | null = null;
  private areaWords(): Painter["taken"] {
    const { context, scene, width, marked, markedPixels: pixels } = this;
    if (!marked || !pixels) return null;
    const words = `\u0394 ${time(marked.to - marked.from)}`;
    const wide = context.measureText(words).width;
    const left = Math.max(scene.gutter, Math.min(width - wide - 6,
      (pixels.left + pixels.right - wide) / 2));
    return { words, left, right: left + wide };
  }

  private area(): void {
    const { context, scene, marked, markedPixels: pixels, taken } = this;
    if (!marked || !pixels || !taken) return;
    const { left, right } = pixels;
    context.fillStyle = this.ink.link!;
    context.globalAlpha = 0.18;
    for (const track of scene.tracks) {
      if (marked.keys.length === 0 || marked.keys.includes(track.key))
        context.fillRect(left, track.y, right - left, track.height);
    }
    context.globalAlpha = 1;
    context.fillRect(left - 1, 0, 2, scene.height);
    context.fillRect(right - 1, 0, 2, scene.height);
    context.fillRect(left, kRulerHeight - 4, right - left, 4);
    context.fillStyle = this.ink.text!;
    context.fillText(taken.words, taken.left, 8);
  }

  private flags(): void {
    const { context, scene } = this;
    for (const { at, text } of flagsOf(this.app)) {
      const x = this.at(at);
      if (x < scene.gutter || x > this.width) continue;
      const words = "\u2691 " + fitText(context, clean(text, 60), 120);
      context.fillStyle = this.ink.page!;
      context.fillRect(x, 0, context.measureText(words).width + 6,
                       kRulerHeight - 3);
      context.fillStyle = this.ink.link!;
      context.fillRect(x, 0, 1.5, scene.height);
      context.fillText(words, x + 3, 9);
    }
  }

  private label(track: Track): void {
    const { context, scene } = this;
    context.fillStyle = this.ink.text!;
    context.font = "600 " + kFont;
    const compact = scene.gutter === 0;
    const sign = track.toggle ? (track.toggle.open ? "\u25be " : "\u25b8 ") : "";
    context.fillText(fitLabel(context, sign + track.label, compact
      ? this.width - 8 : scene.gutter - 12), compact ? 4 : 6,
      compact ? track.y - 8 : track.y + Math.min(8, track.height / 2));
    context.font = kFont;
  }

  private ruler(window: Window, folded: boolean): void {
    const { context, scene, right: width } = this;
    const { base, ticks: list } = ticks(window.from, window.to,
      Math.max(folded ? 1 : 2, Math.floor((width - this.left) / 92)), folded);
    for (const { at, label } of list) {
      const x = Math.round(this.x(window, at)) + 0.5;
      context.fillStyle = this.ink.line!;
      context.fillRect(x, kRulerHeight - 3, 1, scene.height);
      context.fillStyle = this.ink.muted!;
      const wide = context.measureText(label).width;
      const { taken } = this;
      if (taken && x < taken.right + 4 && x + wide + 8 > taken.left) continue;
      if (x + (folded ? wide : 20) < width) context.fillText(label, x + 3, 9);
    }
    if (base && scene.gutter > 0) context.fillText(base, 6, 9);
  }

  // --- device events ---

  // The first row of the lane that ends after `t`.
  private firstAfter(track: LaneTrack, device: DeviceEvents, t: number):
      number {
    const { begin, end } = this.app.model.lanes[track.lane]!;
    let lo = begin;
    let hi = end;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      const ends = track.maxEnd ? track.maxEnd[mid - begin]!
        : device.start[mid]! + device.dur[mid]!;
      if (ends > t) hi = mid;
      else lo = mid + 1;
    }
    return lo;
  }

  private range(track: LaneTrack, window: Window): [number, number] {
    const device = this.app.model.device!;
    const first = this.firstAfter(track, device, window.from);
    return [first, firstStartingAt(device.start, window.to, first,
      this.app.model.lanes[track.lane]!.end)];
  }

  private lane(track: LaneTrack & Track, window: Window): void {
    const { context, left, right } = this;
    context.fillStyle = this.ink.panel!;
    context.fillRect(left, track.y, right - left, track.height);
    const tile = this.tile(track.lane, window);
    if (tile?.rows) return this.tileEvents(track, window, tile);
    if (tile)
      return this.buckets({ ...track, levels: [tile.level!] }, window);
    const [first, last] = this.range(track, window);
    const many = last - first > kEventsPerPixel * (right - left);
    const { thinned } = this.app.model;
    if (many || thinned) this.buckets(track, window);
    if (!many) this.events(track, window, first, last);
    if (thinned) this.detail += "; boxes: the slowest events of each kernel " +
      "and those around findings";
  }

  // What lamina serve has sent of a lane.
  private tile(lane: number, window: Window): LaneTile | null {
    const { served, state } = this.app;
    return served?.tile(state.chips, lane, window.from, window.to) ?? null;
  }
  private tileEvents(track: LaneTrack & Track, window: Window,
                     { rows, passes, lower }: LaneTile): void {
    const half = lower ? track.height / 2 : track.height;
    for (const [i, row] of rows!.entries()) {
      this.event(row, passes[i] === 1, window,
                 track.y + (lower?.[i] ? half : 0), half);
    }
  }

  private gpu(track: GpuTrack & Track, window: Window): void {
    const { context, left, right, app } = this;
    context.fillStyle = this.ink[track.rest ? "panel" : "page"]!;
    context.fillRect(left, track.y, right - left, track.height);
    const box = { y: track.y, height: track.height, left, right };
    const x = (t: number) => this.x(window, t);
    if (!track.rest && app.model.manifest.answer)
      drawIdle(context, app, track.row.gpu, box, window);
    if (!track.rest) drawGaps(context, app, track.row.gpu, box, x, window);
    const tiles = track.row.gpu.lanes.map((lane) => this.tile(lane, window));
    if (tiles.every((tile) => tile?.rows)) {
      for (const tile of tiles) {
        const rows = tile!.rows!.filter((_, i) => tile!.passes[i] === 1);
        drawRows(context, app, rows, box, x);
      }
    } else if (!drawParts(context, app, track.row, box, x, window))
      this.buckets({ ...box, levels: track.row.levels }, window);
  }

  private buckets(track: { levels: Level[]; y: number; height: number },
                  window: Window): void {
    const { context, left, right: width } = this;
    const perPixel = (window.to - window.from) / (width - left);
    const level = levelFor(track.levels, perPixel);
    this.detail = `columns of ${time(level.width)} and more`;
    const { busy, match, group } = level;
    const bottom = track.y + track.height;
    for (let x = Math.floor(left); x < width; ++x) {
      const at = window.from + (x - left) * perPixel - level.from;
      const from = Math.max(0, Math.floor(at / level.width));
      const to = Math.max(from + 1, Math.floor((at + perPixel) / level.width));
      let all = 0;
      let hit = 0;
      let best = -1;
      let most = 0;
      for (let b = from; b < to && b < busy.length; ++b) {
        all += busy[b]!;
        hit += match[b]!;
        if (match[b]! > most) {
          most = match[b]!;
          best = b;
        }
      }
      if (all === 0) continue;
      const span = (to - from) * level.width;
      const tall = Math.min(1, all / span) * track.height;
      if (hit < all) {
        context.fillStyle = this.ink.ghost!;
        context.fillRect(x, bottom - tall, 1, tall);
      }
      if (best < 0) continue;
      context.fillStyle = this.colors[group[best]!]!;
      const shown = Math.max(1, Math.min(1, hit / span) * track.height);
      context.fillRect(x, bottom - shown, 1, shown);
    }
  }

  private events(track: LaneTrack & Track, window: Window, first: number,
                 last: number): void {
    const { app } = this;
    const { mask } = app.selection;
    const { begin } = app.model.lanes[track.lane]!;
    const half = track.rowOf ? track.height / 2 : track.height;
    for (let i = first; i < last; ++i) {
      this.event(i, !mask || mask[i] === 1, window,
                 track.y + (track.rowOf?.[i - begin] ? half : 0), half);
    }
  }

  private event(row: number, hit: boolean, window: Window, y: number,
                tall: number): void {
    const { context } = this;
    const device = this.app.model.device!;
    const group = this.groups[device.family[row]!]!;
    const x = this.x(window, device.start[row]!);
    const right = this.x(window, device.start[row]! + device.dur[row]!);
    const wide = Math.max(right - x, 0.7);
    context.fillStyle = hit ? this.colors[group]! : this.ink.ghost!;
    context.fillRect(x, y, wide > 3 ? wide - 0.7 : wide, tall);
    const left = Math.max(x, this.left);
    const room = Math.min(right, this.right) - left - 6;
    if (room < 24 || !hit) return;
    context.fillStyle = this.inks[group]!;
    const name = kernelName(this.nameOf(row), 200);
    context.fillText(fitBox(context, name, room), left + 3,
                     y + (tall >= 30 ? tall / 2 - 7 : tall / 2));
    if (tall >= 30) {
      context.fillText(fitText(context, time(device.dur[row]!), room), left + 3,
                       y + tall / 2 + 7);
    }
  }

  nameOf(row: number): string {
    const kernels = this.app.model.table("kernels");
    const group = this.app.model.device!.kernel[row]!;
    return kernels && group > 0 ? kernels.str(group - 1, "kernel") : "";
  }

  // --- host events, passes, layers ---

  private boxes(row: BoxRow, y: number, color: "host" | "module",
                window: Window): void {
    const { context, right: width } = this;
    const { ids, start, dur } = row;
    const perPixel = (window.to - window.from) / (width - this.left);
    for (let at = firstEndingAfter(ids, row, window.from);
         at < ids.length;) {
      const id = ids[at]!;
      const begin = start[id]!;
      if (begin >= window.to) break;
      const x = this.x(window, begin);
      const right = this.x(window, begin + dur[id]!);
      const wide = right - x;
      context.fillStyle = this.ink[color]!;
      if (wide < 1) {
        // One mark for all boxes that lie in this pixel.
        context.globalAlpha = 0.6;
        context.fillRect(x, y, 1, kRowHeight - 1);
        context.globalAlpha = 1;
        at = this.nextEnd(row, begin + perPixel, at + 1);
        continue;
      }
      context.fillRect(x, y, wide > 2 ? wide - 0.7 : wide, kRowHeight - 1);
      const left = Math.max(x, this.left);
      const room = Math.min(right, width) - left - 5;
      if (room > 20 && !this.folded) {
        context.fillStyle = this.ink.hostink!;
        context.fillText(fitBox(context, clean(row.name(id), 120), room),
                         left + 3, y + kRowHeight / 2);
      }
      ++at;
    }
  }

  // The first position from `from` on that ends after `t`, which is near: steps
  // that double, then bisection.
  private nextEnd({ ids, start, dur }: BoxRow, t: number, from: number):
      number {
    const ends = (at: number) => start[ids[at]!]! + dur[ids[at]!]!;
    let lo = from;
    let step = 1;
    while (lo + step < ids.length && ends(lo + step) <= t) {
      lo += step;
      step *= 2;
    }
    let hi = Math.min(ids.length, lo + step);
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (ends(mid) <= t) lo = mid + 1;
      else hi = mid;
    }
    return lo;
  }

  private counter({ line, y, height }: CounterTrack & Track,
                  window: Window): void {
    drawSteps(this.context, line, { left: this.left, right: this.right, y,
      height, ...window }, { line: this.ink.muted!, fill: this.ink.ghost! });
  }
  // The top of its scale, on a ground of its own: no line goes through it.
  private counterTop({ line, y }: CounterTrack & Track): void {
    const { context, scene } = this;
    const words = counterText(line, line.top);
    context.fillStyle = this.ink.page!;
    context.fillRect(scene.gutter, y + 1, context.measureText(words).width + 8,
                     14);
    context.fillStyle = this.ink.text!;
    context.fillText(words, scene.gutter + 4, y + 8);
  }

  // --- selection ---

  // Where an event is drawn: its track and the top and height of its row.
  place(uid: number): Place | null {
    const { device, host, lanes } = this.app.model;
    for (const track of this.scene.tracks) {
      const by = track.trace === 1 ? this.shift : 0;
      if (track.kind === "lane" && device) {
        const { begin, end } = lanes[track.lane]!;
        const fetched = device.fetched?.rowOf.get(uid);
        if (fetched !== undefined && device.lane[fetched] === track.lane) {
          const t = device.start[fetched]!;
          const dur = device.dur[fetched]!;
          const tile = this.tile(track.lane, { from: t, to: t + dur });
          const half = tile?.lower ? track.height / 2 : track.height;
          return { t, dur, height: half, y: track.y +
            (tile?.lower?.[tile.rows!.indexOf(fetched)] ? half : 0) };
        }
        for (let i = begin; i < end; ++i) {
          if (device.uid[i] !== uid) continue;
          const half = track.rowOf ? track.height / 2 : track.height;
          return { t: device.start[i]! - by, dur: device.dur[i]!, height: half,
                   y: track.y + (track.rowOf?.[i - begin] ? half : 0) };
        }
      } else if (track.kind === "boxes" && host) {
        for (const [depth, row] of track.rows.entries()) {
          if (row.start !== host.start) continue;
          const id = row.ids.find((other) => row.uid(other) === uid);
          if (id === undefined) continue;
          return { t: host.start[id]! - by, dur: host.dur[id]!, height: kRowHeight,
                   y: track.y + depth * kRowHeight };
        }
      }
    }
    return null;
  }

  // The key of the track that shows an event.
  trackOf(uid: number): string | undefined {
    const at = this.place(uid);
    return at ? this.scene.tracks.find((track) => at.y >= track.y &&
                                       at.y < track.y + track.height)?.key
      : undefined;
  }

  private placed: { uid: number; at: Place | null; launch: Place | null;
                    // From a forward op to its backward op.
                    autograd: [Place, Place] | null } | null = null;

  private autograd(row: number): [Place, Place] | null {
    const { model } = this.app;
    const twin = row >= 0 && model.host ? twinOf(model, row) : null;
    if (!twin) return null;
    const own = this.place(model.host!.uid[twin.own]!);
    const other = this.place(model.host!.uid[twin.other]!);
    if (!own || !other) return null;
    return twin.isForward ? [own, other] : [other, own];
  }

  private selected(): void {
    const { app, context } = this;
    if (!app.state.selected) return;
    const gap = selectedGap(app);
    if (gap) return this.selectedGap(gap);
    const uid = Number(app.state.selected);
    if (this.placed?.uid !== uid) {
      const { device, host } = app.model;
      const row = device ? device.uid.indexOf(uid as never) : -1;
      const launch = row >= 0 ? device!.launch[row]! - 1 : -1;
      this.placed = { uid, at: this.place(uid), launch:
        host && launch >= 0 ? this.place(host.uid[launch]!) : null,
        autograd: this.autograd(row >= 0 ? launch
          : host ? host.uid.indexOf(uid as never) : -1) };
    }
    const { at, launch, autograd } = this.placed;
    if (!at) return;
    const x = this.at(at.t);
    const wide = Math.max(3, this.at(at.t + at.dur) - x);
    context.save();
    context.beginPath();
    context.rect(this.scene.gutter, 0, this.width, this.scene.height);
    context.clip();
    context.strokeStyle = this.ink.text!;
    context.lineWidth = 2;
    context.strokeRect(x - 1, at.y - 1, wide + 2, at.height + 2);
    context.strokeStyle = this.ink.page!;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, at.y + 0.5, Math.max(1, wide - 1),
                       at.height - 1);
    if (launch) {
      drawArrow(context, this.ink.link!, this.at(launch.t), launch.y, x,
                at.y + at.height);
    }
    if (autograd) {
      const [from, to] = autograd;
      drawArrow(context, this.ink.link!, this.at(from.t + from.dur),
                from.y + from.height / 2, this.at(to.t),
                to.y + to.height);
    }
    // For those who cannot see it, and for tests.
    context.canvas.dataset.arrows = [launch ? "launch" : "",
      autograd ? "autograd" : ""].filter((name) => name !== "").join(" ");
    context.restore();
  }

  private selectedGap({ gpu, at }: GapAt): void {
    const { context, scene, app } = this;
    const track = scene.tracks.find((t) => t.kind === "gpu" &&
                                    t.row.gpu === gpu);
    if (!track) return;
    const by = track.trace === 1 ? this.shift : 0;
    const gaps = gapsOf(app.model, gpu);
    const left = Math.max(scene.gutter, this.at(gaps.start[at]! - by));
    const right = this.at(gaps.start[at]! + gaps.dur[at]! - by);
    context.strokeStyle = this.ink.text!;
    context.lineWidth = 2;
    context.strokeRect(left, track.y - 1, Math.max(2, right - left),
                       track.height + 2);
  }

  // --- the pointer ---

  // What is at a point: its number, words for it, and where a click leads.
  hit(window: Window, px: number, py: number):
      { words: string; uid: number | null; track: Track; id: number;
        gap?: GapAt } | null {
    const { scene, app } = this;
    if (px < scene.gutter) return null;
    const track = scene.tracks.find((one) => py >= one.y &&
                                    py < one.y + one.height);
    if (!track) return null;
    const pieces = this.pieces(window);
    const piece = pieces.find(({ right }) => px < right) ??
      pieces[pieces.length - 1]!;
    this.enter(piece);
    window = this.own(track, piece);
    const perPixel = (window.to - window.from) / (this.right - this.left);
    const t = window.from + (px - this.left) * perPixel;
    if (track.kind === "lane") {
      const row = this.laneHit(track, t, perPixel,
        py >= track.y + track.height / 2);
      return row < 0 ? null : this.deviceHit(row, track);
    }
    if (track.kind === "gpu") {
      const hit = gpuHit(app, track.row, t, perPixel, !track.rest);
      if (!hit) return null;
      const gap = { gpu: track.row.gpu, at: "gap" in hit ? hit.gap : 0 };
      return "gap" in hit
        ? { words: gapWords(app, gap), uid: null, track, id: hit.gap, gap }
        : this.deviceHit(hit.row, track);
    }
    if (track.kind === "counter") {
      const at = sampleAt(track.line, t);
      return at < 0 ? null : { words: `${track.label}: ` +
        counterText(track.line, track.line.value[at]!), uid: null, track,
        id: at };
    }
    const box = track.rows[Math.floor((py - track.y) / kRowHeight)];
    if (!box) return null;
    const at = firstEndingAfter(box.ids, box, t - perPixel);
    const id = box.ids[at];
    if (id === undefined || box.start[id]! > t + perPixel) return null;
    return { words: `${clean(box.name(id), 300)} \u2013 ${time(box.dur[id]!)}`,
             uid: box.uid(id), track, id };
  }

  private deviceHit(row: number, track: Track) {
    const { model } = this.app;
    const device = model.device!;
    const family = model.families[device.family[row]!]!;
    return { words: `${kernelName(this.nameOf(row))} \u2013 ` +
      `${time(device.dur[row]!)}, ${family.title || family.name}`,
      uid: device.uid[row]!, track, id: row };
  }

  private laneHit(track: LaneTrack, t: number, slack: number, lower: boolean):
      number {
    const device = this.app.model.device!;
    const { begin } = this.app.model.lanes[track.lane]!;
    const around = { from: t - 2 * slack, to: t + 2 * slack };
    const [first, last] = this.range(track, around);
    const tile = this.tile(track.lane, around);
    let best = -1;
    let near = Infinity;
    for (let at = tile?.rows ? 0 : first; at < (tile?.rows?.length ?? last);
         ++at) {
      const i = tile?.rows?.[at] ?? at;
      const below = tile?.rows ? tile.lower?.[at] === 1
        : track.rowOf?.[at - begin] === 1;
      if ((tile?.rows ? tile.lower : track.rowOf) && below !== lower) continue;
      const start = device.start[i]!;
      const end = start + device.dur[i]!;
      const away = t < start ? start - t : t > end ? t - end : 0;
      if (away < near || (away === near && away === 0 && best >= 0 &&
                          device.dur[i]! > device.dur[best]!)) {
        near = away;
        best = i;
      }
    }
    return near <= 2 * slack ? best : -1;
  }
}
