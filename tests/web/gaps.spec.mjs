// SPDX-License-Identifier: Apache-2.0
//
// GPUs as rows: the strip counts streams that work at once once, and idle time
// is something that can be pointed at, selected, explained and stepped through.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { act, click, folder, go, ns, open, pageOf, parseCsv, press, run, traces }
  from "./harness.mjs";
import { picture } from "./pictures.mjs";

const trace = traces.owlv2 ?? traces.train;
const state = (page) => page.evaluate(() => __lamina.state());
const gaps = (page) => page.evaluate(() => __lamina.gaps());

// Streams that take turns: one after the other, busy `busy` of `turn` us.
function turns(streams, rounds, busy, turn) {
  const events = [];
  for (let i = 0; i < streams * rounds; ++i) {
    events.push({ ph: "X", cat: "kernel", name: `k${i % 3}`, pid: 0,
      tid: i % streams, ts: i * turn, dur: busy,
      args: { device: 0, stream: i % streams } });
  }
  const path = join(folder, `turns${streams}.json`);
  writeFileSync(path, JSON.stringify({ traceEvents: events }));
  return path;
}

function idleGaps(file) {
  const out = join(folder, "idle_gaps");
  run("host", file, "--only", "idle_gaps", "--format", "csv", "-o", out + "/");
  return parseCsv(readFileSync(join(out, "idle_gaps.csv"), "utf8"));
}

// Where the middle of a gap is drawn.
async function placeOf(page, gap) {
  const { x, y } = await page.evaluate((t) => {
    const gpu = document.querySelector("[data-track^='gpu.']").dataset.track;
    return __lamina.counterPlace(gpu, t);
  }, gap.start + gap.dur / 2);
  const box = await page.locator("canvas[tabindex]").boundingBox();
  return { x: box.x + x, y: box.y + y + 6 };
}

export default {
  "the strip is the union of the streams": async (check) => {
    const page = await open(pageOf(turns(40, 200, 9, 20)),
                            { hash: "#v=timeline" });
    const shares = await page.evaluate(() => __lamina.strip());
    const mean = shares.reduce((all, share) => all + share, 0) / shares.length;
    check.true(`40 streams in turns are busy for 45 %, drawn ${mean}`,
               Math.abs(mean - 0.45) < 0.005);
    // At once: no column is busier than the time that passes.
    const both = await open(pageOf(turns(3, 500, 50, 20)),
                            { hash: "#v=timeline" });
    const full = await both.evaluate(() => __lamina.strip());
    check.true("streams at once count once", full.every((share) =>
      share <= 1.0001) && full.filter((share) => share > 0.99).length >
      full.length * 0.9);
  },

  "gaps are those of the engine": async (check) => {
    const engine = idleGaps(trace);
    const page = await open(pageOf(trace), { hash: "#v=timeline" });
    const found = await gaps(page);
    check.true("there are gaps", engine.length > 10);
    const key = (gap) => `${gap.start} ${gap.dur} ${gap.next}`;
    const known = new Set(found.map(key));
    check.equal("start, length and what ends it", engine.filter((row) =>
      !known.has(`${ns(row.start_us)} ${ns(row.dur_us)} ${row.next_uid}`))
      .map((row) => row.start_us), []);
    check.equal("the longest first", ns(engine[0].dur_us), found[0].dur);
  },

  "a gap answers why": async (check) => {
    const [row] = idleGaps(trace);
    const page = await open(pageOf(trace), { hash: "#v=overview", width: 1440 });
    const link = page.getByRole("link", { name: "the longest gap" });
    if (await link.count() > 0) await click(page, link.first(), "timeline");
    else await press(page, "g", "timeline");
    check.equal("the gap is selected", (await state(page)).selected,
                `gap.${row.next_uid}`);
    const panel = page.locator("aside");
    const text = await panel.innerText();
    const exact = (us) => ns(us).toLocaleString("en-US") + " ns";
    check.true("start and length to the nanosecond",
      text.includes(exact(row.start_us)) && text.includes(exact(row.dur_us)));
    check.true("what it waits for, and the launch", text.includes(
      row.next_kernel.slice(0, 20)) && text.includes("before the work behind"));
    // The parts of the panel are those of the engine and tile the gap.
    const parts = row.parts.split(", ").map((part) =>
      ns(part.slice(part.lastIndexOf(":") + 1)));
    check.equal("causes tile the gap", parts.reduce((a, b) => a + b, 0),
                ns(row.dur_us));
    check.equal("a line for each cause",
                await panel.locator(".causes tr").count(), parts.length);
    check.true("equal gaps", /\d+ between these two kernels/.test(text));
    const [drawing, beside] = await Promise.all([".tracks", "aside"]
      .map((what) => page.locator(what).boundingBox()));
    check.true("the panel covers nothing of the tracks",
               beside.y >= drawing.y + drawing.height - 1);
    await picture(page, "gap-light-1440");

    // Pointing at it says the same.
    const [first, second] = await gaps(page);
    await page.locator("[data-k='tl.tracks']").click();
    await page.locator("[data-k='tl.tracks']").click();
    const place = await placeOf(page, first);
    await page.mouse.move(place.x, place.y);
    const tip = await page.locator(".tip").textContent();
    check.true(`hover: ${tip}`, /^[\d.]+ (s|ms|µs|ns)(, \S| idle)/.test(tip));
    if (traces.owlv2)
      check.equal("by name", tip, "126.1 ms, host busy: zoom_shift");

    await press(page, "g", "timeline");
    check.equal("G: the next longest", (await state(page)).selected,
                `gap.${second.next}`);
    await press(page, "Shift+G", "timeline");
    check.equal("and back", (await state(page)).selected, `gap.${first.next}`);
    // A click on the drawing selects the gap under it.
    await press(page, "Escape", "timeline");
    await page.locator("canvas[tabindex]").scrollIntoViewIfNeeded();
    const there = await placeOf(page, first);
    await act(page, "timeline", () => page.mouse.click(there.x, there.y));
    check.equal("a click", (await state(page)).selected, `gap.${first.next}`);
    const hash = await page.evaluate(() => location.hash);
    const again = await open(pageOf(trace), { hash });
    check.equal("by link", (await again.locator("aside h2").textContent())
      .startsWith("Idle"), true);
    for (const bad of ["gap.", "gap.99999999999", "gap.x"]) {
      await go(page, `#v=timeline&sel=${bad}`, "timeline");
      check.equal(`${bad} is refused`, (await state(page)).selected, "");
    }
  },

  "the timeline opens on device work": async (check) => {
    const shown = (page) => page.evaluate(() => document.querySelector(
      "canvas[tabindex]").dataset.window.split("..").map(Number));
    const bounds = (page) => page.evaluate(() => {
      const { first, last } = __lamina.model.device;
      return [first, last];
    });
    const page = await open(pageOf(trace), { hash: "#v=timeline" });
    const [from, to] = await shown(page);
    const [first, last] = await bounds(page);
    const room = 0.05 * (last - first);
    check.true("from the first to the last work of the device",
      from <= first && from >= first - room && to >= last && to <= last + room);
    // Two short events far away from a run of work.
    const events = [0, 900_000, ...[...Array(50).keys()].map((i) =>
      500_000 + i * 20)].map((ts) => ({ ph: "X", cat: "kernel", name: "k",
      pid: 0, tid: 7, ts, dur: 10, args: { device: 0, stream: 7 } }));
    const path = join(folder, "lonely.json");
    writeFileSync(path, JSON.stringify({ traceEvents: events }));
    const lonely = await open(pageOf(path), { hash: "#v=timeline" });
    const [a, b] = await shown(lonely);
    check.true(`below an answer all that it is about: ${a}..${b}`,
      a <= 0 && a > -1e8 && b >= 900e6 && b < 1e9);
    await act(lonely, "timeline", () => lonely.evaluate(() => {
      location.hash = "#v=timeline&z=0..1000000";
    }));
    check.equal("an address wins", await shown(lonely), [0, 1_000_000]);
  },

  "an event knows its neighbours": async (check) => {
    const page = await open(pageOf(trace), { hash: "#v=timeline" });
    const [gap] = await gaps(page);
    await go(page, `#v=timeline&sel=${gap.next}`, "timeline");
    const exact = (value) => value.toLocaleString("en-US") + " ns";
    const text = await page.locator("aside").innerText();
    const of = await page.evaluate((uid) => {
      const { device } = __lamina.model;
      const row = device.uid.indexOf(uid);
      const same = [...Array(device.count).keys()].filter((i) =>
        __lamina.model.table("kernels").str(device.kernel[i] - 1, "kernel") ===
        __lamina.model.table("kernels").str(device.kernel[row] - 1, "kernel"))
        .sort((a, b) => device.dur[b] - device.dur[a] || a - b);
      return { start: device.start[row], dur: device.dur[row],
               slowest: device.uid[same[0]],
               median: device.uid[same[same.length >> 1]] };
    }, gap.next);
    check.true("start and end to the nanosecond", text.includes(
      exact(of.start)) && text.includes(exact(of.start + of.dur)));
    await click(page, page.locator("[data-k='panel.before']"), "timeline");
    check.equal("the gap before it", (await state(page)).selected,
                `gap.${gap.next}`);
    for (const which of ["slowest", "median"]) {
      await go(page, `#v=timeline&sel=${gap.next}`, "timeline");
      await click(page, page.locator(`[data-k='panel.${which}']`), "timeline");
      check.equal(which, (await state(page)).selected, String(of[which]));
    }
    // On the host: the next event of the same name.
    const [first, second] = await page.evaluate(() => {
      const { host } = __lamina.model;
      const by = new Map();
      for (let i = 0; i < host.count; ++i)
        by.set(host.name[i], [...by.get(host.name[i]) ?? [], i]);
      const rows = [...by.values()].find((list) => list.length > 2);
      rows.sort((a, b) => host.start[a] - host.start[b] || a - b);
      return rows.map((row) => host.uid[row]);
    });
    await go(page, `#v=timeline&sel=${first}`, "timeline");
    await press(page, "]", "timeline");
    check.equal("] on the host", (await state(page)).selected, String(second));
    await press(page, "[", "timeline");
    check.equal("[ on the host", (await state(page)).selected, String(first));
  },
};
