// SPDX-License-Identifier: Apache-2.0
//
// Figures of a report page in headless Chromium, as one JSON object:
//   node bench/page.mjs LAMINA PAGE.html
// LAMINA's folder holds web/node_modules with playwright-core.
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";

const [lamina, file] = process.argv.slice(2).map((path) => resolve(path));
const require = createRequire(join(dirname(lamina), "web", "package.json"));
const { chromium } = require("playwright-core");

const kRounds = 5;
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const percentile = (list, p) =>
  [...list].sort((a, b) => a - b)[Math.floor((list.length - 1) * p)];

// Times count from the start of the navigation, in the page's own clock.
const readyTime = (page) => page.evaluate(() => new Promise((done) => {
  const look = () => document.documentElement.dataset.ready
    ? done(performance.now()) : requestAnimationFrame(look);
  look();
}));

async function opened(hash) {
  const times = [];
  const heaps = [];
  const full = [];
  for (let i = 0; i < kRounds; ++i) {
    const browser = await chromium.launch({ executablePath: "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu",
             "--enable-precise-memory-info"] });
    const page = await browser.newPage({ viewport: { width: 1280,
                                                     height: 860 } });
    await page.goto("file://" + file + hash, { waitUntil: "commit" });
    times.push(await readyTime(page));
    // What the page holds, and with it what the browser may still collect.
    const used = () => page.evaluate(() => performance.memory.usedJSHeapSize);
    full.push(await used());
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("HeapProfiler.collectGarbage");
    heaps.push(await used());
    await browser.close();
  }
  return { ms: median(times), heap: median(heaps), full: median(full) };
}

const overview = await opened("");
const timeline = await opened("#v=timeline");
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
await page.goto("file://" + file + "#v=kernels");
await readyTime(page);
const filters = await page.evaluate(() => {
  const times = [];
  for (let i = 0; i < 15; ++i) {
    const begin = performance.now();
    __lamina.select([{ kind: "dur", values: [`>${1000 + i}`], not: false },
                     { kind: "fam", values: ["gemm"], not: i % 2 === 1 }]);
    times.push(performance.now() - begin);
  }
  return times;
});
await page.evaluate(() => { location.hash = "#v=timeline"; });
await page.waitForFunction(() =>
  document.documentElement.dataset.ready === "timeline");
const pyramids = await page.evaluate(() => {
  const begin = performance.now();
  __lamina.model.lanes.forEach((_, i) => __lamina.pyramid(i));
  return performance.now() - begin;
});
const canvas = page.locator("[data-k='timeline.canvas']");
await canvas.click({ position: { x: 700, y: 5 } });
await page.evaluate(() => { __lamina.timelineFrames.length = 0; });
for (let i = 0; i < 60; ++i) {
  await page.keyboard.press("wwdwsad"[i % 7]);
  await page.waitForTimeout(25);
}
const frames = await page.evaluate(() => [...__lamina.timelineFrames]);
const events = await page.evaluate(() => ({
  device: __lamina.model.device.count, host: __lamina.model.host?.count ?? 0 }));
await browser.close();
console.log(JSON.stringify({
  device_events: events.device, host_events: events.host,
  overview_ready_ms: overview.ms, overview_heap_bytes: overview.heap,
  timeline_ready_ms: timeline.ms, timeline_heap_bytes: timeline.heap,
  timeline_full_bytes: timeline.full,
  filter_ms: median(filters), pyramid_ms: pyramids,
  frame_p50_ms: median(frames), frame_p95_ms: percentile(frames, 0.95),
  frames: frames.length,
}));
