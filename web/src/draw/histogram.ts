// SPDX-License-Identifier: Apache-2.0
//
// Short kernels by length: the engine's bins as bars. A line, moved by the
// pointer or by the slider, marks what is left of it, with its sum.

import type { Table } from "../data/model";
import { niceTop } from "./ruler";
import type { App } from "../ui/app";
import { h, svg } from "../ui/dom";
import { count, time } from "../ui/format";

const kMostWidth = 900;   // px; texts are not scaled
const kLeastWidth = 280;
const kHeight = 140;
const kBottom = 20;
const kLeft = 44;         // of the numbers beside the axis
const kTop = 8;

export function drawHistogram(app: App, table: Table): HTMLElement {
  const rows = table.rows;
  let most = 1;
  let sum = 0;
  for (let row = 0; row < rows; ++row) {
    most = Math.max(most, table.num(row, "count"));
    sum += table.num(row, "count");
  }
  const first = table.num(0, "bin_start_us");
  const last = table.num(rows - 1, "bin_end_us");
  const unit = table.info.columns[table.find("bin_start_us")]!.type === "time"
    ? 1 : 1000;
  const room = (document.querySelector("main")?.clientWidth ?? kMostWidth) - 40;
  const whole = Math.max(kLeastWidth, Math.min(kMostWidth, room));
  const picture = svg("svg", { class: "chart", role: "img",
    viewBox: `0 0 ${whole} ${kHeight}`, width: whole, height: kHeight,
    "aria-label": `${sum} events in ${rows} bins` });
  picture.style.width = `${whole}px`;
  const width = (whole - kLeft) / rows;
  const tall = kHeight - kBottom - kTop;
  const { top, step } = niceTop(most, 3);
  for (let value = 0; value <= top; value += Math.max(1, step)) {
    const y = kHeight - kBottom - tall * value / top;
    picture.append(svg("line", { class: "grid", x1: kLeft, x2: whole, y1: y,
                                 y2: y }),
      svg("text", { class: "axis", x: kLeft - 6, y: y + 4,
                    "text-anchor": "end" }, count(value)));
  }
  for (let row = 0; row < rows; ++row) {
    const value = table.num(row, "count");
    if (value === 0) continue;
    const height = Math.max(2, tall * value / top);
    picture.append(svg("rect", { x: kLeft + row * width, width: Math.max(1, width - 1),
      y: kHeight - kBottom - height, height, fill: "var(--muted)" },
      svg("title", {}, `${time(table.num(row, "bin_start_us") * unit)}: ` +
        count(value))));
  }
  const marks = whole < 500 ? 2 : 5;
  for (let i = 0; i <= marks; ++i) {
    picture.append(svg("text", { x: kLeft + (whole - kLeft) * i / marks,
      y: kHeight - 4, class: "axis", "text-anchor": i === 0 ? "start"
        : i === marks ? "end" : "middle" },
      time((first + (last - first) * i / marks) * unit)));
  }
  const line = svg("line", { class: "threshold", y1: 0, y2: kHeight - kBottom, stroke:
    "var(--warn)", "stroke-width": 2 });
  picture.append(line);
  const words = h("output", { class: "muted" });
  const slider = h("input", { type: "range", min: 1, max: rows, step: 1,
    "aria-label": "Threshold", "data-k": "short.limit",
    input: () => update() });
  slider.value = String(rows);
  const update = () => {
    const bins = Number(slider.value);
    let below = 0;
    for (let row = 0; row < bins; ++row) below += table.num(row, "count");
    const x = kLeft + bins * width;
    line.setAttribute("x1", String(x));
    line.setAttribute("x2", String(x));
    const limit = table.num(bins - 1, "bin_end_us") * unit;
    words.replaceChildren(`below ${time(limit)}: `, app.link(
      `${count(below)} ${below === 1 ? "event" : "events"}`, { view: "timeline",
        chips: app.only("dur", `<${Math.floor(limit)}`) }),
      sum > 0 ? `, ${(100 * below / sum).toFixed(1)} % of the short ones` : "");
  };
  update();
  const moveTo = (event: PointerEvent) => {
    const box = picture.getBoundingClientRect();
    const share = ((event.clientX - box.left) / box.width * whole - kLeft) /
      (whole - kLeft);
    slider.value = String(Math.max(1, Math.min(rows, Math.round(share * rows))));
    update();
  };
  picture.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    picture.setPointerCapture(event.pointerId);
    moveTo(event);
  });
  picture.addEventListener("pointermove", (event) => {
    if (picture.hasPointerCapture(event.pointerId)) moveTo(event);
  });
  return h("div", {}, h("div", { class: "canvasbox limit" }, picture),
           h("div", { class: "tools" }, slider, words));
}
