// SPDX-License-Identifier: Apache-2.0
//
// An area of tracks and time with its sums, the keys that people know from
// Perfetto, flags.
import { act, click, copied, go, open, pageOf, press, traces, until } from
  "./harness.mjs";

const state = (page) => page.evaluate(() => __lamina.state());
const canvas = (page) => page.locator("[data-k='timeline.canvas']");
const windowOf = async (page) => {
  await until(page, () => document.querySelector(
    "[data-k='timeline.canvas']").dataset.window !== undefined);
  return (await canvas(page).getAttribute("data-window")).split("..").map(Number);
};

async function drag(page, from, to, ...keys) {
  for (const key of keys) await page.keyboard.down(key);
  await act(page, "timeline", async () => {
    await page.mouse.move(from.x, from.y);
    await page.mouse.down();
    await page.mouse.move((from.x + to.x) / 2, (from.y + to.y) / 2);
    await page.mouse.move(to.x, to.y);
    await page.mouse.up();
  });
  for (const key of keys) await page.keyboard.up(key);
}

// What lies in an area, one nanosecond range at a time.
const plain = (page, from, to) => page.evaluate(([a, b]) => {
  const { device } = __lamina.model;
  const parts = [];
  let time = 0;
  for (let i = 0; i < device.count; ++i) {
    const start = Math.max(device.start[i], a);
    const end = Math.min(device.start[i] + device.dur[i], b);
    if (end <= start) continue;
    parts.push([start, end]);
    time += end - start;
  }
  parts.sort((x, y) => x[0] - y[0]);
  let [busy, last] = [0, -Infinity];
  for (const [start, end] of parts) {
    busy += Math.max(0, end - Math.max(start, last));
    last = Math.max(last, end);
  }
  return { events: parts.length, time, busy, idle: b - a - busy };
}, [from, to]);
const shownTime = (ns) => ns >= 1e6 ? (ns / 1e6).toFixed(ns >= 1e7 ? 2 : 3) + " ms"
  : ns >= 1e3 ? (ns / 1e3).toFixed(ns >= 1e5 ? 1 : ns >= 1e4 ? 2 : 3) + " \u00b5s"
  : ns === 0 ? "0" : ns + " ns";

export default {
  "an area and its sums": async (check) => {
    const page = await open(pageOf(traces.train), { hash: "#v=timeline",
                                                    width: 1440 });
    const box = await canvas(page).boundingBox();
    await drag(page, { x: box.x + 400, y: box.y + 40 },
               { x: box.x + 700, y: box.y + box.height - 20 }, "Shift");
    const option = (await state(page)).options["timeline.area"];
    const [from, to] = option.split("..").map(Number);
    const want = await plain(page, from, to);
    const words = await page.locator("#areasums").textContent();
    check.true(`events and time: ${words}`, words.startsWith(
      `${want.events} device events, ${shownTime(want.time)} inside`));
    check.true(`busy ${shownTime(want.busy)}`,
               words.includes(`busy ${shownTime(want.busy)} (`));
    check.true(`idle ${shownTime(want.idle)}`,
               words.includes(`idle ${shownTime(want.idle)} (`));
    // Each way to add up says the same time.
    for (const by of ["", "kernel", "op", "stream", "event"]) {
      const { zoom } = await state(page);
      await go(page, `#v=timeline&z=${zoom.join("..")}&o.timeline.area=${option}` +
        (by ? `&o.timeline.by=${by}` : ""), "timeline");
      const csv = await copied(page, () => page.locator(
        ".area [data-copy=csv]").click());
      const events = csv.trim().split("\n").slice(1).reduce((sum, line) =>
        sum + Number(line.split(",").at(-2)), 0);
      check.equal(`events by ${by || "family"}`, events, want.events);
    }
    check.true("counters", /least.*mean.*most/s.test(await page.locator(".area")
      .innerText()));
    // An edge is dragged.
    await page.evaluate(() => scrollTo(0, 0));
    const now = await canvas(page).boundingBox();
    const edge = (await page.evaluate((t) => __lamina.counterPlace("", t), to)).x;
    await drag(page, { x: now.x + edge, y: now.y + 60 },
               { x: now.x + edge + 100, y: now.y + 60 });
    const moved = (await state(page)).options["timeline.area"].split("..")
      .map(Number);
    check.true("the other edge stays", moved[0] === from);
    check.true("this one goes along", moved[1] > to);
    const wider = await plain(page, ...moved);
    check.true("and the sums with it", (await page.locator("#areasums")
      .textContent()).startsWith(`${wider.events} device events`));
    await click(page, page.locator("[data-k='area.filter']"), "timeline");
    check.equal("filter to it", await page.evaluate(() =>
      __lamina.selection().time), wider.time);
    const text = await copied(page, () => page.locator("[data-k='area.command']")
      .click());
    check.true("as command", text.startsWith("lamina slice") &&
               text.includes("--where time="));
    await click(page, page.locator("[data-k='area.clear']"), "timeline");
    check.equal("cleared", await page.locator(".area").count(), 0);
  },

  "keys as in Perfetto": async (check) => {
    const page = await open(pageOf(traces.train), { hash: "#v=timeline&fam=gemm",
                                                    width: 1440 });
    await canvas(page).focus();
    const rows = await page.evaluate(() => {
      const { device } = __lamina.model;
      const mask = __lamina.filterMask(__lamina.state().chips);
      return [...device.start.keys()].filter((i) => mask[i])
        .sort((a, b) => device.start[a] - device.start[b] || a - b)
        .map((i) => ({ uid: device.uid[i], start: device.start[i],
                       dur: device.dur[i] }));
    });
    await press(page, "Enter", "timeline");
    check.equal("Enter takes the first", (await state(page)).selected,
                String(rows[0].uid));
    check.equal("says its place", await page.locator("footer").textContent(),
                `1 of ${rows.length}`);
    await press(page, "Enter", "timeline");
    check.equal("the next", (await state(page)).selected, String(rows[1].uid));
    const [from, to] = await windowOf(page);
    check.true("in the middle, or at the edge of the trace", from <= 0 ||
      Math.abs((from + to) / 2 - rows[1].start - rows[1].dur / 2) < 2);
    await press(page, "Shift+Enter", "timeline");
    await press(page, "Shift+Enter", "timeline");
    check.equal("round to the last", (await state(page)).selected,
                String(rows.at(-1).uid));
    await page.keyboard.press("f");
    const [a, b] = await windowOf(page);
    const last = rows.at(-1);
    check.true("F shows the selection", a <= last.start &&
      b >= last.start + last.dur && b - a < 10 * last.dur + 100_000);
    await page.keyboard.press("f");
    const [c, d] = await windowOf(page);
    check.true("again everything", d - c > 5 * (b - a));
    await press(page, "q", "timeline");
    const order = (await state(page)).options["timeline.order"];
    check.true("Q pins its stream", /^lane\./.test(order));
    await press(page, "q", "timeline");
    check.equal("and lets it go", (await state(page)).options["timeline.order"],
                undefined);
    // A double click goes closer, at the pointer; ctrl and wheel need no focus.
    const box = await page.locator(".tracks").boundingBox();
    const before = await windowOf(page);
    await page.mouse.dblclick(box.x + 800, box.y + box.height - 8);
    await until(page, ([x, y]) => {
      const now = document.querySelector("[data-k='timeline.canvas']").dataset
        .window?.split("..").map(Number);
      return now && now[1] - now[0] < (y - x) * 0.6;
    }, before);
    await page.locator("[data-k='tl.tracks']").focus();
    const closer = await windowOf(page);
    await page.mouse.move(box.x + 800, box.y + box.height - 8);
    await page.keyboard.down("Control");
    await page.mouse.wheel(0, -300);
    await page.keyboard.up("Control");
    await until(page, ([x, y]) => {
      const now = document.querySelector("[data-k='timeline.canvas']").dataset
        .window?.split("..").map(Number);
      return now && now[1] - now[0] < (y - x) * 0.9;
    }, closer);
    check.true("both zoom in", true);
  },

  "flags are part of the link": async (check) => {
    const page = await open(pageOf(traces.train), { hash: "#v=timeline" });
    await canvas(page).focus();
    await press(page, "n", "timeline");
    const note = page.locator("[data-k='flag.0']");
    await note.fill("here; <b>it</b> begins");
    await act(page, "timeline", () => note.press("Enter"));
    const href = await page.evaluate(() => location.hash);
    const again = await open(pageOf(traces.train), { hash: href });
    check.equal("the note", await again.locator("[data-k='flag.0']").inputValue(),
                "here, <b>it</b> begins");
    await click(again, again.locator("[data-k='flag.x.0']"), "timeline");
    check.equal("gone", await again.locator(".flags").count(), 0);
    for (const hash of ["o.timeline.flags=x:y;;5:", "o.timeline.area=9..1",
                        "o.timeline.area=1..5&o.timeline.in=nothing"]) {
      await go(again, "#v=timeline&" + hash, "timeline");
      check.true(hash, await canvas(again).count() === 1);
    }
  },
};
