// SPDX-License-Identifier: Apache-2.0
//
// A counter as a step line: per column of pixels the span from least to most,
// filled to the ground.

import { rangeOf, sampleAt, type StepLine } from "../data/counters";
import { bytes, real } from "../ui/format";

export function counterText(line: StepLine, value: number): string {
  return line.bytes ? bytes(value) : real(value);
}

export interface StepPlace {
  left: number;
  right: number;
  y: number;
  height: number;
  from: number;   // ns at `left`
  to: number;
}

export function drawSteps(context: CanvasRenderingContext2D, line: StepLine,
                          place: StepPlace, ink: { line: string; fill: string }):
    void {
  const { left, right, y, height, from, to } = place;
  const top = Math.max(line.top, Number.MIN_VALUE);
  const at = (value: number) =>
    y + height - 1 - Math.max(0, value) / top * (height - 3);
  const perPixel = (to - from) / (right - left);
  let sample = sampleAt(line, from);
  for (let x = Math.floor(left); x < right; ++x) {
    const last = sampleAt(line, from + (x + 1 - left) * perPixel);
    if (last < 0) continue;
    const [least, most] = rangeOf(line, Math.max(0, sample), last);
    sample = last;
    context.fillStyle = ink.fill;
    context.fillRect(x, at(most), 1, y + height - at(most));
    context.fillStyle = ink.line;
    context.fillRect(x, at(most), 1, Math.max(1.5, at(least) - at(most)));
  }
}
