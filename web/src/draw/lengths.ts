// SPDX-License-Identifier: Apache-2.0
//
// Length of each matching event against its start, by uPlot.

import uPlot from "uplot";

import type { App } from "../ui/app";
import { groupColor, ink } from "../ui/colors";
import { h } from "../ui/dom";
import { showEvent } from "../ui/events";
import { time } from "../ui/format";

const kMostPoints = 20_000;

export function drawLengths(app: App): HTMLElement {
  const device = app.model.device!;
  const { mask, count } = app.selection;
  const starts: number[] = [];
  const lengths: number[] = [];
  const uids: number[] = [];
  const rows: number[] = [];
  const every = Math.max(1, Math.ceil(
    Math.min(count, device.count) / kMostPoints));
  let seen = 0;
  let group = "other";
  for (let i = 0; i < device.count; ++i) {
    if ((mask && !mask[i]) || seen++ % every !== 0) continue;
    rows.push(i);
    group = app.model.families[device.family[i]!]!.group;
  }
  rows.sort((a, b) => device.start[a]! - device.start[b]!);
  for (const row of rows) {
    starts.push(device.start[row]!);
    lengths.push(device.dur[row]!);
    uids.push(device.uid[row]!);
  }
  const box = h("div", { class: "canvasbox", role: "img",
    "aria-label": `${rows.length} lengths over time` });
  const readout = h("p", { class: "muted" }, "Point at an event.");
  let plot: uPlot | null = null;
  const axis = { stroke: ink("muted"), grid: { stroke: ink("line"), width: 1 },
                 ticks: { stroke: ink("line"), width: 1 } };
  const make = () => {
    plot = new uPlot({
      width: Math.max(200, box.clientWidth - 2), height: 220,
      legend: { show: false },
      cursor: { points: { size: 9 }, drag: { x: false, y: false } },
      hooks: { setCursor: [(u) => {
        const at = u.cursor.idx;
        if (at === null || at === undefined) return;
        readout.replaceChildren(`${time(lengths[at]!)} at ${time(starts[at]!)} `,
          app.link(`event ${uids[at]}`, showEvent(app, uids[at]!)));
      }] },
      scales: { x: { time: false }, y: { range: (_u, _min, max) =>
        [0, max > 0 ? max * 1.05 : 1] } },
      axes: [{ ...axis, values: (_u, at) => at.map(time) },
             { ...axis, size: 72, values: (_u, at) => at.map(time) }],
      series: [{}, { paths: () => null, points: { show: true, size: 4,
        stroke: groupColor(group), fill: groupColor(group) } }],
    }, [starts, lengths], box);
    plot.over.addEventListener("click", () => {
      const at = plot?.cursor.idx;
      if (at !== null && at !== undefined)
        app.go({ selected: String(uids[at]!) });
    });
  };
  // The width is known when the box has entered the page.
  requestAnimationFrame(() => { if (box.isConnected) make(); });
  return h("div", {}, box, readout);
}
