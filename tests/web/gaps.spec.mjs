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
    const [drawing, beside] = await Promise.all(["canvas[tabindex]", "aside"]
      .map((what) => page.locator(what).boundingBox()));
    check.true("the panel covers nothing of the tracks",
               drawing.x + drawing.width <= beside.x + 1);
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
};
