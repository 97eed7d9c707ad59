// SPDX-License-Identifier: Apache-2.0
//
// Length of each matching event against its start: drift, warm-up and
// throttling show as a slope.

import type { App } from "../ui/app";
import { groupColor, ink } from "../ui/colors";
import { h } from "../ui/dom";
import { showEvent } from "../ui/events";
import { time } from "../ui/format";
import { prepare } from "./canvas";
import { niceTop, ticks } from "./ruler";

const kMostPoints = 20_000;
const kHeight = 220;
const kLeft = 76;
const kRight = 12;
const kTop = 8;
const kBottom = 26;
const kPoint = 4;   // px
const kReach = 12;  // px from the pointer to a point that it chooses

// Every nth matching event, so that there are at most kMostPoints.
function shownRows(app: App): number[] {
  const device = app.model.device!;
  const { mask, count } = app.selection;
  const every = Math.max(1, Math.ceil(
    Math.min(count, device.count) / kMostPoints));
  const rows: number[] = [];
  let seen = 0;
  for (let i = 0; i < device.count; ++i)
    if ((!mask || mask[i]) && seen++ % every === 0) rows.push(i);
  return rows;
}

class Lengths {
  readonly canvas = h("canvas");
  private readonly rows: number[];
  private readonly from: number;
  private readonly to: number;
  private readonly step: number;
  private readonly top: number;
  private width = 0;

  constructor(private readonly app: App) {
    const device = app.model.device!;
    this.rows = shownRows(app);
    let [from, to, most] = [Infinity, -Infinity, 1];
    for (const row of this.rows) {
      from = Math.min(from, device.start[row]!);
      to = Math.max(to, device.start[row]!);
      most = Math.max(most, device.dur[row]!);
    }
    this.from = from;
    this.to = Math.max(to, from + 1);
    ({ top: this.top, step: this.step } = niceTop(most, 4));
  }

  get count(): number { return this.rows.length; }

  private x(row: number): number {
    const at = this.app.model.device!.start[row]!;
    return kLeft + (at - this.from) / (this.to - this.from) *
      (this.width - kLeft - kRight);
  }
  private y(length: number): number {
    return kHeight - kBottom -
      length / this.top * (kHeight - kTop - kBottom);
  }

  draw(width: number): void {
    this.width = width;
    const context = prepare(this.canvas, width, kHeight);
    context.fillStyle = ink("page");
    context.fillRect(0, 0, width, kHeight);
    this.drawAxes(context);
    const { device, families } = this.app.model;
    for (const row of this.rows) {
      context.fillStyle = groupColor(families[device!.family[row]!]!.group);
      context.fillRect(this.x(row) - kPoint / 2,
        this.y(device!.dur[row]!) - kPoint / 2, kPoint, kPoint);
    }
  }

  private drawAxes(context: CanvasRenderingContext2D): void {
    const { width, from, to } = this;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (let value = 0; value <= this.top; value += this.step) {
      const y = Math.round(this.y(value)) + 0.5;
      context.fillStyle = ink("line");
      context.fillRect(kLeft, y - 0.5, width - kLeft - kRight, 1);
      context.fillStyle = ink("muted");
      context.fillText(time(value), kLeft - 6, y);
    }
    context.textAlign = "center";
    const marks = ticks(from, to, Math.max(2, Math.floor(width / 140)));
    for (const { at, label } of marks.ticks) {
      const x = kLeft + (at - from) / (to - from) * (width - kLeft - kRight);
      context.fillText(label, Math.min(x, width - 34), kHeight - 10);
    }
    context.textAlign = "left";
    context.fillText(marks.base, 2, kHeight - 10, kLeft - 10);
  }

  // The row whose point is nearest to the pointer, -1 if none is near.
  near(px: number, py: number): number {
    const { dur } = this.app.model.device!;
    let best = -1;
    let least = kReach ** 2;
    for (const row of this.rows) {
      const d = (this.x(row) - px) ** 2 + (this.y(dur[row]!) - py) ** 2;
      if (d >= least) continue;
      least = d;
      best = row;
    }
    return best;
  }
}

export function drawLengths(app: App): HTMLElement {
  const { start, dur, uid } = app.model.device!;
  const plot = new Lengths(app);
  const box = h("div", { class: "canvasbox lengths", role: "img",
    "aria-label": `${plot.count} lengths over time` }, plot.canvas);
  const readout = h("p", { class: "muted" }, "Point at an event.");
  plot.canvas.addEventListener("pointermove", (event) => {
    const row = plot.near(event.offsetX, event.offsetY);
    if (row < 0) return;
    readout.replaceChildren(`${time(dur[row]!)} at ${time(start[row]!)} `,
      app.link(`event ${uid[row]}`, showEvent(app, uid[row]!)));
  });
  plot.canvas.addEventListener("click", (event) => {
    const row = plot.near(event.offsetX, event.offsetY);
    if (row >= 0) app.go({ selected: String(uid[row]!) });
  });
  // The width is known when the box has entered the page.
  requestAnimationFrame(() => {
    if (box.isConnected) plot.draw(Math.max(200, box.clientWidth));
  });
  return h("div", {}, box, readout);
}
