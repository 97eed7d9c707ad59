// SPDX-License-Identifier: Apache-2.0
//
// The plot of lengths over time: every event of the chosen name stands at its
// start, in the colour of its family, the longest highest, and a click on a
// point chooses its event.
import { open, pageOf, traces, until } from "./harness.mjs";

// The plot's room for the words of its axes, in CSS pixels.
const kLeft = 76;
const kRight = 12;

// The name with most calls, its colour and its events.
const busiest = (page) => page.evaluate(async () => {
  const { model } = __lamina;
  await model.require(["kernels", "device"]);
  const table = model.table("kernels");
  const calls = new Map();
  for (let row = 0; row < table.rows; ++row) {
    const name = table.str(row, "kernel");
    calls.set(name, (calls.get(name) ?? 0) + table.num(row, "count"));
  }
  const [name] = [...calls].sort((a, b) => b[1] - a[1])[0];
  const { device } = model;
  const events = [];
  let color = "";
  for (let i = 0; i < device.count; ++i) {
    if (!device.kernel[i] || table.str(device.kernel[i] - 1, "kernel") !== name)
      continue;
    events.push({ start: device.start[i], dur: device.dur[i],
                  uid: String(device.uid[i]) });
    color = __lamina.palette().colors[model.families[device.family[i]].group];
  }
  return { name, color, events };
});

// The highest place of a colour in the columns of the picture that belong to
// these starts, in CSS pixels; null where it has none.
const highest = (page, events, color) => page.evaluate(
  ([list, wanted, left, right]) => {
    const canvas = document.querySelector(".lengths canvas");
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    const scale = width / canvas.clientWidth;
    const first = Math.min(...list.map((e) => e.start));
    const last = Math.max(...list.map((e) => e.start));
    return list.map(({ start }) => {
      const x = left + (start - first) / (last - first) *
        (canvas.clientWidth - left - right);
      for (let y = 0; y < height; ++y) {
        const pixel = 4 * (y * width + Math.round(x * scale));
        const hex = "#" + [...data.slice(pixel, pixel + 3)].map((v) =>
          v.toString(16).padStart(2, "0")).join("");
        if (hex === wanted) return { x, y: y / scale };
      }
      return null;
    });
  }, [events, color, kLeft, kRight]);

export default {
  async "every event of a name stands at its start"(check) {
    for (const trace of [traces.train, traces.serve]) {
      const page = await open(pageOf(trace), { hash: "#v=kernels" });
      const { name, color, events } = await busiest(page);
      check.true("several events", events.length > 3);
      await page.evaluate((hash) => { location.hash = hash; },
        "#v=kernels&name=" + encodeURIComponent(name));
      await until(page, () =>
        document.querySelector(".lengths canvas")?.width > 400);
      const found = await highest(page, events, color);
      check.equal("events without a point",
        found.filter((place) => place === null).length, 0);

      const longest = Math.max(...events.map((e) => e.dur));
      const at = events.findIndex((e) => e.dur === longest);
      check.equal("the longest stands highest", found[at].y,
        Math.min(...found.map((place) => place.y)));
      await page.locator(".lengths canvas").click(
        { position: { x: found[at].x, y: found[at].y + 2 } });
      await until(page, () => __lamina.state().selected !== null);
      const chosen = await page.evaluate(() => __lamina.state().selected);
      check.equal("the length of the chosen one",
        events.find((e) => e.uid === String(chosen))?.dur, longest);
    }
  },
};
