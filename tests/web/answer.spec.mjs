// SPDX-License-Identifier: Apache-2.0
//
// The first screen: the answer above the timeline, in panes that stay; what is
// pointed at stays lit; zoom at the pointer; combined terms of the search box.
import { act, closePages, open, pageOf, press, run, search, traces,
         until } from "./harness.mjs";

const kSizes = [[900, 700], [1440, 900], [1920, 1080]];

function answerOf(trace) {
  return JSON.parse(run("report", trace, "--format", "json")).answer;
}
async function windowOf(page) {
  await until(page, () =>
    document.querySelector(".tracks canvas")?.dataset.window !== undefined);
  return page.evaluate(() => document.querySelector(".tracks canvas")
    .dataset.window.split("..").map(Number));
}

const tests = {
  "the answer": async (check) => {
    for (const [name, trace] of Object.entries(traces)) {
      const answer = answerOf(trace);
      const page = await open(pageOf(trace), { width: 1440, height: 900 });
      check.equal(`${name}: opens with the timeline`, await page.evaluate(() =>
        document.documentElement.dataset.ready), "timeline");
      check.equal(`${name}: sentence`,
        await page.locator("#answer h2").innerText(), answer.sentence);
      const text = await page.locator("#answer").innerText();
      for (const words of [answer.window, answer.mfu.shown,
                           answer.limited_by.shown, answer.together])
        check.true(`${name}: ${words}`, text.includes(words));
      const cards = await page.locator(".fix[data-fix]").allInnerTexts();
      check.equal(`${name}: fixes`, cards.length, answer.fixes.length);
      for (const [i, fix] of answer.fixes.entries()) {
        for (const words of [fix.do, fix.shown.after, fix.shown.gain, fix.how,
                             fix.sure])
          check.true(`${name}: fix ${i + 1}: ${words}`,
                     cards[i]?.includes(words));
      }
      // The bar has the shares of the engine.
      const idle = await page.evaluate(() => [...document.querySelectorAll(
        ".spent > span")].map((part) => [part.dataset.spent,
          Number(part.dataset.ns)]));
      for (const part of answer.bar.slice(1).filter((one) => one.ns > 0))
        check.equal(`${name}: bar: ${part.key}`,
          idle.find(([key]) => key === part.key)?.[1], part.ns);
      check.equal(`${name}: bar: all of it`,
        idle.reduce((sum, [, ns]) => sum + ns, 0),
        answer.window_ns * answer.devices.length);
      await closePages();
    }
  },

  "panes that stay": async (check) => {
    for (const [width, height] of kSizes) {
      for (const theme of ["light", "dark"]) {
        const page = await open(pageOf(traces.train), { width, height, theme });
        const size = `${width} x ${height} ${theme}`;
        const seen = await page.evaluate(() => {
          const root = document.documentElement;
          const box = (what) => {
            const { top, bottom, height } = document.querySelector(what)
              .getBoundingClientRect();
            return [top, bottom, height];
          };
          return { over: [root.scrollHeight - innerHeight,
                          root.scrollWidth - innerWidth],
                   panes: ["#answer", ".tracks", ".tl-rows", "aside"].map(box) };
        });
        check.equal(`${size}: the page does not scroll`, seen.over, [0, 0]);
        const [answer, tracks, rows, panel] = seen.panes;
        check.true(`${size}: panes in view ${JSON.stringify(seen.panes)}`,
          answer[0] > 0 && answer[1] <= tracks[0] && tracks[2] >= 80 &&
          tracks[1] <= rows[0] + 1 && tracks[1] <= panel[0] + 1 &&
          rows[1] <= height && panel[1] <= height);
        await closePages();
      }
    }
  },

  "what is pointed at stays lit": async (check) => {
    const page = await open(pageOf(traces.serve), { width: 1440, height: 900 });
    await page.locator(".fix[data-fix='1']").hover();
    check.equal("lit", await page.evaluate(() => __lamina.lit()),
                { of: "fix", kind: 0 });
    await page.mouse.move(5, 5);
    check.equal("nothing is", await page.evaluate(() => __lamina.lit()), null);
    const before = await windowOf(page);
    await act(page, "timeline", () =>
      page.locator("[data-k='answer.fix.1']").click());
    await until(page, (text) => (document.querySelector(".tracks canvas")
      .dataset.window ?? text) !== text, before.join(".."));
    check.true("the view goes there",
               String(await windowOf(page)) !== String(before));
    check.true("the panel has it", (await page.locator("aside").innerText())
      .startsWith(`1 ${answerOf(traces.serve).fixes[0].do}`));
    await page.mouse.move(5, 5);
    await press(page, "Escape", "timeline");
    // The card that has the focus stays lit.
    await page.evaluate(() => document.activeElement.blur());
    check.equal("Escape closes it", await page.evaluate(() => __lamina.lit()),
                null);
    await closePages();
  },

  "zoom at the pointer": async (check) => {
    const page = await open(pageOf(traces.train), { width: 1440, height: 900 });
    const box = await page.locator(".tracks canvas").first().boundingBox();
    const [left, x] = [180, 180 + (box.width - 180) * 0.7];
    await page.mouse.move(box.x + x, box.y + 60);
    const at = ([from, to]) => from + (to - from) * (x - left) /
      (box.width - left);
    for (const zoom of [() => page.keyboard.press("w"),
                        () => page.keyboard.press("s"),
                        () => page.mouse.wheel(0, -240)]) {
      const before = await windowOf(page);
      await zoom();
      await until(page, (text) => (document.querySelector(".tracks canvas")
        .dataset.window ?? text) !== text, before.join(".."));
      const after = await windowOf(page);
      check.true(`the time below the pointer stays: ${before}, ${after}`,
        Math.abs(at(before) - at(after)) < (after[1] - after[0]) /
          (box.width - left));
    }
    await closePages();
  },

  "combined terms": async (check) => {
    const page = await open(pageOf(traces.train), { width: 1440, height: 900 });
    const expected = await page.evaluate(async () => {
      const { model } = __lamina;
      await model.require(["device", "kernels", "layers"]);
      const { device } = model;
      const [kernels, layers] = [model.table("kernels"), model.table("layers")];
      let [count, time] = [0, 0];
      for (let row = 0; row < device.count; ++row) {
        const op = device.kernel[row] > 0
          ? kernels.str(device.kernel[row] - 1, "op") : "";
        const layer = device.layer[row] > 0
          ? layers.num(device.layer[row] - 1, "layer") : -1;
        if (!op.includes("mm") || device.dur[row] <= 20_000 || layer < 1 ||
            layer > 3) continue;
        ++count;
        time += device.dur[row];
      }
      return { count, time };
    });
    const [, hit] = await search(page, "op:mm dur>20us layer:1-3");
    check.true(`${expected.count} events: ${hit}`, expected.count > 0 &&
      hit.startsWith(`${expected.count} event`));
    await press(page, "Enter", "timeline");
    check.equal("the filter is what was counted",
                await page.evaluate(() => __lamina.selection()), expected);
    await search(page, "op:mm -layer:1-3 dur>20us");
    check.true("an unknown key is named", (await search(page, "oops:mm dur>1us"))
      .join(" ").includes("oops: is no key"));
    check.true("SQL is a command", (await search(page, "select 1"))
      .join(" ").includes("lamina query "));
    await closePages();
  },
};

export default tests;
