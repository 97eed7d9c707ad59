// SPDX-License-Identifier: Apache-2.0
//
// What takes little room in the timeline: long idle time on a folded axis, the
// streams of a GPU, and streams that are nearly empty.
import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { act, click, closePages, folder, go, open, pageOf, traces, until }
  from "./harness.mjs";
import { picture } from "./pictures.mjs";

const state = (page) => page.evaluate(() => __lamina.state());
const tracks = (page) => page.evaluate(() => __lamina.tracks());
const box = (page) => page.locator("canvas[tabindex]").boundingBox();

// Kernels: [start, length, stream, device] in us.
function written(name, kernels) {
  const path = join(folder, name + ".json");
  writeFileSync(path, JSON.stringify({ traceEvents: kernels.map(
    ([ts, dur, stream = 7, device = 0], i) => ({ ph: "X", cat: "kernel",
      name: `k${i % 5}`, pid: device, tid: stream, ts, dur,
      args: { device, stream } })) }));
  return path;
}

// 200 kernels, 9 seconds of nothing, 300 kernels, 5 seconds, 100 kernels.
function sparse() {
  const kernels = [];
  for (const [at, count] of [[0, 200], [9e6, 300], [14e6, 100]])
    for (let i = 0; i < count; ++i) kernels.push([at + 20 * i, 15]);
  return written("sparse", kernels);
}

const placeOf = (page, row) => page.evaluate((at) => {
  const { uid } = __lamina.model.device;
  return { uid: uid[at], x: __lamina.trackLeft(uid[at]),
           y: __lamina.trackTop(uid[at]) };
}, row);

export default {
  "long idle time is folded": async (check) => {
    const page = await open(pageOf(sparse()), { hash: "#v=timeline" });
    check.true("at first all of the work is in view", await page.evaluate(() => {
      const { start } = __lamina.model.device;
      const [from, to] = document.querySelector("canvas[tabindex]").dataset
        .window.split("..").map(Number);
      return from <= start[200] && to >= start[499];
    }));
    await click(page, page.locator("[data-k='tl.fold']"), "timeline");
    const words = () => page.locator(".tools .muted").first().textContent();
    await until(page, () => document.body.innerText.includes("idle and folded"));
    check.true(`says what is folded: ${await words()}`,
               /1[34]\.\d+ s of it idle and folded/.test(await words()));
    const strip = await page.evaluate(() => __lamina.strip());
    check.true("the strip shows the work", strip.filter((share) => share > 0.5)
      .length > 0.7 * strip.length);
    // Each event stands where a click finds it, on all sides of the folds.
    const { x, y } = await box(page);
    let before = -1;
    for (const row of [0, 120, 199, 200, 350, 499, 500, 599]) {
      const place = await placeOf(page, row);
      check.true(`event ${row} lies right of those before`, place.x > before);
      before = place.x;
      await act(page, "timeline", () => page.mouse.click(x + place.x + 0.6,
                                                         y + place.y + 4));
      check.equal(`a click on event ${row}`, (await state(page)).selected,
                  String(place.uid));
      await act(page, "timeline", () => page.keyboard.press("Escape"));
    }
    const [a, b] = [await placeOf(page, 199), await placeOf(page, 200)];
    check.true(`9 s take ${b.x - a.x} px`, b.x - a.x < 100 && b.x - a.x > 20);
    await picture(page, "timeline-folded");
    // Zoomed in on both sides of a fold: what is under the pointer stays.
    await page.mouse.move(x + a.x, y + a.y + 4);
    await page.locator("canvas[tabindex]").focus();
    for (let i = 0; i < 4; ++i) await page.mouse.wheel(0, -120);
    await until(page, (left) => Math.abs(__lamina.trackLeft(
      __lamina.model.device.uid[199]) - left) < 2, a.x);
    check.true("the fold has grown with the rest", (await placeOf(page, 200)).x -
      (await placeOf(page, 199)).x > b.x - a.x);
    // The address opens the same.
    await until(page, () => location.hash.includes("z=" +
      document.querySelector("canvas[tabindex]").dataset.window));
    const hash = await page.evaluate(() => location.hash);
    const again = await open(pageOf(sparse()), { hash });
    check.equal("the link has the fold", (await placeOf(again, 200)).x.toFixed(1),
                (await placeOf(page, 200)).x.toFixed(1));
    // Without it the axis is time.
    await click(again, again.locator("[data-k='tl.fold']"), "timeline");
    check.equal("off again", (await state(again)).options["timeline.fold"],
                undefined);
  },

  "no fold where there is nothing to fold": async (check) => {
    const page = await open(pageOf(written("dense",
      Array.from({ length: 300 }, (_, i) => [20 * i, 15]))),
      { hash: "#v=timeline" });
    check.equal("no button", await page.locator("[data-k='tl.fold']").count(), 0);
    await go(page, "#v=timeline&o.timeline.fold=on", "timeline");
    check.equal("the option alone folds nothing", await page.evaluate(() =>
      document.body.innerText.includes("idle and folded")), false);
  },

  "a GPU is one row": async (check) => {
    const page = await open(pageOf(traces.train), { hash: "#v=timeline" });
    const before = await tracks(page);
    const gpu = before.find(({ key }) => key.startsWith("gpu."));
    const { x, y } = await box(page);
    await act(page, "timeline", () => page.mouse.click(x + 12, y + gpu.y + 8));
    const folded = await tracks(page);
    check.true("its streams are gone", folded.some(({ key }) => key === gpu.key) &&
      folded.length < before.length &&
      !folded.some(({ key }) => key.startsWith("lane.")));
    check.true("which the address says", (await page.evaluate(() =>
      location.hash)).includes("timeline.closed=" + gpu.key));
    // By keys: the menu of the tracks.
    await page.locator("[data-k='tl.tracks']").click();
    await act(page, "timeline", () => page.locator(`[data-k='tl.fold.${gpu.key}']`)
      .press("Enter"));
    check.equal("and back", (await tracks(page)).map(({ key }) => key),
                before.map(({ key }) => key));
  },

  "nearly empty streams share a row": async (check) => {
    const kernels = [];
    for (let i = 0; i < 400; ++i) kernels.push([20 * i, 15, 7]);
    for (let i = 0; i < 400; ++i) kernels.push([20 * i + 5, 8, 8]);
    for (let i = 0; i < 40; ++i) kernels.push([200 * i, 2, 100 + i]);
    const page = await open(pageOf(written("empty", kernels)),
                            { hash: "#v=timeline" });
    const names = (await tracks(page)).map(({ label }) => label);
    check.true(`rows: ${names}`, names.includes("GPU 0, stream 7") &&
      names.includes("GPU 0, stream 8") && names.includes("40 more streams") &&
      !names.includes("GPU 0, stream 100"));
    // The one of the selected event has a row of its own.
    const small = await page.evaluate(() => {
      const { lane, uid } = __lamina.model.device;
      const at = __lamina.model.lanes.findIndex(({ stream }) => stream === 120);
      return uid[lane.indexOf(at)];
    });
    await go(page, `#v=timeline&sel=${small}`, "timeline");
    const now = (await tracks(page)).map(({ label }) => label);
    check.true("the selected event is drawn", now.includes("GPU 0, stream 120") &&
      now.includes("39 more streams"));
    // An event in the shared row is found by a click.
    await go(page, "#v=timeline", "timeline");
    const rest = (await tracks(page)).find(({ key }) => key.endsWith(".rest"));
    const place = await page.evaluate(([key, uid]) => {
      const { start, dur, uid: all } = __lamina.model.device;
      const row = all.indexOf(uid);
      return __lamina.counterPlace(key, start[row] + dur[row] / 2);
    }, [rest.key, small]);
    const { x, y } = await box(page);
    await act(page, "timeline", () => page.mouse.click(x + place.x,
                                                       y + rest.y + 6));
    check.equal("a click in it", (await state(page)).selected, String(small));
    // All of them.
    await go(page, "#v=timeline", "timeline");
    await act(page, "timeline", () => page.mouse.click(x + 12, y + rest.y + 6));
    const all = (await tracks(page)).map(({ label }) => label);
    check.true("a click on its name opens it", all.includes("GPU 0, stream 139") &&
      all.includes("fewer streams"));
  },

  "500 streams, 8 devices": async (check) => {
    const kernels = [];
    for (let i = 0; i < 6000; ++i)
      kernels.push([5 * i, 4, i % 500, Math.floor(i % 8)]);
    const page = await open(pageOf(written("wide", kernels)),
                            { hash: "#v=timeline" });
    const drawn = await tracks(page);
    let streams = 0;
    for (const { key, label } of drawn) {
      if (key.startsWith("lane.")) ++streams;
      else if (key.endsWith(".rest")) streams += Number(/^\d+/.exec(label) ?? 1);
    }
    check.equal("every stream is in one row", streams, await page.evaluate(() =>
      __lamina.model.lanes.filter(({ begin, end }) => end > begin).length));
    check.equal("a row per GPU, in order", drawn.filter(({ key }) =>
      key.startsWith("gpu.") && !key.endsWith(".rest")).map(({ label }) => label),
      Array.from({ length: 8 }, (_, i) => `GPU ${i}`));
    check.true("no row lies over another", drawn.every(({ y, height }, i) =>
      i === 0 || y >= drawn[i - 1].y + drawn[i - 1].height));
    check.true("a canvas that browsers draw", await page.evaluate(() =>
      document.querySelector("canvas[tabindex]").height < 16_000));
    // Every key in the address stays far below its limit.
    await go(page, "#v=timeline&o.timeline.all=" + drawn.filter(({ key }) =>
      /^gpu\.[^r]*$/.test(key)).map(({ key }) => key).join(","), "timeline");
    check.true("opened, all of them", (await tracks(page)).filter(({ key }) =>
      key.startsWith("lane.")).length === streams);
    await closePages();
  },
};
