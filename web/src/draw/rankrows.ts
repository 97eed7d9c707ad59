// SPDX-License-Identifier: Apache-2.0
//
// One collective on its ranks and what each did around it: a row per rank,
// computation and copies above, communication below. Of the collective itself
// waiting is pale and the transfer dark; times stand on aligned clocks.

import { groupIndex } from "../data/groups";
import type { Model } from "../data/model";
import { firstStartingAt } from "../data/tracks";
import { groupColor, ink, kGroups, textOn } from "../ui/colors";
import { kernelName, time } from "../ui/format";
import { fitText, prepare } from "./canvas";
import { ticks } from "./ruler";

export interface RankRow {
  trace: number;     // of Model.traces
  label: string;
  wait: number;      // ns from its start in which it waits
  late: boolean;
}

export interface RankBox {
  x: number; y: number; width: number; height: number; uid: number;
  words: string;
}

export interface RankPicture {
  rows: RankRow[];
  collective: number;   // row of the table collectives
  from: number;
  to: number;
}

const kRuler = 18;
const kGap = 6;
const kFont = "11px system-ui, 'DejaVu Sans', sans-serif";

// Draws, and says where the events are.
export function drawRankRows(canvas: HTMLCanvasElement, model: Model,
                             picture: RankPicture, width: number): RankBox[] {
  const tall = picture.rows.length <= 16 ? 34 : 20;
  const left = width < 700 ? 0 : 84;
  const label = left === 0 ? 13 : 0;
  const height = kRuler + picture.rows.length * (tall + kGap + label) + 4;
  const context = prepare(canvas, width, height);
  context.fillStyle = ink("page");
  context.fillRect(0, 0, width, height);
  context.font = kFont;
  context.textBaseline = "middle";
  const x = (t: number) => left + (t - picture.from) * (width - left) /
    (picture.to - picture.from);
  const { ticks: marks } = ticks(picture.from, picture.to,
    Math.max(2, Math.floor((width - left) / 92)));
  for (const mark of marks) {
    context.fillStyle = ink("line");
    context.fillRect(x(mark.at), kRuler - 3, 1, height);
    context.fillStyle = ink("muted");
    if (x(mark.at) + 40 < width) context.fillText(mark.label, x(mark.at) + 3, 8);
  }
  const boxes: RankBox[] = [];
  const own: (RankBox | undefined)[] = [];
  for (const [i, row] of picture.rows.entries()) {
    const y = kRuler + i * (tall + kGap + label) + label;
    context.fillStyle = ink("text");
    context.font = (row.late ? "600 " : "") + kFont;
    context.fillText(fitText(context, row.label, left ? left - 6 : width), 4,
                     left ? y + tall / 2 : y - 7);
    context.font = kFont;
    context.fillStyle = ink("panel");
    context.fillRect(left, y, width - left, tall);
    context.save();
    context.beginPath();
    context.rect(left, y, width - left, tall);
    context.clip();
    own.push(drawRow(context, model, picture, row, x, y, tall, boxes));
    context.restore();
  }
  const late = own[picture.rows.findIndex((row) => row.late)];
  if (late) {
    for (const [i, box] of own.entries())
      if (box && box !== late && picture.rows[i]!.wait > 0)
        drawWait(context, box, late);
  }
  return boxes;
}

function drawRow(context: CanvasRenderingContext2D, model: Model,
                 picture: RankPicture, row: RankRow, x: (t: number) => number,
                 y: number, tall: number, boxes: RankBox[]):
    RankBox | undefined {
  let found: RankBox | undefined;
  const device = model.device!;
  const groups = groupIndex(model);
  const kernels = model.table("kernels");
  for (const lane of model.lanes) {
    if ((lane.trace ?? 0) !== row.trace) continue;
    const last = firstStartingAt(device.start, picture.to, lane.begin, lane.end);
    for (let i = lane.begin; i < last; ++i) {
      const end = device.start[i]! + device.dur[i]!;
      if (end <= picture.from) continue;
      const group = groups[device.family[i]!]!;
      const comm = device.collective[i]! > 0 || kGroups[group] === "comm";
      const own = device.collective[i] === picture.collective + 1;
      const from = x(device.start[i]!);
      const box = { x: from, width: Math.max(1, x(end) - from - 0.5),
        y: comm ? y + tall / 2 : y, height: tall / 2 - 1 };
      context.fillStyle = own ? ink("q3") : groupColor(kGroups[group]!);
      if (comm && !own) context.globalAlpha = 0.35;
      context.fillRect(box.x, box.y, box.width, box.height);
      context.globalAlpha = 1;
      if (own && row.wait > 0) {
        context.fillStyle = ink("q1");
        context.fillRect(box.x, box.y, Math.min(box.width,
          x(device.start[i]! + row.wait) - from), box.height);
      }
      if (own) {
        context.strokeStyle = ink("text");
        context.lineWidth = row.late ? 2 : 1;
        context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1,
                           box.height - 1);
      }
      const name = kernels && device.kernel[i]! > 0
        ? kernelName(kernels.str(device.kernel[i]! - 1, "kernel"), 200) : "";
      if (!own && !comm && box.height >= 12 && box.width > 40) {
        context.fillStyle = textOn(kGroups[group]!);
        context.fillText(fitText(context, name, box.width - 6),
                         Math.max(box.x, 0) + 3, box.y + box.height / 2);
      }
      boxes.push({ ...box, uid: device.uid[i]!,
                   words: `${row.label}: ${name} \u2013 ${time(device.dur[i]!)}` });
      if (own) found = boxes.at(-1);
    }
  }
  return found;
}

// From the rank that waits to the begin of the one that it waits for.
function drawWait(context: CanvasRenderingContext2D, from: RankBox,
                  to: RankBox): void {
  const down = to.y > from.y;
  const x = to.x;
  const begin = down ? from.y + from.height : from.y;
  const end = down ? to.y - 1 : to.y + to.height + 1;
  context.beginPath();
  context.moveTo(Math.max(from.x, x - 14), begin);
  context.bezierCurveTo(x - 14, (begin + end) / 2, x, (begin + end) / 2, x, end);
  const back = down ? -7 : 7;
  context.moveTo(x - 4, end + back);
  context.lineTo(x, end);
  context.lineTo(x + 4, end + back);
  // Over any colour of a box.
  for (const [color, wide] of [[ink("page"), 5], [ink("text"), 2]] as const) {
    context.strokeStyle = color;
    context.lineWidth = wide;
    context.stroke();
  }
}
