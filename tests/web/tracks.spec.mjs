// SPDX-License-Identifier: Apache-2.0
//
// Which tracks the timeline draws and in which order, and the movable line of
// the short kernels.
import { click, go, open, pageOf, tablesOf, traces } from "./harness.mjs";

const trace = traces.owlv2 ?? traces.train;
const tracks = (page) => page.locator("[data-track]").evaluateAll((list) =>
  list.map((track) => track.dataset.track));
const option = (page, name) => page.evaluate((key) =>
  __lamina.state().options[key], name);
const byKey = (page, key) => page.locator(`[data-k="${key}"]`);

export default {
  "the order of tracks is part of the link": async (check) => {
    const file = pageOf(trace);
    const page = await open(file, { hash: "#v=timeline" });
    await byKey(page, "tl.tracks").click();
    const usual = await tracks(page);
    check.true("several tracks", usual.length > 4);
    check.equal("keys tell tracks apart", new Set(usual).size, usual.length);
    const uid = await page.evaluate(() => __lamina.model.device.uid[0]);
    const before = await page.evaluate((u) => __lamina.trackTop(u), uid);
    await click(page, byKey(page, `tl.down.${usual[0]}`), "timeline");
    const moved = [usual[1], usual[0], ...usual.slice(2)];
    check.equal("one down", await tracks(page), moved);
    check.equal("as few as needed are named",
                await option(page, "timeline.order"), usual[1]);
    check.equal("the focus stays", await page.evaluate(() =>
      document.activeElement.dataset.k), `tl.down.${usual[0]}`);
    const lane = usual.find((key) => key.startsWith("lane"));
    for (let at = (await tracks(page)).indexOf(lane); at > 0; --at)
      await click(page, byKey(page, `tl.up.${lane}`), "timeline");
    check.equal("a stream comes first", (await tracks(page))[0], lane);
    check.true("and is drawn there", await page.evaluate((u) =>
      __lamina.trackTop(u), uid) < before);
    const order = await tracks(page);
    const hash = await page.evaluate(() => location.hash);
    const again = await open(file, { hash });
    await byKey(again, "tl.tracks").click();
    check.equal("a link holds the order", await tracks(again), order);
    await click(page, byKey(page, "tl.usual"), "timeline");
    check.equal("as usual", await tracks(page), usual);
    check.equal("which needs no words",
                await option(page, "timeline.order") ?? "", "");
  },

  "what is hidden is part of the link": async (check) => {
    const page = await open(pageOf(trace), { hash: "#v=timeline" });
    await byKey(page, "tl.tracks").click();
    const usual = await tracks(page);
    const key = usual.find((name) => name.startsWith("lane"));
    const shown = () => byKey(page, `tl.show.${key}`).isChecked();
    check.true("drawn", await shown());
    await click(page, byKey(page, `tl.show.${key}`), "timeline");
    check.equal("hidden", [await shown(), await option(page, "timeline.tracks")],
                [false, key]);
    await click(page, byKey(page, `tl.show.${key}`), "timeline");
    check.true("drawn again", await shown());
  },

  "tracks that nobody has are dropped with a note": async (check) => {
    const page = await open(pageOf(trace), { hash: "#v=timeline" });
    await byKey(page, "tl.tracks").click();
    const usual = await tracks(page);
    for (const [bad, some] of [["nosuch", 1], ["%3Cimg%20src=x%3E,a,b", 3],
      ["__proto__,constructor", 2], [",,,", 0], ["9".repeat(3000), 1]]) {
      await go(page, `#v=timeline&o.timeline.order=${bad}`, "timeline");
      check.equal(bad.slice(0, 30), await tracks(page), usual);
      if (some === 0) continue;
      check.equal("the note", /(\d+) tracks? of the address/.exec(
        await page.locator("footer").textContent())?.[1] ?? "0", String(some));
    }
    await go(page, `#v=timeline&o.timeline.order=nosuch,${usual[2]}`,
             "timeline");
    check.equal("valid parts are used", (await tracks(page))[0], usual[2]);
  },

  "the line of the short kernels": async (check) => {
    const page = await open(pageOf(trace), { hash: "#v=kernels" });
    const bins = tablesOf(trace)("short_kernel_histogram");
    const line = page.locator(".limit .threshold");
    const slider = byKey(page, "short.limit");
    check.equal("at the right end", await slider.inputValue(),
                String(bins.length));
    await page.locator(".limit").scrollIntoViewIfNeeded();
    const box = await page.locator(".limit svg").boundingBox();
    // Left of the bars stand the numbers of the axis.
    const left = await page.locator(".limit .grid").first().getAttribute("x1");
    const wide = box.width - Number(left);
    const x = (bin) => box.x + Number(left) + wide * bin / bins.length;
    await page.mouse.move(x(bins.length) - 2, box.y + 40);
    await page.mouse.down();
    const wanted = Math.floor(bins.length / 2);
    await page.mouse.move(x(wanted), box.y + 40, { steps: 5 });
    await page.mouse.up();
    check.equal("dragged", await slider.inputValue(), String(wanted));
    check.equal("the line follows", await line.getAttribute("x1"),
                String(Number(left) + wide / bins.length * wanted));
    const below = bins.slice(0, wanted).reduce((sum, row) =>
      sum + Number(row.count), 0);
    check.equal("what is left of it", await page.locator(
      "output a").last().textContent(),
      `${below.toLocaleString("en-US")} events`);
    await page.mouse.move(x(1), box.y + 40);
    check.equal("not without the button", await slider.inputValue(),
                String(wanted));
  },
};
