// SPDX-License-Identifier: Apache-2.0
//
// Short kernels by length: the engine's bins as bars. A line, moved by the
// pointer or by the slider, marks what is left of it, with its sum.

import type { Table } from "../data/model";
import type { App } from "../ui/app";
import { h, svg } from "../ui/dom";
import { count, time } from "../ui/format";

const kWidth = 900;
const kHeight = 120;
const kBottom = 18;

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
  const picture = svg("svg", { class: "chart", role: "img",
    viewBox: `0 0 ${kWidth} ${kHeight}`,
    "aria-label": `${sum} events in ${rows} bins` });
  const width = kWidth / rows;
  for (let row = 0; row < rows; ++row) {
    const value = table.num(row, "count");
    if (value === 0) continue;
    const height = Math.max(2, (kHeight - kBottom - 4) * value / most);
    picture.append(svg("rect", { x: row * width, width: Math.max(1, width - 1),
      y: kHeight - kBottom - height, height, fill: "var(--muted)" },
      svg("title", {}, `${time(table.num(row, "bin_start_us") * unit)}: ` +
        count(value))));
  }
  for (let i = 0; i <= 5; ++i) {
    picture.append(svg("text", { x: kWidth * i / 5, y: kHeight - 4,
      class: "axis", "text-anchor": i === 0 ? "start" : i === 5 ? "end"
        : "middle" }, time((first + (last - first) * i / 5) * unit)));
  }
  const line = svg("line", { y1: 0, y2: kHeight - kBottom, stroke:
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
    const x = bins * width;
    line.setAttribute("x1", String(x));
    line.setAttribute("x2", String(x));
    const limit = table.num(bins - 1, "bin_end_us") * unit;
    words.replaceChildren(`below ${time(limit)}: `, app.link(
      `${count(below)} events`, { view: "timeline",
        chips: app.only("dur", `<${Math.floor(limit)}`) }),
      sum > 0 ? `, ${(100 * below / sum).toFixed(1)} % of the short ones` : "");
  };
  update();
  const moveTo = (event: PointerEvent) => {
    const box = picture.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
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
