// SPDX-License-Identifier: Apache-2.0
//
// Calls of an op by length: equal bins between the shortest and the longest,
// logarithmic where these lie far apart. A bar leads to its events.

import type { Call } from "../data/calls";
import { svg } from "../ui/dom";
import { count, time } from "../ui/format";

const kBars = 24;
const kWidth = 420;
const kHeight = 120;
const kBottom = 18;
const kFar = 8;  // longest / shortest from which bins are logarithmic

export interface CallBin { from: number; to: number; calls: Call[] }

// Every call is in exactly one bin.
export function binCalls(calls: Call[]): CallBin[] {
  const lengths = calls.map((call) => call.ns);
  const least = Math.min(...lengths);
  const most = Math.max(...lengths);
  if (calls.length === 0) return [];
  if (least === most) return [{ from: least, to: most, calls }];
  const far = least > 0 && most / least >= kFar;
  const edge = (i: number) => far ? least * (most / least) ** (i / kBars)
    : least + (most - least) * i / kBars;
  const bins = Array.from({ length: kBars }, (_, i): CallBin =>
    ({ from: edge(i), to: edge(i + 1), calls: [] }));
  for (const call of calls) {
    const share = far ? Math.log(call.ns / least) / Math.log(most / least)
      : (call.ns - least) / (most - least);
    bins[Math.min(kBars - 1, Math.floor(share * kBars))]!.calls.push(call);
  }
  return bins;
}

export function drawCalls(calls: Call[], color: string,
                          href: (bin: CallBin) => string): SVGElement {
  const bins = binCalls(calls);
  const most = Math.max(1, ...bins.map((bin) => bin.calls.length));
  const picture = svg("svg", { class: "chart calls", role: "group",
    viewBox: `0 0 ${kWidth} ${kHeight}`,
    "aria-label": `${calls.length} calls by length` });
  const slot = kWidth / Math.max(1, bins.length);
  const wide = Math.min(slot - 1, 60);
  for (const [i, bin] of bins.entries()) {
    if (bin.calls.length === 0) continue;
    const height = Math.max(2, (kHeight - kBottom - 4) *
      bin.calls.length / most);
    const words = `${time(bin.from)} to ${time(bin.to)}: ` +
      `${count(bin.calls.length)} ${bin.calls.length === 1 ? "call" : "calls"}`;
    picture.append(svg("a", { href: href(bin), "aria-label": words,
      "data-calls": bin.calls.length }, svg("title", {}, words),
      svg("rect", { x: i * slot, width: wide, height, fill: color,
                    y: kHeight - kBottom - height })));
  }
  const text = (x: number, anchor: string, ns: number) => svg("text",
    { class: "axis", x, y: kHeight - 4, "text-anchor": anchor }, time(ns));
  if (bins.length > 0) {
    // The one number of the axis of counts: how many the highest bar stands for.
    picture.append(svg("line", { class: "grid", x1: 0, x2: kWidth, y1: 4, y2: 4 }),
      svg("text", { class: "axis", x: kWidth, y: 16, "text-anchor": "end" },
          `${count(most)} ${most === 1 ? "call" : "calls"}`));
    picture.append(text(0, "start", bins[0]!.from));
    if (bins.length > 1)
      picture.append(text(kWidth, "end", bins[bins.length - 1]!.to));
  }
  return picture;
}
